//! The number of instructions of a plan, which is the same in every run. Use
//! `cargo xtask instructions`, which installs the runner.

mod cases;

use std::hint::black_box;

use cases::Case;
use endpointd_plan::Plan;
use gungraun::{library_benchmark, library_benchmark_group, main};

#[library_benchmark]
#[bench::published_10(cases::published_with_one_change(10))]
#[bench::published_1000(cases::published_with_one_change(1000))]
#[bench::published_5000(cases::published_with_one_change(5000))]
#[bench::cold_10(cases::cold(10))]
#[bench::cold_1000(cases::cold(1000))]
#[bench::thousand_ports_100(cases::many_ports(1000, 100))]
#[bench::thousand_ports_1000(cases::many_ports(1000, 1000))]
fn plan(case: Case) -> (Plan, Case) {
    // The case is returned so that dropping it is not counted.
    (black_box(case.plan()), case)
}

library_benchmark_group!(name = plans, benchmarks = plan);
main!(library_benchmark_groups = plans);

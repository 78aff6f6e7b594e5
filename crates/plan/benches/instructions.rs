//! How many instructions a plan takes: the same number on every run, however busy the machine.
//! `cargo xtask instructions` gets the runner it needs.

mod cases;

use std::hint::black_box;

use cases::Case;
use endpointd_plan::Plan;
use gungraun::{library_benchmark, library_benchmark_group, main};

#[library_benchmark]
#[bench::settled_10(cases::settled_with_a_flip(10))]
#[bench::settled_1000(cases::settled_with_a_flip(1000))]
#[bench::settled_5000(cases::settled_with_a_flip(5000))]
#[bench::cold_10(cases::cold(10))]
#[bench::cold_1000(cases::cold(1000))]
#[bench::thousand_ports_100(cases::many_ports(1000, 100))]
#[bench::thousand_ports_1000(cases::many_ports(1000, 1000))]
fn plan(case: Case) -> (Plan, Case) {
    // The case is handed back so that taking it down is not counted.
    (black_box(case.plan()), case)
}

library_benchmark_group!(name = plans, benchmarks = plan);
main!(library_benchmark_groups = plans);

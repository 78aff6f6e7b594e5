//! The time of a plan: `cargo bench -p endpointd-plan`. `cargo xtask instructions` counts the
//! instructions of the same cases, which do not depend on the load of the machine.

mod cases;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn published_with_one_change(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("published, one pod becomes not ready");
    for n_pods in [10, 1000, 5000] {
        let case = cases::published_with_one_change(n_pods);
        group.throughput(Throughput::Elements(n_pods as u64));
        group.bench_function(BenchmarkId::from_parameter(n_pods), |bencher| {
            bencher.iter(|| black_box(case.plan()));
        });
    }
}

fn cold(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("cold");
    for n_pods in [10, 1000, 5000] {
        let case = cases::cold(n_pods);
        group.throughput(Throughput::Elements(n_pods as u64));
        group.bench_function(BenchmarkId::from_parameter(n_pods), |bencher| {
            bencher.iter(|| black_box(case.plan()));
        });
    }
}

fn many_ports(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("a thousand ports");
    for n_pods in [10, 100, 1000] {
        let case = cases::many_ports(1000, n_pods);
        group.throughput(Throughput::Elements(n_pods as u64));
        group.bench_function(BenchmarkId::from_parameter(n_pods), |bencher| {
            bencher.iter(|| black_box(case.plan()));
        });
    }
}

criterion_group!(benches, published_with_one_change, cold, many_ports);
criterion_main!(benches);

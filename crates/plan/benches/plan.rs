//! How long a plan takes: `cargo bench -p endpointd-plan`. `cargo xtask instructions` counts the
//! instructions of the same cases, which a busy machine cannot blur.

mod cases;

use std::hint::black_box;

use criterion::{BenchmarkId, Criterion, Throughput, criterion_group, criterion_main};

fn settled_with_a_flip(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("settled, one pod flips");
    for n_pods in [10, 1000, 5000] {
        let case = cases::settled_with_a_flip(n_pods);
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

criterion_group!(benches, settled_with_a_flip, cold, many_ports);
criterion_main!(benches);

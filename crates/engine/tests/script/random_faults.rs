//! Random changes with delayed watches, lost responses, relists, and changes of leadership. After
//! the faults end, the published objects must become correct and no further write may follow.

use std::collections::BTreeSet;
use std::time::Duration;

use endpointd_engine::{AdditionDelay, InPlaceCheck, InPlaceSettings, Input, Settings};
use endpointd_model::{Object, Phase, PublishedResource, Uid, WatchedResource};
use endpointd_rng::SplitMix64;

use crate::cluster::{Cluster, WriteFault};
use crate::objects::{addresses, endpoints, key, node, pod, ready, service, unready};

const STEPS: usize = 120;
const SERVICES: [&str; 3] = ["web", "api", "db"];
const PODS: u64 = 6;

fn any_service(rng: &mut SplitMix64) -> &'static str {
    rng.pick(&SERVICES)
}

fn any_resource(rng: &mut SplitMix64) -> WatchedResource {
    rng.pick(&WatchedResource::ALL)
}

fn change_pods(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let name = format!("{}-{}", any_service(rng), rng.below(PODS));
    let at = key(&name);
    if !cluster.api.pods.contains(&at) {
        return cluster.put_pod(pod(&name));
    }
    match rng.below(5) {
        0 => cluster.remove_pod(&at),
        1 => cluster.change_pod(&at, unready),
        2 => cluster.change_pod(&at, ready),
        3 => cluster.change_pod(&at, |pod| pod.phase = Phase::Failed),
        _ => cluster.change_pod(&at, |pod| pod.is_terminating = true),
    }
}

fn change_services(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let name = any_service(rng);
    let at = key(name);
    let Some(old) = cluster.service(&at).cloned() else {
        let uid = Uid::from(format!("{name}-{}", rng.below(1 << 40)).as_str());
        return cluster.put_service(endpointd_model::Service { uid, ..service(name) });
    };
    match rng.below(3) {
        0 => cluster.remove_service(&at),
        1 => {
            let labels = crate::objects::labels(any_service(rng));
            let service = endpointd_model::Service { labels, ..old };
            cluster.put_service(service);
        }
        _ => {
            let publish_not_ready = rng.below(2) == 0;
            cluster.put_service(endpointd_model::Service { publish_not_ready, ..old });
        }
    }
}

/// Another client deletes or empties a published object.
fn edit_published(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let all: Vec<_> = cluster.published();
    if all.is_empty() {
        return;
    }
    let (resource, at) = all[rng.below(all.len() as u64) as usize].clone();
    if rng.below(2) == 0 {
        return cluster.remove_object(resource, &at);
    }
    let mut object = cluster.object(resource, &at).expect("just listed");
    match &mut object {
        Object::Slice(slice) => drop(slice.endpoints.pop()),
        Object::Endpoints(endpoints) => endpoints.subsets.clear(),
        Object::ServiceStatus(status) => status.condition = None,
        Object::MultiCluster(_) => return,
    }
    cluster.put_object(object);
}

pub fn inject_fault(cluster: &mut Cluster, rng: &mut SplitMix64, settings: &Settings) {
    let fault = match rng.below(6) {
        0 => WriteFault::AppliedNoResponse,
        1 => WriteFault::DroppedNoResponse,
        2 => WriteFault::Unreachable,
        3 => WriteFault::Throttled(rng.below(3) as u32),
        _ => WriteFault::None,
    };
    match rng.below(8) {
        0 => cluster.hold_watch(any_resource(rng)),
        1 => cluster.release_watches(),
        2 => cluster.list(any_resource(rng)),
        3 if rng.below(2) == 0 => cluster.responses_last = rng.below(2) == 0,
        3 => cluster.reads_fail = rng.below(2) == 0,
        4 => {
            cluster.handle(Input::LeadershipLost);
            cluster.run();
            cluster.handle(Input::LeadershipAcquired);
        }
        5 if rng.below(4) == 0 => cluster.restart_with(settings.clone()),
        _ => cluster.write_faults.push_back(fault),
    }
}

/// In every third run additions wait if one endpoint is ready already. In every second one, Services
/// have several slices, and plans in place are compared with plans of the whole Service.
fn settings(seed: u64) -> Settings {
    let mut settings = Settings { seed, ..Settings::default() };
    if seed.is_multiple_of(2) {
        settings.plan.endpoints_per_slice_max = 2;
        let in_place = InPlaceSettings { slices_min: 1, check: InPlaceCheck::Compare };
        settings.controllers.iter_mut().for_each(|one| one.in_place = in_place);
    }
    if seed.is_multiple_of(3) {
        let addition_delay = AdditionDelay {
            undelayed_endpoints: 1,
            per_endpoint: Duration::from_millis(300),
            max: Duration::from_secs(1),
        };
        settings.controllers.iter_mut().for_each(|one| one.addition_delay = addition_delay);
    }
    settings
}

fn run_random_faults(seed: u64) -> Cluster {
    let mut rng = SplitMix64::new(seed);
    let mut cluster = Cluster::new(settings(seed));
    cluster.put_node(node("n"));
    cluster.start();
    for _ in 0..STEPS {
        match rng.below(10) {
            0..=4 => change_pods(&mut cluster, &mut rng),
            5 => change_services(&mut cluster, &mut rng),
            6 => edit_published(&mut cluster, &mut rng),
            7 if rng.below(4) == 0 && cluster.has_node("n") => cluster.remove_node("n"),
            7 => cluster.put_node(node("n")),
            _ => inject_fault(&mut cluster, &mut rng, &settings(seed)),
        }
        if rng.below(3) > 0 {
            cluster.advance(Duration::from_millis(rng.below(700)));
        }
    }
    cluster
}

/// Computes what must be published directly from the cluster, and compares.
fn check(cluster: &Cluster, seed: u64) {
    for name in SERVICES {
        let Some(service) = cluster.service(&key(name)) else {
            let leftover = cluster.object(PublishedResource::Endpoints, &key(name));
            assert!(leftover.is_none(), "seed {seed}: Endpoints of `{name}` were not deleted");
            continue;
        };
        let mut want = BTreeSet::new();
        let mut want_addresses = BTreeSet::new();
        for pod in cluster.api.pods.values().filter(|pod| pod.phase == Phase::Active) {
            if !service.selector.selects(&pod.labels) {
                continue;
            }
            let endpointd_model::PodIp::Ip(ip) = &pod.ips.all[0] else { panic!("an address") };
            let serves = pod.is_ready() && !pod.is_terminating || service.publish_not_ready;
            let has_node = cluster.has_node("n") || service.publish_not_ready;
            if has_node {
                want.insert(format!("{ip} {}", if serves { "ready" } else { "unready" }));
            }
            if !pod.is_terminating || service.publish_not_ready {
                let is_ready = pod.is_ready() || service.publish_not_ready;
                want_addresses.insert(if is_ready { format!("{ip}") } else { format!("({ip})") });
            }
        }
        let of_this = |one: &&endpointd_model::EndpointSlice| {
            one.meta.owners.iter().any(|owner| owner.uid == service.uid)
        };
        assert!(cluster.slices().iter().any(of_this), "seed {seed}: `{name}` has no slices");
        let got: Vec<String> = endpoints(cluster, name);
        assert_eq!(got, want.into_iter().collect::<Vec<_>>(), "seed {seed}: slices of `{name}`");
        let got: BTreeSet<String> = addresses(cluster, name).into_iter().collect();
        assert_eq!(got, want_addresses, "seed {seed}: Endpoints of `{name}`");
    }
}

fn check_seed(seed: u64) {
    let mut cluster = run_random_faults(seed);
    cluster.write_faults.clear();
    cluster.reads_fail = false;
    cluster.release_watches();
    // The garbage collector deletes the slices of deleted Services.
    let uids: BTreeSet<Uid> = cluster.api.services.values().map(|one| one.uid.clone()).collect();
    let is_orphan = |slice: &&endpointd_model::EndpointSlice| {
        slice.meta.owners.iter().all(|owner| !uids.contains(&owner.uid))
    };
    let orphans: Vec<_> =
        cluster.slices().into_iter().filter(is_orphan).map(|slice| slice.meta.key()).collect();
    for orphan in orphans {
        cluster.remove_object(PublishedResource::Slices, &orphan);
    }
    cluster.advance(Duration::from_secs(40));
    check(&cluster, seed);
    cluster.clear_log();
    cluster.advance(Duration::from_secs(600));
    assert_eq!(cluster.sent, [""; 0], "seed {seed}: writes after convergence");
    assert_eq!(cluster.report().keys, [], "seed {seed}: keys are not idle");
    assert_eq!(cluster.report().sizes.n_tombstones, 0, "seed {seed}: a tombstone was not dropped");
    cluster.restart();
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0], "seed {seed}: a restart writes");
}

#[test]
fn random_faults_converge_to_the_correct_state() {
    for seed in 0..1000 {
        check_seed(seed);
    }
}

/// 7653: a Service was deleted while its Endpoints were being created, and they stayed.
#[test]
fn kept_seeds_converge() {
    check_seed(7653);
}

//! However many requests a plan has, only so many are in flight, and those of other keys find room.

use std::collections::VecDeque;
use std::time::Duration;

use endpointd_engine::{ControllerSettings, Effect, Input, RequestId, Settings, WRITES_MAX};
use endpointd_memory_api::NamespaceState;
use endpointd_model::{Controller, Key, LiveRead, Service, WatchedResource};

use crate::cluster::{Cluster, WriteFault};
use crate::objects::{converged, endpoints, key, labels, node, pod, service, unready};

/// What one namespace may have in flight.
const SHARE: usize = WRITES_MAX / 2;
const N_PODS: usize = 300;

/// A Service `big` with one slice for each of its pods, and a small one in each of two namespaces.
fn big_and_small() -> Cluster {
    let mut settings = Settings::default();
    settings.plan.endpoints_per_slice_max = 1;
    settings.controllers = vec![ControllerSettings::new(Controller::Slices)];
    let mut cluster = Cluster::new(settings);
    cluster.api.namespaces.insert("other".into(), NamespaceState::Active);
    cluster.put_node(node("n"));
    cluster.put_service(service("big"));
    (0..N_PODS).for_each(|n| cluster.put_pod(pod(&format!("big-{n}"))));
    cluster.put_service(service("small"));
    cluster.put_pod(pod("small-0"));
    cluster.put_service(Service { namespace: "other".into(), ..service("far") });
    cluster.put_pod(endpointd_model::Pod { namespace: "other".into(), ..pod("far-0") });
    cluster.start();
    cluster.advance(Duration::from_secs(1));
    cluster.clear_log();
    cluster.responses_last = true;
    cluster
}

/// Every slice of `big` must be updated.
fn relabel(cluster: &mut Cluster) {
    let relabelled = Service { labels: labels("changed"), ..service("big") };
    cluster.put_service(relabelled);
}

fn position(cluster: &Cluster, name: &str) -> usize {
    let sent = cluster.sent.iter().position(|sent| sent.contains(name));
    sent.unwrap_or_else(|| panic!("nothing sent for {name}: {:?}", cluster.sent))
}

#[test]
fn large_plan_is_sent_in_turns() {
    let mut cluster = big_and_small();
    relabel(&mut cluster);
    let mut n_max = 0;
    while cluster.step() {
        n_max = n_max.max(cluster.engine.n_writes());
    }
    assert_eq!(n_max, SHARE);
    assert_eq!(cluster.sent.len(), N_PODS, "progress is guaranteed");
    assert_eq!(cluster.engine.n_writes(), 0);
}

#[test]
fn removals_of_other_keys_overtake_a_large_plan() {
    let mut cluster = big_and_small();
    relabel(&mut cluster);
    cluster.step_until_sent(SHARE);
    cluster.change_pod(&key("small-0"), unready);
    cluster.change_pod(&Key::new("other", "far-0"), unready);
    cluster.run();
    assert_eq!(position(&cluster, "far-"), SHARE, "another namespace has seats of its own");
    assert!(position(&cluster, "small-") <= SHARE + 2, "the next free seat");
    assert_eq!(cluster.sent.len(), N_PODS + 2);
}

#[test]
fn writes_that_wait_are_not_sent_during_a_pause() {
    let mut cluster = big_and_small();
    cluster.write_faults.push_back(WriteFault::Throttled(30));
    relabel(&mut cluster);
    cluster.run();
    let n_before = cluster.sent.len();
    assert!(n_before <= SHARE, "{n_before}");
    cluster.advance(Duration::from_secs(29));
    assert_eq!(cluster.sent.len(), n_before);
    cluster.advance(Duration::from_secs(31));
    assert_eq!(cluster.sent.len(), N_PODS + 1, "and the one that was throttled again");
}

#[test]
fn writes_that_wait_are_dropped_with_the_leadership() {
    let mut cluster = big_and_small();
    relabel(&mut cluster);
    cluster.step_until_sent(SHARE);
    cluster.handle(Input::LeadershipLost);
    cluster.run();
    assert_eq!(cluster.sent.len(), SHARE);
    assert!(cluster.engine.is_idle() && cluster.engine.n_writes() == 0);
    cluster.handle(Input::LeadershipAcquired);
    cluster.run();
    assert_eq!(cluster.sent.len(), N_PODS, "the rest");
}

/// Nodes that all have one pod of `web` each; another pod of `web` needs none.
fn cluster_with_nodes(n_nodes: usize) -> Cluster {
    let mut cluster = converged(&[("web", 1)]);
    for n in 0..n_nodes {
        cluster.put_node(node(&format!("n{n}")));
        let on_node = Some(format!("n{n}").as_str().into());
        cluster
            .put_pod(endpointd_model::Pod { node_name: on_node, ..pod(&format!("web-{}", n + 1)) });
    }
    cluster.advance(Duration::from_secs(5));
    assert_eq!(endpoints(&cluster, "web").len(), n_nodes + 1);
    cluster.clear_log();
    cluster
}

/// Performs effects; live reads are only collected.
fn start_reads(cluster: &mut Cluster, in_flight: &mut Vec<(RequestId, LiveRead)>) {
    while let Some(effect) = cluster.engine.next(cluster.now) {
        match effect {
            Effect::LiveRead { id, read } => in_flight.push((id, read)),
            other => cluster.perform(other),
        }
        assert!(in_flight.len() <= 16, "half of the seats for reads");
    }
}

fn answer_all_reads(cluster: &mut Cluster, mut in_flight: Vec<(RequestId, LiveRead)>) {
    start_reads(cluster, &mut in_flight);
    while let Some((id, read)) = in_flight.pop() {
        cluster.answer_read(id, &read);
        start_reads(cluster, &mut in_flight);
    }
}

#[test]
fn live_reads_are_bounded() {
    let n_nodes = 200;
    let mut cluster = cluster_with_nodes(n_nodes);
    (0..n_nodes).for_each(|n| cluster.remove_node(&format!("n{n}")));
    while cluster.deliver() {}
    answer_all_reads(&mut cluster, Vec::new());
    cluster.advance(Duration::from_secs(5));
    assert_eq!(endpoints(&cluster, "web").len(), 1, "those on deleted nodes are gone");
    assert_eq!(cluster.live_reads.len(), n_nodes, "each node was read once");
}

#[test]
fn thousand_deleted_nodes_cost_no_endpoint_before_each_is_read() {
    let (n_nodes, n_back) = (1000, 300);
    let mut cluster = cluster_with_nodes(n_nodes);
    (0..n_nodes).for_each(|n| cluster.remove_node(&format!("n{n}")));
    while cluster.deliver() {}
    let mut in_flight = Vec::new();
    for _ in 0..20 {
        start_reads(&mut cluster, &mut in_flight);
        cluster.now = cluster.now + Duration::from_secs(1);
    }
    assert_eq!(cluster.sent, [""; 0], "the API server has not answered yet");
    assert_eq!(endpoints(&cluster, "web").len(), n_nodes + 1);

    (0..n_back).for_each(|n| cluster.put_node(node(&format!("n{n}"))));
    while cluster.deliver() {}
    answer_all_reads(&mut cluster, in_flight);
    cluster.advance(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web").len(), n_back + 1, "those on nodes that exist");
    assert!(cluster.live_reads.len() <= n_nodes, "{}", cluster.live_reads.len());
    assert_eq!(cluster.report().keys, []);
}

#[test]
fn read_of_a_node_that_returned_is_not_sent() {
    let mut cluster = converged(&[("web", 1)]);
    for n in 0..40 {
        let on_node = Some(format!("n{n}").as_str().into());
        cluster
            .put_pod(endpointd_model::Pod { node_name: on_node, ..pod(&format!("web-{}", n + 1)) });
    }
    cluster.hold_watch(WatchedResource::Nodes);
    while cluster.deliver() {}
    let mut first = Vec::new();
    while let Some(effect) = cluster.engine.next(cluster.now) {
        match effect {
            Effect::LiveRead { id, read } => first.push((id, read)),
            other => cluster.perform(other),
        }
    }
    (0..40).for_each(|n| cluster.put_node(node(&format!("n{n}"))));
    cluster.release_watches();
    let n_first = first.len();
    first.iter().for_each(|(id, read)| cluster.answer_read(*id, read));
    cluster.run();
    assert_eq!((n_first, cluster.live_reads.len()), (16, 16), "the others were cancelled");
    assert_eq!(endpoints(&cluster, "web").len(), 41);
}

/// Writes in namespace `ns` take 10 s, as with a slow webhook; others no time. Returns when the
/// first write in namespace `other` was sent.
fn run_with_slow_namespace(cluster: &mut Cluster, change: impl Fn(&mut Cluster)) -> Duration {
    let (start, mut slow) = (cluster.now, VecDeque::new());
    let (mut changed, mut sent) = (false, None);
    loop {
        match cluster.engine.next(cluster.now) {
            Some(Effect::Send { id, controller, write }) if &*write.key().namespace == "ns" => {
                let due = cluster.now + Duration::from_secs(10);
                slow.push_back((due, Effect::Send { id, controller, write }));
            }
            Some(effect) => {
                if let Effect::Send { .. } = effect {
                    sent.get_or_insert(cluster.now.since(start));
                }
                cluster.perform(effect);
            }
            None if cluster.deliver() => {}
            None => {
                let change_at = start + Duration::from_millis(100);
                let next = slow.front().map(|(due, _)| *due);
                let next = next.into_iter().chain(cluster.engine.wake_at());
                let next = next.chain((!changed).then_some(change_at)).min();
                let Some(next) = next else { break };
                cluster.now = cluster.now.max(next);
                if !changed && cluster.now >= change_at {
                    changed = true;
                    change(cluster);
                }
                if slow.front().is_some_and(|(due, _)| *due <= cluster.now) {
                    let (_, effect) = slow.pop_front().expect("not empty");
                    cluster.perform(effect);
                }
            }
        }
        assert!(slow.len() <= 10, "five syncs of each controller");
    }
    sent.expect("the change was written")
}

#[test]
fn slow_writes_of_one_namespace_do_not_delay_removals_elsewhere() {
    let names: Vec<String> = (0..50).map(|n| format!("s{n}")).collect();
    let services: Vec<(&str, usize)> = names.iter().map(|name| (name.as_str(), 1)).collect();
    let mut cluster = converged(&services);
    cluster.api.namespaces.insert("other".into(), NamespaceState::Active);
    cluster.put_service(Service { namespace: "other".into(), ..service("far") });
    cluster.put_pod(endpointd_model::Pod { namespace: "other".into(), ..pod("far-0") });
    cluster.advance(Duration::from_secs(5));
    cluster.clear_log();
    names.iter().for_each(|name| cluster.change_pod(&key(&format!("{name}-0")), unready));
    let start = cluster.now;
    let sent = run_with_slow_namespace(&mut cluster, |cluster| {
        cluster.change_pod(&Key::new("other", "far-0"), unready);
    });
    assert!(sent <= Duration::from_millis(600), "{sent:?}");
    assert_eq!(cluster.sent.len(), 102, "everything is written");
    let took = cluster.now.since(start);
    assert!(took <= Duration::from_secs(110), "{took:?}: five at a time, ten seconds each");
}

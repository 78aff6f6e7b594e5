//! The properties on all cluster states with up to four pods (or addresses) and three slices of at
//! most two endpoints.

use crate::checks;
use crate::generators::{self, Case};
use endpointd_model::{
    Controller, EndpointAddress, EndpointSlice, Endpoints, Family, Key, Node, Pod, PodIp, PodIps,
    Readiness, Service, Subset, SubsetPort, Uid, Write,
};
use endpointd_plan::{CarriedState, ClusterState, Settings};

const N_PODS: usize = 4;
const N_SLICES: usize = 3;

/// The state of one pod or address.
#[derive(Clone, Copy, PartialEq)]
enum State {
    Absent,
    Ready,
    Unready,
}

const STATES: [State; 3] = [State::Absent, State::Ready, State::Unready];

/// All combinations of states.
fn populations() -> impl Iterator<Item = [State; N_PODS]> {
    let n_all = STATES.len().pow(N_PODS as u32);
    (0..n_all).map(|n| std::array::from_fn(|i| STATES[n / STATES.len().pow(i as u32) % 3]))
}

/// All contents of one slice: no slice, no endpoint, one endpoint, or two.
fn fillings() -> Vec<Option<Vec<usize>>> {
    let mut fillings = vec![None, Some(vec![])];
    for a in 0..N_PODS {
        fillings.push(Some(vec![a]));
        fillings.extend((a + 1..N_PODS).map(|b| Some(vec![a, b])));
    }
    fillings
}

/// All combinations of three slices. They differ only in name, so their order does not matter.
fn layouts() -> Vec<[Option<Vec<usize>>; N_SLICES]> {
    let fillings = fillings();
    let mut layouts = Vec::new();
    for a in 0..fillings.len() {
        for b in a..fillings.len() {
            for c in b..fillings.len() {
                layouts.push([a, b, c].map(|i| fillings[i].clone()));
            }
        }
    }
    layouts
}

/// Checks the properties on all cluster states. `populate` adds the pods or addresses.
fn check_all(controller: Controller, populate: impl Fn(&mut ClusterState, [State; N_PODS])) {
    let full = slice_with_all(controller, &populate);
    let mut n_worlds = 0;
    for population in populations() {
        let mut cluster = ClusterState::default();
        populate(&mut cluster, population);
        for layout in layouts() {
            cluster.slices = layout
                .iter()
                .enumerate()
                .filter_map(|(n, filling)| Some(observed(&full, n, filling.as_ref()?)))
                .collect();
            checks::check(
                &Case { cluster: cluster.clone(), settings: generators::settings(2) },
                controller,
            );
            n_worlds += 1;
        }
    }
    assert_eq!(n_worlds, 81 * 364);
}

fn slice_with_all(
    controller: Controller,
    populate: &impl Fn(&mut ClusterState, [State; N_PODS]),
) -> EndpointSlice {
    let mut cluster = ClusterState::default();
    populate(&mut cluster, [State::Ready; N_PODS]);
    let roomy = Settings::default();
    let plan = cluster.plan(controller, &generators::key(), &CarriedState::default(), &roomy);
    match plan.writes.first() {
        Some(Write::Create(endpointd_model::Object::Slice(slice))) => slice.clone(),
        other => panic!("expected one new slice: {other:?}"),
    }
}

fn observed(full: &EndpointSlice, n: usize, filling: &[usize]) -> (Key, EndpointSlice) {
    let mut slice = full.clone();
    slice.meta.name = format!("web-{n}").into();
    slice.meta.uid = Uid::from(format!("slice-{n}").as_str());
    slice.meta.resource_version = 1.into();
    slice.endpoints = filling.iter().map(|pod| full.endpoints[*pod].clone()).collect();
    (slice.meta.key(), slice)
}

fn service() -> Service {
    Service {
        namespace: "ns".into(),
        name: "web".into(),
        uid: Uid::from("service-1"),
        families: vec![Family::V4],
        ..Service::default()
    }
}

#[test]
fn properties_hold_for_all_small_cluster_states_with_pods() {
    check_all(Controller::Slices, |cluster, population| {
        let selector = [("app", "web")].into_iter().collect();
        cluster.services.insert(generators::key(), Service { selector, ..service() });
        cluster.nodes.insert("n".into(), Node { name: "n".into(), ..Node::default() });
        for (n, state) in population.into_iter().enumerate().filter(|(_, s)| *s != State::Absent) {
            let ip = PodIp::parse(&format!("10.0.0.{n}"));
            let is_ready = state == State::Ready;
            let pod = Pod {
                namespace: "ns".into(),
                name: format!("pod-{n}").into(),
                labels: [("app", "web")].into_iter().collect(),
                node_name: Some("n".into()),
                ips: PodIps { primary: Some(ip.clone()), all: [ip].into() },
                readiness: Some(Readiness { is_ready, since: None }),
                ..Pod::default()
            };
            cluster.pods.insert(Key::new("ns", pod.name.clone()), pod);
        }
    });
}

#[test]
fn properties_hold_for_all_small_cluster_states_with_addresses() {
    check_all(Controller::Mirror, |cluster, population| {
        cluster.services.insert(generators::key(), service());
        let mut endpoints = Endpoints::default();
        endpoints.meta.namespace = "ns".into();
        endpoints.meta.name = "web".into();
        endpoints.meta.uid = Uid::from("endpoints-1");
        let port = SubsetPort { name: "a".into(), port: 1, ..SubsetPort::default() };
        let mut subset = Subset { ports: vec![port], ..Subset::default() };
        for (n, state) in population.into_iter().enumerate() {
            let ip = format!("10.0.0.{n}").into();
            let address = EndpointAddress { ip, ..EndpointAddress::default() };
            match state {
                State::Absent => {}
                State::Ready => subset.addresses.push(address),
                State::Unready => subset.not_ready_addresses.push(address),
            }
        }
        endpoints.subsets.push(subset);
        cluster.endpoints.insert(generators::key(), endpoints);
    });
}

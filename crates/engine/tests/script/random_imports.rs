//! Endpoints of other namespaces under random changes: consent comes and goes, sources and consumers
//! are deleted and created again, namespaces end, copies and conditions are edited, and requests,
//! watches, and leadership fail. An oracle that shares no code with the plan says what must remain.

use std::collections::BTreeSet;
use std::time::Duration;

use endpointd_engine::Settings;
use endpointd_memory_api::NamespaceState;
use endpointd_model::{
    CrossNamespace, EndpointSlice, Key, Labels, Object, PublishedResource, Service, Uid, names,
};
use endpointd_rng::SplitMix64;

use crate::cluster::Cluster;
use crate::imports::pair::{grant, service, settings, slice};
use crate::objects;
use crate::random_faults::inject_fault;

const STEPS: usize = 100;
const SOURCES: [&str; 2] = ["postgres", "other"];
const CONSUMERS: [(&str, &str); 3] = [("shop", "db"), ("web", "db"), ("data", "near")];
const CONSENTS: [Option<&str>; 5] = [None, Some("shop"), Some("web, shop"), Some("*"), Some("")];
const WISHES: [Option<&str>; 6] = [
    None,
    Some("data/postgres"),
    Some("data/other"),
    Some("data/absent"),
    // A chain.
    Some("data/near"),
    Some("nonsense"),
];

fn random_key(rng: &mut SplitMix64) -> Key {
    if rng.below(2) == 0 {
        return Key::new("data", rng.pick(&SOURCES));
    }
    let (namespace, name) = rng.pick(&CONSUMERS);
    Key::new(namespace, name)
}

fn change_services(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let key = random_key(rng);
    let is_source = SOURCES.contains(&&*key.name);
    let (from, to) = match is_source {
        true => (None, rng.pick(&CONSENTS)),
        false => (rng.pick(&WISHES), None),
    };
    let Some(old) = cluster.service(&key).cloned() else {
        let uid = Uid::from(format!("{key}-{}", rng.below(1 << 40)).as_str());
        return cluster.put_service(Service { uid, ..service(&key, from, to) });
    };
    if rng.below(6) == 0 {
        return cluster.remove_service(&key);
    }
    let condition = old.cross_namespace.as_ref().and_then(|cross| cross.condition.clone());
    let cross = CrossNamespace { from: from.map(Into::into), to: to.map(Into::into), condition };
    let is_set = cross != CrossNamespace::default();
    let selector = match rng.below(8) {
        0 => objects::labels("x"),
        _ => Labels::default(),
    };
    let cross_namespace = is_set.then(|| Box::new(cross));
    cluster.put_service(Service { cross_namespace, selector, ..old });
}

fn change_source_slices(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let source = rng.pick(&SOURCES);
    let name = format!("{source}-{}", rng.below(2));
    let key = Key::new("data", name.as_str());
    if cluster.api.slices.contains(&key) && rng.below(4) == 0 {
        return cluster.remove_object(PublishedResource::Slices, &key);
    }
    let address =
        |n: u64| format!("10.0.0.{}{}", 1 + n % 5, if n.is_multiple_of(2) { "!" } else { "" });
    let addresses: BTreeSet<String> = (0..rng.below(3)).map(|_| address(rng.below(10))).collect();
    let addresses: Vec<&str> = addresses.iter().map(String::as_str).collect();
    let mut slice = slice(&name, &addresses);
    slice.meta.labels = slice.meta.labels.with(names::SERVICE_NAME, Some(source));
    cluster.put_object(Object::Slice(slice));
}

fn change_grants(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let grant = grant(rng.pick(&["shop", "web", "nobody"]));
    match rng.below(2) {
        0 => cluster.api.put_grant(grant),
        _ => cluster.api.remove_grant(&grant.key()),
    }
}

fn is_copy(slice: &EndpointSlice) -> bool {
    slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_IMPORT)
}

/// Another client edits or deletes a copy, or the condition of a consumer.
fn edit(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let copies: Vec<EndpointSlice> =
        cluster.slices().into_iter().filter(|one| is_copy(one)).cloned().collect();
    if copies.is_empty() || rng.below(4) == 0 {
        let (namespace, name) = rng.pick(&CONSUMERS);
        let Some(old) = cluster.service(&Key::new(namespace, name)).cloned() else { return };
        let mut edited = old;
        edited.set_condition(None);
        return cluster.put_service(edited);
    }
    let mut copy = copies[rng.below(copies.len() as u64) as usize].clone();
    match rng.below(5) {
        0 => return cluster.remove_object(PublishedResource::Slices, &copy.meta.key()),
        1 => copy.meta.labels = copy.meta.labels.with(names::SERVICE_NAME, Some("else")),
        2 => copy.meta.labels = copy.meta.labels.with(names::MANAGED_BY, None),
        3 => copy.meta.owners.clear(),
        _ => copy.endpoints.clear(),
    }
    cluster.put_object(Object::Slice(copy));
}

/// A namespace ends with all that is in it, and there is a new one of its name.
fn end_namespace(cluster: &mut Cluster, rng: &mut SplitMix64) {
    let namespace = rng.pick(&["shop", "web", "data"]);
    cluster.api.namespaces.insert(namespace.into(), NamespaceState::Terminating);
    cluster.advance(Duration::from_millis(rng.below(300)));
    let is_inside = |key: &Key| &*key.namespace == namespace;
    for key in cluster.api.services.keys().into_iter().filter(is_inside) {
        cluster.remove_service(&key);
    }
    for key in cluster.api.slices.keys().into_iter().filter(is_inside) {
        cluster.remove_object(PublishedResource::Slices, &key);
    }
    cluster.api.namespaces.insert(namespace.into(), NamespaceState::Active);
}

fn run(seed: u64) -> Cluster {
    let mut rng = SplitMix64::new(seed);
    let mut cluster = Cluster::new(Settings { seed, ..settings() });
    for namespace in ["shop", "data", "web"] {
        cluster.api.namespaces.insert(namespace.into(), NamespaceState::Active);
    }
    cluster.start();
    for _ in 0..STEPS {
        match rng.below(12) {
            0..=3 => change_services(&mut cluster, &mut rng),
            4..=6 => change_source_slices(&mut cluster, &mut rng),
            7 => change_grants(&mut cluster, &mut rng),
            8 => edit(&mut cluster, &mut rng),
            9 if rng.below(6) == 0 => end_namespace(&mut cluster, &mut rng),
            _ => inject_fault(&mut cluster, &mut rng, &settings()),
        }
        if rng.below(3) > 0 {
            cluster.advance(Duration::from_millis(rng.below(700)));
        }
    }
    cluster
}

/// What the consumer must publish, `address ready` each, and the reason of its condition.
fn expected(cluster: &Cluster, consumer: &Service) -> (Vec<String>, &'static str) {
    let annotation = |service: &Service, is_from: bool| -> Option<String> {
        let cross = service.cross_namespace.as_ref()?;
        let value = if is_from { &cross.from } else { &cross.to };
        value.as_ref().map(ToString::to_string)
    };
    let none = |reason| (Vec::new(), reason);
    let Some(wish) = annotation(consumer, true) else { return none("") };
    let Some((namespace, name)) = wish.split_once('/') else { return none("InvalidReference") };
    if !consumer.selector.is_empty() {
        return none("HasSelector");
    }
    let key = Key::new(namespace, name);
    let source = cluster.service(&key);
    let listed = source.and_then(|source| annotation(source, false)).unwrap_or_default();
    let is_listed = listed.split(',').any(|one| ["*", &*consumer.namespace].contains(&one.trim()));
    let is_granted = cluster
        .api
        .grants
        .values()
        .any(|grant| grant.from.iter().any(|from| from.namespace == consumer.namespace));
    if *consumer.namespace != *namespace && !is_listed && !is_granted {
        return none("RefNotPermitted");
    }
    let Some(source) = source else { return none("SourceNotFound") };
    if source.selector.is_empty() && annotation(source, true).is_some() {
        return none("ChainNotAllowed");
    }
    let mut all: Vec<String> = Vec::new();
    for slice in cluster.slices() {
        let is_of = slice.meta.labels.has(names::SERVICE_NAME, name) && !is_copy(slice);
        if &*slice.meta.namespace == namespace && is_of {
            all.extend(slice.endpoints.iter().map(text));
        }
    }
    all.sort();
    (all, "Mirrored")
}

fn text(endpoint: &endpointd_model::Endpoint) -> String {
    format!("{} {}", endpoint.addresses[0], endpoint.is_ready())
}

fn check(cluster: &Cluster, seed: u64) {
    let mut n_copies = 0;
    for (namespace, name) in CONSUMERS {
        let Some(consumer) = cluster.service(&Key::new(namespace, name)) else { continue };
        let of_this = |slice: &&EndpointSlice| {
            &*slice.meta.namespace == namespace
                && slice.meta.labels.has(names::SERVICE_NAME, name)
                && is_copy(slice)
        };
        let copies: Vec<&EndpointSlice> = cluster.slices().into_iter().filter(of_this).collect();
        n_copies += copies.len();
        for copy in &copies {
            let is_owner = |owner: &endpointd_model::OwnerRef| owner.uid == consumer.uid;
            assert!(copy.meta.owners.iter().all(is_owner), "seed {seed}: {copy:#?}");
            assert_eq!(copy.meta.owners.len(), 1, "seed {seed}: {copy:#?}");
        }
        let mut got: Vec<String> =
            copies.iter().flat_map(|slice| slice.endpoints.iter().map(text)).collect();
        got.sort();
        let (want, reason) = expected(cluster, consumer);
        assert_eq!(got, want, "seed {seed}: endpoints of {namespace}/{name}, {reason}");
        let cross = consumer.cross_namespace.as_ref();
        let told = cross.and_then(|cross| cross.condition.as_ref());
        let told = told.map_or("", |condition| &condition.reason);
        assert_eq!(told, reason, "seed {seed}: condition of {namespace}/{name}");
    }
    // A copy that somebody labelled for a Service that does not exist is read by nobody.
    let has_service = |slice: &&EndpointSlice| {
        let name = slice.meta.labels.get(names::SERVICE_NAME).cloned().unwrap_or_default();
        is_copy(slice) && cluster.service(&Key::new(slice.meta.namespace.clone(), name)).is_some()
    };
    let n_all = cluster.slices().into_iter().filter(has_service).count();
    assert_eq!(n_copies, n_all, "seed {seed}: copies of no consumer");
}

/// Deletes the slices of deleted consumers, as the garbage collector does, and those that somebody
/// edited until nothing shows any more whose they were.
fn collect_garbage(cluster: &mut Cluster) {
    let uids: BTreeSet<Uid> = cluster.api.services.values().map(|one| one.uid.clone()).collect();
    let is_garbage = |slice: &&EndpointSlice| {
        let is_of_source =
            SOURCES.iter().any(|name| slice.meta.labels.has(names::SERVICE_NAME, name));
        let is_orphan = slice.meta.owners.iter().all(|owner| !uids.contains(&owner.uid));
        let has_label = CONSUMERS.iter().any(|(namespace, name)| {
            cluster.api.services.contains(&Key::new(*namespace, *name))
                && &*slice.meta.namespace == *namespace
                && slice.meta.labels.has(names::SERVICE_NAME, name)
                && is_copy(slice)
        });
        !is_of_source && is_orphan && !has_label
    };
    let garbage: Vec<Key> =
        cluster.slices().into_iter().filter(is_garbage).map(|one| one.meta.key()).collect();
    for key in garbage {
        cluster.remove_object(PublishedResource::Slices, &key);
    }
}

fn check_seed(seed: u64) {
    let mut cluster = run(seed);
    cluster.write_faults.clear();
    cluster.reads_fail = false;
    cluster.release_watches();
    collect_garbage(&mut cluster);
    cluster.advance(Duration::from_secs(90));
    collect_garbage(&mut cluster);
    cluster.advance(Duration::from_secs(40));
    check(&cluster, seed);
    cluster.clear_log();
    cluster.advance(Duration::from_secs(600));
    assert_eq!(cluster.sent, [""; 0], "seed {seed}: writes after convergence");
    assert_eq!(cluster.report().keys, [], "seed {seed}: keys are not idle");
    cluster.restart_with(settings());
    cluster.advance(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0], "seed {seed}: a restart writes");
}

#[test]
fn random_faults_converge_to_what_was_consented() {
    for seed in 0..500 {
        check_seed(seed);
    }
}

//! The in-memory API server against `endpointd-apiserver`, which is itself compared with a real
//! kube-apiserver: equal random requests get equal responses.

use std::collections::BTreeMap;

use endpointd_apiserver::{
    CountedClockAndIds, DeleteOptions, Deletion, GcMode, Kind, Server, Settings, StatusError,
    Target, WriteOptions, kinds,
};
use endpointd_memory_api::{MemoryApi, NamespaceState, Response};
use endpointd_model::{
    Endpoint, EndpointAddress, EndpointPort, EndpointSlice, Endpoints, Key, Meta, Object,
    PublishedResource, ResourceVersion, SharedStr, Subset, SubsetPort, Timestamp, Uid, Write,
};
use endpointd_rng::SplitMix64;
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

const RUNS: u64 = 400;
const REQUESTS: usize = 40;
const NAMESPACES: [&str; 3] = ["east", "west", "nowhere"];

/// The response as a client sees it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Stored,
    Removed,
    Conflict,
    AlreadyExists,
    NotFound,
    NamespaceNotFound,
    NamespaceTerminating,
    Invalid,
    InternalError,
}

struct Pair {
    ours: MemoryApi,
    theirs: Server,
    /// Versions and uids in both servers, newest last.
    versions: BTreeMap<(PublishedResource, Key), Vec<VersionPair>>,
}

#[derive(Clone, Debug)]
struct VersionPair {
    ours: (ResourceVersion, Uid),
    theirs: (String, String),
}

fn kind_of(resource: PublishedResource) -> &'static Kind {
    match resource {
        PublishedResource::Slices => {
            kinds::find("discovery.k8s.io", "endpointslices").expect("a kind")
        }
        PublishedResource::Endpoints => kinds::find("", "endpoints").expect("a kind"),
        PublishedResource::ServiceStatus => kinds::find("", "services").expect("a kind"),
        PublishedResource::MultiCluster(_) => unreachable!("the other server has no such kinds"),
    }
}

fn class_of_response(response: &Response) -> Class {
    match response {
        Response::Stored(_) => Class::Stored,
        Response::Removed => Class::Removed,
        Response::Conflict => Class::Conflict,
        Response::AlreadyExists => Class::AlreadyExists,
        Response::NotFound => Class::NotFound,
        Response::NamespaceNotFound => Class::NamespaceNotFound,
        Response::NamespaceTerminating => Class::NamespaceTerminating,
        Response::Invalid(_) => Class::Invalid,
        Response::InternalError => Class::InternalError,
    }
}

fn class_of_error(error: &StatusError) -> Class {
    let is_terminating =
        error.details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating");
    match (error.code, error.reason) {
        (404, _) if error.details.kind == "namespaces" => Class::NamespaceNotFound,
        (404, _) => Class::NotFound,
        (409, "AlreadyExists") => Class::AlreadyExists,
        (409, _) => Class::Conflict,
        (403, _) if is_terminating => Class::NamespaceTerminating,
        (400 | 422, _) => Class::Invalid,
        (500, _) => Class::InternalError,
        (code, reason) => panic!("{code} {reason}: {}", error.message),
    }
}

impl Pair {
    fn new() -> Self {
        let clock_and_ids = CountedClockAndIds::starting_at(Timestamp::UNIX_EPOCH);
        let settings = Settings { gc_mode: GcMode::OnDemand, ..Settings::default() };
        let mut theirs = Server::new(Box::new(clock_and_ids), settings);
        let mut ours = MemoryApi::default();
        for name in &NAMESPACES[..2] {
            let kind = kinds::find("", "namespaces").expect("a kind");
            let namespace = json!({"metadata": {"name": name}});
            theirs
                .create(&Target::collection(kind, ""), namespace, &WriteOptions::default())
                .expect("a new namespace");
            ours.namespaces.insert((*name).into(), NamespaceState::Active);
        }
        Self { ours, theirs, versions: BTreeMap::new() }
    }

    fn end_namespace(&mut self, name: &str) {
        let kind = kinds::find("", "namespaces").expect("a kind");
        let target = Target::object(kind, "", name);
        if self.theirs.delete(&target, &DeleteOptions::default()).is_ok()
            && let Some(state) = self.ours.namespaces.get_mut(name)
        {
            *state = NamespaceState::Terminating;
        }
    }

    fn create(&mut self, object: Object) -> (Class, Class) {
        let (resource, key) = (object.resource(), object.meta().key());
        let value = to_json_value(&object);
        let ours = self.ours.write(&Write::Create(object));
        let target = Target::collection(kind_of(resource), &key.namespace);
        let theirs = self.theirs.create(&target, value, &WriteOptions::default());
        let theirs = theirs.map(|outcome| outcome.object.value());
        self.record(resource, &key, &ours, theirs.as_ref().ok());
        (class_of_response(&ours), theirs.map_or_else(|no| class_of_error(&no), |_| Class::Stored))
    }

    /// `at` counts the version that the update names from the newest; `None`: it names none.
    fn update(&mut self, mut object: Object, at: Option<usize>) -> (Class, Class) {
        let (resource, key) = (object.resource(), object.meta().key());
        let version = self.version(resource, &key, at);
        let mut value = to_json_value(&object);
        if let Some(version) = &version {
            meta_mut(&mut object).resource_version = version.ours.0;
            value["metadata"]["resourceVersion"] = json!(version.theirs.0);
        }
        let ours = self.ours.write(&Write::Update(object));
        let target = Target::object(kind_of(resource), &key.namespace, &key.name);
        let theirs = self.theirs.update(&target, value, &WriteOptions::default());
        let theirs = theirs.map(|outcome| outcome.object.value());
        self.record(resource, &key, &ours, theirs.as_ref().ok());
        (class_of_response(&ours), theirs.map_or_else(|no| class_of_error(&no), |_| Class::Stored))
    }

    fn delete(&mut self, resource: PublishedResource, key: &Key, at: usize) -> (Class, Class) {
        let version = self.version(resource, key, Some(at));
        let mut target = endpointd_model::DeleteTarget {
            resource,
            key: key.clone(),
            uid: Uid::default(),
            resource_version: ResourceVersion::NONE,
        };
        let mut options = DeleteOptions::default();
        if let Some(VersionPair { ours, theirs }) = version {
            (target.resource_version, target.uid) = ours;
            (options.resource_version, options.uid) = (Some(theirs.0), Some(theirs.1));
        }
        let ours = self.ours.write(&Write::Delete(target));
        let target = Target::object(kind_of(resource), &key.namespace, &key.name);
        let theirs = self.theirs.delete(&target, &options);
        let class = match &theirs {
            Ok(Deletion::Removed(_)) => Class::Removed,
            Ok(Deletion::Pending(_)) => Class::Stored,
            Err(error) => class_of_error(error),
        };
        let shown = theirs.ok().filter(|one| !one.is_removed()).map(|one| one.object().value());
        self.record(resource, key, &ours, shown.as_ref());
        (class_of_response(&ours), class)
    }

    fn version(
        &self,
        resource: PublishedResource,
        key: &Key,
        at: Option<usize>,
    ) -> Option<VersionPair> {
        let versions = self.versions.get(&(resource, key.clone()))?;
        let at = versions.len().checked_sub(1 + at?)?;
        Some(versions[at].clone())
    }

    /// Records both versions, and asserts that both stored the same object.
    fn record(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        ours: &Response,
        theirs: Option<&Value>,
    ) {
        let (Response::Stored(ours), Some(theirs)) = (ours, theirs) else { return };
        let meta = ours.meta();
        let text = |name: &str| theirs["metadata"][name].as_str().unwrap_or_default().to_owned();
        let version = VersionPair {
            ours: (meta.resource_version, meta.uid.clone()),
            theirs: (text("resourceVersion"), text("uid")),
        };
        let versions = self.versions.entry((resource, key.clone())).or_default();
        // Both or neither give a new version.
        if let Some(last) = versions.last() {
            let is_same = (last.ours == version.ours, last.theirs == version.theirs);
            assert_eq!(is_same.0, is_same.1, "{key}: {last:?} {version:?}");
        }
        versions.push(version);
        let content = |value: &Value| {
            let labels = value["metadata"]["labels"].clone();
            let rest = ["endpoints", "subsets"].map(|name| value[name].clone());
            (labels, rest, value["metadata"]["deletionTimestamp"].is_string())
        };
        let shown = to_json_value(ours);
        let (ours, theirs) = (content(&shown), content(theirs));
        assert_eq!((&ours.0, ours.2), (&theirs.0, theirs.2), "{key}");
    }

    fn exists(&self, resource: PublishedResource, key: &Key) -> (bool, bool) {
        let target = Target::object(kind_of(resource), &key.namespace, &key.name);
        (self.ours.object(resource, key).is_some(), self.theirs.get(&target).is_ok())
    }
}

fn meta_mut(object: &mut Object) -> &mut Meta {
    match object {
        Object::Slice(slice) => &mut slice.meta,
        Object::Endpoints(endpoints) => &mut endpoints.meta,
        Object::ServiceStatus(status) => &mut status.meta,
        Object::MultiCluster(object) => object.meta_mut(),
    }
}

fn address(rng: &mut SplitMix64) -> &'static str {
    rng.pick(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "127.0.0.1", "169.254.0.1"])
}

fn object(rng: &mut SplitMix64) -> Object {
    let namespace: SharedStr = rng.pick(&NAMESPACES).into();
    let name: SharedStr = rng.pick(&["a", "b"]).into();
    let labels = [("team", rng.pick(&["x", "y"]))].into_iter().collect();
    let held = rng.percent(20).then(|| SharedStr::from("example.com/hold"));
    let meta =
        Meta { namespace, name, labels, finalizers: held.into_iter().collect(), ..Meta::default() };
    let number = rng.pick(&[80, 81]);
    if rng.percent(50) {
        let port =
            EndpointPort { name: Some("".into()), port: Some(number), ..EndpointPort::default() };
        let ports = vec![EndpointPort { protocol: Some("TCP".into()), ..port.clone() }; 1];
        let endpoint = Endpoint { addresses: vec![address(rng).into()], ..Endpoint::default() };
        let endpoints = if rng.percent(70) { vec![endpoint] } else { vec![] };
        return Object::Slice(EndpointSlice { meta, endpoints, ports, ..EndpointSlice::default() });
    }
    let address = EndpointAddress { ip: address(rng).into(), ..EndpointAddress::default() };
    let addresses = if rng.percent(90) { vec![address] } else { vec![] };
    let ports = vec![SubsetPort { port: number, ..SubsetPort::default() }];
    let subset = Subset { addresses, ports, ..Subset::default() };
    let subsets = if rng.percent(80) { vec![subset] } else { vec![] };
    Object::Endpoints(Endpoints { meta, subsets })
}

#[test]
fn equal_requests_get_equal_responses() {
    let mut seen: Vec<Class> = Vec::new();
    for run in 0..RUNS {
        let mut rng = SplitMix64::new(run);
        let mut pair = Pair::new();
        for request in 0..REQUESTS {
            let object = object(&mut rng);
            let (resource, key) = (object.resource(), object.meta().key());
            let (ours, theirs) = match rng.below(20) {
                0..=7 => pair.create(object),
                8..=14 => {
                    let at = rng.pick(&[Some(0), Some(0), Some(1), None]);
                    // An update without a version creates Endpoints; endpointd always names one.
                    if pair.version(resource, &key, at).is_none() {
                        continue;
                    }
                    pair.update(object, at)
                }
                15..=18 => pair.delete(resource, &key, rng.pick(&[0, 0, 1])),
                _ if rng.percent(20) => {
                    pair.end_namespace(rng.pick(&NAMESPACES));
                    continue;
                }
                _ => continue,
            };
            assert_eq!(ours, theirs, "run {run}, request {request}: {key}");
            let (ours_exists, theirs_exists) = pair.exists(resource, &key);
            assert_eq!(ours_exists, theirs_exists, "run {run}, request {request}: {key}");
            seen.push(ours);
        }
    }
    for class in [
        Class::Stored,
        Class::Removed,
        Class::Conflict,
        Class::AlreadyExists,
        Class::NotFound,
        Class::NamespaceNotFound,
        Class::NamespaceTerminating,
        Class::Invalid,
        Class::InternalError,
    ] {
        assert!(seen.contains(&class), "{class:?} never occurred");
    }
}

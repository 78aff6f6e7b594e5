//! The simulator's API server against `endpointd-apiserver`, which is itself held to a real
//! kube-apiserver: the same random requests get the same answers.

use std::collections::BTreeMap;

use endpointd_apiserver::{
    CountedStamps, DeleteOptions, Deletion, Kind, Refusal, Server, Settings, Sweeping, Target,
    WriteOptions, kinds,
};
use endpointd_model::{
    Endpoint, EndpointAddress, EndpointPort, EndpointSlice, Endpoints, Key, Meta, Object,
    PublishedResource, ResourceVersion, SharedStr, Subset, SubsetPort, Timestamp, Uid, Write,
};
use endpointd_sim::{Answer, Api, Dice, NamespaceState};
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

const RUNS: u64 = 400;
const REQUESTS: usize = 40;
const NAMESPACES: [&str; 3] = ["east", "west", "nowhere"];

/// How an answer looks from outside.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Class {
    Stored,
    Removed,
    Conflict,
    Exists,
    NotFound,
    NoNamespace,
    Terminating,
    Invalid,
    Broken,
}

struct Pair {
    ours: Api,
    theirs: Server,
    /// Versions each had, newest last: ours, theirs, and both uids.
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
    }
}

fn class_of_answer(answer: &Answer) -> Class {
    match answer {
        Answer::Stored(_) => Class::Stored,
        Answer::Removed => Class::Removed,
        Answer::Conflict => Class::Conflict,
        Answer::Exists => Class::Exists,
        Answer::NotFound => Class::NotFound,
        Answer::NoNamespace => Class::NoNamespace,
        Answer::Terminating => Class::Terminating,
        Answer::Invalid(_) => Class::Invalid,
        Answer::Broken => Class::Broken,
    }
}

fn class_of_refusal(refusal: &Refusal) -> Class {
    let is_terminating =
        refusal.details.causes.iter().any(|cause| cause.reason == "NamespaceTerminating");
    match (refusal.code, refusal.reason) {
        (404, _) if refusal.details.kind == "namespaces" => Class::NoNamespace,
        (404, _) => Class::NotFound,
        (409, "AlreadyExists") => Class::Exists,
        (409, _) => Class::Conflict,
        (403, _) if is_terminating => Class::Terminating,
        (400 | 422, _) => Class::Invalid,
        (500, _) => Class::Broken,
        (code, reason) => panic!("{code} {reason}: {}", refusal.message),
    }
}

impl Pair {
    fn new() -> Self {
        let stamps = CountedStamps::starting_at(Timestamp::UNIX_EPOCH);
        let settings = Settings { sweeping: Sweeping::OnDemand, ..Settings::default() };
        let mut theirs = Server::new(Box::new(stamps), settings);
        let mut ours = Api::default();
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
        let theirs = theirs.map(|outcome| outcome.shown.value());
        self.note(resource, &key, &ours, theirs.as_ref().ok());
        (class_of_answer(&ours), theirs.map_or_else(|no| class_of_refusal(&no), |_| Class::Stored))
    }

    /// `at` is the version the update names, counted from the newest; none: it names none.
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
        let theirs = theirs.map(|outcome| outcome.shown.value());
        self.note(resource, &key, &ours, theirs.as_ref().ok());
        (class_of_answer(&ours), theirs.map_or_else(|no| class_of_refusal(&no), |_| Class::Stored))
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
            Err(refusal) => class_of_refusal(refusal),
        };
        let shown = theirs.ok().filter(|one| !one.is_removed()).map(|one| one.shown().value());
        self.note(resource, key, &ours, shown.as_ref());
        (class_of_answer(&ours), class)
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

    /// Remembers what both stored, and that both stored the same.
    fn note(
        &mut self,
        resource: PublishedResource,
        key: &Key,
        ours: &Answer,
        theirs: Option<&Value>,
    ) {
        let (Answer::Stored(ours), Some(theirs)) = (ours, theirs) else { return };
        let meta = ours.meta();
        let text = |name: &str| theirs["metadata"][name].as_str().unwrap_or_default().to_owned();
        let version = VersionPair {
            ours: (meta.resource_version, meta.uid.clone()),
            theirs: (text("resourceVersion"), text("uid")),
        };
        let versions = self.versions.entry((resource, key.clone())).or_default();
        // An update that changes nothing gives no new version, in both or in neither.
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

    fn is_there(&self, resource: PublishedResource, key: &Key) -> (bool, bool) {
        let target = Target::object(kind_of(resource), &key.namespace, &key.name);
        (self.ours.object(resource, key).is_some(), self.theirs.get(&target).is_ok())
    }
}

fn meta_mut(object: &mut Object) -> &mut Meta {
    match object {
        Object::Slice(slice) => &mut slice.meta,
        Object::Endpoints(endpoints) => &mut endpoints.meta,
    }
}

fn address(dice: &mut Dice) -> &'static str {
    dice.pick(&["10.0.0.1", "10.0.0.2", "10.0.0.3", "127.0.0.1", "169.254.0.1"])
}

fn object(dice: &mut Dice) -> Object {
    let namespace: SharedStr = dice.pick(&NAMESPACES).into();
    let name: SharedStr = dice.pick(&["a", "b"]).into();
    let labels = [("team", dice.pick(&["x", "y"]))].into_iter().collect();
    let held = dice.percent(20).then(|| SharedStr::from("example.com/hold"));
    let meta =
        Meta { namespace, name, labels, finalizers: held.into_iter().collect(), ..Meta::default() };
    let number = dice.pick(&[80, 81]);
    if dice.percent(50) {
        let port =
            EndpointPort { name: Some("".into()), port: Some(number), ..EndpointPort::default() };
        let ports = vec![EndpointPort { protocol: Some("TCP".into()), ..port.clone() }; 1];
        let endpoint = Endpoint { addresses: vec![address(dice).into()], ..Endpoint::default() };
        let endpoints = if dice.percent(70) { vec![endpoint] } else { vec![] };
        return Object::Slice(EndpointSlice { meta, endpoints, ports, ..EndpointSlice::default() });
    }
    let address = EndpointAddress { ip: address(dice).into(), ..EndpointAddress::default() };
    let addresses = if dice.percent(90) { vec![address] } else { vec![] };
    let ports = vec![SubsetPort { port: number, ..SubsetPort::default() }];
    let subset = Subset { addresses, ports, ..Subset::default() };
    let subsets = if dice.percent(80) { vec![subset] } else { vec![] };
    Object::Endpoints(Endpoints { meta, subsets })
}

#[test]
fn the_same_requests_get_the_same_answers() {
    let mut seen: Vec<Class> = Vec::new();
    for run in 0..RUNS {
        let mut dice = Dice::new(run);
        let mut pair = Pair::new();
        for request in 0..REQUESTS {
            let object = object(&mut dice);
            let (resource, key) = (object.resource(), object.meta().key());
            let (ours, theirs) = match dice.roll(20) {
                0..=7 => pair.create(object),
                8..=14 => {
                    let at = dice.pick(&[Some(0), Some(0), Some(1), None]);
                    // An update of nothing that names no version creates Endpoints; we name one.
                    if pair.version(resource, &key, at).is_none() {
                        continue;
                    }
                    pair.update(object, at)
                }
                15..=18 => pair.delete(resource, &key, dice.pick(&[0, 0, 1])),
                _ if dice.percent(20) => {
                    pair.end_namespace(dice.pick(&NAMESPACES));
                    continue;
                }
                _ => continue,
            };
            assert_eq!(ours, theirs, "run {run}, request {request}: {key}");
            let (ours_there, theirs_there) = pair.is_there(resource, &key);
            assert_eq!(ours_there, theirs_there, "run {run}, request {request}: {key}");
            seen.push(ours);
        }
    }
    for class in [
        Class::Stored,
        Class::Removed,
        Class::Conflict,
        Class::Exists,
        Class::NotFound,
        Class::NoNamespace,
        Class::Terminating,
        Class::Invalid,
        Class::Broken,
    ] {
        assert!(seen.contains(&class), "{class:?} never came up");
    }
}

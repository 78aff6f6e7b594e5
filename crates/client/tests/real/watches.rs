//! All five watched resources, in both encodings, with streaming lists and with pages.

use std::time::Duration;

use endpointd_client::Client;
use endpointd_control_plane::{Cluster, Release};
use endpointd_model::{ObjectEvent, ResourceEvent, ResourceVersion, WatchSignal, WatchedResource};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::connect;

const WAIT_MAX: Duration = Duration::from_secs(30);

/// The kind of an event.
#[derive(Debug, PartialEq, Eq)]
enum Observed {
    Applied,
    Deleted,
}

pub struct Listener {
    receiver: mpsc::Receiver<(WatchedResource, WatchSignal)>,
}

impl Listener {
    pub fn start(client: &Client, resource: WatchedResource) -> Self {
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(client.clone().watch(resource, sender));
        Self { receiver }
    }

    pub async fn next(&mut self) -> WatchSignal {
        let signal = tokio::time::timeout(WAIT_MAX, self.receiver.recv()).await;
        signal.expect("a signal in time").expect("a watch ends only with its receiver").1
    }

    /// Receives the initial list: its names and its version.
    pub async fn initial_list(&mut self) -> (Vec<String>, ResourceVersion) {
        while self.next().await != WatchSignal::InitStarted {}
        let mut names = Vec::new();
        loop {
            match self.next().await {
                WatchSignal::Event(event) => names.push(name_of(&event).0),
                WatchSignal::InitDone(version) => return (names, version),
                other => panic!("not part of a list: {other:?}"),
            }
        }
    }

    async fn next_event_of(&mut self, name: &str) -> Observed {
        loop {
            if let WatchSignal::Event(event) = self.next().await {
                let (found, observed) = name_of(&event);
                if found == name {
                    return observed;
                }
            }
        }
    }
}

fn name_of(event: &ResourceEvent) -> (String, Observed) {
    fn observed<T>(event: &ObjectEvent<T>) -> Observed {
        match event {
            ObjectEvent::Applied(_) => Observed::Applied,
            ObjectEvent::Deleted(_) => Observed::Deleted,
        }
    }
    match event {
        ResourceEvent::Service(event) => (event.object().name.to_string(), observed(event)),
        ResourceEvent::Pod(event) => (event.object().name.to_string(), observed(event)),
        ResourceEvent::Node(event) => (event.object().name.to_string(), observed(event)),
        ResourceEvent::Endpoints(event) => (event.object().meta.name.to_string(), observed(event)),
        ResourceEvent::Slice(event) => (event.object().meta.name.to_string(), observed(event)),
        ResourceEvent::ReferenceGrant(event) => (event.object().name.to_string(), observed(event)),
        ResourceEvent::Namespace(_)
        | ResourceEvent::ServiceExport(_)
        | ResourceEvent::ServiceImport(_)
        | ResourceEvent::DerivedService(_) => panic!("no test here watches them"),
    }
}

/// The path of a resource, and an object without its metadata.
fn path_and_object(resource: WatchedResource, namespace: &str) -> (String, Value) {
    let core = format!("/api/v1/namespaces/{namespace}");
    match resource {
        WatchedResource::Services => {
            (format!("{core}/services"), json!({"spec": {"ports": [{"port": 80}]}}))
        }
        WatchedResource::Pods => {
            let containers = json!([{"name": "web", "image": "web"}]);
            (format!("{core}/pods"), json!({"spec": {"containers": containers}}))
        }
        WatchedResource::Nodes => ("/api/v1/nodes".to_owned(), json!({})),
        WatchedResource::Endpoints => (format!("{core}/endpoints"), json!({})),
        WatchedResource::Slices => (
            format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices"),
            json!({"addressType": "IPv4", "endpoints": [], "ports": []}),
        ),
        WatchedResource::ReferenceGrants
        | WatchedResource::ServiceExports
        | WatchedResource::ServiceImports => panic!("this cluster does not serve them"),
        WatchedResource::Namespaces | WatchedResource::DerivedServices => {
            panic!("no test here watches them")
        }
    }
}

async fn watch_every_resource(hint: &str, prepare: impl Fn(&Client)) {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace(hint).expect("the namespace is created");
    let client = connect(cluster.kubeconfig()).await;
    prepare(&client);
    for resource in WatchedResource::DEFAULT {
        let (path, mut object) = path_and_object(resource, &namespace);
        let (before, after) = (format!("{namespace}-before"), format!("{namespace}-after"));
        object["metadata"] = json!({"name": before});
        cluster.api().create(&path, &object).expect("the object is valid");

        let mut listener = Listener::start(&client, resource);
        let (names, version) = listener.initial_list().await;
        assert!(names.contains(&before), "{resource:?}: {names:?}");
        assert!(version > ResourceVersion::NONE);

        object["metadata"] = json!({"name": after});
        let mut created = cluster.api().create(&path, &object).expect("the object is valid");
        assert_eq!(listener.next_event_of(&after).await, Observed::Applied, "{resource:?}");
        created["metadata"]["labels"] = json!({"a": "b"});
        cluster.api().replace(&format!("{path}/{after}"), &created).expect("a label is valid");
        assert_eq!(listener.next_event_of(&after).await, Observed::Applied, "{resource:?}");
        cluster
            .api()
            .delete(&format!("{path}/{after}?gracePeriodSeconds=0"))
            .expect("the object exists");
        // A pod is terminating before it is deleted.
        while listener.next_event_of(&after).await != Observed::Deleted {}
    }
    let requests = client.stats().snapshot();
    let lists = requests.keys().any(|kind| kind.verb == "list");
    // Off by default in 1.33: the client falls back to pages.
    let has_streaming_lists = Release::under_test() != Release::V1_33;
    assert_eq!(lists, !has_streaming_lists || hint.ends_with("pages"), "{requests:#?}");
    let is_expected = |code| code == Some(200) || !has_streaming_lists && code == Some(422);
    assert!(requests.keys().all(|kind| is_expected(kind.code)), "{requests:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_is_watched_in_protobuf_with_streaming_lists() {
    watch_every_resource("protobuf-stream", |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_is_watched_in_protobuf_with_pages() {
    watch_every_resource("protobuf-pages", Client::disable_streaming_lists).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_is_watched_in_json_with_streaming_lists() {
    watch_every_resource("json-stream", Client::disable_protobuf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_resource_is_watched_in_json_with_pages() {
    watch_every_resource("json-pages", |client| {
        client.disable_protobuf();
        client.disable_streaming_lists();
    })
    .await;
}

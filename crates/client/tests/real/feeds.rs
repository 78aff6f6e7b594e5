//! All five kinds, in both encodings, streamed and in pages.

use std::time::Duration;

use endpointd_client::Client;
use endpointd_control_plane::Cluster;
use endpointd_model::{ObjectEvent, ResourceEvent, ResourceVersion, WatchSignal, WatchedResource};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::connect;

const ECHO_WAIT_MAX: Duration = Duration::from_secs(30);

/// What a test needs to hear of one object.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Present,
    Gone,
}

pub struct Listener {
    receiver: mpsc::Receiver<(WatchedResource, WatchSignal)>,
}

impl Listener {
    pub fn start(client: &Client, kind: WatchedResource) -> Self {
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(client.clone().feed(kind, sender));
        Self { receiver }
    }

    pub async fn next(&mut self) -> WatchSignal {
        let news = tokio::time::timeout(ECHO_WAIT_MAX, self.receiver.recv()).await;
        news.expect("news in time").expect("a feed never ends by itself").1
    }

    /// Reads up to the end of the picture: the names seen in it, and its version.
    pub async fn picture(&mut self) -> (Vec<String>, ResourceVersion) {
        while self.next().await != WatchSignal::InitStarted {}
        let mut names = Vec::new();
        loop {
            match self.next().await {
                WatchSignal::Event(change) => names.push(name_of(&change).0),
                WatchSignal::InitDone(version) => return (names, version),
                other => panic!("not part of a picture: {other:?}"),
            }
        }
    }

    async fn hear_of(&mut self, name: &str) -> Heard {
        loop {
            if let WatchSignal::Event(change) = self.next().await {
                let (found, heard) = name_of(&change);
                if found == name {
                    return heard;
                }
            }
        }
    }
}

fn name_of(change: &ResourceEvent) -> (String, Heard) {
    fn heard<T>(sight: &ObjectEvent<T>) -> Heard {
        match sight {
            ObjectEvent::Applied(_) => Heard::Present,
            ObjectEvent::Deleted(_) => Heard::Gone,
        }
    }
    match change {
        ResourceEvent::Service(sight) => (sight.object().name.to_string(), heard(sight)),
        ResourceEvent::Pod(sight) => (sight.object().name.to_string(), heard(sight)),
        ResourceEvent::Node(sight) => (sight.object().name.to_string(), heard(sight)),
        ResourceEvent::Endpoints(sight) => (sight.object().meta.name.to_string(), heard(sight)),
        ResourceEvent::Slice(sight) => (sight.object().meta.name.to_string(), heard(sight)),
    }
}

/// Where objects of a kind are made, and the rest of one.
fn form_of(kind: WatchedResource, namespace: &str) -> (String, Value) {
    let core = format!("/api/v1/namespaces/{namespace}");
    match kind {
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
    }
}

async fn follow_every_kind(hint: &str, prepare: impl Fn(&Client)) {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace(hint).expect("a namespace is made");
    let client = connect(cluster.kubeconfig()).await;
    prepare(&client);
    for kind in WatchedResource::ALL {
        let (path, mut object) = form_of(kind, &namespace);
        let (before, after) = (format!("{namespace}-before"), format!("{namespace}-after"));
        object["metadata"] = json!({"name": before});
        cluster.api().create(&path, &object).expect("the object is valid");

        let mut listener = Listener::start(&client, kind);
        let (names, version) = listener.picture().await;
        assert!(names.contains(&before), "{kind:?}: {names:?}");
        assert!(version > ResourceVersion::NONE);

        object["metadata"] = json!({"name": after});
        let mut created = cluster.api().create(&path, &object).expect("the object is valid");
        assert_eq!(listener.hear_of(&after).await, Heard::Present, "{kind:?}");
        created["metadata"]["labels"] = json!({"a": "b"});
        cluster.api().replace(&format!("{path}/{after}"), &created).expect("a label is valid");
        assert_eq!(listener.hear_of(&after).await, Heard::Present, "{kind:?}");
        cluster.api().delete(&format!("{path}/{after}?gracePeriodSeconds=0")).expect("it is there");
        // A pod is told as terminating first.
        while listener.hear_of(&after).await != Heard::Gone {}
    }
    let verbs = client.stats().snapshot();
    let lists = verbs.keys().any(|kind| kind.verb == "list");
    assert_eq!(lists, hint.ends_with("pages"), "{verbs:#?}");
    assert!(verbs.keys().all(|kind| kind.code == Some(200)), "{verbs:#?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_followed_in_protobuf_from_a_stream() {
    follow_every_kind("protobuf-stream", |_| {}).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_followed_in_protobuf_from_pages() {
    follow_every_kind("protobuf-pages", Client::disable_streaming_lists).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_followed_in_json_from_a_stream() {
    follow_every_kind("json-stream", Client::disable_protobuf).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_followed_in_json_from_pages() {
    follow_every_kind("json-pages", |client| {
        client.disable_protobuf();
        client.disable_streaming_lists();
    })
    .await;
}

//! All five kinds, in both encodings, streamed and in pages.

use std::time::Duration;

use endpointd_client::Client;
use endpointd_control_plane::Cluster;
use endpointd_model::{Change, Kind, News, Sight, Version};
use serde_json::{Value, json};
use tokio::sync::mpsc;

use crate::connect;

const PATIENCE: Duration = Duration::from_secs(30);

/// What a test needs to hear of one object.
#[derive(Debug, PartialEq, Eq)]
enum Heard {
    Present,
    Gone,
}

pub struct Listener {
    receiver: mpsc::Receiver<(Kind, News)>,
}

impl Listener {
    pub fn start(client: &Client, kind: Kind) -> Self {
        let (sender, receiver) = mpsc::channel(16);
        tokio::spawn(client.clone().feed(kind, sender));
        Self { receiver }
    }

    pub async fn next(&mut self) -> News {
        let news = tokio::time::timeout(PATIENCE, self.receiver.recv()).await;
        news.expect("news in time").expect("a feed never ends by itself").1
    }

    /// Reads up to the end of the picture: the names seen in it, and its version.
    pub async fn picture(&mut self) -> (Vec<String>, Version) {
        while self.next().await != News::Listing {}
        let mut names = Vec::new();
        loop {
            match self.next().await {
                News::Seen(change) => names.push(name_of(&change).0),
                News::Listed(version) => return (names, version),
                other => panic!("not part of a picture: {other:?}"),
            }
        }
    }

    async fn hear_of(&mut self, name: &str) -> Heard {
        loop {
            if let News::Seen(change) = self.next().await {
                let (found, heard) = name_of(&change);
                if found == name {
                    return heard;
                }
            }
        }
    }
}

fn name_of(change: &Change) -> (String, Heard) {
    fn heard<T>(sight: &Sight<T>) -> Heard {
        match sight {
            Sight::Present(_) => Heard::Present,
            Sight::Gone(_) => Heard::Gone,
        }
    }
    match change {
        Change::Service(sight) => (sight.object().name.to_string(), heard(sight)),
        Change::Pod(sight) => (sight.object().name.to_string(), heard(sight)),
        Change::Node(sight) => (sight.object().name.to_string(), heard(sight)),
        Change::Endpoints(sight) => (sight.object().meta.name.to_string(), heard(sight)),
        Change::Slice(sight) => (sight.object().meta.name.to_string(), heard(sight)),
    }
}

/// Where objects of a kind are made, and the rest of one.
fn form_of(kind: Kind, namespace: &str) -> (String, Value) {
    let core = format!("/api/v1/namespaces/{namespace}");
    match kind {
        Kind::Services => (format!("{core}/services"), json!({"spec": {"ports": [{"port": 80}]}})),
        Kind::Pods => {
            let containers = json!([{"name": "web", "image": "web"}]);
            (format!("{core}/pods"), json!({"spec": {"containers": containers}}))
        }
        Kind::Nodes => ("/api/v1/nodes".to_owned(), json!({})),
        Kind::Endpoints => (format!("{core}/endpoints"), json!({})),
        Kind::Slices => (
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
    for kind in Kind::ALL {
        let (path, mut object) = form_of(kind, &namespace);
        let (before, after) = (format!("{namespace}-before"), format!("{namespace}-after"));
        object["metadata"] = json!({"name": before});
        cluster.api().create(&path, &object).expect("the object is valid");

        let mut listener = Listener::start(&client, kind);
        let (names, version) = listener.picture().await;
        assert!(names.contains(&before), "{kind:?}: {names:?}");
        assert!(version > Version::OLDEST);

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
    follow_every_kind("protobuf-pages", Client::only_pages).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_followed_in_json_from_a_stream() {
    follow_every_kind("json-stream", Client::only_json).await;
}

#[tokio::test(flavor = "multi_thread")]
async fn every_kind_is_followed_in_json_from_pages() {
    follow_every_kind("json-pages", |client| {
        client.only_json();
        client.only_pages();
    })
    .await;
}

//! Every outcome of a write that a real API server can be brought to.

use endpointd_client::Client;
use endpointd_control_plane::Cluster;
use endpointd_model::{
    AddressType, DeleteTarget, EndpointSlice, Endpoints, FailureKind, Key, LiveRead,
    LiveReadResult, Meta, Object, PublishedResource, ResourceEvent, ResourceVersion, Uid,
    WatchSignal, WatchedResource, Write, WriteResult,
};
use serde_json::json;

use crate::connect;
use crate::feeds::Listener;

fn meta(namespace: &str, name: &str) -> Meta {
    Meta { namespace: namespace.into(), name: name.into(), ..Default::default() }
}

fn slice(namespace: &str, name: &str) -> Object {
    Object::Slice(EndpointSlice {
        meta: meta(namespace, name),
        address_type: AddressType::IPv4,
        endpoints: Vec::new(),
        ports: Vec::new(),
    })
}

fn endpoints(namespace: &str, name: &str) -> Object {
    Object::Endpoints(Endpoints { meta: meta(namespace, name), subsets: Vec::new() })
}

fn with_label(mut object: Object, value: &str) -> Object {
    let meta = match &mut object {
        Object::Slice(slice) => &mut slice.meta,
        Object::Endpoints(endpoints) => &mut endpoints.meta,
    };
    meta.labels = [("round", value)].into_iter().collect();
    object
}

async fn stored(client: &Client, write: &Write) -> Object {
    match client.send(write).await {
        WriteResult::Stored(object) => *object,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_word(outcome: &WriteResult, word: &str) {
    assert_eq!(outcome.as_str(), word, "{outcome:?}");
}

/// The watch may be faster than we are with our note, so this takes several tries.
#[tokio::test(flavor = "multi_thread")]
async fn what_is_known_from_an_answer_is_only_passed() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let namespace = cluster.namespace("known").unwrap();
    let mut listener = Listener::start(&client, WatchedResource::Slices);
    listener.picture().await;
    let mut object = stored(&client, &Write::Create(slice(&namespace, "web"))).await;
    for round in 0..50 {
        object = stored(&client, &Write::Update(with_label(object, &round.to_string()))).await;
        let version = object.meta().resource_version;
        client.write_applied(PublishedResource::Slices, version);
        if is_passed(&mut listener, version).await {
            // What was not noted is told.
            object = stored(&client, &Write::Update(with_label(object, "unnoted"))).await;
            let version = object.meta().resource_version;
            assert!(!is_passed(&mut listener, version).await);
            return;
        }
    }
    panic!("every echo was read again");
}

/// Whether the listener hears of this version as passed, not as an object.
async fn is_passed(listener: &mut Listener, version: ResourceVersion) -> bool {
    loop {
        match listener.next().await {
            WatchSignal::Bookmark(passed) if passed == version => return true,
            WatchSignal::Event(change) => {
                let ResourceEvent::Slice(sight) = *change else { continue };
                if sight.object().meta.resource_version == version {
                    return false;
                }
            }
            _ => {}
        }
    }
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_lives_through_all_writes() {
    let Some(cluster) = Cluster::shared() else { return };
    for disable_protobuf in [false, true] {
        let client = connect(cluster.kubeconfig()).await;
        if disable_protobuf {
            client.disable_protobuf();
        }
        let namespace = cluster.namespace("writes").unwrap();
        for object in [slice(&namespace, "web"), endpoints(&namespace, "web")] {
            live_through_all_writes(&client, object).await;
        }
        let codes: Vec<Option<u16>> =
            client.stats().snapshot().into_keys().map(|kind| kind.code).collect();
        assert!(!codes.contains(&Some(415)) && !codes.contains(&None), "{codes:?}");
    }
}

async fn live_through_all_writes(client: &Client, object: Object) {
    let resource = object.resource();
    let read = LiveRead::Object(resource, object.meta().key());
    assert_eq!(client.look(&read).await, LiveReadResult::Absent);

    let first = stored(client, &Write::Create(object.clone())).await;
    assert!(!first.meta().uid.is_empty() && !first.meta().resource_version.is_none());
    assert_word(&client.send(&Write::Create(object)).await, "behind");

    let second = stored(client, &Write::Update(with_label(first.clone(), "two"))).await;
    assert_ne!(first.meta().resource_version, second.meta().resource_version);
    assert_eq!(client.look(&read).await, LiveReadResult::Object(Box::new(second.clone())));
    // Decided on a state that is no more.
    assert_word(&client.send(&Write::Update(with_label(first.clone(), "three"))).await, "behind");
    let stale = DeleteTarget::of(resource, first.meta());
    assert_word(&client.send(&Write::Delete(stale)).await, "behind");
    let mut impostor = DeleteTarget::of(resource, second.meta());
    impostor.uid = Uid::from("00000000-0000-0000-0000-000000000000");
    assert_word(&client.send(&Write::Delete(impostor)).await, "behind");

    let target = DeleteTarget::of(resource, second.meta());
    assert_eq!(client.send(&Write::Delete(target.clone())).await, WriteResult::Deleted);
    assert_eq!(client.send(&Write::Delete(target)).await, WriteResult::Deleted, "already gone");
    assert_word(&client.send(&Write::Update(second)).await, "behind");
    assert_eq!(client.look(&read).await, LiveReadResult::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn a_finalizer_holds_up_a_delete() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let namespace = cluster.namespace("finalizer").unwrap();
    let mut object = slice(&namespace, "held");
    if let Object::Slice(slice) = &mut object {
        slice.meta.finalizers = vec!["example.com/hold".into()];
    }
    let object = stored(&client, &Write::Create(object)).await;
    let target = DeleteTarget::of(PublishedResource::Slices, object.meta());
    let kept = stored(&client, &Write::Delete(target)).await;
    assert!(kept.meta().is_deleting());
}

#[tokio::test(flavor = "multi_thread")]
async fn a_namespace_that_is_gone_or_going_makes_a_create_pointless() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let nowhere = client.send(&Write::Create(slice("nowhere", "web"))).await;
    assert_word(&nowhere, "pointless");

    // Without a namespace controller it stays on its way out for ever.
    let namespace = cluster.namespace("going").unwrap();
    let before = stored(&client, &Write::Create(slice(&namespace, "before"))).await;
    cluster.api().delete(&format!("/api/v1/namespaces/{namespace}")).unwrap();
    for object in [slice(&namespace, "web"), endpoints(&namespace, "web")] {
        let outcome = client.send(&Write::Create(object)).await;
        assert_word(&outcome, "pointless");
    }
    // What is there can still be changed and removed.
    let before = stored(&client, &Write::Update(with_label(before, "two"))).await;
    let target = DeleteTarget::of(PublishedResource::Slices, before.meta());
    assert_eq!(client.send(&Write::Delete(target)).await, WriteResult::Deleted);
}

#[tokio::test(flavor = "multi_thread")]
async fn who_may_not_write_or_watch_is_told_what_is_missing() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace("forbidden").unwrap();
    let client = connect(cluster.service_account(&namespace, "nobody").unwrap()).await;
    let outcome = client.send(&Write::Create(slice(&namespace, "web"))).await;
    let WriteResult::Failed(failure) = outcome else { panic!("{outcome:?}") };
    assert_eq!(failure.kind, FailureKind::Forbidden);
    let begin = format!("create endpointslices {namespace}/web: ");
    assert!(failure.message.starts_with(&begin), "{failure}");
    assert!(failure.message.contains("cannot create resource"), "{failure}");
    let found = client.look(&LiveRead::Service(Key::new("default", "kubernetes"))).await;
    assert!(
        matches!(found, LiveReadResult::Failed(failure) if failure.kind == FailureKind::Forbidden)
    );

    let mut listener = Listener::start(&client, WatchedResource::Slices);
    let WatchSignal::Disconnected(reason) = listener.next().await else {
        panic!("it may not watch")
    };
    assert!(reason.contains("cannot watch resource \"endpointslices\""), "{reason}");
    let role = json!({
        "metadata": {"name": namespace},
        "rules": [{
            "apiGroups": ["discovery.k8s.io"],
            "resources": ["endpointslices"],
            "verbs": ["list", "watch"],
        }],
    });
    let rbac = "/apis/rbac.authorization.k8s.io/v1";
    cluster.api().create(&format!("{rbac}/clusterroles"), &role).unwrap();
    let binding = json!({
        "metadata": {"name": namespace},
        "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": namespace},
        "subjects": [{"kind": "ServiceAccount", "name": "nobody", "namespace": namespace}],
    });
    cluster.api().create(&format!("{rbac}/clusterrolebindings"), &binding).unwrap();
    listener.picture().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn an_object_the_server_refuses_is_invalid() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let namespace = cluster.namespace("invalid").unwrap();
    let outcome = client.send(&Write::Create(slice(&namespace, "Not A Name"))).await;
    assert_word(&outcome, "invalid");
}

/// More than one page, written by many at once while watches are open.
#[tokio::test(flavor = "multi_thread")]
async fn many_writes_at_once_and_a_list_of_several_pages() {
    const N_OBJECTS: usize = 1100;
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let namespace = cluster.namespace("many").unwrap();
    let _watches: Vec<Listener> =
        WatchedResource::ALL.into_iter().map(|kind| Listener::start(&client, kind)).collect();
    let mut tasks = tokio::task::JoinSet::new();
    for n_task in 0..16 {
        let (client, namespace) = (client.clone(), namespace.clone());
        tasks.spawn(async move {
            for n in (n_task..N_OBJECTS).step_by(16) {
                let object = endpoints(&namespace, &format!("{namespace}-{n}"));
                stored(&client, &Write::Create(object)).await;
            }
        });
    }
    while let Some(done) = tasks.join_next().await {
        done.unwrap();
    }
    client.disable_streaming_lists();
    let mut listener = Listener::start(&client, WatchedResource::Endpoints);
    let (names, _) = listener.picture().await;
    let n_ours = names.iter().filter(|name| name.starts_with(&namespace)).count();
    assert_eq!(n_ours, N_OBJECTS);
    let n_pages: u64 = client
        .stats()
        .snapshot()
        .into_iter()
        .filter(|(kind, _)| kind.verb == "list" && kind.resource == "endpoints")
        .map(|(_, count)| count.n_requests)
        .sum();
    assert!(n_pages >= 3, "{n_pages}");
}

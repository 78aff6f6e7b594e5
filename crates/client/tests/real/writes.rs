//! Every result of a write that a real API server can produce.

use endpointd_client::Client;
use endpointd_client::election::WritePermit;
use endpointd_control_plane::Cluster;
use endpointd_model::{
    AddressType, DeleteTarget, EndpointSlice, Endpoints, FailureKind, Key, LiveRead,
    LiveReadResult, Meta, Object, PublishedResource, Uid, WatchSignal, WatchedResource, Write,
    WriteResult,
};
use serde_json::json;

use crate::connect;
use crate::watches::Listener;

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
        Object::ServiceStatus(status) => &mut status.meta,
        Object::MultiCluster(object) => object.meta_mut(),
    };
    meta.labels = [("round", value)].into_iter().collect();
    object
}

async fn stored(client: &Client, write: &Write) -> Object {
    match client.send(write, &WritePermit::Always).await {
        WriteResult::Stored(object) => *object,
        other => panic!("{other:?}"),
    }
}

#[track_caller]
fn assert_label(result: &WriteResult, label: &str) {
    assert_eq!(result.as_str(), label, "{result:?}");
}

#[tokio::test(flavor = "multi_thread")]
async fn create_update_and_delete_of_each_resource() {
    let Some(cluster) = Cluster::shared() else { return };
    for disable_protobuf in [false, true] {
        let client = connect(cluster.kubeconfig()).await;
        if disable_protobuf {
            client.disable_protobuf();
        }
        let namespace = cluster.namespace("writes").unwrap();
        for object in [slice(&namespace, "web"), endpoints(&namespace, "web")] {
            write_in_all_ways(&client, object).await;
        }
        let codes: Vec<Option<u16>> =
            client.stats().snapshot().into_keys().map(|kind| kind.code).collect();
        assert!(!codes.contains(&Some(415)) && !codes.contains(&None), "{codes:?}");
    }
}

async fn write_in_all_ways(client: &Client, object: Object) {
    let resource = object.resource();
    let read = LiveRead::Object(resource, object.meta().key());
    assert_eq!(client.live_read(&read).await, LiveReadResult::Absent);

    let first = stored(client, &Write::Create(object.clone())).await;
    assert!(!first.meta().uid.is_empty() && !first.meta().resource_version.is_none());
    assert_label(&client.send(&Write::Create(object), &WritePermit::Always).await, "conflict");

    let second = stored(client, &Write::Update(with_label(first.clone(), "two"))).await;
    assert_ne!(first.meta().resource_version, second.meta().resource_version);
    assert_eq!(client.live_read(&read).await, LiveReadResult::Object(Box::new(second.clone())));
    // Computed from an older version.
    assert_label(
        &client
            .send(&Write::Update(with_label(first.clone(), "three")), &WritePermit::Always)
            .await,
        "conflict",
    );
    let stale = DeleteTarget::of(resource, first.meta());
    assert_label(&client.send(&Write::Delete(stale), &WritePermit::Always).await, "conflict");
    let mut recreated = DeleteTarget::of(resource, second.meta());
    recreated.uid = Uid::from("00000000-0000-0000-0000-000000000000");
    assert_label(&client.send(&Write::Delete(recreated), &WritePermit::Always).await, "conflict");

    let target = DeleteTarget::of(resource, second.meta());
    assert_eq!(
        client.send(&Write::Delete(target.clone()), &WritePermit::Always).await,
        WriteResult::Deleted
    );
    assert_eq!(
        client.send(&Write::Delete(target), &WritePermit::Always).await,
        WriteResult::Deleted,
        "already gone"
    );
    assert_label(&client.send(&Write::Update(second), &WritePermit::Always).await, "conflict");
    assert_eq!(client.live_read(&read).await, LiveReadResult::Absent);
}

#[tokio::test(flavor = "multi_thread")]
async fn finalizer_delays_a_delete() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let namespace = cluster.namespace("finalizer").unwrap();
    let mut object = slice(&namespace, "kept");
    if let Object::Slice(slice) = &mut object {
        slice.meta.finalizers = vec!["example.com/finalizer".into()];
    }
    let object = stored(&client, &Write::Create(object)).await;
    let target = DeleteTarget::of(PublishedResource::Slices, object.meta());
    let kept = stored(&client, &Write::Delete(target)).await;
    assert!(kept.meta().is_deleting());
}

#[tokio::test(flavor = "multi_thread")]
async fn create_in_a_missing_or_terminating_namespace() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let missing = client.send(&Write::Create(slice("missing", "web")), &WritePermit::Always).await;
    assert_label(&missing, "namespace_terminating");

    // Without a namespace controller it stays terminating.
    let namespace = cluster.namespace("terminating").unwrap();
    let before = stored(&client, &Write::Create(slice(&namespace, "before"))).await;
    cluster.api().delete(&format!("/api/v1/namespaces/{namespace}")).unwrap();
    for object in [slice(&namespace, "web"), endpoints(&namespace, "web")] {
        let result = client.send(&Write::Create(object), &WritePermit::Always).await;
        assert_label(&result, "namespace_terminating");
    }
    // Existing objects can still be updated and deleted.
    let before = stored(&client, &Write::Update(with_label(before, "two"))).await;
    let target = DeleteTarget::of(PublishedResource::Slices, before.meta());
    assert_eq!(
        client.send(&Write::Delete(target), &WritePermit::Always).await,
        WriteResult::Deleted
    );
}

#[tokio::test(flavor = "multi_thread")]
async fn missing_permission_is_named() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace("forbidden").unwrap();
    let client = connect(cluster.service_account(&namespace, "nobody").unwrap()).await;
    let result = client.send(&Write::Create(slice(&namespace, "web")), &WritePermit::Always).await;
    let WriteResult::Failed(failure) = result else { panic!("{result:?}") };
    assert_eq!(failure.kind, FailureKind::Forbidden);
    let begin = format!("create endpointslices {namespace}/web: ");
    assert!(failure.message.starts_with(&begin), "{failure}");
    assert!(failure.message.contains("cannot create resource"), "{failure}");
    let found = client.live_read(&LiveRead::Service(Key::new("default", "kubernetes"))).await;
    assert!(
        matches!(found, LiveReadResult::Failed(failure) if failure.kind == FailureKind::Forbidden)
    );

    let mut listener = Listener::start(&client, WatchedResource::Slices);
    let WatchSignal::Disconnected(reason) = listener.next().await else {
        panic!("the watch must be forbidden")
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
    listener.initial_list().await;
}

#[tokio::test(flavor = "multi_thread")]
async fn rejected_object_is_invalid() {
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let namespace = cluster.namespace("invalid").unwrap();
    let result =
        client.send(&Write::Create(slice(&namespace, "Not A Name")), &WritePermit::Always).await;
    assert_label(&result, "invalid");
}

/// More than one page of objects, written concurrently while watches are open.
#[tokio::test(flavor = "multi_thread")]
async fn concurrent_writes_and_a_list_of_several_pages() {
    const N_OBJECTS: usize = 1100;
    let Some(cluster) = Cluster::shared() else { return };
    let client = connect(cluster.kubeconfig()).await;
    let namespace = cluster.namespace("many").unwrap();
    let _watches: Vec<Listener> =
        WatchedResource::DEFAULT.into_iter().map(|one| Listener::start(&client, one)).collect();
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
    let (names, _) = listener.initial_list().await;
    let n_ours = names.iter().filter(|name| name.starts_with(&namespace)).count();
    assert_eq!(n_ours, N_OBJECTS);
    let n_pages: u64 = client
        .stats()
        .snapshot()
        .into_iter()
        .filter(|(kind, _)| kind.verb == "list" && kind.resource == "endpoints")
        .map(|(_, n)| n)
        .sum();
    assert!(n_pages >= 3, "{n_pages}");
}

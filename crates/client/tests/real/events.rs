//! Events as the API server stores them.

use std::time::{Duration, Instant};

use endpointd_client::recorder::Recorder;
use endpointd_control_plane::Cluster;
use endpointd_model::{Controller, EventReason, EventRecord, InvolvedKind, Key, Uid};

use crate::connect;

#[tokio::test(flavor = "multi_thread")]
async fn repeated_record_is_one_event_with_a_count() {
    let Some(cluster) = Cluster::shared() else { return };
    let namespace = cluster.namespace("events").unwrap();
    let (recorder, task) = Recorder::new(connect(cluster.kubeconfig()).await);
    tokio::spawn(task);
    let record = EventRecord {
        reason: EventReason::FailedToUpdateEndpointSlices,
        message: "Error updating".to_owned(),
        involved_kind: InvolvedKind::Service,
    };
    for _ in 0..3 {
        let key = Key::new(&*namespace, "web");
        recorder.record(Controller::Slices, key, Uid::from("some-uid"), record.clone());
    }
    let started = Instant::now();
    while recorder.n_written() + recorder.n_failed() < 3 {
        assert!(started.elapsed() < Duration::from_secs(30), "Events are not written");
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    assert_eq!((recorder.n_failed(), recorder.n_dropped()), (0, 0));

    let list = cluster.api().get(&format!("/api/v1/namespaces/{namespace}/events")).unwrap();
    let [event] = list["items"].as_array().unwrap().as_slice() else { panic!("{list:#}") };
    assert_eq!(event["count"], 3);
    assert_eq!(event["type"], "Warning");
    assert_eq!(event["reason"], "FailedToUpdateEndpointSlices");
    assert_eq!(event["message"], "Error updating");
    assert_eq!(event["source"]["component"], "endpoint-slice-controller");
    assert_eq!(event["reportingComponent"], "endpoint-slice-controller");
    let involved = &event["involvedObject"];
    assert_eq!(involved["kind"], "Service");
    assert_eq!(involved["name"], "web");
    assert_eq!(involved["uid"], "some-uid");
    assert_eq!(involved["apiVersion"], "v1");
    let name = event["metadata"]["name"].as_str().unwrap();
    assert!(name.strip_prefix("web.").is_some_and(|hex| u64::from_str_radix(hex, 16).is_ok()));
}

#[tokio::test(flavor = "multi_thread")]
async fn event_in_a_missing_namespace_fails() {
    let Some(cluster) = Cluster::shared() else { return };
    let (recorder, task) = Recorder::new(connect(cluster.kubeconfig()).await);
    tokio::spawn(task);
    let record = EventRecord {
        reason: EventReason::InvalidIPAddress,
        message: "x".to_owned(),
        involved_kind: InvolvedKind::Endpoints,
    };
    recorder.record(Controller::Mirror, Key::new("missing", "web"), Uid::default(), record);
    let started = Instant::now();
    while recorder.n_failed() == 0 {
        assert!(started.elapsed() < Duration::from_secs(30));
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
}

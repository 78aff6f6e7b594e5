//! The pages over a real socket.

use endpointd_model::Key;
use endpointd_status::{LeadershipStatus, LoopQuery};
use serde_json::json;

use crate::fixture::engine_status;
use crate::server::{Server, get_json};

#[tokio::test]
async fn every_page_answers() {
    let site = Server::open().await;
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
    assert_eq!(site.get("/healthz").await, (200, "ok".into()));
    let (status, text) = site.get("/readyz").await;
    assert_eq!((status, text.lines().count()), (503, 1), "{text}");

    site.handle.publish(engine_status());
    assert_eq!(site.get("/readyz").await, (200, "ok".into()));
    let (status, text) = site.get("/metrics").await;
    assert!(status == 200 && text.contains("endpoint_slice_controller_num_endpoint_slices 2"));
    let (status, text) = site.get("/").await;
    assert!(status == 200 && text.contains("/report"), "{text}");
    site.close().await;
}

#[tokio::test]
async fn verbose_health_page_lists_each_check() {
    let site = Server::open().await;
    site.handle.publish(engine_status());
    let expected = "[+]process ok\n[+]engine ok\n[+]services ok\n[+]pods ok\n[+]endpointslices ok\n\
                    readyz check passed\n";
    assert_eq!(site.get("/readyz?verbose").await, (200, expected.into()));
    let mut lost = engine_status();
    lost.watches[1].disconnected_reason = Some("cut off".into());
    site.handle.publish(lost);
    let (status, text) = site.get("/readyz?verbose").await;
    assert_eq!(status, 503);
    assert!(text.contains("[-]pods: watch disconnected: cut off\n"), "{text}");
    assert!(text.ends_with("readyz check failed\n"), "{text}");
}

#[tokio::test]
async fn report_shows_leadership_keys_and_watches() {
    let site = Server::open().await;
    let (status, value) = site.get_json("/report").await;
    assert_eq!((status, &value["error"]), (503, &json!("no status published yet")));

    site.handle.publish(engine_status());
    site.handle.set_leadership(LeadershipStatus::Leading { lease: "endpointd".into() });
    let (status, value) = site.get_json("/report").await;
    assert_eq!(status, 200);
    let leadership = json!({"state": "leading", "lease": "endpointd", "holder": "pod-a"});
    assert_eq!(value["process"]["leadership"], leadership);
    assert_eq!(value["keys"][0]["key"], "shop/web");
    assert_eq!(value["keys"][1]["state"], "backing_off");
    assert_eq!(value["keys"][1]["seconds"], 4.0);
    assert_eq!(value["watches"][1]["decodeErrors"], json!({"shop/odd": "podIP: not an address"}));
    let excluded_pods = json!({"InvalidAddress": 3, "NotScheduled": 1});
    assert_eq!(value["controllers"][0]["excludedPods"], excluded_pods);
    assert_eq!(value["deletionLimiter"]["delayedKeys"], 4);
}

/// The rows of the snapshot are not enough: a healthy key has none there.
#[tokio::test]
async fn report_of_a_key_is_answered_by_the_event_loop() {
    let mut site = Server::open().await;
    let row = engine_status().keys.remove(0);
    let answer = async {
        let LoopQuery::Key(query) = site.queries.next().await else { panic!("a key") };
        assert_eq!(query.key, Key::new("shop", "web"));
        query.reply.send(vec![row]).expect("the page waits for it");
    };
    let address = site.address;
    let ((status, value), ()) = tokio::join!(get_json(address, "/report?key=shop%2Fweb"), answer);
    assert_eq!(status, 200);
    assert_eq!(value["key"], "shop/web");
    assert_eq!(value["keys"].as_array().unwrap().len(), 1);
    assert_eq!(value["keys"][0]["lastError"], "quota exceeded");
    assert_eq!(value["process"]["version"], "1.2.3");
}

#[tokio::test]
async fn report_of_a_key_is_unavailable_when_the_event_loop_has_ended() {
    let mut site = Server::open().await;
    let refuse = async { drop(site.queries.next().await) };
    let address = site.address;
    let ((status, value), ()) = tokio::join!(get_json(address, "/report?key=shop/web"), refuse);
    assert_eq!((status, &value["error"]), (503, &json!("the event loop did not answer")));
}

#[tokio::test]
async fn malformed_key_is_a_bad_request() {
    let site = Server::open().await;
    for wrong in ["web", "/web", "shop/", "a/b/c", ""] {
        let (status, _) = site.get_json(&format!("/report?key={wrong}")).await;
        assert_eq!(status, 400, "{wrong:?}");
    }
}

#[tokio::test]
async fn pretty_report_has_several_lines() {
    let site = Server::open().await;
    site.handle.publish(engine_status());
    let (_, compact) = site.get("/report").await;
    let (_, pretty) = site.get("/report?pretty").await;
    assert_eq!(compact.lines().count(), 1);
    assert!(pretty.lines().count() > 50);
}

#[tokio::test]
async fn unknown_page_is_a_json_error() {
    let site = Server::open().await;
    let (status, value) = site.get_json("/unknown").await;
    assert_eq!((status, &value["error"]), (404, &json!("no such page: /unknown")));
}

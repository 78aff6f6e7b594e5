//! Batch periods: which changes wait for them.

use std::time::Duration;

use endpointd_engine::Settings;
use endpointd_model::{Labels, Node, PublishedResource, Service};

use crate::cluster::Cluster;
use crate::objects::{endpoints, key, labels, manual_endpoints, node, pod, service};

fn batching(period: Duration) -> Cluster {
    let mut settings = Settings::default();
    settings.controllers.iter_mut().for_each(|one| one.batch_period = period);
    let mut cluster = Cluster::new(settings);
    cluster.put_node(node("n"));
    cluster.put_service(service("web"));
    cluster.put_pod(pod("web-0"));
    cluster.start();
    cluster.clear_log();
    cluster
}

#[test]
fn changes_within_the_batch_period_are_written_once() {
    let mut cluster = batching(Duration::from_secs(1));
    for n in 1..10 {
        cluster.put_pod(pod(&format!("web-{n}")));
        cluster.advance(Duration::from_millis(90));
    }
    assert!(cluster.sent.is_empty());
    cluster.advance(Duration::from_secs(1));
    assert_eq!(cluster.sent.len(), 2, "one write per controller: {:?}", cluster.sent);
    assert_eq!(endpoints(&cluster, "web").len(), 10);
}

type Change = fn(&mut Cluster);

/// Upstream: `AddAfter` for pods and slices, `Add` for everything else.
#[test]
fn only_changes_of_pods_and_slices_wait_for_the_batch_period() {
    const PERIOD: Duration = Duration::from_secs(5);
    let changes: [(&str, bool, Change); 6] = [
        ("service created", false, |cluster| cluster.put_service(service("new"))),
        ("service changed", false, |cluster| {
            cluster.put_service(Service { labels: labels("changed"), ..service("web") });
        }),
        ("endpoints deleted", false, |cluster| {
            cluster.remove_object(PublishedResource::Endpoints, &key("web"));
        }),
        ("zone of a node", false, |cluster| {
            cluster.put_node(Node { zone: Some("z".into()), ..node("n") });
        }),
        ("pod deleted", true, |cluster| cluster.remove_pod(&key("web-0"))),
        ("pod created", true, |cluster| cluster.put_pod(pod("web-1"))),
    ];
    for (name, is_batched, change) in changes {
        let mut cluster = batching(PERIOD);
        change(&mut cluster);
        cluster.advance(Duration::from_millis(100));
        assert_eq!(cluster.sent.is_empty(), is_batched, "{name}: {:?}", cluster.sent);
        cluster.advance(PERIOD);
        assert!(!cluster.sent.is_empty(), "{name}");
    }
    let mut cluster = batching(PERIOD);
    let slice = cluster.slices()[0].meta.key();
    cluster.remove_object(PublishedResource::Slices, &slice);
    cluster.advance(PERIOD - Duration::from_millis(1));
    assert!(cluster.sent.is_empty(), "slice deleted: {:?}", cluster.sent);
    cluster.advance(Duration::from_millis(1));
    assert_eq!(cluster.sent.len(), 1);
}

#[test]
fn manual_endpoints_are_mirrored_at_once_despite_a_batch_period() {
    let mut cluster = batching(Duration::from_secs(5));
    cluster.put_service(Service { selector: Labels::default(), ..service("manual") });
    cluster.put_object(manual_endpoints("manual"));
    cluster.advance(Duration::from_millis(100));
    assert_eq!(endpoints(&cluster, "manual"), ["10.1.0.1 ready"]);
}

/// The batch period starts with the change, not with the end of the sync in flight.
#[test]
fn change_in_flight_waits_for_the_rest_of_its_batch_period() {
    let mut cluster = batching(Duration::from_secs(5));
    cluster.responses_last = true;
    cluster.put_service(Service { labels: labels("changed"), ..service("web") });
    cluster.step_until_sent(1);
    cluster.put_pod(pod("web-1"));
    cluster.advance(Duration::from_secs(4));
    assert_eq!(endpoints(&cluster, "web").len(), 1);
    cluster.advance(Duration::from_secs(1));
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

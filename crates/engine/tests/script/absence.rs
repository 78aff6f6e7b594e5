//! Nothing is destroyed only because we do not see something.

use std::time::Duration;

use endpointd_model::{LiveRead, Object, PublishedResource, WatchedResource};

use crate::objects::{addresses, endpoints, key, node, pod, settled};

#[test]
fn endpoints_go_with_their_service_after_a_live_read() {
    let mut cluster = settled(&[("web", 2)]);
    cluster.remove_service(&key("web"));
    cluster.run();
    assert_eq!(cluster.looked, [LiveRead::Service(key("web"))]);
    assert_eq!(cluster.sent, ["delete endpoints web"]);
    assert!(addresses(&cluster, "web").is_empty());
}

#[test]
fn a_service_that_only_our_view_lost_keeps_its_endpoints() {
    let mut cluster = settled(&[("web", 2)]);
    let hidden = cluster.services.clone();
    cluster.services.clear();
    cluster.list(WatchedResource::Services);
    cluster.services = hidden;
    cluster.pass(Duration::from_secs(60));
    assert_eq!(cluster.sent, [""; 0]);
    assert_eq!(addresses(&cluster, "web").len(), 2);
    cluster.remove_pod(&key("web-0"));
    cluster.run();
    assert_eq!(addresses(&cluster, "web").len(), 1, "and goes on being served");
}

#[test]
fn while_nothing_can_be_read_nothing_is_deleted() {
    let mut cluster = settled(&[("web", 1)]);
    cluster.is_blind = true;
    cluster.remove_service(&key("web"));
    cluster.pass(Duration::from_secs(300));
    assert_eq!(cluster.sent, [""; 0]);
    assert!(cluster.looked.len() < 40, "{} reads", cluster.looked.len());
    cluster.is_blind = false;
    cluster.pass(Duration::from_secs(31));
    assert_eq!(cluster.sent, ["delete endpoints web"]);
}

#[test]
fn many_deletions_at_once_are_braked() {
    let mut cluster = settled(&[]);
    for n in 0..100 {
        cluster.put_endpoints(&format!("left-{n:03}"));
    }
    cluster.restart();
    let n_deleted = |cluster: &crate::cluster::Cluster| cluster.sent.len();
    assert_eq!(n_deleted(&cluster), 20, "at once");
    assert!(cluster.report().deletion_limiter.is_active);
    cluster.pass(Duration::from_secs(59));
    assert_eq!(n_deleted(&cluster), 20, "within the minute");
    cluster.pass(Duration::from_secs(600));
    assert_eq!(n_deleted(&cluster), 100, "in the end");
    assert!(!cluster.report().deletion_limiter.is_active);
}

#[test]
fn a_leader_election_lock_is_nobodys_leftover() {
    let mut cluster = settled(&[]);
    cluster.put_endpoints("lock");
    let at = (PublishedResource::Endpoints, key("lock"));
    let Object::Endpoints(mut lock) = cluster.objects[&at].clone() else { panic!("Endpoints") };
    lock.meta.annotations = [(endpointd_model::names::LEADER, "{}")].into_iter().collect();
    cluster.put_object(Object::Endpoints(lock));
    cluster.restart();
    assert_eq!(cluster.sent, [""; 0]);
}

#[test]
fn a_pod_on_a_node_we_have_not_seen_waits_and_is_published_when_the_node_comes() {
    let mut cluster = settled(&[("web", 1)]);
    let late = endpointd_model::Pod { node_name: Some("late".into()), ..pod("web-5") };
    cluster.put_pod(late);
    cluster.pass(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web").len(), 1);
    assert_eq!(cluster.looked, [LiveRead::Node("late".into())], "asked once");
    let node = endpointd_model::Node { zone: Some("z".into()), ..node("late") };
    cluster.put_node(node);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web").len(), 2);
}

#[test]
fn a_lost_view_of_the_nodes_takes_nothing_out() {
    let mut cluster = settled(&[("web", 3)]);
    let hidden = cluster.nodes.clone();
    cluster.nodes.clear();
    cluster.list(WatchedResource::Nodes);
    cluster.nodes = hidden;
    cluster.pass(Duration::from_secs(60));
    assert_eq!(endpoints(&cluster, "web").len(), 3);
    assert_eq!(cluster.sent, [""; 0]);
}

#[test]
fn a_node_that_is_really_gone_takes_its_pods_along() {
    let mut cluster = settled(&[("web", 3)]);
    cluster.remove_node("n");
    cluster.pass(Duration::from_secs(60));
    assert!(endpoints(&cluster, "web").is_empty(), "as upstream has it");
}

#[test]
fn a_zone_that_comes_late_reaches_the_endpoints() {
    let mut cluster = settled(&[("web", 1)]);
    cluster.put_node(endpointd_model::Node { zone: Some("z".into()), ..node("n") });
    cluster.run();
    assert_eq!(cluster.slices()[0].endpoints[0].zone.as_deref(), Some("z"));
}

#[test]
fn what_a_new_picture_does_not_show_is_gone() {
    let mut cluster = settled(&[("web", 3)]);
    cluster.pods.remove(&key("web-1"));
    cluster.list(WatchedResource::Pods);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 ready", "10.0.0.3 ready"]);
}

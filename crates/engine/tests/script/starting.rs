//! Each controller starts when the resources that it reads are listed.

use endpointd_engine::{Input, Settings};
use endpointd_model::{Controller, Labels, Service, WatchedResource};

use crate::cluster::Cluster;
use crate::objects::{addresses, endpoints, key, manual_endpoints, node, pod, service, unready};

/// A leader that has listed everything but `missing`.
fn without(missing: WatchedResource) -> Cluster {
    let mut cluster = Cluster::new(Settings::default());
    cluster.put_node(node("n"));
    cluster.put_service(service("web"));
    cluster.put_pod(pod("web-0"));
    cluster.put_service(Service { selector: Labels::default(), ..service("db") });
    cluster.put_object(manual_endpoints("db"));
    cluster.hold_watch(missing);
    cluster.handle(Input::LeadershipAcquired);
    for resource in WatchedResource::ALL {
        if resource != missing {
            cluster.list(resource);
        }
    }
    cluster.run();
    cluster
}

fn waiting(cluster: &Cluster, resource: WatchedResource) -> Vec<Controller> {
    let report = cluster.report();
    let waiting = report.controllers.iter().filter(|one| one.waits_for == [resource]);
    waiting.map(|one| one.controller).collect()
}

#[test]
fn resource_that_cannot_be_listed_stops_only_the_controllers_that_read_it() {
    let slices = ["10.0.0.1 ready"].as_slice();
    let (mirrored, addresses_of_web) = (["10.1.0.1 ready"].as_slice(), ["10.0.0.1"].as_slice());
    let none = [].as_slice();
    for (missing, want) in [
        (WatchedResource::Endpoints, (slices, none, none)),
        (WatchedResource::Slices, (none, addresses_of_web, none)),
        (WatchedResource::Nodes, (none, addresses_of_web, mirrored)),
        (WatchedResource::Pods, (none, none, mirrored)),
        (WatchedResource::Services, (none, none, none)),
    ] {
        let cluster = without(missing);
        let got =
            (endpoints(&cluster, "web"), addresses(&cluster, "web"), endpoints(&cluster, "db"));
        let want = (want.0.to_vec(), want.1.to_vec(), want.2.to_vec());
        let got = (texts(&got.0), texts(&got.1), texts(&got.2));
        assert_eq!(got, want, "without {}", missing.as_str());
        assert!(!cluster.report().is_ready());
    }
}

fn texts(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

#[test]
fn controller_that_starts_later_plans_every_key() {
    let mut cluster = without(WatchedResource::Endpoints);
    assert_eq!(
        waiting(&cluster, WatchedResource::Endpoints),
        [Controller::Endpoints, Controller::Mirror]
    );
    cluster.change_pod(&key("web-0"), unready);
    cluster.run();
    assert_eq!(endpoints(&cluster, "web"), ["10.0.0.1 unready"], "changes are published meanwhile");
    cluster.release_watches();
    cluster.list(WatchedResource::Endpoints);
    cluster.run();
    assert_eq!(addresses(&cluster, "web"), ["(10.0.0.1)"]);
    assert_eq!(endpoints(&cluster, "db"), ["10.1.0.1 ready"]);
    assert!(cluster.report().is_ready());
    assert_eq!(waiting(&cluster, WatchedResource::Endpoints), []);
}

#[test]
fn only_resources_that_running_controllers_read_are_watched() {
    let watched = |controllers: &[Controller]| {
        let all = Settings::default();
        let mut controllers_left = all.controllers.clone();
        controllers_left.retain(|one| controllers.contains(&one.controller));
        Settings { controllers: controllers_left, ..all }.watched_resources()
    };
    assert!(!watched(&[Controller::Slices]).contains(&WatchedResource::Endpoints));
    assert!(
        watched(&[Controller::Slices, Controller::Mirror]).contains(&WatchedResource::Endpoints)
    );
    assert!(!watched(&[Controller::Endpoints]).contains(&WatchedResource::Slices));
}

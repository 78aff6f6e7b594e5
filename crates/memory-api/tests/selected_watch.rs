//! A watch with a label selector, as kube-apiserver filters it (`filterWithAttrsFunction` in
//! k8s.io/apiserver/pkg/storage/cacher).

use endpointd_memory_api::MemoryApi;
use endpointd_model::{Key, ObjectEvent, ResourceEvent, Service, WatchSignal, WatchedResource};

fn service(name: &str, team: &str) -> Service {
    Service {
        namespace: "ns".into(),
        name: name.into(),
        labels: [("team", team)].into_iter().collect(),
        ..Service::default()
    }
}

fn text(signal: &WatchSignal) -> String {
    let WatchSignal::Event(event) = signal else { return format!("{signal:?}") };
    let ResourceEvent::Service(event) = event.as_ref() else { return format!("{event:?}") };
    let verb = match event {
        ObjectEvent::Applied(_) => "applied",
        ObjectEvent::Deleted(_) => "deleted",
    };
    let Service { name, labels, resource_version, .. } = event.object();
    let team = labels.get("team").map_or("none", AsRef::as_ref);
    format!("{verb} {name} {team} {}", resource_version.number())
}

#[test]
fn object_that_leaves_the_selector_is_deleted_for_its_watch() {
    let mut api = MemoryApi::default();
    let web = Key::new("ns", "web");
    for team in ["a", "b", "b", "a", "a"] {
        api.put_service(service("web", team));
    }
    api.put_service(service("api", "b"));
    api.remove_service(&Key::new("ns", "api"));
    api.remove_service(&web);
    api.put_service(service("web", "a"));
    api.corrupt(WatchedResource::Services, &web);
    let is_selected = |service: &Service| service.labels.has("team", "a");
    let sent: Vec<Option<String>> = (1..=api.revision())
        .map(|at| api.services.selected_signal(at, is_selected).as_ref().map(text))
        .collect();
    let expected = [
        Some("applied web a 1"),
        // As it was before, with the version of the change.
        Some("deleted web a 2"),
        None,
        Some("applied web a 4"),
        Some("applied web a 5"),
        None,
        None,
        Some("deleted web a 8"),
        Some("applied web a 9"),
    ];
    let shown: Vec<Option<&str>> = sent.iter().map(Option::as_deref).collect();
    assert_eq!(shown[..9], expected);
    assert!(matches!(
        api.services.selected_signal(10, is_selected),
        Some(WatchSignal::DecodeError { .. })
    ));
}

//! What a process receives from a watch: the API server selects Services by their labels, and the
//! client drops what is not in its scope.

use endpointd_engine::Input;
use endpointd_model::{
    ObjectEvent, ResourceEvent, Scope, Service, SharedStr, WatchSignal, WatchedResource,
};

use super::Simulation;
use crate::client_bug::ClientBug;

/// How an object arrives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Received {
    Event,
    InList,
}

impl Simulation {
    /// What the API server sends to a watch with the label selector of the process.
    pub(super) fn selected(
        &mut self,
        process: usize,
        resource: WatchedResource,
        (revision, signal): (u64, WatchSignal),
    ) -> Option<WatchSignal> {
        let scope = &self.processes[process].scope;
        let is_filtered = resource == WatchedResource::Services && scope.service_selector.is_some();
        if !is_filtered || self.has_bug(ClientBug::ScopeNotChecked) {
            return Some(signal);
        }
        let sent = self.api.services.selected_signal(revision, |one| selects(scope, one));
        if sent.as_ref().is_some_and(|sent| *sent != signal) {
            self.coverage.count_fault("Service leaves a label selector");
        }
        sent
    }

    /// What the client passes on: an object, unless the scope of the process does not contain it.
    pub(super) fn receive(
        &mut self,
        process: usize,
        resource: WatchedResource,
        signal: WatchSignal,
        received: Received,
    ) {
        let is_listed = received == Received::Event || self.is_selected(process, &signal);
        if !is_listed || !self.is_in_scope(process, resource, &signal) {
            return;
        }
        self.record_received(process, &signal);
        match received {
            Received::Event => self.trace(|| format!("  p{process} receives {}", brief(&signal))),
            Received::InList => {}
        }
        self.handle_input(process, Input::Watch(resource, signal));
    }

    /// For an object of a list.
    fn is_selected(&self, process: usize, signal: &WatchSignal) -> bool {
        if let WatchSignal::Event(change) = signal
            && let ResourceEvent::Service(event) = change.as_ref()
        {
            let scope = &self.processes[process].scope;
            return selects(scope, event.object()) || self.has_bug(ClientBug::ScopeNotChecked);
        }
        true
    }

    fn is_in_scope(&self, process: usize, resource: WatchedResource, signal: &WatchSignal) -> bool {
        let namespace = match signal {
            WatchSignal::Event(change) => namespace_of(change),
            WatchSignal::DecodeError { key, .. } => key.namespace.clone(),
            WatchSignal::InitStarted
            | WatchSignal::InitDone(_)
            | WatchSignal::Bookmark(_)
            | WatchSignal::Disconnected(_)
            | WatchSignal::Reconnected => return true,
        };
        self.has_bug(ClientBug::ScopeNotChecked)
            || self.processes[process].scope.contains(resource, &namespace)
    }

    /// Records versions of published objects, which the engine may now write to, and deletions of
    /// Services.
    fn record_received(&mut self, process: usize, signal: &WatchSignal) {
        if let WatchSignal::Event(change) = signal {
            let version = match change.as_ref() {
                ResourceEvent::Endpoints(event) => event.object().meta.resource_version,
                ResourceEvent::Slice(event) => event.object().meta.resource_version,
                ResourceEvent::Service(event) => {
                    let version = event.object().resource_version.number();
                    self.processes[process].received_versions.insert(version);
                    let (key, reported) =
                        (event.object().key(), &mut self.processes[process].reported_deletions);
                    match event {
                        ObjectEvent::Applied(_) => reported.remove(&key),
                        ObjectEvent::Deleted(_) => reported.insert(key),
                    };
                    return;
                }
                ResourceEvent::Pod(_)
                | ResourceEvent::Node(_)
                | ResourceEvent::ReferenceGrant(_)
                | ResourceEvent::Namespace(_)
                | ResourceEvent::ServiceExport(_)
                | ResourceEvent::ServiceImport(_)
                | ResourceEvent::DerivedService(_) => return,
            };
            self.processes[process].received_versions.insert(version.number());
        }
    }
}

fn selects(scope: &Scope, service: &Service) -> bool {
    let label = |key: &str| service.labels.get(key).map(AsRef::as_ref);
    scope.service_selector.as_ref().is_none_or(|selector| selector.matches(label))
}

/// Nodes have none.
fn namespace_of(change: &ResourceEvent) -> SharedStr {
    match change {
        ResourceEvent::Service(event) => event.object().namespace.clone(),
        ResourceEvent::Pod(event) => event.object().namespace.clone(),
        ResourceEvent::Endpoints(event) => event.object().meta.namespace.clone(),
        ResourceEvent::Slice(event) => event.object().meta.namespace.clone(),
        ResourceEvent::ReferenceGrant(event) => event.object().namespace.clone(),
        ResourceEvent::ServiceExport(event) => event.object().meta.namespace.clone(),
        ResourceEvent::ServiceImport(event) => event.object().meta.namespace.clone(),
        ResourceEvent::DerivedService(event) => event.object().meta.namespace.clone(),
        ResourceEvent::Node(_) | ResourceEvent::Namespace(_) => SharedStr::default(),
    }
}

/// One line for the trace.
fn brief(signal: &WatchSignal) -> String {
    fn line<T>(resource: &str, event: &ObjectEvent<T>, name: impl Fn(&T) -> String) -> String {
        let deleted = if matches!(event, ObjectEvent::Deleted(_)) { " deleted" } else { "" };
        format!("{resource} {}{deleted}", name(event.object()))
    }
    match signal {
        WatchSignal::Event(change) => match change.as_ref() {
            ResourceEvent::Service(one) => line("service", one, |it| it.key().to_string()),
            ResourceEvent::Pod(one) => line("pod", one, |it| it.key().to_string()),
            ResourceEvent::Node(one) => line("node", one, |it| it.name.to_string()),
            ResourceEvent::Endpoints(one) => line("endpoints", one, |it| it.meta.key().to_string()),
            ResourceEvent::Slice(one) => line("slice", one, |it| it.meta.key().to_string()),
            ResourceEvent::ReferenceGrant(one) => line("grant", one, |it| it.key().to_string()),
            ResourceEvent::Namespace(one) => line("namespace", one, |it| it.name.to_string()),
            ResourceEvent::ServiceExport(one) => {
                line("export", one, |it| it.meta.key().to_string())
            }
            ResourceEvent::ServiceImport(one) => {
                line("import", one, |it| it.meta.key().to_string())
            }
            ResourceEvent::DerivedService(one) => {
                line("derived service", one, |it| it.meta.key().to_string())
            }
        },
        WatchSignal::DecodeError { key, .. } => format!("{key}, undecodable"),
        WatchSignal::InitStarted
        | WatchSignal::InitDone(_)
        | WatchSignal::Bookmark(_)
        | WatchSignal::Disconnected(_)
        | WatchSignal::Reconnected => {
            format!("{signal:?}")
        }
    }
}

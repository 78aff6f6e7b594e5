//! Endpoints that users write.

use endpointd_model::{
    EndpointAddress, Endpoints, Labels, Meta, Object, ObjectRef, Protocol, Subset, SubsetPort,
    names,
};

use super::{ShapeSeed, labels, remove_endpoints, service_key};
use crate::script::{EndpointsAction, Place};
use endpointd_memory_api::MemoryApi;

pub fn apply(api: &mut MemoryApi, place: Place, what: EndpointsAction) {
    let key = service_key(place);
    let old = api.endpoints.get(&key).map(|one| Endpoints::clone(one));
    let mut new = match (&old, what) {
        (Some(_), EndpointsAction::Remove) => return remove_endpoints(api, &key),
        (_, EndpointsAction::Recreate(_)) => {
            remove_endpoints(api, &key);
            blank(place)
        }
        (Some(old), _) => old.clone(),
        (None, EndpointsAction::Put(_)) => blank(place),
        (None, _) => return,
    };
    match what {
        EndpointsAction::Put(shape) | EndpointsAction::Recreate(shape) => {
            new.subsets = subsets(&mut ShapeSeed(shape));
        }
        EndpointsAction::SkipMirror => {
            new.meta.labels = new.meta.labels.with(names::SKIP_MIRROR, Some("true"));
        }
        EndpointsAction::Lock => {
            new.meta.annotations = new.meta.annotations.with(names::LEADER, Some("{}"));
        }
        EndpointsAction::RemoveMarks => {
            new.meta.labels = new.meta.labels.with(names::SKIP_MIRROR, None);
            new.meta.annotations = new.meta.annotations.with(names::LEADER, None);
        }
        EndpointsAction::Annotate(shape) => annotate(&mut new.meta, &mut ShapeSeed(shape)),
        EndpointsAction::Empty => new.subsets.clear(),
        EndpointsAction::Remove => {}
    }
    if old.as_ref() != Some(&new) && api.is_active(&key.namespace) {
        api.force(Object::Endpoints(new));
    }
}

fn blank(place: Place) -> Endpoints {
    let key = service_key(place);
    let meta = Meta { namespace: key.namespace, name: key.name, ..Meta::default() };
    Endpoints { meta, subsets: Vec::new() }
}

fn annotate(meta: &mut Meta, shape: &mut ShapeSeed) {
    let (own, annotations) = match shape.pick(4) {
        0 => (labels([("team", "a")]), labels([("note", "1")])),
        1 => (labels([("team", "b")]), labels([(names::LAST_APPLIED, "{}"), ("note", "2")])),
        2 => (Labels::default(), labels([(names::TRIGGER_TIME, "2025-01-01T00:00:00Z")])),
        _ => (Labels::default(), Labels::default()),
    };
    (meta.labels, meta.annotations) = (own, annotations);
}

fn subsets(shape: &mut ShapeSeed) -> Vec<Subset> {
    let port = |name: &str, port| SubsetPort {
        name: name.into(),
        port,
        protocol: Protocol::Tcp,
        app_protocol: None,
    };
    let n_subsets = shape.pick(3);
    let subset = |_| {
        let n_ready = shape.pick(4);
        let n_unready = shape.pick(3);
        let addresses = (0..n_ready).map(|_| address(shape)).collect();
        let not_ready_addresses = (0..n_unready).map(|_| address(shape)).collect();
        let ports = match shape.pick(3) {
            0 => vec![port("http", 80), port("metrics", 9100)],
            1 => vec![port("http", 80)],
            _ => vec![],
        };
        Subset { addresses, not_ready_addresses, ports }
    };
    let is_valid =
        |subset: &Subset| !subset.addresses.is_empty() || !subset.not_ready_addresses.is_empty();
    (0..n_subsets).map(subset).filter(is_valid).collect()
}

/// The address decides all other fields, so that equal addresses give equal entries.
fn address(shape: &mut ShapeSeed) -> EndpointAddress {
    let number = shape.pick(9);
    let ip = match number {
        0 => "010.1.0.07".to_owned(),
        1 => "fd00:1::1".to_owned(),
        other => format!("10.1.0.{other}"),
    };
    let target_ref = number.is_multiple_of(3).then(|| ObjectRef {
        kind: "Pod".into(),
        name: format!("manual-{number}").into(),
        uid: format!("manual-uid-{number}").as_str().into(),
        ..ObjectRef::default()
    });
    EndpointAddress {
        ip: ip.into(),
        hostname: (number == 4).then(|| "manual".into()),
        node_name: (number == 5).then(|| "node-0".into()),
        target_ref,
    }
}

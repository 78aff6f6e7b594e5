//! Endpoints that people write.

use endpointd_model::{
    EndpointAddress, Endpoints, Labels, Meta, Object, ObjectRef, Protocol, Subset, SubsetPort,
    names,
};

use super::{Variety, labels, remove_endpoints, service_key};
use crate::api::Api;
use crate::script::{EndpointsAct, Place};

pub fn perform(api: &mut Api, place: Place, what: EndpointsAct) {
    let key = service_key(place);
    let old = api.endpoints.get(&key).map(|one| Endpoints::clone(one));
    let mut new = match (&old, what) {
        (Some(_), EndpointsAct::Remove) => return remove_endpoints(api, &key),
        (_, EndpointsAct::Recreate(_)) => {
            remove_endpoints(api, &key);
            blank(place)
        }
        (Some(old), _) => old.clone(),
        (None, EndpointsAct::Put(_)) => blank(place),
        (None, _) => return,
    };
    match what {
        EndpointsAct::Put(variety) | EndpointsAct::Recreate(variety) => {
            new.subsets = subsets(&mut Variety(variety));
        }
        EndpointsAct::SkipMirror => {
            new.meta.labels = new.meta.labels.with(names::SKIP_MIRROR, Some("true"));
        }
        EndpointsAct::Lock => {
            new.meta.annotations = new.meta.annotations.with(names::LEADER, Some("{}"));
        }
        EndpointsAct::Unmark => {
            new.meta.labels = new.meta.labels.with(names::SKIP_MIRROR, None);
            new.meta.annotations = new.meta.annotations.with(names::LEADER, None);
        }
        EndpointsAct::Annotate(variety) => annotate(&mut new.meta, &mut Variety(variety)),
        EndpointsAct::Empty => new.subsets.clear(),
        EndpointsAct::Remove => {}
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

fn annotate(meta: &mut Meta, variety: &mut Variety) {
    let (own, annotations) = match variety.pick(4) {
        0 => (labels([("team", "a")]), labels([("note", "1")])),
        1 => (labels([("team", "b")]), labels([(names::LAST_APPLIED, "{}"), ("note", "2")])),
        2 => (Labels::default(), labels([(names::TRIGGER_TIME, "2025-01-01T00:00:00Z")])),
        _ => (Labels::default(), Labels::default()),
    };
    (meta.labels, meta.annotations) = (own, annotations);
}

fn subsets(variety: &mut Variety) -> Vec<Subset> {
    let port = |name: &str, port| SubsetPort {
        name: name.into(),
        port,
        protocol: Protocol::Tcp,
        app_protocol: None,
    };
    let n_subsets = variety.pick(3);
    let subset = |_| {
        let n_ready = variety.pick(4);
        let n_unready = variety.pick(3);
        let addresses = (0..n_ready).map(|_| address(variety)).collect();
        let not_ready_addresses = (0..n_unready).map(|_| address(variety)).collect();
        let ports = match variety.pick(3) {
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

/// Everything else follows from the address, so that two that are the same are the same.
fn address(variety: &mut Variety) -> EndpointAddress {
    let number = variety.pick(9);
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

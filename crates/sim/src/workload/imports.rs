//! What users do about endpoints of other namespaces: wishes, consent, and edits of what results.

use endpointd_model::{
    AddressType, Condition, CrossNamespace, Endpoint, EndpointPort, EndpointSlice, GrantedFrom,
    GrantedTo, Hints, Key, Meta, Object, ObjectRef, OwnerRef, PublishedResource, ReferenceGrant,
    Service, SharedStr, names,
};

use super::{
    CONSUMERS, NAMESPACES, SERVICES, ShapeSeed, consumer_key, labels, namespace, pick, service_key,
    services,
};
use crate::script::{CopyEdit, ImportAction, ServiceAction};
use endpointd_memory_api::MemoryApi;

pub fn apply(api: &mut MemoryApi, action: ImportAction) {
    match action {
        ImportAction::Consumer(place, what) => {
            let key = consumer_key(place);
            services::apply(api, &key, what);
            if let ServiceAction::Create(shape) | ServiceAction::Recreate(shape) = what {
                let wish = wish(&mut ShapeSeed(shape));
                change(api, &key, |service| set(service, |cross| cross.from = wish));
            }
        }
        ImportAction::Ask(place, shape) => {
            let wish = wish(&mut ShapeSeed(shape));
            change(api, &consumer_key(place), |service| set(service, |cross| cross.from = wish));
        }
        ImportAction::Select(place) => {
            let selector = labels([("app", "web")]);
            change(api, &consumer_key(place), |service| service.selector = selector);
        }
        ImportAction::Permit(place, shape) => {
            let consent = consent(&mut ShapeSeed(shape));
            change(api, &service_key(place), |service| set(service, |cross| cross.to = consent));
        }
        ImportAction::Grant(number, shape) => grant(api, number, &mut ShapeSeed(shape)),
        ImportAction::Revoke(number, index) => revoke(api, &namespace(number), index),
        ImportAction::WriteSlice(place, shape) => {
            write_slice(api, &service_key(place), &mut ShapeSeed(shape));
        }
        ImportAction::EditCopy(index, edit) => edit_copy(api, index, edit),
        ImportAction::EditCondition(place) => {
            change(api, &consumer_key(place), edit_condition);
            api.n_external_writes += 1;
        }
    }
}

fn change(api: &mut MemoryApi, key: &Key, edit: impl FnOnce(&mut Service)) {
    let Some(old) = api.services.get(key).map(|one| Service::clone(one)) else { return };
    let mut new = old.clone();
    edit(&mut new);
    if new != old {
        api.put_service(new);
    }
}

fn set(service: &mut Service, edit: impl FnOnce(&mut CrossNamespace)) {
    let mut cross = *service.cross_namespace.take().unwrap_or_default();
    edit(&mut cross);
    let is_set = cross != CrossNamespace::default();
    service.cross_namespace = is_set.then(|| Box::new(cross));
}

/// Mostly a Service that may exist.
fn wish(shape: &mut ShapeSeed) -> Option<SharedStr> {
    let namespace = shape.one_of(&NAMESPACES);
    let service = shape.one_of(&SERVICES);
    let consumer = shape.one_of(&CONSUMERS);
    match shape.pick(12) {
        0 => None,
        1 => Some("nonsense".into()),
        2 => Some(format!("{namespace}/{service}/x").into()),
        3 => Some(format!("{namespace}/absent").into()),
        4 => Some(format!("nowhere/{service}").into()),
        // A chain, or itself.
        5 | 6 => Some(format!("{namespace}/{consumer}").into()),
        7 => Some(format!(" {namespace}/{service} ").into()),
        _ => Some(format!("{namespace}/{service}").into()),
    }
}

fn consent(shape: &mut ShapeSeed) -> Option<SharedStr> {
    let listed = match shape.pick(9) {
        0 | 1 => return None,
        2 => "",
        3 => "nobody",
        4 => "east",
        5 => "west",
        6 => "nobody,west , east",
        _ => "*",
    };
    Some(listed.into())
}

fn grant(api: &mut MemoryApi, number: u8, shape: &mut ShapeSeed) {
    let key = Key::new(namespace(number), format!("grant-{}", shape.pick(3)));
    if !api.is_active(&key.namespace) {
        return;
    }
    let from = GrantedFrom {
        group: shape.one_of(&["", "", "", "gateway.networking.k8s.io"]).into(),
        kind: shape.one_of(&["Service", "Service", "Service", "HTTPRoute"]).into(),
        namespace: shape.one_of(&["east", "west", "nowhere"]).into(),
    };
    let to = GrantedTo {
        group: shape.one_of(&["", "", "", "apps"]).into(),
        kind: shape.one_of(&["Service", "Service", "Service", "Secret"]).into(),
        name: match shape.pick(2) {
            0 => None,
            _ => Some(shape.one_of(&SERVICES).into()),
        },
    };
    let Key { namespace, name } = key;
    let (from, to) = (vec![from], vec![to]);
    api.put_grant(ReferenceGrant { namespace, name, from, to, ..ReferenceGrant::default() });
}

fn revoke(api: &mut MemoryApi, namespace: &SharedStr, index: u32) {
    let mut grants = api.grants.keys();
    grants.retain(|key| key.namespace == *namespace);
    if let Some(key) = pick(&grants, index) {
        api.remove_grant(key);
    }
}

/// With everything that a copy must have, and hints, which it must not.
fn write_slice(api: &mut MemoryApi, service: &Key, shape: &mut ShapeSeed) {
    let name = format!("{}-written-{}", service.name, shape.pick(2));
    let key = Key::new(service.namespace.clone(), name);
    if !api.is_active(&key.namespace) {
        return;
    }
    let types = [AddressType::IPv4, AddressType::IPv4, AddressType::IPv6, AddressType::Fqdn];
    let number = shape.pick(4);
    let old = api.slices.get(&key).map(|old| old.address_type.clone());
    let address_type = old.unwrap_or_else(|| types[number as usize].clone());
    let endpoints = (0..shape.pick(4)).map(|number| endpoint(&address_type, number, shape));
    let endpoints = endpoints.collect();
    let port = |name: &str| EndpointPort {
        name: Some(name.into()),
        port: Some(9000),
        protocol: Some(endpointd_model::Protocol::Tcp),
        app_protocol: None,
    };
    let ports = match shape.pick(4) {
        0 => vec![port("")],
        1 => vec![],
        2 => vec![port("metrics"), port("http")],
        _ => vec![port("http")],
    };
    let labels = labels([(names::SERVICE_NAME, &service.name), (names::MANAGED_BY, "a-user")]);
    let meta = Meta { namespace: key.namespace, name: key.name, labels, ..Meta::default() };
    api.force(Object::Slice(EndpointSlice { meta, address_type, endpoints, ports }));
}

fn endpoint(address_type: &AddressType, number: u32, shape: &mut ShapeSeed) -> Endpoint {
    let address = match address_type {
        AddressType::IPv6 => format!("fd00:9::{}", number + 1),
        AddressType::Fqdn => format!("host-{number}.example.com"),
        AddressType::IPv4 | AddressType::Other(_) => format!("10.9.0.{}", number + 1),
    };
    let mut endpoint = Endpoint { addresses: vec![address.into()], ..Endpoint::default() };
    let is_ready = shape.pick(3) > 0;
    endpoint.conditions.ready = Some(is_ready);
    endpoint.conditions.serving = (shape.pick(2) == 0).then_some(is_ready);
    endpoint.node_name = Some(shape.one_of(&["node-0", "node-1"]).into());
    endpoint.zone = (shape.pick(3) > 0).then(|| shape.one_of(&["a", "b"]).into());
    endpoint.hostname = (shape.pick(3) == 0).then(|| format!("host-{number}").into());
    endpoint.target_ref = (shape.pick(2) == 0).then(|| ObjectRef {
        kind: "Pod".into(),
        name: format!("elsewhere-{number}").into(),
        ..ObjectRef::default()
    });
    endpoint.hints = Some(Hints { for_zones: vec!["copied".into()], for_nodes: Vec::new() });
    endpoint
}

fn edit_condition(service: &mut Service) {
    let condition = service.cross_namespace.as_ref().and_then(|cross| cross.condition.clone());
    service.set_condition(condition.map(|one| Condition { reason: "Edited".into(), ..one }));
}

fn edit_copy(api: &mut MemoryApi, index: u32, edit: CopyEdit) {
    let is_copy =
        |slice: &&EndpointSlice| slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_IMPORT);
    let copies: Vec<EndpointSlice> = api.slices.values().filter(is_copy).cloned().collect();
    let Some(old) = pick(&copies, index) else { return };
    if edit == CopyEdit::Delete {
        api.remove(PublishedResource::Slices, &old.meta.key());
        return;
    }
    let mut new = old.clone();
    let mut others = api.services.keys();
    others.retain(|key| key.namespace == old.meta.namespace);
    let other = pick(&others, index / 7).and_then(|key| api.services.get(key));
    let Meta { labels, owners, .. } = &mut new.meta;
    let other_name = other.map(|other| other.name.as_ref());
    match edit {
        CopyEdit::Delete => {}
        CopyEdit::DropName => *labels = labels.with(names::SERVICE_NAME, None),
        CopyEdit::OtherName => *labels = labels.with(names::SERVICE_NAME, other_name),
        CopyEdit::DropManager => *labels = labels.with(names::MANAGED_BY, None),
        CopyEdit::OtherManager => {
            *labels = labels.with(names::MANAGED_BY, Some(names::MANAGED_BY_SLICES));
        }
        CopyEdit::OtherNameAndManager => {
            *labels = labels
                .with(names::SERVICE_NAME, other_name)
                .with(names::MANAGED_BY, Some("a-user"));
        }
        CopyEdit::DropOwner => owners.clear(),
        CopyEdit::OtherOwner => {
            let owner = |one: &OwnerRef, other: &Service| OwnerRef {
                name: other.name.clone(),
                uid: other.uid.clone(),
                ..one.clone()
            };
            if let (Some(first), Some(other)) = (owners.first_mut(), other) {
                *first = owner(first, other);
            }
        }
        CopyEdit::Endpoints => {
            if let Some(endpoint) = new.endpoints.first_mut() {
                endpoint.addresses = vec!["10.66.6.6".into()];
                endpoint.hints = None;
            }
            new.endpoints.truncate(2);
        }
        CopyEdit::Ports => {
            for port in &mut new.ports {
                port.port = Some(6666);
            }
        }
    }
    if new.address_type == AddressType::IPv6 && edit == CopyEdit::Endpoints {
        new.endpoints.clear();
    }
    if new != *old {
        api.force(Object::Slice(new));
    }
}

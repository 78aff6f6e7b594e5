//! Section 10: what a Service publishes of a Service in another namespace. Whether it may is decided
//! here without the functions of the product.

use endpointd_model::{
    AddressType, ConditionStatus, Endpoint, EndpointPort, EndpointSlice, Key, Labels, Protocol,
    ReferenceGrant, Service, ServicePort, SharedStr, is_forbidden_endpoint_ip, names, parse_ip,
};

use super::{hints, pods, slices, slices_of};
use endpointd_memory_api::MemoryApi;

/// What a Service asks for.
#[derive(Debug, PartialEq, Eq)]
pub enum Wish {
    None,
    /// It can have no endpoints of others, for this reason.
    Refused(&'static str),
    Source(Key),
}

/// Address type, ports, and endpoints without hints of one slice.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Content {
    pub address_type: AddressType,
    pub ports: Vec<EndpointPort>,
    pub endpoints: Vec<Endpoint>,
}

pub fn wish(service: &Service) -> Wish {
    let text = service.cross_namespace.as_ref().and_then(|cross| cross.from.as_ref());
    let Some(text) = text.map(|text| text.trim()) else { return Wish::None };
    let parts: Vec<&str> = text.split('/').collect();
    let &[namespace, name] = parts.as_slice() else { return Wish::Refused("InvalidReference") };
    if service.is_external_name {
        return Wish::Refused("ExternalName");
    }
    if !service.selector.is_empty() {
        return Wish::Refused("HasSelector");
    }
    Wish::Source(Key::new(namespace, name))
}

/// The owner has written that Services of this namespace may publish the endpoints.
pub fn is_listed(source: &Service, namespace: &str) -> bool {
    let listed = source.cross_namespace.as_ref().and_then(|cross| cross.to.as_ref());
    let names: Vec<&str> = listed.map_or_else(Vec::new, |all| all.split(',').collect());
    names.iter().map(|name| name.trim()).any(|name| name == namespace || name == "*")
}

pub fn is_granted(grant: &ReferenceGrant, namespace: &str, source: &Key) -> bool {
    let froms = grant.from.iter();
    let mut froms = froms.filter(|from| from.group.is_empty() && &*from.kind == "Service");
    let tos = grant.to.iter().filter(|to| to.group.is_empty() && &*to.kind == "Service");
    let mut names = tos.map(|to| to.name.clone());
    grant.namespace == source.namespace
        && froms.any(|from| &*from.namespace == namespace)
        && names.any(|name| name.is_none_or(|name| name == source.name))
}

/// The source publishes the endpoints of another Service itself.
pub fn is_chain(source: &Service) -> bool {
    let asks = source.cross_namespace.as_ref().is_some_and(|cross| cross.from.is_some());
    asks && source.selector.is_empty() && !source.is_external_name
}

/// The slice as the consumer publishes it. None if it is not one of the source, or has nothing for
/// the consumer.
pub fn copy_of(consumer: &Service, source: &Service, slice: &EndpointSlice) -> Option<Content> {
    let labels = &slice.meta.labels;
    let is_of_source = slice.meta.namespace == source.namespace
        && labels.has(names::SERVICE_NAME, &source.name)
        && !labels.has(names::MANAGED_BY, names::MANAGED_BY_IMPORT);
    let mut families = pods::families(consumer).into_iter().map(AddressType::from);
    if !is_of_source || !families.any(|one| one == slice.address_type) {
        return None;
    }
    let ports: Vec<EndpointPort> = consumer
        .ports
        .iter()
        .filter_map(|port| copied_port(port, consumer, source, slice))
        .collect();
    if ports.is_empty() && !consumer.ports.is_empty() {
        return None;
    }
    let is_valid = |address: &SharedStr| {
        parse_ip(address).is_some_and(|ip| is_forbidden_endpoint_ip(ip).is_none())
    };
    let endpoints = slice.endpoints.iter().filter(|one| one.addresses.iter().all(is_valid));
    Some(Content {
        address_type: slice.address_type.clone(),
        ports,
        endpoints: endpoints.map(without_hints).collect(),
    })
}

fn copied_port(
    port: &ServicePort,
    consumer: &Service,
    source: &Service,
    slice: &EndpointSlice,
) -> Option<EndpointPort> {
    let serving = serving_port(port, consumer, source)?;
    let published = slice.ports.iter().find(|one| {
        one.name.clone().unwrap_or_default() == serving.name
            && one.protocol.clone().unwrap_or(Protocol::Tcp) == serving.protocol
    })?;
    Some(EndpointPort {
        name: Some(port.name.clone()),
        port: Some(published.port?),
        protocol: Some(port.protocol.clone()),
        app_protocol: port.app_protocol.clone().or(published.app_protocol.clone()),
    })
}

/// By name, else by number, else the only one on both sides; always with the same protocol.
fn serving_port<'a>(
    port: &ServicePort,
    consumer: &Service,
    source: &'a Service,
) -> Option<&'a ServicePort> {
    let same: Vec<&ServicePort> =
        source.ports.iter().filter(|one| one.protocol == port.protocol).collect();
    let by_name = same.iter().find(|one| one.name == port.name);
    let by_number = same.iter().find(|one| one.number == port.number);
    let is_only = consumer.ports.len() == 1 && source.ports.len() == 1;
    by_name.or(by_number).or(same.first().filter(|_| is_only)).copied()
}

fn has_port_for_all(consumer: &Service, source: &Service) -> bool {
    consumer.ports.iter().all(|port| serving_port(port, consumer, source).is_some())
}

pub fn without_hints(endpoint: &Endpoint) -> Endpoint {
    Endpoint { hints: None, deprecated_topology: Labels::default(), ..endpoint.clone() }
}

pub fn content_of(slice: &EndpointSlice) -> Content {
    Content {
        address_type: slice.address_type.clone(),
        ports: slice.ports.clone(),
        endpoints: slice.endpoints.iter().map(without_hints).collect(),
    }
}

/// The source that the consumer may publish, or the reason why it may not.
fn permitted_source<'a>(
    api: &'a MemoryApi,
    consumer: &Service,
) -> Result<&'a Service, &'static str> {
    let key = match wish(consumer) {
        Wish::None => return Err(""),
        Wish::Refused(reason) => return Err(reason),
        Wish::Source(key) => key,
    };
    let source = api.services.get(&key).map(AsRef::as_ref);
    let mut grants = api.grants.values();
    let is_permitted = key.namespace == consumer.namespace
        || source.is_some_and(|source| is_listed(source, &consumer.namespace))
        || grants.any(|grant| is_granted(grant, &consumer.namespace, &key));
    match source {
        _ if !is_permitted => Err("RefNotPermitted"),
        None => Err("SourceNotFound"),
        Some(source) if is_chain(source) => Err("ChainNotAllowed"),
        Some(source) => Ok(source),
    }
}

/// The reason of the condition, and what must be published.
fn expected(api: &MemoryApi, consumer: &Service) -> (&'static str, Vec<Content>) {
    match permitted_source(api, consumer) {
        Err(reason) => (reason, Vec::new()),
        Ok(source) => {
            let copies = api.slices.values().filter_map(|slice| copy_of(consumer, source, slice));
            let has_ports = has_port_for_all(consumer, source);
            (if has_ports { "Mirrored" } else { "PortNotFound" }, copies.collect())
        }
    }
}

pub fn compare(api: &MemoryApi, consumer: &Service) -> Vec<String> {
    let key = consumer.key();
    let (reason, mut missing) = expected(api, consumer);
    let mut differences = Vec::new();
    for slice in copies_in(api, consumer) {
        differences.extend(compare_meta(consumer, slice));
        let content = content_of(slice);
        match missing.iter().position(|wanted| *wanted == content) {
            Some(at) => drop(missing.swap_remove(at)),
            None => differences.push(format!("{key}: {} is {content:?}", slice.meta.name)),
        }
    }
    // A Service that is being deleted gets no new slices and no condition.
    if consumer.is_deleting {
        return differences;
    }
    differences.extend(missing.into_iter().map(|wanted| format!("{key}: no copy {wanted:?}")));
    differences.extend(hints::compare_slices(api, consumer, names::MANAGED_BY_IMPORT));
    let condition = consumer.cross_namespace.as_ref().and_then(|cross| cross.condition.as_ref());
    let told = condition.map_or("", |one| &one.reason);
    let is_true = condition.is_some_and(|one| one.status == ConditionStatus::True);
    if told != reason || is_true != (reason == "Mirrored") {
        differences.push(format!("{key}: the condition is {condition:?}, not {reason:?}"));
    }
    differences
}

/// Slices of the consumer that are not permitted.
pub fn unwanted(api: &MemoryApi, consumer: &Service) -> Vec<String> {
    match permitted_source(api, consumer) {
        Ok(_) => Vec::new(),
        Err(reason) => copies_in(api, consumer)
            .map(|slice| format!("{} is still there: {reason}", slice.meta.key()))
            .collect(),
    }
}

/// Slices with the consumer's name that are copies by their labels, or were until somebody edited
/// them: the consumer owns them, and they say which slice they were copied from.
fn copies_in<'a>(
    api: &'a MemoryApi,
    consumer: &'a Service,
) -> impl Iterator<Item = &'a EndpointSlice> {
    let key = consumer.key();
    let labelled: Vec<SharedStr> = slices_of(api, &key, names::MANAGED_BY_IMPORT)
        .map(|slice| slice.meta.name.clone())
        .collect();
    let edited = |slice: &EndpointSlice| {
        slice.meta.labels.has(names::SERVICE_NAME, &consumer.name)
            && is_owner(consumer, slice)
            && is_marked(slice)
            // Otherwise it was a copy of another consumer, and somebody has given it away.
            && has_name_of_copy(&consumer.name, slice)
            && !slice.meta.is_deleting()
            // Then it is the endpointslice controller's.
            && !(slices::publishes(consumer)
                && slice.meta.labels.has(names::MANAGED_BY, names::MANAGED_BY_SLICES))
    };
    api.slices.values().filter(move |slice| {
        slice.meta.namespace == consumer.namespace
            && (labelled.contains(&slice.meta.name) || edited(slice))
    })
}

/// The annotation that every copy has from its creation.
pub fn is_marked(slice: &EndpointSlice) -> bool {
    slice.meta.annotations.contains_key("endpointd/source-slice")
}

pub fn is_owner(consumer: &Service, slice: &EndpointSlice) -> bool {
    slice.meta.owners.iter().any(|owner| owner.uid == consumer.uid)
}

/// The name of the consumer and ten characters.
pub fn has_name_of_copy(consumer: &str, slice: &EndpointSlice) -> bool {
    let rest = slice.meta.name.strip_prefix(consumer).and_then(|rest| rest.strip_prefix('-'));
    rest.is_some_and(|rest| rest.len() == 10 && !rest.contains('-'))
}

/// Labels of a copy.
pub fn labels_of(consumer: &Service) -> Labels {
    let headless = consumer.is_labelled_headless().then_some("");
    let labels: Labels = [
        (names::SERVICE_NAME, consumer.name.as_ref()),
        (names::MANAGED_BY, names::MANAGED_BY_IMPORT),
    ]
    .into_iter()
    .collect();
    labels.with(names::HEADLESS, headless)
}

fn compare_meta(consumer: &Service, slice: &EndpointSlice) -> Option<String> {
    let meta = &slice.meta;
    let is_right = meta.labels == labels_of(consumer)
        && meta.owners.len() == 1
        && is_owner(consumer, slice)
        && has_name_of_copy(&consumer.name, slice);
    (!is_right).then(|| format!("{} has {:?} and {:?}", meta.key(), meta.labels, meta.owners))
}

/// The text without consent. It must not depend on the source.
pub fn refusal(consumer: &Service, source: &Key) -> String {
    format!(
        "{source} does not permit it: the annotation endpointd/endpoints-to of that Service must \
         list {}, or a ReferenceGrant in {} must name it",
        consumer.namespace, source.namespace
    )
}

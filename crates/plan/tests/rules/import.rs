//! The rules of the import controller (docs/spec.md, section 10). The consumer is `shop/db`, the
//! source `data/postgres`.

use std::collections::BTreeMap;

use endpointd_model::{
    Annotations, ClusterIp, Condition, CrossNamespace, Endpoint, EndpointPort, EndpointSlice,
    Family, GrantedFrom, GrantedTo, Hints, Key, Labels, Object, ObjectRef, OwnerRef,
    PublishedResource, ReferenceGrant, Service, SharedStr, SourceReason, TargetPort, TopologyMode,
    TrafficDistribution, Uid, Write, derived_name, names,
};
use endpointd_plan::{CarriedState, ImportPlan, ImportSnapshot, ImportState, Topology, import};
use expect_test::{Expect, expect};

use crate::fixture::service_port;

/// Services, slices, and grants of all namespaces.
#[derive(Clone, Default)]
struct World {
    services: BTreeMap<Key, Service>,
    slices: BTreeMap<Key, EndpointSlice>,
    grants: Vec<ReferenceGrant>,
    carried: CarriedState,
    n_writes: u64,
}

/// A consumer that asks, a source that agrees, and a slice with two endpoints.
fn pair() -> World {
    world(
        "service shop/db from=data/postgres port=pg:5432
         service data/postgres to=shop port=pg:5432
         slice data/postgres-1 of=postgres port=pg:5432 10.0.0.1:za 10.0.0.2:zb",
    )
}

fn world(text: &str) -> World {
    World::default().then(text)
}

impl World {
    fn then(mut self, text: &str) -> Self {
        for line in text.lines().map(str::trim).filter(|line| !line.is_empty()) {
            let words: Vec<&str> = line.split_whitespace().collect();
            let key = key(words[1]);
            match words[0] {
                "service" => drop(self.services.insert(key.clone(), service(&key, &words[2..]))),
                "slice" => drop(self.slices.insert(key.clone(), slice(&key, &words[2..]))),
                "grant" => self.grants.push(grant(&key, &words[2..])),
                "gone" => {
                    self.services.remove(&key);
                    self.slices.remove(&key);
                    self.grants.retain(|grant| grant.name != key.name);
                }
                other => panic!("unknown statement: {other}"),
            }
        }
        self
    }

    fn plan(&self) -> ImportPlan {
        let service = self.services.get(&Key::new("shop", "db"));
        let wish = service.and_then(|service| service.cross_namespace.as_ref()?.source()?.ok());
        let source = wish.unwrap_or_else(|| Key::new("", ""));
        let of_source = |slice: &&EndpointSlice| slice.meta.namespace == source.namespace;
        import(&ImportSnapshot {
            service,
            source: self.services.get(&source),
            source_slices: self.slices.values().filter(of_source).collect(),
            grants: self.grants.iter().collect(),
            slices: self.slices.values().collect(),
            topology: &Topology::default(),
            carried: &self.carried,
        })
    }

    /// Carries the plan out; the next one must be empty.
    fn applied(mut self) -> Self {
        let plan = self.plan();
        plan.plan.writes.iter().for_each(|write| self.apply(write));
        self.carried = plan.plan.carried;
        let again = self.plan();
        assert!(again.plan.writes.is_empty(), "the second plan writes:\n{}", again.plan);
        self
    }

    fn apply(&mut self, write: &Write) {
        self.n_writes += 1;
        match write {
            Write::Create(Object::Slice(slice)) | Write::Update(Object::Slice(slice)) => {
                let mut slice = slice.clone();
                slice.meta.resource_version = self.n_writes.into();
                self.slices.insert(slice.meta.key(), slice);
            }
            Write::Delete(target) => drop(self.slices.remove(&target.key)),
            Write::Update(Object::ServiceStatus(status)) => {
                let service = self.services.get_mut(&status.meta.key()).expect("it exists");
                service.set_condition(status.condition.clone());
            }
            Write::Create(Object::Endpoints(_) | Object::ServiceStatus(_))
            | Write::Update(Object::Endpoints(_)) => {
                panic!("the import controller writes slices and conditions only")
            }
        }
    }

    fn check(self, expected: Expect) -> Self {
        let ImportPlan { plan, state } = self.plan();
        let text = format!("{}: {state}\n{plan}", self.reason());
        expected.assert_eq(text.trim_end());
        self.applied()
    }

    fn reason(&self) -> &'static str {
        self.plan().state.reason().map_or("NotRequested", SourceReason::as_str)
    }

    /// The only slice of the consumer.
    fn copy(&self) -> &EndpointSlice {
        let copies: Vec<_> =
            self.slices.values().filter(|slice| &*slice.meta.namespace == "shop").collect();
        assert_eq!(copies.len(), 1, "{copies:#?}");
        copies[0]
    }
}

fn key(text: &str) -> Key {
    let (namespace, name) = text.split_once('/').expect("NAMESPACE/NAME");
    Key::new(namespace, name)
}

fn service(key: &Key, words: &[&str]) -> Service {
    let mut service = Service {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        uid: Uid::from(format!("uid-of-{key}").as_str()),
        cluster_ip: ClusterIp::Ip(Family::V4),
        families: vec![Family::V4],
        ..Service::default()
    };
    let mut cross = CrossNamespace::default();
    for word in words {
        match word.split_once('=') {
            None if *word == "headless" => service.cluster_ip = ClusterIp::Headless,
            None if *word == "external" => service.is_external_name = true,
            None if *word == "deleting" => service.is_deleting = true,
            None if *word == "auto" => service.topology = TopologyMode::Auto,
            None if *word == "dual" => service.families = vec![Family::V4, Family::V6],
            Some(("selector", app)) => service.selector = [("app", app)].into_iter().collect(),
            Some(("from", from)) => cross.from = Some(from.into()),
            Some(("to", to)) => cross.to = Some(to.into()),
            Some(("uid", uid)) => service.uid = Uid::from(uid),
            Some(("prefer", what)) => {
                service.traffic_distribution = TrafficDistribution::parse(what);
            }
            Some(("port", port)) => service.ports.push(service_port(port)),
            _ => panic!("unknown word for a Service: {word}"),
        }
    }
    service.cross_namespace = (cross != CrossNamespace::default()).then(|| Box::new(cross));
    service
}

/// Endpoints are `IP:ZONE`; they are ready unless the word ends with `!`.
fn slice(key: &Key, words: &[&str]) -> EndpointSlice {
    let mut slice = EndpointSlice::default();
    slice.meta.namespace = key.namespace.clone();
    slice.meta.name = key.name.clone();
    slice.meta.resource_version = 1.into();
    for word in words {
        match word.split_once('=') {
            None if *word == "IPv6" => slice.address_type = (*word).into(),
            None if *word == "FQDN" => slice.address_type = (*word).into(),
            None => slice.endpoints.push(endpoint(&key.namespace, word)),
            Some(("of", service)) => set(&mut slice.meta.labels, names::SERVICE_NAME, service),
            Some(("by", manager)) => set(&mut slice.meta.labels, names::MANAGED_BY, manager),
            Some(("since", time)) => set(&mut slice.meta.annotations, names::TRIGGER_TIME, time),
            Some(("port", port)) => {
                let port = service_port(port);
                let TargetPort::Number(number) = port.target else { panic!("a number") };
                slice.ports.push(EndpointPort {
                    name: Some(port.name),
                    port: Some(number),
                    protocol: Some(port.protocol),
                    app_protocol: port.app_protocol,
                });
            }
            Some((other, _)) => panic!("unknown word for a slice: {other}"),
        }
    }
    slice
}

fn set(labels: &mut Labels, name: &str, value: &str) {
    *labels = labels.with(name, Some(value));
}

fn endpoint(namespace: &str, word: &str) -> Endpoint {
    let is_ready = !word.ends_with('!');
    let word = word.trim_end_matches('!');
    let (ip, zone) = match word.split_once(':') {
        Some((ip, zone)) if !zone.contains(':') => (ip, Some(zone.into())),
        Some(_) | None => (word, None),
    };
    let target = ObjectRef {
        kind: "Pod".into(),
        namespace: namespace.into(),
        name: format!("pod-{ip}").as_str().into(),
        ..ObjectRef::default()
    };
    let mut endpoint = Endpoint {
        addresses: vec![ip.into()],
        node_name: Some("n1".into()),
        target_ref: Some(target),
        zone,
        // Whatever the source has: hints are decided again.
        hints: Some(Hints { for_zones: vec!["elsewhere".into()], for_nodes: Vec::new() }),
        ..Endpoint::default()
    };
    endpoint.conditions.ready = Some(is_ready);
    endpoint
}

/// `grant NAMESPACE/NAME GROUP/KIND/NAMESPACE GROUP/KIND[/NAME]`, with `core` for the empty group.
fn grant(key: &Key, words: &[&str]) -> ReferenceGrant {
    let parts = |word: &str| -> Vec<SharedStr> {
        word.split('/').map(|part| if part == "core" { "" } else { part }.into()).collect()
    };
    let (from, to) = (parts(words[0]), parts(words[1]));
    let from =
        GrantedFrom { group: from[0].clone(), kind: from[1].clone(), namespace: from[2].clone() };
    let to = GrantedTo { group: to[0].clone(), kind: to[1].clone(), name: to.get(2).cloned() };
    ReferenceGrant {
        namespace: key.namespace.clone(),
        name: key.name.clone(),
        from: vec![from],
        to: vec![to],
        ..ReferenceGrant::default()
    }
}

#[test]
fn endpoints_of_the_source_are_copied() {
    let world = pair().check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        create endpointslices db-* IPv4 pg:5432/TCP
          10.0.0.1 ready on=n1 in=za
          10.0.0.2 ready on=n1 in=zb"#]]);
    let EndpointSlice { meta, endpoints, .. } = world.copy();
    assert_eq!(endpoints[0].target_ref.as_ref().unwrap().namespace.as_ref(), "data");
    let labels: Vec<_> = meta.labels.iter().map(|(key, value)| (&**key, &**value)).collect();
    let managed_by = "endpointslice.kubernetes.io/managed-by";
    assert_eq!(labels, [(managed_by, "endpointd-mirror"), ("kubernetes.io/service-name", "db")]);
    assert_eq!(meta.owners[0].uid, Uid::from("uid-of-shop/db"));
}

#[test]
fn changes_of_the_source_follow() {
    let world = pair().applied();
    let world = world.then("slice data/postgres-1 of=postgres port=pg:5432 10.0.0.1:za! 10.0.0.3");
    let world = world.check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        update endpointslices db-hdvtnh2swz IPv4 pg:5432/TCP
          10.0.0.1 not-ready on=n1 in=za
          10.0.0.3 ready on=n1"#]]);
    world.then("gone data/postgres-1").check(expect![[r#"
        Mirrored: 0 endpoints in 0 slices from data/postgres
        delete endpointslices db-hdvtnh2swz"#]]);
}

/// N1.
#[test]
fn only_services_without_selector_publish_endpoints_of_others() {
    let world = pair().applied();
    let of = |words: &str| {
        let world = world.clone().then(&format!("service shop/db {words} port=pg:5432"));
        let ImportPlan { plan, state } = world.plan();
        assert_eq!(plan.to_string(), "delete endpointslices db-hdvtnh2swz", "{words}");
        format!("{:?} {:?}", state.reason(), state.is_true())
    };
    assert_eq!(of("from=data/postgres selector=db"), "Some(HasSelector) Some(false)");
    assert_eq!(of("from=data/postgres external"), "Some(ExternalName) Some(false)");
    assert_eq!(of("from=postgres"), "Some(InvalidReference) Some(false)");
    assert_eq!(of("from=data/no-such"), "Some(RefNotPermitted) Some(false)");
    assert_eq!(of(""), "None None");
}

#[test]
fn without_a_consumer_the_garbage_collector_deletes_its_slices() {
    let world = pair().applied().then("gone shop/db");
    assert_eq!(world.plan(), ImportPlan::default());
}

/// N2.
#[test]
fn consent_of_the_owner_is_an_annotation() {
    let with = |to: &str| pair().then(&format!("service data/postgres {to} port=pg:5432")).reason();
    assert_eq!(with("to=shop"), "Mirrored");
    assert_eq!(with("to=web,shop"), "Mirrored");
    assert_eq!(with("to=*"), "Mirrored");
    for refused in ["to=web", "to=sho", "to=shop2", ""] {
        assert_eq!(with(refused), "RefNotPermitted", "{refused}");
    }
}

#[test]
fn consent_of_the_owner_is_a_reference_grant() {
    let silent = pair().then("service data/postgres port=pg:5432");
    let with = |grant: &str| silent.clone().then(&format!("grant {grant}")).reason();
    assert_eq!(with("data/g core/Service/shop core/Service/postgres"), "Mirrored");
    assert_eq!(with("data/g core/Service/shop core/Service"), "Mirrored");
    for refused in [
        "shop/g core/Service/shop core/Service/postgres",
        "data/g core/Service/web core/Service/postgres",
        "data/g core/Service/shop core/Service/mysql",
        "data/g core/Service/shop core/Secret/postgres",
        "data/g gateway.networking.k8s.io/HTTPRoute/shop core/Service/postgres",
        "data/g core/Pod/shop core/Service/postgres",
    ] {
        assert_eq!(with(refused), "RefNotPermitted", "{refused}");
    }
}

#[test]
fn within_one_namespace_no_consent_is_needed() {
    let world = world(
        "service shop/db from=shop/postgres port=pg:5432
         service shop/postgres selector=pg port=pg:5432
         slice shop/postgres-1 of=postgres port=pg:5432 10.0.0.1",
    );
    assert_eq!(world.reason(), "Mirrored");
    assert_eq!(world.then("gone shop/postgres").reason(), "SourceNotFound");
}

#[test]
fn withdrawn_consent_deletes_the_copies() {
    let world = pair().applied().then("service data/postgres to=web port=pg:5432");
    world.check(expect![[r#"
        RefNotPermitted: data/postgres does not permit it: the annotation endpointd/endpoints-to of that Service must list shop, or a ReferenceGrant in data must name it
        delete endpointslices db-hdvtnh2swz"#]]);
}

/// N3.
#[test]
fn without_consent_nothing_tells_whether_the_source_exists() {
    let refused = pair().then("service data/postgres to=web port=other:1");
    let absent = pair().then("gone data/postgres\ngone data/postgres-1");
    let chain = pair().then("service data/postgres from=a/b port=pg:5432");
    assert_eq!(refused.plan(), absent.plan());
    assert_eq!(refused.plan(), chain.plan());
    assert_eq!(absent.reason(), "RefNotPermitted");
    let granted = absent.then("grant data/g core/Service/shop core/Service/postgres");
    assert_eq!(granted.plan().state.to_string(), "there is no Service data/postgres");
}

/// N4.
#[test]
fn slices_of_any_manager_are_copied() {
    for manager in ["endpointslice-controller.k8s.io", "my-operator"] {
        let slice = format!(
            "slice data/postgres-1 of=postgres by={manager} port=pg:5432 10.0.0.1 10.0.0.2"
        );
        let plan = pair().then(&slice).plan();
        assert_eq!(plan.state.to_string(), "2 endpoints in 1 slice from data/postgres");
    }
}

#[test]
fn a_copy_of_a_copy_is_refused() {
    let world = pair().then("service data/postgres from=other/pg to=shop port=pg:5432");
    assert_eq!(world.reason(), "ChainNotAllowed");
    // A Service with a selector publishes its own pods, whatever it asks for.
    let world = world.then("service data/postgres selector=pg from=o/pg to=shop port=pg:5432");
    assert_eq!(world.reason(), "Mirrored");
    let world =
        world.then("slice data/postgres-1 of=postgres by=endpointd-mirror port=pg:5432 10.0.0.1");
    assert_eq!(world.plan().state.to_string(), "0 endpoints in 0 slices from data/postgres");
}

/// N5.
#[test]
fn hints_are_decided_by_the_consumer() {
    let world =
        pair().then("service shop/db from=data/postgres prefer=PreferSameZone port=pg:5432");
    let world = world.check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        create endpointslices db-* IPv4 pg:5432/TCP
          10.0.0.1 ready on=n1 in=za for=za
          10.0.0.2 ready on=n1 in=zb for=zb"#]]);
    world.then("service shop/db from=data/postgres prefer=PreferSameNode port=pg:5432").check(
        expect![[r#"
            Mirrored: 2 endpoints in 1 slice from data/postgres
            update endpointslices db-hdvtnh2swz IPv4 pg:5432/TCP
              10.0.0.1 ready on=n1 in=za for=za,n1
              10.0.0.2 ready on=n1 in=zb for=zb,n1"#]],
    );
}

#[test]
fn the_trigger_time_is_copied_and_causes_no_write() {
    let at = |time: &str| {
        format!("slice data/postgres-1 of=postgres since={time} port=pg:5432 10.0.0.1")
    };
    let world = pair().then(&at("2026-01-01T00:00:00Z")).applied();
    let time = |annotations: &Annotations| annotations.get(names::TRIGGER_TIME).cloned();
    assert_eq!(time(&world.copy().meta.annotations), Some("2026-01-01T00:00:00Z".into()));
    let world = world.then(&at("2026-01-01T00:00:09Z"));
    assert_eq!(world.plan().plan.writes, []);
}

/// N6.
#[test]
fn ports_are_matched_by_name_then_number_then_if_there_is_one() {
    let of = |consumer: &str, source: &str| {
        let world = pair().then(&format!(
            "service shop/db from=data/postgres {consumer}
             service data/postgres to=shop {source}
             slice data/postgres-1 of=postgres port=pg:5432 port=web:8080 port=dns:53/UDP 10.0.0.1"
        ));
        let ImportPlan { plan, state } = world.plan();
        let ports = plan.to_string().lines().next().unwrap_or("").to_owned();
        let ports = ports.split_whitespace().nth(4).unwrap_or("-").to_owned();
        (ports, state.to_string())
    };
    let two = "port=pg:5432 port=web:80";
    let all = "1 endpoint in 1 slice from data/postgres".to_owned();
    assert_eq!(of("port=pg:1", two), ("pg:5432/TCP".into(), all.clone()));
    assert_eq!(of("port=sql:5432", two), ("sql:5432/TCP".into(), all.clone()));
    assert_eq!(
        of("port=http:80 port=pg:1", two),
        ("http:8080/TCP,pg:5432/TCP".into(), all.clone())
    );
    assert_eq!(of("port=any:1", "port=web:80"), ("any:8080/TCP".into(), all.clone()));
    let nothing = "data/postgres has nothing for port".to_owned();
    assert_eq!(of("port=any:1", two), ("-".into(), format!("{nothing} any")));
    assert_eq!(of("port=any:1/UDP", "port=web:80"), ("-".into(), format!("{nothing} any")));
    assert_eq!(of("port=dns:80", "port=dns:53/UDP"), ("-".into(), format!("{nothing} dns")));
    // What has a counterpart is published all the same.
    let some = of("port=pg:1 port=a:2 port=b:3", two);
    assert_eq!(some, ("pg:5432/TCP".into(), format!("{nothing}s a, b")));
}

#[test]
fn a_slice_without_a_wanted_port_is_not_copied() {
    let world = pair().then("slice data/postgres-2 of=postgres port=other:1 10.0.0.9");
    assert_eq!(world.plan().state.to_string(), "2 endpoints in 1 slice from data/postgres");
}

/// N7.
#[test]
fn only_families_of_the_consumer_are_copied() {
    let world = pair().then(
        "slice data/postgres-2 of=postgres IPv6 port=pg:5432 fd00::1
         slice data/postgres-3 of=postgres FQDN port=pg:5432 example.com",
    );
    assert_eq!(world.plan().state.to_string(), "2 endpoints in 1 slice from data/postgres");
    let world = world.then("service shop/db from=data/postgres dual port=pg:5432");
    assert_eq!(world.plan().state.to_string(), "3 endpoints in 2 slices from data/postgres");
}

#[test]
fn a_headless_consumer_has_the_label_and_needs_no_ports() {
    let world = pair().then("service shop/db from=data/postgres headless").check(expect![[r#"
        Mirrored: 2 endpoints in 1 slice from data/postgres
        create endpointslices db-* IPv4 no ports
          10.0.0.1 ready on=n1 in=za
          10.0.0.2 ready on=n1 in=zb"#]]);
    assert!(world.copy().meta.labels.has(names::HEADLESS, ""));
}

/// N8.
#[test]
fn a_name_is_derived_from_the_source_slice_and_never_foreign() {
    let name = pair().applied().copy().meta.name.clone();
    assert_eq!(name.as_ref(), "db-hdvtnh2swz");
    let first = "slice shop/db-hdvtnh2swz of=db by=me port=pg:1 192.0.2.1";
    let second = "slice shop/db-7wrxjj6p4z of=db by=me port=pg:1 192.0.2.1";
    let world = pair().then(first).then(second).applied();
    let names: Vec<&str> = world.slices.keys().map(|key| key.name.as_ref()).collect();
    assert_eq!(names, ["postgres-1", "db-7wrxjj6p4z", "db-hdvtnh2swz", "db-vjp4dk9l8z"]);
    assert_eq!(world.slices[&Key::new("shop", "db-hdvtnh2swz")].endpoints.len(), 1, "untouched");
    // When the names become free, the copy keeps its own.
    let world = world.then("gone shop/db-hdvtnh2swz\ngone shop/db-7wrxjj6p4z");
    assert_eq!(world.plan().plan.writes, []);
}

/// A tenant who edits a copy gains nothing by it.
#[test]
fn edited_copies_are_repaired() {
    let world = pair().applied();
    let edited = |edit: &dyn Fn(&mut EndpointSlice)| {
        let mut world = world.clone();
        let copy = world.slices.get_mut(&Key::new("shop", "db-hdvtnh2swz")).unwrap();
        edit(copy);
        let text = world.plan().plan.to_string();
        assert!(text.starts_with("update endpointslices db-hdvtnh2swz"), "{text}");
        world.applied();
    };
    edited(&|slice| slice.meta.labels = Labels::default());
    edited(&|slice| set(&mut slice.meta.labels, names::MANAGED_BY, "me"));
    edited(&|slice| set(&mut slice.meta.labels, names::SERVICE_NAME, "other"));
    edited(&|slice| set(&mut slice.meta.labels, "more", "labels"));
    edited(&|slice| slice.meta.owners.clear());
    edited(&|slice| slice.meta.owners.push(OwnerRef::default()));
    edited(&|slice| slice.endpoints[0].addresses = vec!["10.9.9.9".into()]);
    edited(&|slice| slice.ports.clear());
    edited(&|slice| slice.endpoints[0].hints = Some(Hints::default()));
}

#[test]
fn a_relabelled_copy_goes_when_consent_is_withdrawn() {
    let mut world = pair().applied();
    let copy = world.slices.get_mut(&Key::new("shop", "db-hdvtnh2swz")).unwrap();
    copy.meta.labels = Labels::default();
    let world = world.then("service data/postgres port=pg:5432").applied();
    assert!(world.slices.keys().all(|key| &*key.namespace != "shop"));
}

/// The API server would reject the whole copy.
#[test]
fn forbidden_addresses_are_left_out() {
    let world = pair()
        .then("slice data/postgres-1 of=postgres port=pg:5432 127.0.0.1 10.0.0.1 169.254.1.1");
    assert_eq!(world.plan().state.to_string(), "1 endpoint in 1 slice from data/postgres");
}

#[test]
fn a_consumer_that_is_being_deleted_gets_no_new_slices() {
    let world = pair().then("service shop/db deleting from=data/postgres port=pg:5432");
    assert_eq!(world.plan().plan.writes, []);
}

/// N9: the messages of the condition are read by people.
#[test]
fn every_state_has_a_message() {
    assert_eq!(ImportState::default().is_true(), None);
    let expected = expect![[r#"
        `postgres` is not of the form NAMESPACE/NAME or serviceimports/NAMESPACE/NAME
        the Service has a selector, so endpointd/endpoints-from is ignored
        an ExternalName Service has no endpoints
        data/postgres has endpoints from elsewhere itself; name their source instead"#]];
    let message = |text: &str| pair().then(text).plan().state.to_string();
    let messages = [
        message("service shop/db from=postgres"),
        message("service shop/db selector=x from=data/postgres"),
        message("service shop/db external from=data/postgres"),
        message("service data/postgres from=x/y to=shop"),
    ];
    expected.assert_eq(&messages.join("\n").replace("endpointd/endpoints-from: `", "`"));
}

impl World {
    /// After the whole plan of the consumer, its condition included, at this time.
    fn told(mut self, at: &str) -> Self {
        let consumer = key("shop/db");
        let plan = self.plan().with_condition(self.services.get(&consumer));
        plan.writes.iter().for_each(|write| self.apply(write));
        let service = self.services.get_mut(&consumer).expect("the consumer exists");
        let mut condition = service.cross_namespace.as_ref().and_then(|one| one.condition.clone());
        if let Some(condition) = &mut condition {
            // The client writes the time of a transition.
            condition.last_transition.get_or_insert(at.parse().expect("a time"));
        }
        service.set_condition(condition);
        let again = self.plan().with_condition(self.services.get(&consumer));
        assert!(again.writes.is_empty(), "the second plan writes:\n{again}");
        self
    }

    fn condition(&self) -> String {
        let cross = self.services[&key("shop/db")].cross_namespace.as_ref();
        let Some(condition) = cross.and_then(|cross| cross.condition.as_ref()) else {
            return "none".to_owned();
        };
        let Condition { status, reason, message, last_transition, .. } = condition;
        let (status, since) = (status.as_str(), last_transition.expect("told at some time"));
        format!("{status} {reason} since {since}: {message}")
    }

    /// The condition as the next plan would write it.
    fn condition_write(&self) -> Vec<String> {
        let plan = self.plan().with_condition(self.services.get(&key("shop/db")));
        let is_condition = |write: &&Write| write.resource() == PublishedResource::ServiceStatus;
        plan.writes.iter().filter(is_condition).map(|write| format!("{write:?}")).collect()
    }
}

const MORNING: &str = "2026-01-01T09:00:00Z";
const NOON: &str = "2026-01-01T12:00:00Z";

/// N9.
#[test]
fn the_condition_follows_the_state_and_keeps_the_time_of_the_transition() {
    let world = pair().told(MORNING);
    expect![[r#"True Mirrored since 2026-01-01T09:00:00Z: has the endpoints of data/postgres"#]]
        .assert_eq(&world.condition());
    let world = world.then("service data/postgres port=pg:5432").told(NOON);
    expect![[r#"False RefNotPermitted since 2026-01-01T12:00:00Z: data/postgres does not permit it: the annotation endpointd/endpoints-to of that Service must list shop, or a ReferenceGrant in data must name it"#]]
        .assert_eq(&world.condition());
    let world = world.then("service data/postgres to=shop port=other:1 port=more:2").told(MORNING);
    expect![[
        r#"False PortNotFound since 2026-01-01T12:00:00Z: data/postgres has nothing for port pg"#
    ]]
    .assert_eq(&world.condition());
}

/// N9.
#[test]
fn the_condition_is_not_written_for_numbers() {
    let world = pair().told(MORNING);
    let slice = "slice data/postgres-1 of=postgres by=endpointslice-controller.k8s.io port=pg:5432 10.0.0.7";
    let world = world.then(slice);
    assert!(!world.plan().plan.writes.is_empty(), "the endpoints have changed");
    assert_eq!(world.condition_write(), [""; 0]);
}

/// N9.
#[test]
fn the_condition_goes_with_the_annotation() {
    let world = pair().told(MORNING);
    let (service, condition) = {
        let service = world.services[&key("shop/db")].clone();
        let condition = service.cross_namespace.as_ref().and_then(|one| one.condition.clone());
        (service, condition)
    };
    let mut gone = world.clone();
    let mut without = Service { cross_namespace: None, ..service };
    without.set_condition(condition);
    gone.services.insert(key("shop/db"), without);
    assert_eq!(gone.told(NOON).condition(), "none");
    let never = world.then("service shop/db port=pg:5432");
    assert_eq!(never.condition_write(), [""; 0], "no condition, and none is wanted");
}

/// N9.
#[test]
fn a_consumer_that_is_being_deleted_gets_no_condition() {
    let world = pair().then("service shop/db from=data/postgres port=pg:5432 deleting");
    assert_eq!(world.condition_write(), [""; 0]);
}

/// N9: other conditions are not ours, and the version that was read is a precondition.
#[test]
fn the_write_names_the_service_it_was_computed_from() {
    let mut world = pair();
    let service = world.services.get_mut(&key("shop/db")).expect("the consumer");
    (service.uid, service.resource_version) = ("u-db".into(), 42.into());
    let plan = world.plan().with_condition(world.services.get(&key("shop/db")));
    let Some(Write::Update(Object::ServiceStatus(status))) = plan.writes.last() else {
        panic!("the condition is the last write:\n{plan}");
    };
    assert_eq!((&*status.meta.uid.to_string(), status.meta.resource_version), ("u-db", 42.into()));
}

/// N11: the endpoints of all clusters under a name of the consumer's choice.
#[test]
fn a_service_import_stands_for_its_derived_service() {
    let derived = derived_name(&Key::new("data", "postgres"));
    let world = world(&format!(
        "service shop/db from=serviceimports/data/postgres port=pg:5432
         service data/{derived} to=shop port=pg:5432
         slice data/{derived}-1 of={derived} by=endpointd-import port=pg:5432 10.0.0.1:za
         slice data/{derived}-2 of={derived} by=endpointd-import port=pg:5432 10.1.0.1:zb!
         slice data/postgres-1 of=postgres port=pg:5432 10.0.0.9"
    ));
    let ImportPlan { plan, state } = world.plan();
    assert_eq!(state.to_string(), format!("2 endpoints in 2 slices from data/{derived}"));
    expect![[r#"
        create endpointslices db-* IPv4 pg:5432/TCP
          10.1.0.1 not-ready on=n1 in=zb
        create endpointslices db-* IPv4 pg:5432/TCP
          10.0.0.1 ready on=n1 in=za"#]]
    .assert_eq(&plan.to_string());
    let world = world.then(&format!("service data/{derived} port=pg:5432"));
    assert_eq!(world.plan().state.reason(), Some(SourceReason::RefNotPermitted));
    let world =
        world.then(&format!("gone data/{derived}\n grant data/g core/Service/shop core/Service"));
    assert_eq!(world.plan().state.reason(), Some(SourceReason::SourceNotFound));
}

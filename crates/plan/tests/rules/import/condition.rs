//! What the condition of the consumer says (N9), and sources that are imports (N11).

use endpointd_model::{
    Condition, Key, Object, PublishedResource, Service, SourceReason, Write, derived_name,
};
use endpointd_plan::{ImportPlan, ImportState};
use expect_test::expect;

use super::world::{World, key, pair, world};

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

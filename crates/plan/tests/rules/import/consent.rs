//! Who may publish whose endpoints (N1 to N3).

use endpointd_model::{Key, Labels};
use endpointd_plan::ImportPlan;
use expect_test::expect;

use super::world::{pair, world};

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

#[test]
fn a_relabelled_copy_goes_when_consent_is_withdrawn() {
    let mut world = pair().applied();
    let copy = world.slices.get_mut(&Key::new("shop", "db-hdvtnh2swz")).unwrap();
    copy.meta.labels = Labels::default();
    let world = world.then("service data/postgres port=pg:5432").applied();
    assert!(world.slices.keys().all(|key| &*key.namespace != "shop"));
}

//! The rules of the mirroring controller (docs/spec.md, section 6).

use endpointd_model::{Timestamp, Write, names};
use expect_test::expect;

use crate::fixture::{Fixture, mirror};

fn mirrored() -> Fixture {
    mirror("service web manual port=80; endpoints web ready=10.0.0.1,10.0.0.2 port=http:8080")
        .applied()
}

#[test]
fn hand_written_endpoints_are_mirrored() {
    mirror(
        "service web manual port=80
         endpoints web ready=10.0.0.2,fd00::1 unready=10.0.0.1 port=http:8080 port=dns:53/UDP",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 dns:53/UDP,http:8080/TCP
          10.0.0.1 not-ready
          10.0.0.2 ready
        create endpointslices web-* IPv6 dns:53/UDP,http:8080/TCP
          fd00::1 ready"#]]);
}

#[test]
fn an_external_name_service_without_selector_is_mirrored() {
    mirror("service web manual external; endpoints web ready=10.0.0.1 port=http:8080").check(
        expect![[r#"
            create endpointslices web-* IPv4 http:8080/TCP
              10.0.0.1 ready"#]],
    );
}

#[test]
fn slices_that_are_no_longer_mirrored_are_deleted() {
    let gone = [
        "gone endpoints web".to_owned(),
        "gone service web".to_owned(),
        "service web port=80".to_owned(),
        format!("endpoints web ready=10.0.0.1 label={}=true", names::SKIP_MIRROR),
        format!("endpoints web ready=10.0.0.1 note={}=x", names::LEADER),
        "endpoints web".to_owned(),
    ];
    for change in gone {
        let plan = mirrored().then(&change).plan();
        let text = plan.to_string();
        assert_eq!(text, "delete endpointslices web-k7hskjwqvj", "after {change}");
    }
}

#[test]
fn skip_mirror_requires_the_value_true() {
    mirror(&format!(
        "service web manual; endpoints web ready=10.0.0.1 port=x:1 label={}=yes",
        names::SKIP_MIRROR
    ))
    .check(expect![[r#"
        create endpointslices web-* IPv4 x:1/TCP
          10.0.0.1 ready"#]]);
}

#[test]
fn subsets_are_repacked_and_not_ready_wins() {
    mirror(
        "service web manual
         endpoints web ready=10.0.0.1,10.0.0.2 port=a:1 / unready=10.0.0.2 port=a:1 port=b:2",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 a:1/TCP
          10.0.0.1 ready
          10.0.0.2 not-ready
        create endpointslices web-* IPv4 b:2/TCP
          10.0.0.2 not-ready"#]]);
}

#[test]
fn addresses_over_the_limit_and_invalid_ones_are_skipped_and_reported() {
    mirror(
        "service web manual
         endpoints web ready=10.0.0.1,0.bad,10.0.0.3,0.0.0.0 unready=10.0.0.4 port=a:1",
    )
    .max(2)
    .check(expect![[r#"
        create endpointslices web-* IPv4 a:1/TCP
          10.0.0.1 ready
          10.0.0.3 ready
        Warning InvalidIPAddress: Skipped 2 invalid IP addresses when mirroring to EndpointSlices
        Warning TooManyAddressesToMirror: A max of 2 addresses can be mirrored to EndpointSlices per Endpoints subset. 3 addresses were skipped"#]]);
}

#[test]
fn two_spellings_of_an_address_are_one_endpoint() {
    mirror("service web manual; endpoints web ready=10.0.0.1,010.0.0.1 port=a:1").check(expect![[
        r#"
            create endpointslices web-* IPv4 a:1/TCP
              10.0.0.1 ready"#
    ]]);
}

#[test]
fn ports_with_an_app_protocol_stay_with_their_subset() {
    mirror(
        "service web manual
         endpoints web ready=10.0.0.1 port=a:1(http) port=b:2 / ready=10.0.0.2 port=a:1(http)",
    )
    .check(expect![[r#"
        create endpointslices web-* IPv4 a:1/TCP(http)
          10.0.0.2 ready
        create endpointslices web-* IPv4 a:1/TCP(http),b:2/TCP
          10.0.0.1 ready"#]]);
}

#[test]
fn labels_annotations_and_owner_are_copied() {
    let fixture = mirror(&format!(
        "service web manual
         endpoints web ready=10.0.0.1 port=a:1 label=team=x note=a=b note={}=then note={}=all",
        names::TRIGGER_TIME,
        names::LAST_APPLIED
    ))
    .applied();
    let (_, slice) = fixture.cluster.slices.first_key_value().expect("one slice");
    let meta = &slice.meta;
    let keys = |labels: &endpointd_model::Labels| -> Vec<String> {
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
    };
    expect![[r#"
        endpointslice.kubernetes.io/managed-by=endpointslicemirroring-controller.k8s.io
        kubernetes.io/service-name=web
        team=x"#]]
    .assert_eq(&keys(&meta.labels).join("\n"));
    expect!["a=b"].assert_eq(&keys(&meta.annotations).join("\n"));
    expect!["Endpoints web uid-of-endpoints-web"].assert_eq(&format!(
        "{} {} {}",
        meta.owners[0].kind, meta.owners[0].name, meta.owners[0].uid
    ));
    fixture.then("endpoints web ready=10.0.0.1 port=a:1 label=team=y").check(expect![[r#"
        update endpointslices web-jdf4cm5js7 IPv4 a:1/TCP
          10.0.0.1 ready"#]]);
}

#[test]
fn recreated_endpoints_reuse_the_slices() {
    mirrored().then("endpoints web uid=new ready=10.0.0.1,10.0.0.2 port=http:8080").check(expect![
        [r#"
            update endpointslices web-k7hskjwqvj IPv4 http:8080/TCP
              10.0.0.1 ready
              10.0.0.2 ready"#]
    ]);
}

#[test]
fn a_second_slice_of_a_group_is_deleted_and_the_correct_one_stays() {
    mirrored()
        .edit(|cluster| {
            let (_, slice) = cluster.slices.first_key_value().expect("one slice");
            let mut second = slice.clone();
            second.meta.name = "web-a".into();
            second.endpoints.clear();
            cluster.slices.insert(second.meta.key(), second);
        })
        .check(expect!["delete endpointslices web-a"]);
}

#[test]
fn a_duplicate_endpoint_does_not_hide_a_missing_one() {
    mirrored()
        .edit(|cluster| {
            let (_, slice) = cluster.slices.iter_mut().next().expect("one slice");
            slice.endpoints[1] = slice.endpoints[0].clone();
        })
        .check(expect![[r#"
            update endpointslices web-k7hskjwqvj IPv4 http:8080/TCP
              10.0.0.1 ready
              10.0.0.2 ready"#]]);
}

#[test]
fn changed_ports_recycle_slices_within_a_family() {
    mirror("service web manual; endpoints web ready=10.0.0.1,fd00::1 port=a:1")
        .applied()
        .then("endpoints web ready=10.0.0.1,fd00::1 port=a:2")
        .check(expect![[r#"
            update endpointslices web-jdf4cm5js7 IPv4 a:2/TCP
              10.0.0.1 ready
            update endpointslices web-xzd9w6fm2x IPv6 a:2/TCP
              fd00::1 ready"#]]);
}

#[test]
fn endpoints_being_deleted_get_no_new_slices() {
    mirror("service web manual; endpoints web deleting ready=10.0.0.1 port=a:1")
        .check(expect![[""]]);
    mirrored().then("endpoints web deleting ready=10.0.0.1 port=http:8080").check(expect![[r#"
        update endpointslices web-k7hskjwqvj IPv4 http:8080/TCP
          10.0.0.1 ready"#]]);
}

#[test]
fn a_mirrored_slice_keeps_its_finalizers() {
    let fixture = mirrored().edit(|cluster| {
        for slice in cluster.slices.values_mut() {
            slice.meta.finalizers = vec!["example.com/hold".into()];
        }
    });
    let plan = fixture.then("endpoints web ready=10.0.0.3 port=http:8080").plan();
    let Some(Write::Update(object)) = plan.writes.first() else { panic!("not updated: {plan}") };
    assert_eq!(object.meta().finalizers, ["example.com/hold".into()]);
}

#[test]
fn a_deleting_slice_held_by_a_finalizer_is_ignored() {
    mirrored()
        .edit(|cluster| {
            for slice in cluster.slices.values_mut() {
                slice.meta.finalizers = vec!["example.com/hold".into()];
                slice.meta.deleted = Some(Timestamp::UNIX_EPOCH);
            }
        })
        .check(expect![[r#"
            create endpointslices web-* IPv4 http:8080/TCP
              10.0.0.1 ready
              10.0.0.2 ready"#]]);
}

#[test]
fn reserved_labels_on_endpoints_cause_one_write() {
    mirror(&format!(
        "service web manual; endpoints web ready=10.0.0.1 port=a:1 label={}=me label={}=other",
        names::MANAGED_BY,
        names::SERVICE_NAME
    ))
    .check(expect![[r#"
        create endpointslices web-* IPv4 a:1/TCP
          10.0.0.1 ready"#]]);
}

//! The annotation `service.alpha.kubernetes.io/tolerate-unready-endpoints` (docs/spec.md, 2).

use expect_test::expect;

use crate::fixture::{endpoints, slices};

const PODS: &str = "node n1 za; pod web-a 10.0.0.1 unready on=n1
    pod web-b 10.0.0.2 ready terminating on=n1; pod web-c 10.0.0.3 unready";

#[test]
fn without_the_flag_the_annotation_is_ignored() {
    let with = slices(&format!("service web tolerate=true port=80; {PODS}")).plan();
    let without = slices(&format!("service web port=80; {PODS}")).plan();
    assert_eq!(with, without);
    let with = endpoints(&format!("service web tolerate=maybe port=80; {PODS}")).plan();
    let without = endpoints(&format!("service web port=80; {PODS}")).plan();
    assert_eq!(with, without);
}

#[test]
fn with_the_flag_it_decides_about_endpoints() {
    endpoints(&format!("service web tolerate=t port=80; {PODS}")).honoring_annotation().check(
        expect![[r#"
            create endpoints web
              :80/TCP ready 10.0.0.1,10.0.0.2,10.0.0.3"#]],
    );
    endpoints(&format!("service web publish tolerate=F port=80; {PODS}"))
        .honoring_annotation()
        .check(expect![[r#"
            create endpoints web
              :80/TCP not-ready 10.0.0.1,10.0.0.3
            excluded web-b: Terminating"#]]);
}

#[test]
fn with_the_flag_it_decides_about_slices() {
    slices(&format!("service web tolerate=1 port=80; {PODS}")).honoring_annotation().check(
        expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 ready on=n1 in=za
              10.0.0.2 ready terminating on=n1 in=za
              10.0.0.3 ready"#]],
    );
    slices(&format!("service web publish tolerate=0 port=80; {PODS}"))
        .honoring_annotation()
        .check(expect![[r#"
            create endpointslices web-* IPv4 80/TCP
              10.0.0.1 not-ready on=n1 in=za
              10.0.0.2 not-ready serving terminating on=n1 in=za
            Warning FailedToUpdateEndpointSlices: Error updating Endpoint Slices for Service ns/web: skipping Pod web-c for Service ns/web: Node  Not Found
            excluded web-c: NotScheduled
            retry: skipping Pod web-c for Service ns/web: Node  Not Found"#]]);
}

#[test]
fn a_value_that_is_no_boolean_is_reported_once_and_ignored() {
    for fixture in [slices, endpoints] {
        let text = "service web tolerate=yes port=80; node n1 za; pod web-a 10.0.0.1 unready on=n1";
        let mut fixture = fixture(text).honoring_annotation();
        let ignored = fixture.apply().to_string();
        assert!(
            ignored.contains(
                "Warning InvalidAnnotation: Ignored annotation \
                 service.alpha.kubernetes.io/tolerate-unready-endpoints: \"yes\" is not a boolean"
            ),
            "{ignored}"
        );
        let mut fixture = fixture.then("pod web-b 10.0.0.2 unready on=n1");
        assert_eq!(fixture.apply().event_records, [], "told already");
        let mut fixture = fixture.then("service web tolerate=true port=80");
        assert_eq!(fixture.apply().event_records, []);
        let mut fixture = fixture.then("service web tolerate=no port=80");
        assert_eq!(fixture.apply().event_records.len(), 1, "it was corrected in between");
    }
}

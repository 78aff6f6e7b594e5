//! With a service selector, a missing Service may belong to another instance (docs/spec.md, section 12).

use crate::fixture::{endpoints, mirror, slices};

#[test]
fn nothing_is_deleted_because_a_service_is_missing() {
    let text = "service web port=80; node n1 za; pod web-a 10.0.0.1 ready on=n1";
    for fixture in [slices, endpoints] {
        let gone = fixture(text).applied().then("gone service web");
        assert_eq!(gone.seeing_selected_services().plan().writes, []);
    }
    let manual = "service web manual port=80; endpoints web ready=10.0.0.1 port=http:80";
    let gone = || mirror(manual).applied().then("gone service web");
    assert_eq!(gone().seeing_selected_services().plan().writes, []);
    assert_eq!(gone().plan().writes.len(), 1, "otherwise its slice is deleted");
}

#[test]
fn a_selected_service_is_published_as_usual() {
    for fixture in [slices, endpoints] {
        let text = "service web port=80; node n1 za; pod web-a 10.0.0.1 ready on=n1";
        let usual = fixture(text).plan();
        assert_eq!(fixture(text).seeing_selected_services().plan(), usual);
    }
}

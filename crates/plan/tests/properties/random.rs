//! The properties on random cluster states.

use endpointd_model::Controller;
use proptest::prelude::*;

use crate::{checks, generators};

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_000, ..ProptestConfig::default() })]

    #[test]
    fn properties_hold_for_slices(bytes in any_bytes()) {
        checks::check(&generators::decode(Controller::Slices, &bytes), Controller::Slices);
    }

    #[test]
    fn properties_hold_for_topology_hints(bytes in any_bytes()) {
        checks::check(&generators::decode_zones(&bytes), Controller::Slices);
    }

    #[test]
    fn properties_hold_for_endpoints(bytes in any_bytes()) {
        checks::check(&generators::decode(Controller::Endpoints, &bytes), Controller::Endpoints);
    }

    #[test]
    fn properties_hold_for_mirrored_slices(bytes in any_bytes()) {
        checks::check(&generators::decode(Controller::Mirror, &bytes), Controller::Mirror);
    }
}

//! Random worlds.

use endpointd_model::Controller;
use proptest::prelude::*;

use crate::{every_plan, worlds};

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..500)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 8_000, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_for_slices(bytes in any_bytes()) {
        every_plan::check(&worlds::decode(Controller::Slices, &bytes), Controller::Slices);
    }

    #[test]
    fn hints_by_topology_come_to_rest(bytes in any_bytes()) {
        every_plan::check(&worlds::decode_zones(&bytes), Controller::Slices);
    }

    #[test]
    fn laws_hold_for_endpoints(bytes in any_bytes()) {
        every_plan::check(&worlds::decode(Controller::Endpoints, &bytes), Controller::Endpoints);
    }

    #[test]
    fn laws_hold_for_mirrored_slices(bytes in any_bytes()) {
        every_plan::check(&worlds::decode(Controller::Mirror, &bytes), Controller::Mirror);
    }
}

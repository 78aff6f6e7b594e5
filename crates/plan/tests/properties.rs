//! What must hold for every world: random ones here, all small ones in `exhaustive`.

mod laws;
mod worlds;

use endpointd_model::Controller;
use proptest::prelude::*;

fn any_bytes() -> impl Strategy<Value = Vec<u8>> {
    proptest::collection::vec(any::<u8>(), 0..260)
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn laws_hold_for_slices(bytes in any_bytes()) {
        laws::check(&worlds::decode(Controller::Slices, &bytes), Controller::Slices);
    }

    #[test]
    fn laws_hold_for_endpoints(bytes in any_bytes()) {
        laws::check(&worlds::decode(Controller::Endpoints, &bytes), Controller::Endpoints);
    }

    #[test]
    fn laws_hold_for_mirrored_slices(bytes in any_bytes()) {
        laws::check(&worlds::decode(Controller::Mirror, &bytes), Controller::Mirror);
    }
}

//! Generated cases depend only on seed and index, and all of them can be decoded.

use endpointd_model::Controller;
use endpointd_parity::{Scope, generated_case};

#[test]
fn seed_and_index_determine_a_case() {
    let text = |seed, index| {
        serde_json::to_string(&generated_case(seed, index, Scope::All)).expect("JSON")
    };
    for index in 4..104 {
        assert_eq!(text(7, index), text(7, index));
    }
    assert_ne!(text(7, 4), text(8, 4));
    assert_ne!(text(7, 4), text(7, 6));
}

#[test]
fn every_case_can_be_decoded() {
    let scopes = [
        Scope::All,
        Scope::One(Controller::Slices),
        Scope::One(Controller::Endpoints),
        Scope::One(Controller::Mirror),
    ];
    for scope in scopes {
        for index in 0..150 {
            let case = generated_case(11, index, scope);
            case.objects.to_cluster_state().expect("a valid case");
            if let Some(then) = &case.then {
                then.objects.to_cluster_state().expect("a valid later state");
            }
            case.controller().expect("a controller");
            case.key().expect("a key");
        }
    }
}

#[test]
fn the_index_decides_the_controller_unless_the_scope_does() {
    let controllers: Vec<String> =
        (0..4).map(|index| generated_case(1, index, Scope::All).controller).collect();
    assert_eq!(controllers, ["endpointslice", "endpoints", "endpointslice", "mirroring"]);
    for index in 0..4 {
        let case = generated_case(1, index, Scope::One(Controller::Mirror));
        assert_eq!(case.controller, "mirroring");
    }
}

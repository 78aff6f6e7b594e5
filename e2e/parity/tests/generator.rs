//! Generated worlds are the same for ever, and every one of them can be read.

use endpointd_model::Controller;
use endpointd_parity::{Scope, world};

#[test]
fn a_world_is_known_by_its_seed_and_index() {
    let text = |seed, index| serde_json::to_string(&world(seed, index, Scope::All)).expect("JSON");
    for index in 4..104 {
        assert_eq!(text(7, index), text(7, index));
    }
    assert_ne!(text(7, 4), text(8, 4));
    assert_ne!(text(7, 4), text(7, 6));
}

#[test]
fn every_world_can_be_read() {
    let scopes = [
        Scope::All,
        Scope::One(Controller::Slices),
        Scope::One(Controller::Endpoints),
        Scope::One(Controller::Mirror),
    ];
    for scope in scopes {
        for index in 0..150 {
            let case = world(11, index, scope);
            case.world.to_world().expect("a world we can read");
            if let Some(then) = &case.then {
                then.world.to_world().expect("a later world we can read");
            }
            case.controller().expect("a controller");
            case.key().expect("a key");
        }
    }
}

#[test]
fn an_index_decides_the_controller_unless_one_is_asked_for() {
    let controllers: Vec<String> =
        (0..4).map(|index| world(1, index, Scope::All).controller).collect();
    assert_eq!(controllers, ["endpointslice", "endpoints", "endpointslice", "mirroring"]);
    for index in 0..4 {
        let case = world(1, index, Scope::One(Controller::Mirror));
        assert_eq!(case.controller, "mirroring");
    }
}

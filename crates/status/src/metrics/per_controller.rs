//! One of something for each controller, found without hashing.

use endpointd_model::Controller;

pub(super) struct PerController<T> {
    slices: T,
    endpoints: T,
    mirror: T,
}

impl<T> PerController<T> {
    pub fn of(mut make: impl FnMut(Controller) -> T) -> Self {
        Self {
            slices: make(Controller::Slices),
            endpoints: make(Controller::Endpoints),
            mirror: make(Controller::Mirror),
        }
    }

    pub fn get(&self, controller: Controller) -> &T {
        match controller {
            Controller::Slices => &self.slices,
            Controller::Endpoints => &self.endpoints,
            Controller::Mirror => &self.mirror,
        }
    }
}

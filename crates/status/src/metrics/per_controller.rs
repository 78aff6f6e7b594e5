//! One value for each controller, without a hash map.

use endpointd_model::Controller;

pub(super) struct PerController<T> {
    slices: T,
    endpoints: T,
    mirror: T,
    import: T,
    multicluster: T,
}

impl<T> PerController<T> {
    pub fn of(mut make: impl FnMut(Controller) -> T) -> Self {
        Self {
            slices: make(Controller::Slices),
            endpoints: make(Controller::Endpoints),
            mirror: make(Controller::Mirror),
            import: make(Controller::Import),
            multicluster: make(Controller::MultiCluster),
        }
    }

    pub fn get(&self, controller: Controller) -> &T {
        match controller {
            Controller::Slices => &self.slices,
            Controller::Endpoints => &self.endpoints,
            Controller::Mirror => &self.mirror,
            Controller::Import => &self.import,
            Controller::MultiCluster => &self.multicluster,
        }
    }
}

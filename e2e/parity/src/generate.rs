//! Worlds: small, nasty, and each the same for ever given its seed and index.
//!
//! A world is made the way real ones come about. First a cluster; then what our own plan would
//! have written for it; then changes of the cluster, and edits of what was written by others. So
//! most observed objects are nearly right, which is where decisions are hard.

mod nodes;
mod pods;
mod rng;
mod service;
mod slices;
mod subsets;

use endpointd_model::{Controller, Object, names};
use endpointd_plan::CarriedState;
use endpointd_wire::to_json_value;
use serde_json::{Value, json};

use self::pods::Crew;
pub use self::rng::Rng;
use self::slices::Owner;
use crate::case::{Case, CaseSettings, Expected, Then, WorldText};

const NAMESPACE: &str = "ns1";

/// Which controllers a run is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// All three; the index decides which.
    All,
    One(Controller),
}

/// The world of an index, with the question but without upstream's answer.
pub fn world(seed: u64, index: u64, scope: Scope) -> Case {
    let mut rng = Rng::new(seed, index);
    // The slice controller has the most rules.
    let by_index =
        [Controller::Slices, Controller::Endpoints, Controller::Slices, Controller::Mirror];
    let controller = match scope {
        Scope::All => by_index[(index % 4) as usize],
        Scope::One(controller) => controller,
    };
    let crowd = Crowd::of(index);
    let mut case = match controller {
        Controller::Slices => of_slices(&mut rng, crowd),
        Controller::Endpoints => of_endpoints(&mut rng, crowd),
        Controller::Mirror => of_mirror(&mut rng, crowd),
    };
    case.id = format!("{}-{seed}-{index}", case.controller);
    case
}

/// Sets a field of the first item of a list, if there is one.
fn set_first(object: &mut Value, list: &str, field: &str, value: impl Into<Value>) {
    if let Some(first) = object.get_mut(list).and_then(|list| list.get_mut(0)) {
        first[field] = value.into();
    }
}

/// How many pods or addresses: nearly always few, because large worlds are slow and seldom say
/// more.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Crowd {
    Small,
    /// Of so many, this percentage is not ready.
    Large {
        n: usize,
        percent_not_ready: usize,
    },
}

impl Crowd {
    /// Large at fixed places, so that every run of some size has some for each controller.
    fn of(index: u64) -> Self {
        const EVERY: u64 = 512;
        if index % EVERY >= 4 {
            return Self::Small;
        }
        // The slice controller has the places of even index.
        let is_huge = index % 2 == 1 || index % (4 * EVERY) == 2;
        match (index / EVERY % 2, is_huge) {
            (0, true) => Self::Large { n: 1300, percent_not_ready: 15 },
            (_, true) => Self::Large { n: 1200, percent_not_ready: 40 },
            (_, false) => Self::Large { n: 120, percent_not_ready: 5 },
        }
    }
}

fn n_pods(rng: &mut Rng, crowd: Crowd) -> usize {
    match crowd {
        Crowd::Large { n, .. } => n,
        Crowd::Small => {
            rng.weighted(&[(6, 0), (14, 1), (20, 2), (20, 4), (20, 6), (10, 9), (8, 14), (2, 25)])
        }
    }
}

fn settings(rng: &mut Rng, n: usize) -> usize {
    if n > 100 {
        return rng.pick(&[100, 100, 64, 1000]);
    }
    rng.weighted(&[(2, 1), (4, 2), (5, 3), (4, 4), (3, 5), (2, 8), (3, 100)])
}

/// A Service, its pods, and their nodes.
#[derive(Clone)]
struct Cluster {
    services: Vec<Value>,
    pods: Vec<Value>,
    nodes: Vec<Value>,
    service_name: String,
    n_pods: usize,
    n_nodes: usize,
    percent_plain: usize,
}

impl Cluster {
    fn new(rng: &mut Rng, crowd: Crowd) -> Self {
        let mut service = service::service(rng);
        let n_pods = n_pods(rng, crowd);
        let nodes = nodes::nodes(rng);
        let name = service["metadata"]["name"].as_str().unwrap_or("").to_owned();
        let mut cluster = Self {
            pods: Vec::new(),
            n_nodes: nodes.len(),
            nodes,
            service_name: name,
            n_pods,
            percent_plain: match crowd {
                Crowd::Large { .. } => 100,
                Crowd::Small => rng.weighted(&[(70, 0), (30, 90)]),
            },
            services: Vec::new(),
        };
        if let Crowd::Large { .. } = crowd {
            service::make_plain(&mut service);
        }
        cluster.pods = (0..n_pods).map(|at| pods::pod(rng, at, cluster.crew())).collect();
        if let Crowd::Large { percent_not_ready, .. } = crowd {
            for pod in cluster.pods.iter_mut().filter(|_| rng.percent(percent_not_ready)) {
                pod["status"]["conditions"] = json!([{"type": "Ready", "status": "False"}]);
            }
        }
        cluster.services.push(service);
        cluster
    }

    fn crew(&self) -> Crew<'_> {
        let Self { service_name, n_nodes, percent_plain, .. } = self;
        Crew { service_name, n_nodes: *n_nodes, percent_plain: *percent_plain }
    }

    /// Some time passes.
    fn drift(&mut self, rng: &mut Rng) {
        for _ in 0..rng.weighted(&[(40, 1), (25, 2), (15, 3), (10, 6)]) {
            match rng.below(10) {
                0..2 => self.services.iter_mut().for_each(|one| service::change(rng, one)),
                2..4 => nodes::change(rng, &mut self.nodes),
                4 => {
                    let n_new = rng.between(1, 4);
                    let new: Vec<Value> = (self.n_pods..self.n_pods + n_new)
                        .map(|at| pods::pod(rng, at, self.crew()))
                        .collect();
                    self.n_pods += n_new;
                    self.pods.extend(new);
                }
                5 => self.lose_pods(rng),
                _ => self.change_pod(rng),
            }
        }
    }

    fn lose_pods(&mut self, rng: &mut Rng) {
        if rng.percent(10) {
            self.pods.clear();
        }
        for _ in 0..rng.between(1, 3) {
            if !self.pods.is_empty() {
                let at = rng.below(self.pods.len());
                self.pods.remove(at);
            }
        }
    }

    fn change_pod(&mut self, rng: &mut Rng) {
        if self.pods.is_empty() {
            return;
        }
        let at = rng.below(self.pods.len());
        let mut pod = self.pods[at].take();
        let name = pod["metadata"]["name"].as_str().unwrap_or("");
        let number = name.trim_start_matches("pod-").parse().unwrap_or(0);
        pods::change(rng, number, self.crew(), &mut pod);
        self.pods[at] = pod;
    }

    /// The Service goes, or never was.
    fn lose_service(&mut self, rng: &mut Rng) {
        if rng.percent(3) {
            self.services.clear();
        }
    }

    fn text(&self) -> WorldText {
        WorldText {
            services: self.services.clone(),
            pods: self.pods.clone(),
            nodes: self.nodes.clone(),
            ..WorldText::default()
        }
    }

    fn key(&self) -> String {
        format!("{NAMESPACE}/{}", self.service_name)
    }
}

/// Lets our own plan write what is missing in a world. Names are as long-lived as the plan's.
fn settle(case: &mut Case) {
    let controller = case.controller().expect("the generator knows the controllers");
    let key = case.key().expect("the generator makes keys");
    let mut world = case.world.to_world().expect("the generator makes objects we can read");
    let plan = world.plan(controller, &key, &CarriedState::default(), &case.settings());
    plan.writes.iter().for_each(|write| world.apply(write));
    let slices = world.slices.into_values().map(Object::Slice);
    case.world.endpointslices = slices.map(|slice| to_json_value(&slice)).collect();
    if controller == Controller::Endpoints {
        let endpoints = world.endpoints.into_values().map(Object::Endpoints);
        case.world.endpoints = endpoints.map(|one| to_json_value(&one)).collect();
    }
}

fn blank_case(controller: &str, key: String, world: WorldText) -> Case {
    Case {
        id: String::new(),
        controller: controller.to_owned(),
        tags: Vec::new(),
        settings: CaseSettings::default(),
        key,
        world,
        expect: Expected::default(),
        then: None,
    }
}

fn then(world: WorldText) -> Option<Then> {
    Some(Then { world, expect: Expected::default() })
}

fn of_slices(rng: &mut Rng, crowd: Crowd) -> Case {
    let mut cluster = Cluster::new(rng, crowd);
    let mut case = blank_case("endpointslice", cluster.key(), cluster.text());
    case.settings.max_endpoints_per_slice = Some(settings(rng, cluster.n_pods));
    let owner = |cluster: &Cluster| {
        let service = cluster.services.first().cloned().unwrap_or_default();
        json!({"apiVersion": "v1", "kind": "Service", "name": cluster.service_name,
               "uid": service["metadata"]["uid"], "controller": true, "blockOwnerDeletion": true})
    };
    let reference = owner(&cluster);
    if rng.percent(82) {
        settle(&mut case);
    }
    if rng.percent(72) {
        cluster.drift(rng);
    }
    cluster.lose_service(rng);
    let WorldText { services, pods, nodes, .. } = cluster.text();
    case.world = WorldText { services, pods, nodes, ..case.world };
    let name = cluster.service_name.clone();
    let owner = Owner { name: &name, manager: names::MANAGED_BY_SLICES, reference: &reference };
    if rng.percent(50) {
        slices::edit(rng, &mut case.world.endpointslices, owner);
    }
    let is_auto = cluster.services.iter().any(service::is_auto);
    if rng.percent(if is_auto { 40 } else { 12 }) {
        let first_node = cluster.nodes.first().cloned();
        if is_auto && rng.percent(50) {
            cluster.services.iter_mut().for_each(service::turn_off);
        } else {
            cluster.drift(rng);
        }
        // A world does not remember that it once had nodes, which upstream does.
        if cluster.nodes.is_empty() {
            cluster.nodes.extend(first_node);
        }
        case.then = then(cluster.text());
    }
    case
}

fn of_endpoints(rng: &mut Rng, crowd: Crowd) -> Case {
    let mut cluster = Cluster::new(rng, crowd);
    cluster.nodes.clear(); // They do not matter here.
    let mut case = blank_case("endpoints", cluster.key(), cluster.text());
    // Large ones are there to be cut, which happens when they are written.
    if crowd == Crowd::Small && rng.percent(80) {
        settle(&mut case);
    }
    if crowd == Crowd::Small {
        if rng.percent(65) {
            cluster.drift(rng);
            cluster.nodes.clear();
        }
        cluster.lose_service(rng);
    }
    let WorldText { services, pods, .. } = cluster.text();
    case.world = WorldText { services, pods, ..case.world };
    if rng.percent(50) {
        for _ in 0..rng.between(1, 3) {
            case.world.endpoints.iter_mut().for_each(|one| subsets::edit(rng, one));
        }
    }
    if rng.percent(15) {
        cluster.drift(rng);
        cluster.nodes.clear();
        case.then = then(cluster.text());
    }
    case
}

fn of_mirror(rng: &mut Rng, crowd: Crowd) -> Case {
    let mut service = service::service(rng);
    if rng.percent(94) {
        service::drop_selector(&mut service);
    }
    let name = service["metadata"]["name"].as_str().unwrap_or("").to_owned();
    let mut endpoints = subsets::endpoints(rng, &name);
    if let Crowd::Large { n, .. } = crowd {
        let addresses =
            (0..n).map(|at| json!({"ip": format!("10.2.{}.{}", at / 250, at % 250 + 1)}));
        set_first(&mut endpoints, "subsets", "addresses", addresses.collect::<Value>());
    }
    let world =
        WorldText { services: vec![service], endpoints: vec![endpoints], ..WorldText::default() };
    let mut case = blank_case("mirroring", format!("{NAMESPACE}/{name}"), world);
    case.settings.max_endpoints_per_subset =
        rng.weighted(&[(1, Some(1)), (2, Some(2)), (2, Some(3)), (2, Some(5)), (9, None)]);
    if rng.percent(80) {
        settle(&mut case);
    }
    let reference = json!({
        "apiVersion": "v1", "kind": "Endpoints", "name": name,
        "uid": case.world.endpoints[0]["metadata"]["uid"],
        "controller": true, "blockOwnerDeletion": true,
    });
    let next = |rng: &mut Rng, world: &mut WorldText| {
        for _ in 0..rng.between(1, 3) {
            world.endpoints.iter_mut().for_each(|one| subsets::change(rng, one));
        }
        world.endpoints.iter_mut().for_each(subsets::drop_port_zero);
        match rng.below(60) {
            0 => world.endpoints.clear(),
            1 => world.services.clear(),
            2 => world.services.iter_mut().for_each(|one| {
                one["spec"]["selector"] = json!({"app": "web"});
            }),
            _ => {}
        }
    };
    if rng.percent(60) {
        next(rng, &mut case.world);
    }
    let owner = Owner { name: &name, manager: names::MANAGED_BY_MIRROR, reference: &reference };
    if rng.percent(50) {
        slices::edit(rng, &mut case.world.endpointslices, owner);
    }
    if rng.percent(15) {
        let mut later = WorldText {
            services: case.world.services.clone(),
            endpoints: case.world.endpoints.clone(),
            ..WorldText::default()
        };
        next(rng, &mut later);
        case.then = then(later);
    }
    case
}

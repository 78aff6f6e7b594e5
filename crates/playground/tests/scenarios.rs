//! Every story, played fast in this process with the controllers over TCP: when it is over, slices
//! and Endpoints show exactly what there is.

mod expected;

use std::time::{Duration, Instant};

use endpointd_playground::story::Scenario;
use endpointd_playground::world::{Flavour, NAMESPACE, PODS_DEFAULT, Size, World};
use endpointd_playground::{Options, Place, Playground, Summary, Tempo, Workload};
use tempfile::TempDir;

const PATIENCE: Duration = Duration::from_secs(60);
/// Nothing may change for this long before it counts as settled.
const QUIET: Duration = Duration::from_millis(1500);
const SEED: u64 = 3;

fn options(scenario: Scenario, home: &TempDir) -> Options {
    Options {
        size: Size::default(),
        workload: Workload::World,
        scenario,
        seed: SEED,
        tempo: Tempo { speed: 5, n_steps_max: 4 },
        port: 0,
        kubeconfig: Place::Chosen(home.path().join("config")),
        version: "test".to_owned(),
    }
}

/// Until the story is told and nothing is written any more.
async fn settled(playground: &Playground, n_steps: usize) {
    let asked = Instant::now();
    let mut quiet_since = Instant::now();
    let mut revision = 0;
    while quiet_since.elapsed() < QUIET {
        assert!(asked.elapsed() < PATIENCE, "{:#?}", playground.picture());
        tokio::time::sleep(Duration::from_millis(50)).await;
        let latest = playground.server().with(|server| server.store().revision());
        let is_told = playground.picture().told.len() >= n_steps;
        if latest != revision || !is_told {
            (revision, quiet_since) = (latest, Instant::now());
        }
    }
}

/// Plays `n_steps` and checks everything that is published at their end.
async fn play(scenario: Scenario, n_steps: u64) -> Summary {
    let home = tempfile::tempdir().expect("a folder");
    let mut options = options(scenario, &home);
    options.tempo.n_steps_max = n_steps;
    let playground = Playground::start(options).await.expect("it starts");
    settled(&playground, usize::try_from(n_steps).expect("few")).await;
    let difference = playground.server().with(|server| expected::difference(server));
    assert_eq!(difference, None, "{scenario}");
    let n_told = playground.picture().told.len();
    assert_eq!(n_told as u64, n_steps, "{scenario}");
    playground.stop().await
}

fn check(summary: &Summary, scenario: Scenario) {
    let json = summary.to_json();
    assert_eq!(json["scenario"], scenario.name());
    assert_eq!(json["seed"], SEED);
    assert_eq!(json["failing_keys"], 0, "{json}");
    let first = json["first_slice_ms"].as_f64().expect("there was a slice");
    // Stories may begin before a slow machine has everything up.
    let complete = json["complete_ms"].as_f64();
    assert!(complete.is_some() || scenario != Scenario::Idle, "{json}");
    assert!(0.0 < first && complete.is_none_or(|complete| first < complete), "{json}");
    assert!(json["latency_ms"]["p50"].as_f64() <= json["latency_ms"]["p99"].as_f64());
    assert!(json["latency_ms"]["measured"].as_u64() >= Some(PODS_DEFAULT as u64), "{json}");
    assert!(json["writes"]["endpointslices"].as_u64() > json["slices"].as_u64(), "{json}");
}

macro_rules! stories {
    ($($name:ident: $scenario:expr, $n_steps:expr;)*) => {
        $(
            #[tokio::test(flavor = "multi_thread", worker_threads = 2)]
            async fn $name() {
                let summary = play($scenario, $n_steps).await;
                check(&summary, $scenario);
            }
        )*
    };
}

stories! {
    a_rollout_ends_with_the_right_slices: Scenario::Rollout, 2;
    scaling_ends_with_the_right_slices: Scenario::Scale, 3;
    an_outage_shows_while_it_lasts: Scenario::ZoneOutage, 1;
    after_an_outage_all_is_as_before: Scenario::ZoneOutage, 2;
    flapping_probes_show: Scenario::Flapping, 5;
    a_lost_node_is_forgotten: Scenario::NodeLoss, 1;
    a_replaced_node_is_used: Scenario::NodeLoss, 2;
    an_idle_world_comes_up: Scenario::Idle, 0;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn an_outage_takes_the_zone_out_of_the_slices() {
    let summary = play(Scenario::ZoneOutage, 1).await;
    let json = summary.to_json();
    assert_eq!(json["nodes"]["ready"], 8);
    let down: Vec<&String> = summary
        .picture
        .zones
        .iter()
        .filter_map(|(zone, counts)| (counts.n_ready == 0).then_some(zone))
        .collect();
    let [down] = down[..] else { panic!("one zone is down: {down:?}") };
    for service in &summary.picture.services {
        let ready = service.by_zone.get(down).map_or(0, |conditions| conditions.n_ready);
        assert_eq!(ready, 0, "{}", service.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_flavour_is_published_in_its_own_way() {
    let home = tempfile::tempdir().expect("a folder");
    let options = options(Scenario::Idle, &home);
    let world = World::generate(options.size, options.seed);
    let playground = Playground::start(options).await.expect("it starts");
    settled(&playground, 0).await;
    let picture = playground.picture();
    for plan in &world.services {
        let name = format!("{NAMESPACE}/{}", plan.name);
        let found = picture.services.iter().find(|service| service.name == name);
        let service = found.unwrap_or_else(|| panic!("{name} is not shown"));
        let n_slices = match plan.flavour {
            Flavour::ExternalName => 0,
            Flavour::DualStack => 2,
            Flavour::Plain
            | Flavour::Headless
            | Flavour::NamedPorts
            | Flavour::TopologyAware
            | Flavour::SameZone
            | Flavour::Manual => 1,
        };
        assert_eq!(service.slices.len(), n_slices, "{name}");
        for slice in &service.slices {
            let n_endpoints = if plan.flavour == Flavour::Manual { 3 } else { plan.n_replicas };
            assert_eq!(slice.n_endpoints, n_endpoints, "{name}");
        }
    }
    let path = playground.kubeconfig().to_owned();
    playground.stop().await;
    assert!(path.exists(), "a chosen kubeconfig stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_workload_there_are_nodes_and_nothing_else() {
    let home = tempfile::tempdir().expect("a folder");
    let options = Options { workload: Workload::None, ..options(Scenario::Idle, &home) };
    let playground = Playground::start(options).await.expect("it starts");
    settled(&playground, 0).await;
    let summary = playground.stop().await.to_json();
    assert_eq!(summary["nodes"]["ready"], 12);
    assert_eq!((&summary["pods"]["all"], &summary["services"]), (&0.into(), &1.into()));
}

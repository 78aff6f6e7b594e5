//! Every scenario at five times its speed, with the controllers over TCP. At the end, slices and
//! Endpoints show exactly the current pods.

mod expected_state;

use std::time::{Duration, Instant};

use endpointd_playground::cluster_spec::{ClusterSpec, NAMESPACE, PODS_DEFAULT, ServiceKind, Size};
use endpointd_playground::scenario::Scenario;
use endpointd_playground::{KubeconfigTarget, Options, Playground, Summary, TimeScale, Workload};
use tempfile::TempDir;

const TIMEOUT: Duration = Duration::from_secs(60);
/// Without a write for this long, the cluster is quiescent.
const QUIET_PERIOD: Duration = Duration::from_millis(1500);
const SEED: u64 = 3;

fn options(scenario: Scenario, home: &TempDir) -> Options {
    Options {
        size: Size::default(),
        workload: Workload::Default,
        scenario,
        seed: SEED,
        time_scale: TimeScale { speed: 5, n_steps_max: 4 },
        port: 0,
        page_port: 0,
        kubeconfig: KubeconfigTarget::Path(home.path().join("config")),
        version: "test".to_owned(),
    }
}

/// Waits until all steps are done and there are no more writes.
async fn wait_until_quiescent(playground: &Playground, n_steps: usize) {
    let started = Instant::now();
    let mut quiet_since = Instant::now();
    let mut revision = 0;
    while quiet_since.elapsed() < QUIET_PERIOD {
        assert!(started.elapsed() < TIMEOUT, "{:#?}", playground.view_state());
        tokio::time::sleep(Duration::from_millis(50)).await;
        let latest = playground.server().with(|server| server.store().revision());
        let is_played = playground.view_state().log.len() >= n_steps;
        if latest != revision || !is_played {
            (revision, quiet_since) = (latest, Instant::now());
        }
    }
}

/// Runs `n_steps` steps and checks all published objects at the end.
async fn play(scenario: Scenario, n_steps: u64) -> Summary {
    let home = tempfile::tempdir().expect("a folder");
    let mut options = options(scenario, &home);
    options.time_scale.n_steps_max = n_steps;
    let playground = Playground::start(options).await.expect("it starts");
    wait_until_quiescent(&playground, usize::try_from(n_steps).expect("few")).await;
    let difference = playground.server().with(|server| expected_state::difference(server));
    assert_eq!(difference, None, "{scenario}");
    let n_logged = playground.view_state().log.len();
    assert_eq!(n_logged as u64, n_steps, "{scenario}");
    playground.stop().await
}

fn check(summary: &Summary, scenario: Scenario) {
    let json = summary.to_json();
    assert_eq!(json["scenario"], scenario.name());
    assert_eq!(json["seed"], SEED);
    assert_eq!(json["failing_keys"], 0, "{json}");
    let first = json["first_slice_ms"].as_f64().expect("there was a slice");
    // On a slow machine, steps may begin before all pods are ready.
    let complete = json["complete_ms"].as_f64();
    assert!(complete.is_some() || scenario != Scenario::Idle, "{json}");
    assert!(0.0 < first && complete.is_none_or(|complete| first < complete), "{json}");
    assert!(json["latency_ms"]["p50"].as_f64() <= json["latency_ms"]["p99"].as_f64());
    assert!(json["latency_ms"]["measured"].as_u64() >= Some(PODS_DEFAULT as u64), "{json}");
    assert!(json["writes"]["endpointslices"].as_u64() > json["slices"].as_u64(), "{json}");
}

macro_rules! scenarios {
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

scenarios! {
    after_a_rollout_the_slices_are_correct: Scenario::Rollout, 2;
    after_scaling_the_slices_are_correct: Scenario::Scale, 3;
    during_a_zone_outage_the_slices_are_correct: Scenario::ZoneOutage, 1;
    after_a_zone_outage_the_slices_are_correct: Scenario::ZoneOutage, 2;
    with_failing_probes_the_slices_are_correct: Scenario::Flapping, 5;
    after_a_node_is_deleted_the_slices_are_correct: Scenario::NodeLoss, 1;
    after_a_node_is_replaced_the_slices_are_correct: Scenario::NodeLoss, 2;
    after_consent_was_withdrawn_the_slices_are_correct: Scenario::Consent, 1;
    after_consent_was_given_again_the_slices_are_correct: Scenario::Consent, 2;
    without_a_scenario_the_slices_are_correct: Scenario::Idle, 0;
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn pods_of_a_zone_in_outage_are_not_ready_in_any_slice() {
    let summary = play(Scenario::ZoneOutage, 1).await;
    let json = summary.to_json();
    assert_eq!(json["nodes"]["ready"], 8);
    let down: Vec<&String> = summary
        .view_state
        .zones
        .iter()
        .filter_map(|(zone, counts)| (counts.n_ready == 0).then_some(zone))
        .collect();
    let [down] = down[..] else { panic!("one zone is down: {down:?}") };
    for service in &summary.view_state.services {
        let ready = service.by_zone.get(down).map_or(0, |conditions| conditions.n_ready);
        assert_eq!(ready, 0, "{}", service.name);
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn every_service_kind_has_its_number_of_slices() {
    let home = tempfile::tempdir().expect("a folder");
    let options = options(Scenario::Idle, &home);
    let spec = ClusterSpec::generate(options.size, options.seed);
    let playground = Playground::start(options).await.expect("it starts");
    wait_until_quiescent(&playground, 0).await;
    let view_state = playground.view_state();
    for plan in &spec.services {
        let name = format!("{NAMESPACE}/{}", plan.name);
        let found = view_state.services.iter().find(|service| service.name == name);
        let service = found.unwrap_or_else(|| panic!("{name} is not shown"));
        let n_slices = match plan.kind {
            ServiceKind::ExternalName => 0,
            ServiceKind::DualStack => 2,
            ServiceKind::Plain
            | ServiceKind::Headless
            | ServiceKind::NamedPorts
            | ServiceKind::TopologyAware
            | ServiceKind::SameZone
            | ServiceKind::Manual => 1,
        };
        assert_eq!(service.slices.len(), n_slices, "{name}");
        for slice in &service.slices {
            let n_endpoints = if plan.kind == ServiceKind::Manual { 3 } else { plan.n_replicas };
            assert_eq!(slice.n_endpoints, n_endpoints, "{name}");
        }
    }
    let path = playground.kubeconfig().to_owned();
    playground.stop().await;
    assert!(path.exists(), "a chosen kubeconfig stays");
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn without_a_workload_there_are_only_nodes() {
    let home = tempfile::tempdir().expect("a folder");
    let options = Options { workload: Workload::None, ..options(Scenario::Idle, &home) };
    let playground = Playground::start(options).await.expect("it starts");
    wait_until_quiescent(&playground, 0).await;
    let summary = playground.stop().await.to_json();
    assert_eq!(summary["nodes"]["ready"], 12);
    assert_eq!((&summary["pods"]["all"], &summary["services"]), (&0.into(), &1.into()));
}

//! A cluster whose daemon reaches the API server through a fault proxy; tests reach it directly.
//! Start at [`ProxiedCluster::start`].

use std::env;
use std::fs;
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::certificates::CA_FILE;
use endpointd_control_plane::{Api, Binaries, Options};
use endpointd_fault_proxy::{Exchange, Fault, FaultProxy, Injected, Requests};
use serde_json::json;

use crate::cluster::{ClusterUnderTest, Controllers, controllers_under_test};
use crate::convergence::Expected;
use crate::daemon::{Daemon, DaemonFlags};
use crate::observed_state::ObservedState;
use crate::pods::web_ips;
use crate::test_namespace::TestNamespace;

const PROXY_VARIABLE: &str = "ENDPOINTD_FAULT_PROXY";
const POLL: Duration = Duration::from_millis(20);

pub struct ProxiedCluster {
    pub proxy: FaultProxy,
    /// The kubeconfig of the daemon.
    pub kubeconfig: PathBuf,
    pub under_test: ClusterUnderTest,
}

impl ProxiedCluster {
    /// Without a daemon. `None` means skip: there is no control plane, or upstream is under test.
    pub fn start(options: Options) -> Option<Self> {
        if controllers_under_test() == Controllers::ControllerManager {
            return None;
        }
        let under_test =
            ClusterUnderTest::start(&Binaries::for_test()?, Controllers::None, options);
        let (proxy, kubeconfig) = behind_proxy(&under_test);
        Some(Self { proxy, kubeconfig, under_test })
    }

    /// Requests of the test, which the proxy does not see.
    pub fn api(&self) -> &Api {
        &self.under_test.api
    }

    pub fn directory(&self) -> &Path {
        self.under_test.cluster.directory()
    }

    /// The certificate authority of the cluster as PEM.
    pub fn authority(&self) -> String {
        fs::read_to_string(self.directory().join(CA_FILE)).expect("a cluster has an authority")
    }

    pub fn flags(&self) -> DaemonFlags {
        DaemonFlags::new(&self.kubeconfig)
    }

    /// With leader election.
    pub fn elected(&self) -> DaemonFlags {
        DaemonFlags::elected(&self.kubeconfig)
    }

    /// Returns when the daemon has finished its initial sync.
    pub fn daemon(&self, name: &str, flags: &DaemonFlags) -> Daemon {
        let daemon = Daemon::start(&self.under_test.cluster, name, flags);
        self.under_test.wait_until_synced();
        daemon
    }

    /// Writes of Endpoints and EndpointSlices in a namespace since then.
    pub fn writes_since(&self, namespace: &str, since: Instant) -> Vec<Exchange> {
        let writes = Requests::writes_of_endpoints().namespace(namespace);
        let mut writes = self.proxy.exchanges_of(&writes);
        writes.retain(|exchange| exchange.started >= since);
        writes
    }
}

/// What a proxy between API server and daemon does in tests that do not choose it themselves.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum ChosenFaults {
    Faultless,
    /// Some writes are slow, answered with an error, or lose their response.
    Mild,
}

/// The proxy that `ENDPOINTD_FAULT_PROXY=faultless` or `=mild` puts in front of the API server, so
/// that all scenarios can be run behind one.
pub(crate) struct ChosenProxy {
    /// Dropped before the proxy.
    _faults: Vec<Injected>,
    _proxy: FaultProxy,
    pub(crate) kubeconfig: PathBuf,
}

impl ChosenProxy {
    pub(crate) fn from_environment(under_test: &ClusterUnderTest) -> Option<Self> {
        let chosen = match env::var(PROXY_VARIABLE).ok()?.as_str() {
            "" => return None,
            "faultless" => ChosenFaults::Faultless,
            "mild" => ChosenFaults::Mild,
            other => panic!("{PROXY_VARIABLE} is neither `faultless` nor `mild`: `{other}`"),
        };
        let (proxy, kubeconfig) = behind_proxy(under_test);
        let faults = match chosen {
            ChosenFaults::Faultless => Vec::new(),
            ChosenFaults::Mild => mild(&proxy),
        };
        Some(Self { _faults: faults, _proxy: proxy, kubeconfig })
    }
}

fn mild(proxy: &FaultProxy) -> Vec<Injected> {
    let writes = |n| Requests::writes_of_endpoints().every(n);
    let slow = Fault::DelayResponse(Duration::from_millis(100));
    let faults = [(11, slow), (13, Fault::LoseResponse), (17, Fault::status(500))];
    let faults = faults.into_iter().chain([(19, Fault::status(409)), (23, Fault::LoseRequest)]);
    faults.map(|(n, fault)| proxy.inject(writes(n), fault)).collect()
}

/// A proxy in front of a cluster, and the daemon's kubeconfig with its address.
pub fn behind_proxy(under_test: &ClusterUnderTest) -> (FaultProxy, PathBuf) {
    let cluster = &under_test.cluster;
    let proxy = FaultProxy::start(cluster.url(), cluster.directory()).expect("a port is free");
    let text = fs::read_to_string(&under_test.kubeconfig).expect("it was written");
    let path = cluster.directory().join("proxied.kubeconfig");
    fs::write(&path, text.replace(cluster.url(), &proxy.url())).expect("we own the directory");
    (proxy, path)
}

/// A namespace with the Service `web` and this many ready pods, all published.
pub fn web<'a>(api: &'a Api, namespace: &str, n_pods: usize) -> TestNamespace<'a> {
    let ns = web_unpublished(api, namespace, n_pods);
    ns.wait_for(&web_expected(1..=n_pods));
    ns
}

/// As [`web`], but does not wait.
pub fn web_unpublished<'a>(api: &'a Api, namespace: &str, n_pods: usize) -> TestNamespace<'a> {
    let ns = TestNamespace::new(api, namespace);
    ns.node_in("a", "zone-a");
    ns.service(
        "web",
        &json!({
            "selector": {"app": "web"},
            "ports": [{"name": "http", "port": 80, "targetPort": "http"}],
        }),
    );
    ns.web_pods(1..=n_pods, &["a"]);
    ns
}

/// These pods are published, each of them once.
pub fn web_expected(numbers: impl IntoIterator<Item = usize>) -> [Expected; 2] {
    let ips = web_ips(numbers);
    [Expected::slices("web", &ips), Expected::endpoints("web", &ips)]
}

/// Changes the readiness of a pod, and returns after which time the slices of its Service have it.
///
/// # Panics
///
/// If that takes longer than `limit`.
pub fn toggle(ns: &TestNamespace<'_>, n_pod: usize, is_ready: bool, limit: Duration) -> Duration {
    let pod = format!("web-{n_pod}");
    let ip = web_ips([n_pod]);
    let started = Instant::now();
    match is_ready {
        true => ns.ready(&pod),
        false => ns.unready(&pod),
    }
    loop {
        let state = ObservedState::without_pods(ns.api(), ns.namespace());
        let slices = state.ok().and_then(|state| state.slice_summary("web")).unwrap_or_default();
        let word = if is_ready { ip.clone() } else { format!("{ip}!") };
        if slices.split(' ').any(|one| one == word) {
            return started.elapsed();
        }
        let elapsed = started.elapsed();
        assert!(elapsed < limit, "{ns}: {pod} ready={is_ready}, after {elapsed:?}: {slices}");
        thread::sleep(POLL);
    }
}

/// Waits until `condition` holds.
///
/// # Panics
///
/// If that takes longer than `limit`.
pub fn wait_until(what: &str, limit: Duration, mut condition: impl FnMut() -> bool) {
    let started = Instant::now();
    while !condition() {
        assert!(started.elapsed() < limit, "not within {limit:?}: {what}");
        thread::sleep(POLL);
    }
}

//! A real control plane with kube-controller-manager's three controllers or with endpointd. Start
//! at [`ClusterUnderTest::start`].

use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, OnceLock, PoisonError};

use endpointd_control_plane::{Api, Binaries, Cluster, Options, Program, Stop};
use serde_json::json;

use crate::convergence::Expected;
use crate::daemon::{Daemon, DaemonFlags};
use crate::proxied_cluster::ChosenProxy;
use crate::test_namespace::{Kind, TestNamespace};

/// Which program writes Endpoints and EndpointSlices.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    ControllerManager,
    Endpointd,
    /// No program: a test starts one later.
    None,
}

/// `ENDPOINTD_SCENARIOS=upstream` runs kube-controller-manager instead of endpointd. A difference
/// is then random, and either the test or the canonical form is wrong.
pub fn controllers_under_test() -> Controllers {
    match env::var_os("ENDPOINTD_SCENARIOS").is_some_and(|value| value == "upstream") {
        true => Controllers::ControllerManager,
        false => Controllers::Endpointd,
    }
}

/// The controllers that endpointd replaces.
pub const REPLACED_CONTROLLERS: [&str; 3] =
    ["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];
/// Run with both programs, because scenarios delete Services and namespaces.
const AUXILIARY_CONTROLLERS: [&str; 2] = ["namespace-controller", "garbage-collector-controller"];
/// Many scenarios run at once; the default of 20 requests per second would make them slow.
const UNTHROTTLED: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// Prefix of the namespaces that show that the controllers have started.
pub const PROBE_NAMESPACE: &str = "probe";

/// The namespace of the daemon's ServiceAccount.
pub const ACCOUNT_NAMESPACE: &str = "kube-system";
pub const ACCOUNT: &str = "endpointd-under-test";

/// A cluster, and the controllers that write in it.
pub struct ClusterUnderTest {
    /// Dropped before the cluster, because it writes its log into the cluster's directory.
    daemon: Mutex<Option<Daemon>>,
    proxy: OnceLock<Option<ChosenProxy>>,
    pub cluster: Cluster,
    /// Reuses connections.
    pub api: Api,
    /// For a ServiceAccount of its own, so that the audit log distinguishes daemon and test.
    pub kubeconfig: PathBuf,
    n_probes: AtomicUsize,
}

impl ClusterUnderTest {
    /// # Panics
    ///
    /// If the programs exist but do not start.
    pub fn start(binaries: &Binaries, controllers: Controllers, options: Options) -> Self {
        let cluster = Cluster::start(binaries, options).expect("a cluster starts");
        let api = cluster.fast_api().expect("the authority is valid");
        let kubeconfig = create_admin_account(&cluster);
        let n_probes = AtomicUsize::new(0);
        let (daemon, proxy) = (Mutex::new(None), OnceLock::new());
        let under_test = Self { daemon, proxy, cluster, api, kubeconfig, n_probes };
        under_test.start_controllers(controllers);
        under_test
    }

    pub fn start_controllers(&self, controllers: Controllers) {
        let auxiliary = AUXILIARY_CONTROLLERS.to_vec();
        let managed = match controllers {
            Controllers::ControllerManager => [auxiliary, REPLACED_CONTROLLERS.to_vec()].concat(),
            Controllers::Endpointd | Controllers::None => auxiliary,
        };
        self.cluster
            .start_controller_manager(&managed, &UNTHROTTLED)
            .expect("kube-controller-manager starts");
        match controllers {
            Controllers::Endpointd => self.start_daemon(),
            Controllers::ControllerManager => {}
            Controllers::None => return,
        }
        self.wait_until_synced();
    }

    /// Returns when new Services and Endpoints are published: the controllers have then finished
    /// their initial sync. Both delete Endpoints without a Service once, when they start; a
    /// scenario must not begin before that.
    pub fn wait_until_synced(&self) {
        let n = self.n_probes.fetch_add(1, Ordering::SeqCst);
        let mut ns = TestNamespace::new(&self.api, &format!("{PROBE_NAMESPACE}-{n}"));
        ns.service("late", &json!({"selector": {"app": "late"}, "ports": [{"port": 80}]}));
        ns.service("db", &json!({"ports": [{"port": 5432}]}));
        let db = json!({
            "metadata": {"name": "db"},
            "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
        });
        ns.create(Kind::Endpoints, &db);
        ns.converge(
            "initial sync",
            &[
                Expected::slices("late", ""),
                Expected::endpoints("late", ""),
                Expected::slices("db", "192.168.0.1"),
            ],
        );
    }

    pub fn start_daemon(&self) {
        let proxy = self.proxy.get_or_init(|| ChosenProxy::from_environment(self));
        let kubeconfig = proxy.as_ref().map_or(&self.kubeconfig, |proxy| &proxy.kubeconfig);
        let daemon = Daemon::start(&self.cluster, "endpointd", &DaemonFlags::new(kubeconfig));
        *self.slot() = Some(daemon);
    }

    /// SIGKILL, as if its machine were lost.
    pub fn kill_daemon(&self) {
        drop(self.slot().take());
    }

    pub fn stop_controllers(&self) {
        let stopped = self.cluster.stop(Program::ControllerManager, Stop::Terminate);
        stopped.expect("it can be signalled");
        if let Some(daemon) = self.slot().take() {
            daemon.stop();
        }
    }

    pub fn restart_controllers(&self, controllers: Controllers) {
        self.stop_controllers();
        self.start_controllers(controllers);
    }

    /// The log of all daemons that this cluster has had.
    pub fn daemon_log(&self) -> String {
        Daemon::log_of(&self.cluster, "endpointd")
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Daemon>> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A ServiceAccount with all permissions; `tests/permissions.rs` tests the manifests' permissions.
pub fn create_admin_account(cluster: &Cluster) -> PathBuf {
    let kubeconfig = cluster.service_account(ACCOUNT_NAMESPACE, ACCOUNT).expect("it is new");
    let subject = json!({
        "kind": "ServiceAccount", "name": ACCOUNT, "namespace": ACCOUNT_NAMESPACE,
    });
    let binding = json!({
        "metadata": {"name": ACCOUNT},
        "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"},
        "subjects": [subject],
    });
    let bindings = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    cluster.api().create(bindings, &binding).expect("the binding is valid");
    kubeconfig
}

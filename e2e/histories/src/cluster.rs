//! A real control plane with one of the two at work: kube-controller-manager's three controllers, or
//! endpointd in their place. Start at [`ClusterUnderTest::start`].

use std::env;
use std::path::PathBuf;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Mutex, PoisonError};

use endpointd_control_plane::{Api, Binaries, Cluster, Options, Program, Stop};
use serde_json::json;

use crate::daemon::{Daemon, DaemonFlags};
use crate::settle::Wanted;
use crate::stage::{Kind, Stage};

/// Who publishes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Controllers {
    ControllerManager,
    Endpointd,
    /// Nobody: a test starts somebody later.
    Nobody,
}

/// `ENDPOINTD_HISTORIES=upstream` puts kube-controller-manager in our place too: then what differs
/// is chance, and either the test or the canonical form is wrong.
pub fn ours() -> Controllers {
    match env::var_os("ENDPOINTD_HISTORIES").is_some_and(|who| who == "upstream") {
        true => Controllers::ControllerManager,
        false => Controllers::Endpointd,
    }
}

/// What endpointd replaces.
pub const REPLACED: [&str; 3] =
    ["endpoints-controller", "endpointslice-controller", "endpointslice-mirroring-controller"];
/// What runs beside both, because histories delete Services and namespaces.
const BESIDE: [&str; 2] = ["namespace-controller", "garbage-collector-controller"];
/// Histories are played many at once; the default of 20 requests a second would only make them slow.
const UNHURRIED: [&str; 2] = ["--kube-api-qps=1000", "--kube-api-burst=2000"];

/// What the namespaces are called that show that somebody is at work.
pub const WITNESS: &str = "witness";

/// Where the daemon's account lives.
pub const ACCOUNT_NAMESPACE: &str = "kube-system";
pub const ACCOUNT: &str = "endpointd-under-test";

/// A cluster, and who publishes in it.
pub struct ClusterUnderTest {
    /// Dropped first: it writes its log into the cluster's directory.
    daemon: Mutex<Option<Daemon>>,
    pub cluster: Cluster,
    /// With connections that stay open.
    pub api: Api,
    /// Of an account of its own, so that the audit log tells the daemon from the test.
    pub kubeconfig: PathBuf,
    n_witnesses: AtomicUsize,
}

impl ClusterUnderTest {
    /// # Panics
    ///
    /// When the programs are there and do not start: no test can go on then.
    pub fn start(binaries: &Binaries, controllers: Controllers, options: Options) -> Self {
        let cluster = Cluster::start(binaries, options).expect("a cluster starts");
        let api = cluster.fast_api().expect("the authority is valid");
        let kubeconfig = account(&cluster);
        let n_witnesses = AtomicUsize::new(0);
        let under_test = Self { daemon: Mutex::new(None), cluster, api, kubeconfig, n_witnesses };
        under_test.start_controllers(controllers);
        under_test
    }

    pub fn start_controllers(&self, controllers: Controllers) {
        let beside = BESIDE.to_vec();
        let managed = match controllers {
            Controllers::ControllerManager => [beside, REPLACED.to_vec()].concat(),
            Controllers::Endpointd | Controllers::Nobody => beside,
        };
        self.cluster
            .start_controller_manager(&managed, &UNHURRIED)
            .expect("kube-controller-manager starts");
        match controllers {
            Controllers::Endpointd => self.start_daemon(),
            Controllers::ControllerManager => {}
            Controllers::Nobody => return,
        }
        self.wait_until_at_work();
    }

    /// Returns when Services and Endpoints made now are published: then whoever started has been
    /// through all that were there. Both delete, once, Endpoints that have no Service when they
    /// start; a history must not begin before that.
    pub fn wait_until_at_work(&self) {
        let n = self.n_witnesses.fetch_add(1, Ordering::SeqCst);
        let mut stage = Stage::enter(&self.api, &format!("{WITNESS}-{n}"));
        stage.service("late", &json!({"selector": {"app": "late"}, "ports": [{"port": 80}]}));
        stage.service("db", &json!({"ports": [{"port": 5432}]}));
        let db = json!({
            "metadata": {"name": "db"},
            "subsets": [{"addresses": [{"ip": "192.168.0.1"}], "ports": [{"port": 5432}]}],
        });
        stage.create(Kind::Endpoints, &db);
        stage.settle(
            "at work",
            &[
                Wanted::slices("late", ""),
                Wanted::endpoints("late", ""),
                Wanted::slices("db", "192.168.0.1"),
            ],
        );
    }

    pub fn start_daemon(&self) {
        let daemon = Daemon::start(&self.cluster, "endpointd", &DaemonFlags::new(&self.kubeconfig));
        *self.slot() = Some(daemon);
    }

    /// As its machine is lost.
    pub fn kill_daemon(&self) {
        drop(self.slot().take());
    }

    pub fn stop_controllers(&self) {
        let stopped = self.cluster.stop(Program::ControllerManager, Stop::Gracefully);
        stopped.expect("it can be signalled");
        if let Some(daemon) = self.slot().take() {
            daemon.stop();
        }
    }

    pub fn restart_controllers(&self, controllers: Controllers) {
        self.stop_controllers();
        self.start_controllers(controllers);
    }

    /// Of all daemons this cluster had under this name.
    pub fn daemon_log(&self) -> String {
        Daemon::log_of(&self.cluster, "endpointd")
    }

    fn slot(&self) -> std::sync::MutexGuard<'_, Option<Daemon>> {
        self.daemon.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// An account with all rights: what it may do is the matter of the tests about permissions.
pub fn account(cluster: &Cluster) -> PathBuf {
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

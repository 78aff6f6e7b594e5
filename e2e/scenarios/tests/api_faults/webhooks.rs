//! Webhook configurations for EndpointSlices of one namespace.

use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, ApiError};
use endpointd_scenarios::{ProxiedCluster, TestNamespace};
use serde_json::{Value, json};

/// The API server learns of a new configuration by a watch.
const EFFECTIVE_MAX: Duration = Duration::from_secs(15);
const POLL: Duration = Duration::from_millis(50);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WebhookKind {
    Validating,
    Mutating,
}

/// An obstacle for writes of EndpointSlices in one namespace. Drop removes it.
pub struct Placed {
    api: Api,
    namespace: String,
    paths: Vec<String>,
}

/// A webhook that is asked about creates and updates of EndpointSlices, and that must answer.
pub fn register(
    cluster: &ProxiedCluster,
    ns: &TestNamespace<'_>,
    kind: WebhookKind,
    client_config: &Value,
) -> Placed {
    let configurations = match kind {
        WebhookKind::Validating => "validatingwebhookconfigurations",
        WebhookKind::Mutating => "mutatingwebhookconfigurations",
    };
    let webhook = json!({
        "name": "slices.example.com",
        "clientConfig": client_config,
        "rules": [slice_rule()],
        "namespaceSelector": namespace_selector(ns.namespace()),
        "failurePolicy": "Fail",
        "sideEffects": "None",
        "timeoutSeconds": 30,
        "admissionReviewVersions": ["v1"],
    });
    let configuration = json!({"metadata": {"name": ns.namespace()}, "webhooks": [webhook]});
    Placed::new(cluster, ns).and(configurations, &configuration)
}

/// A policy that denies creates and updates of EndpointSlices.
pub fn deny_by_policy(cluster: &ProxiedCluster, ns: &TestNamespace<'_>, message: &str) -> Placed {
    let rules = json!({
        "resourceRules": [slice_rule()],
        "namespaceSelector": namespace_selector(ns.namespace()),
    });
    let policy = json!({
        "metadata": {"name": ns.namespace()},
        "spec": {
            "failurePolicy": "Fail",
            "matchConstraints": rules,
            "validations": [{"expression": "false", "message": message}],
        },
    });
    let binding = json!({
        "metadata": {"name": ns.namespace()},
        "spec": {"policyName": ns.namespace(), "validationActions": ["Deny"]},
    });
    Placed::new(cluster, ns)
        .and("validatingadmissionpolicies", &policy)
        .and("validatingadmissionpolicybindings", &binding)
}

fn slice_rule() -> Value {
    json!({
        "apiGroups": ["discovery.k8s.io"], "apiVersions": ["v1"],
        "resources": ["endpointslices"], "operations": ["CREATE", "UPDATE"],
    })
}

fn namespace_selector(namespace: &str) -> Value {
    json!({"matchLabels": {"kubernetes.io/metadata.name": namespace}})
}

impl Placed {
    fn new(cluster: &ProxiedCluster, ns: &TestNamespace<'_>) -> Self {
        let api = cluster.api().clone();
        Self { api, namespace: ns.namespace().to_owned(), paths: Vec::new() }
    }

    fn and(mut self, resource: &str, object: &Value) -> Self {
        let list = format!("/apis/admissionregistration.k8s.io/v1/{resource}");
        self.api.create(&list, object).unwrap_or_else(|error| panic!("{resource}: {error}"));
        self.paths.push(format!("{list}/{}", self.namespace));
        self
    }

    /// Waits until a write that is only tried has this result.
    pub fn wait_until_effective(self, is_expected: fn(&Result<Value, ApiError>) -> bool) -> Self {
        let namespace = &self.namespace;
        let list =
            format!("/apis/discovery.k8s.io/v1/namespaces/{namespace}/endpointslices?dryRun=All");
        let slice = json!({
            "metadata": {"name": "only-tried"}, "addressType": "IPv4", "endpoints": [], "ports": [],
        });
        let started = Instant::now();
        loop {
            let tried = self.api.create(&list, &slice);
            if is_expected(&tried) {
                return self;
            }
            assert!(started.elapsed() < EFFECTIVE_MAX, "{namespace}: not effective: {tried:?}");
            thread::sleep(POLL);
        }
    }
}

impl Drop for Placed {
    fn drop(&mut self) {
        for path in &self.paths {
            let deleted = self.api.delete(path);
            assert!(deleted.is_ok() || thread::panicking(), "{path}: {deleted:?}");
        }
    }
}

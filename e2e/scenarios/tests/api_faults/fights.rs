//! Other clients that change our objects again and again (F25).

use std::thread;
use std::time::{Duration, Instant};

use endpointd_fault_proxy::{AdmissionWebhook, Verdict};
use endpointd_scenarios::Expected;
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::proxied_cluster::{web, web_expected};
use serde_json::json;

use crate::shared::COMMON;
use crate::webhooks::{WebhookKind, register};

const OBSERVED: Duration = Duration::from_secs(45);
/// Of one key in a minute.
const WRITES_MAX: usize = 10;

pub fn rewriting_webhook_causes_few_writes() {
    let Some((cluster, _)) = COMMON.get() else { return };
    let ns = web(cluster.api(), "rewritten", 2);
    let patch = json!([{"op": "add", "path": "/metadata/labels/rewritten", "value": "yes"}]);
    let webhook = AdmissionWebhook::start(cluster.directory(), Verdict::Patch(patch))
        .expect("a port is free");
    let client_config = webhook.client_config(&cluster.authority());
    let placed = register(cluster, &ns, WebhookKind::Mutating, &client_config);
    // A slice without labels cannot be patched, so a try is refused.
    let placed = placed.wait_until_effective(Result::is_err);
    let started = Instant::now();
    ns.web_pods(3..=3, &["a"]);
    ns.wait_for(&web_expected(1..=3));
    ns.wait_for(&[Expected::shows(&["slices of [3]", r#""rewritten":"yes""#])]);
    thread::sleep(OBSERVED);
    let n = cluster.writes_since("rewritten", started).len();
    println!("rewriting webhook: {n} writes in {:?}", started.elapsed());
    assert!(n <= WRITES_MAX, "{n} writes in {:?}", started.elapsed());
    drop(placed);
    let converged = converge_within(OBSERVED, ns.api(), ns.namespace(), &web_expected(1..=3));
    converged.unwrap_or_else(|error| panic!("{ns}: {error}"));
}

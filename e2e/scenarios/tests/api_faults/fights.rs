//! Other clients that change our objects again and again (F25, F38).

use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_fault_proxy::{AdmissionWebhook, Verdict};
use endpointd_scenarios::convergence::converge_within;
use endpointd_scenarios::proxied_cluster::{toggle, wait_until, web, web_expected};
use endpointd_scenarios::test_namespace::Kind;
use endpointd_scenarios::{Expected, TestNamespace};
use serde_json::json;

use crate::shared::{COMMON, Over};
use crate::webhooks::{WebhookKind, register};

const OBSERVED: Duration = Duration::from_secs(45);
/// Of one key in a minute.
const WRITES_MAX: usize = 10;
const MINUTE: Duration = Duration::from_secs(60);
const SHOWN_MAX: Duration = Duration::from_secs(30);
/// Includes the time of the test's own requests.
const REMOVED_MAX: Duration = Duration::from_secs(8);
const FIELD_MANAGER: &str = "meddler";

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

/// As another controller would: its label is there again as soon as it is gone.
fn relabel(ns: &TestNamespace<'_>, slice: &str, is_over: &AtomicBool) {
    let path = format!("{}?fieldManager={FIELD_MANAGER}", ns.path(Kind::Slice, slice));
    let patch = json!({"metadata": {"labels": {"contested": "yes"}}});
    let mut n_added = 0;
    while !is_over.load(Ordering::SeqCst) {
        if !is_labelled(ns, slice) {
            ns.api().merge(&path, &patch).unwrap_or_else(|error| panic!("{ns}: {error}"));
            n_added += 1;
        }
        thread::sleep(Duration::from_millis(10));
    }
    println!("the label was added {n_added} times");
}

fn is_labelled(ns: &TestNamespace<'_>, slice: &str) -> bool {
    let slice = ns.get(Kind::Slice, slice).unwrap_or_else(|error| panic!("{ns}: {error}"));
    slice["metadata"]["labels"]["contested"].is_string()
}

pub fn contested_label_causes_few_writes_and_delays_no_removal() {
    let Some((cluster, daemon)) = COMMON.get() else { return };
    let ns = web(cluster.api(), "contested", 3);
    let slice = ns.slice_name("web");
    let is_over = AtomicBool::new(false);
    let started = Instant::now();
    thread::scope(|scope| {
        scope.spawn(|| relabel(&ns, &slice, &is_over));
        let _over = Over(&is_over);
        wait_until("the key shows who changes it", SHOWN_MAX, || {
            let rows = daemon.key_rows("contested/web");
            let errors = rows.iter().filter_map(|row| row["lastError"].as_str());
            errors.into_iter().any(|error| error.contains(&format!("`{FIELD_MANAGER}`")))
        });
        println!("known after {:?}", started.elapsed());
        let name = "endpointd_keys{controller=\"endpointslice-controller\",state=\"contested\"}";
        wait_until("the metric shows it", SHOWN_MAX, || daemon.metric(name) == Some(1.0));
        for n in 1..=2 {
            println!("removal of a contested key: {:?}", toggle(&ns, n, false, REMOVED_MAX));
        }
        thread::sleep(MINUTE.saturating_sub(started.elapsed()));
        let writes = cluster.writes_since("contested", started);
        let slices = writes.iter().filter(|write| write.request.resource == "endpointslices");
        let n = slices.count();
        println!("contested label: {n} writes in {:?}", started.elapsed());
        assert!((3..=WRITES_MAX + 2).contains(&n), "{n} writes, two of them removals");
    });
    assert!(daemon.log().contains(FIELD_MANAGER), "{}", daemon.log_end());
    wait_until("the label is removed for good", OBSERVED, || !is_labelled(&ns, &slice));
    ns.ready("web-1");
    ns.ready("web-2");
    ns.wait_for(&web_expected(1..=3));
}

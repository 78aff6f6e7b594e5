//! Memory of large lists and slow watchers: a list is not copied, and a watcher that does not read
//! gets 410 and costs no memory.

use std::time::Duration;

use axum::Router;
use axum::body::{Body, BodyDataStream};
use axum::http::Request;
use endpointd_apiserver::http::{Shared, router};
use endpointd_apiserver::store::Limits;
use endpointd_apiserver::{
    CountedClockAndIds, DeleteOptions, Kind, Server, Settings, Target, WriteOptions, kinds,
};
use futures_util::StreamExt;
use jiff::Timestamp;
use serde_json::{Value, json};
use tower::ServiceExt;

const N_PODS: usize = 50_000;
/// Real pods have a few kilobytes.
const PADDING_BYTES: usize = 2 << 10;
const MEBI: u64 = 1 << 20;

/// Both tests measure the memory of the process.
static ALONE: tokio::sync::Mutex<()> = tokio::sync::Mutex::const_new(());

fn server(limits: Limits) -> Shared {
    let settings = Settings { limits, ..Settings::default() };
    Shared::new(Server::new(
        Box::new(CountedClockAndIds::starting_at(Timestamp::UNIX_EPOCH)),
        settings,
    ))
}

fn pods() -> &'static Kind {
    kinds::find("", "pods").expect("pods are kept")
}

fn create_pod(shared: &Shared, name: &str, padding: usize) {
    let pod = json!({
        "metadata": {"name": name, "annotations": {"example.com/padding": "x".repeat(padding)}},
        "spec": {"containers": [{"name": "c", "image": "i"}]},
    });
    let target = Target::collection(pods(), "default");
    let created = shared.with(|server| server.create(&target, pod, &WriteOptions::default()));
    created.expect("the pod is valid");
}

async fn get(router: &Router, uri: &str) -> BodyDataStream {
    let request = Request::get(uri).body(Body::empty()).expect("a request");
    let response = router.clone().oneshot(request).await.expect("it answers everything");
    assert_eq!(response.status(), 200, "{uri}");
    response.into_body().into_data_stream()
}

fn resident_bytes() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").expect("Linux");
    let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("a line");
    let kibi: u64 = line.trim().trim_end_matches(" kB").parse().expect("a number");
    kibi << 10
}

/// Time that this thread has spent on a processor: independent of the load of the machine.
fn cpu_time() -> Duration {
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux");
    let nanos = stat.split_whitespace().next().expect("a field").parse().expect("a number");
    Duration::from_nanos(nanos)
}

/// The next complete line of a watch.
async fn next_event(stream: &mut BodyDataStream, rest: &mut Vec<u8>) -> Option<Value> {
    loop {
        if let Some(end) = rest.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = rest.drain(..=end).collect();
            return Some(serde_json::from_slice(&line).expect("a line is an object"));
        }
        let chunk = stream.next().await?.expect("a body in the same process has no errors");
        rest.extend_from_slice(&chunk);
    }
}

#[tokio::test]
async fn a_list_of_50000_pods_is_not_copied() {
    let _alone = ALONE.lock().await;
    let shared = server(Limits::default());
    for number in 0..N_PODS {
        create_pod(&shared, &format!("pod-{number}"), PADDING_BYTES);
    }
    let router = router(shared);
    let before = resident_bytes();
    let mut list = get(&router, "/api/v1/pods").await;
    let (mut n_bytes, mut n_chunks, mut highest) = (0, 0, before);
    while let Some(chunk) = list.next().await {
        let chunk = chunk.expect("a body in the same process has no errors");
        if n_chunks % 50 == 0 {
            highest = highest.max(resident_bytes());
        }
        n_bytes += chunk.len() as u64;
        n_chunks += 1;
    }
    assert!(n_bytes > 100 * MEBI, "the list is too small to show anything: {n_bytes} bytes");
    let grown = highest.saturating_sub(before);
    assert!(grown < n_bytes / 10, "{grown} bytes more while {n_bytes} were sent");
}

#[tokio::test]
async fn a_watcher_that_does_not_read_gets_410_and_costs_no_memory() {
    const N_CHANGES: usize = 5_000;
    const LARGE: usize = 8 << 10;
    let _alone = ALONE.lock().await;
    let shared = server(Limits { changes_max: 500, ..Limits::default() });
    let router = router(shared.clone());
    let uri = "/api/v1/pods?watch=1&resourceVersion=0&timeoutSeconds=600";
    let (mut slow, mut slow_rest) = (get(&router, uri).await, Vec::new());
    let (mut fast, mut fast_rest) = (get(&router, uri).await, Vec::new());

    create_pod(&shared, "first", 0);
    for (stream, rest) in [(&mut slow, &mut slow_rest), (&mut fast, &mut fast_rest)] {
        let event = next_event(stream, rest).await.expect("both see the first");
        assert_eq!(event["object"]["metadata"]["name"], "first");
    }

    let before = resident_bytes();
    let started = cpu_time();
    let mut first_tenth = Duration::ZERO;
    let mut before_last_tenth = Duration::ZERO;
    for number in 0..N_CHANGES {
        match number {
            n if n == N_CHANGES / 10 => first_tenth = cpu_time() - started,
            n if n == N_CHANGES - N_CHANGES / 10 => before_last_tenth = cpu_time(),
            _ => {}
        }
        let name = format!("pod-{number}");
        create_pod(&shared, &name, LARGE);
        let event = next_event(&mut fast, &mut fast_rest).await.expect("it reads on");
        assert_eq!(event["object"]["metadata"]["name"], *name);
        let target = Target::object(pods(), "default", &name);
        let at_once = DeleteOptions { grace_secs: Some(0), ..DeleteOptions::default() };
        shared.with(|server| server.delete(&target, &at_once)).expect("it is there");
        for change in ["MODIFIED", "DELETED"] {
            let event = next_event(&mut fast, &mut fast_rest).await.expect("it reads on");
            assert_eq!(event["type"], change);
        }
    }
    let last_tenth = cpu_time() - before_last_tenth;
    assert!(
        last_tenth < 3 * first_tenth,
        "changes become slower behind a slow watcher: {first_tenth:?}, then {last_tenth:?}"
    );
    let grown = resident_bytes().saturating_sub(before);
    assert!(grown < 20 * MEBI, "{grown} bytes more: the server buffers for the slow watcher");

    let event = next_event(&mut slow, &mut slow_rest).await.expect("it gets an event");
    assert_eq!((&event["type"], &event["object"]["code"]), (&json!("ERROR"), &json!(410)));
    assert_eq!(next_event(&mut slow, &mut slow_rest).await, None, "the watch ends");
}

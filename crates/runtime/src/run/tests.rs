//! The daemon without a server: every connection is refused.

use std::future::pending;
use std::time::Duration;

use endpointd_engine::{Effect, Input, MonotonicTime};
use endpointd_model::{
    Family, Key, Object, ObjectEvent, ResourceEvent, Service, Uid, WatchSignal, WatchedResource,
    Write, WriteResult,
};
use endpointd_status::{live, ready};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::time::timeout;

use super::*;

const WAIT_MAX: Duration = Duration::from_secs(20);

fn election() -> ElectionOptions {
    ElectionOptions {
        lease: Key::new("kube-system", "endpointd"),
        identity: "a".to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
        release_on_exit: true,
    }
}

async fn parts() -> Parts {
    let refused = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let options = ConnectOptions {
        kubeconfig: Some("/dev/null".into()),
        server: Some(format!("http://{}", refused.local_addr().unwrap())),
        user_agent: "endpointd-test".to_owned(),
        ..Default::default()
    };
    let any_port = "127.0.0.1:0".parse().unwrap();
    let election = Some(election());
    let process = process_info("1.2.3".into(), election.as_ref());
    let (status, key_queries) =
        StatusHandle::new(process, initial_leadership(WriteMode::Send, election.as_ref()));
    Parts {
        client: Client::connect(options).await.unwrap(),
        settings: Settings::default(),
        election,
        listeners: Listeners::open(Some(any_port), None, ConnectOptions::default()).await.unwrap(),
        added_pages: None,
        clusters: None,
        status,
        key_queries,
        metrics: Metrics::new(),
    }
}

fn panic_now() -> ! {
    panic!("a bug")
}

const SUPERVISED: [&str; 8] = [
    "status server",
    "leader election",
    "events",
    "watch services",
    "watch pods",
    "watch nodes",
    "watch endpoints",
    "watch endpointslices",
];

#[tokio::test]
async fn every_task_of_the_daemon_is_supervised() {
    let (event_loop, _server) = parts().await.start().unwrap();
    assert_eq!(event_loop.supervisor.task_names(), SUPERVISED);
}

#[tokio::test]
async fn panicking_task_ends_the_event_loop_and_fails_liveness() {
    for task in SUPERVISED {
        let parts = parts().await;
        let status = parts.status.clone();
        let (mut event_loop, _server) = parts.start().unwrap();
        event_loop.supervisor.spawn(task, async { panic_now() });
        let ended = timeout(WAIT_MAX, event_loop.run_until(pending())).await.expect("it ends");
        let expected = format!("task `{task}` panicked: a bug");
        assert_eq!(ended.unwrap_err().to_string(), expected);
        assert_eq!(live(&status.snapshot())[0].problem.as_deref(), Some(&*expected));
    }
}

#[tokio::test]
async fn panicking_request_ends_the_event_loop_and_fails_liveness() {
    let parts = parts().await;
    let status = parts.status.clone();
    let (mut event_loop, _server) = parts.start().unwrap();
    event_loop.dispatcher.spawn(async { panic_now() });
    let ended = timeout(WAIT_MAX, event_loop.run_until(pending())).await.expect("it ends");
    assert_eq!(ended.unwrap_err().to_string(), "task `request` panicked: a bug");
    assert!(live(&status.snapshot())[0].problem.is_some());
}

#[tokio::test]
async fn shutdown_ends_the_event_loop_without_an_error() {
    let parts = parts().await;
    let status = parts.status.clone();
    let (mut event_loop, server) = parts.start().unwrap();
    let shutdown = tokio::time::sleep(Duration::from_millis(200));
    timeout(WAIT_MAX, event_loop.run_until(shutdown)).await.expect("it ends").unwrap();
    let snapshot = status.snapshot();
    assert!(live(&snapshot).iter().all(|check| check.problem.is_none()));
    assert!(ready(&snapshot).iter().any(|check| check.problem.is_some()), "no watch is synced");
    let server = server.expect("it has a listener");
    timeout(WAIT_MAX, server.stop(&mut event_loop.supervisor)).await.expect("it stops");
}

/// Lists a Service without pods, and answers the writes of its first syncs.
fn settle_service(engine: &mut Engine) {
    let now = MonotonicTime::START;
    let service = Service {
        namespace: "shop".into(),
        name: "web".into(),
        uid: Uid::from("u"),
        resource_version: 3.into(),
        selector: [("app", "web")].into_iter().collect(),
        families: vec![Family::V4],
        ..Default::default()
    };
    engine.handle(Input::LeadershipAcquired, now);
    for resource in WatchedResource::ALL {
        engine.handle(Input::Watch(resource, WatchSignal::InitStarted), now);
        if resource == WatchedResource::Services {
            let event = ResourceEvent::Service(ObjectEvent::Applied(service.clone()));
            engine.handle(Input::Watch(resource, WatchSignal::Event(Box::new(event))), now);
        }
        engine.handle(Input::Watch(resource, WatchSignal::InitDone(5.into())), now);
    }
    while let Some(effect) = engine.next(now) {
        let Effect::Send { id, write, .. } = effect else { continue };
        let Write::Create(mut object) = *write else { panic!("{write:?}") };
        let meta = match &mut object {
            Object::Slice(slice) => &mut slice.meta,
            Object::Endpoints(endpoints) => &mut endpoints.meta,
            Object::ServiceStatus(status) => &mut status.meta,
            Object::MultiCluster(object) => object.meta_mut(),
        };
        (meta.uid, meta.resource_version) = (Uid::from("v"), 7.into());
        engine.handle(Input::WriteResult(id, WriteResult::Stored(Box::new(object))), now);
    }
}

async fn get(address: SocketAddr, path: &str) -> String {
    let mut stream = TcpStream::connect(address).await.unwrap();
    let request = format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n");
    stream.write_all(request.as_bytes()).await.unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).await.unwrap();
    response
}

/// A healthy key has no row in the snapshot; `/report?key=` asks the engine.
#[tokio::test]
async fn report_of_a_healthy_key_has_a_row_for_each_controller() {
    let parts = Parts { election: None, ..parts().await };
    let address = parts.listeners.address().unwrap();
    let (mut event_loop, _server) = parts.start().unwrap();
    settle_service(&mut event_loop.engine);
    let (stop, stopped) = oneshot::channel::<()>();
    let ask = async {
        let response = get(address, "/report?key=shop/web").await;
        drop(stop);
        response
    };
    let stopped = async { drop(stopped.await) };
    let (response, ended) = tokio::join!(ask, event_loop.run_until(stopped));
    ended.unwrap();
    let (head, body) = response.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 200"), "{response}");
    let report: Value = serde_json::from_str(body).unwrap();
    let rows = report["keys"].as_array().unwrap();
    let controllers: Vec<&str> =
        rows.iter().map(|row| row["controller"].as_str().unwrap()).collect();
    assert_eq!(controllers, ["endpointslice-controller", "endpoints-controller"]);
    for row in rows {
        assert_eq!((&row["failures"], &row["state"]), (&json!(0), &json!("idle")), "{row}");
    }
}

/// Asks without the runtime of this thread, which does nothing meanwhile.
fn get_while_blocking(address: SocketAddr, path: &str) -> String {
    use std::io::{Read, Write};
    let mut stream = std::net::TcpStream::connect(address).unwrap();
    stream.set_read_timeout(Some(WAIT_MAX)).unwrap();
    write!(stream, "GET {path} HTTP/1.1\r\nHost: x\r\n\r\n").unwrap();
    let mut response = String::new();
    stream.read_to_string(&mut response).expect("it answers although the event loop is busy");
    response
}

#[tokio::test]
async fn pages_are_rendered_while_the_event_loop_is_busy() {
    let parts = parts().await;
    let address = parts.listeners.address().unwrap();
    let (_event_loop, _server) = parts.start().unwrap();
    for path in ["/livez", "/metrics"] {
        let response = get_while_blocking(address, path);
        assert!(response.starts_with("HTTP/1.1 200"), "{path}: {response}");
    }
}

#[tokio::test]
async fn panic_while_pages_are_added_ends_the_event_loop() {
    let added_pages: AddedPages = Box::new(|_, _| panic_now());
    let parts = Parts { added_pages: Some(added_pages), ..parts().await };
    let (mut event_loop, _server) = parts.start().unwrap();
    let ended = timeout(WAIT_MAX, event_loop.run_until(pending())).await.expect("it ends");
    assert_eq!(ended.unwrap_err().to_string(), "task `status server` panicked: a bug");
}

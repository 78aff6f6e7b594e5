//! The page over HTTP, with an engine that has no cluster: who is answered, what is built for whom,
//! and what a slow reader gets.

use std::net::SocketAddr;
use std::time::{Duration, Instant, SystemTime};

use endpointd_client::ConnectOptions;
use endpointd_engine::{Engine, Input, MonotonicTime, Settings, SyncSummary};
use endpointd_model::{
    Controller, Key, ObjectEvent, ResourceEvent, Service, WatchSignal, WatchedResource,
};
use endpointd_page::{PageOptions, router};
use endpointd_status::{
    Change, ChangeLog, KeyQueries, LeadershipStatus, LoopQuery, LoopState, Metrics, Notice,
    ProcessInfo, Site, StatusHandle, serve,
};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::mpsc;
use tokio::time::{sleep, timeout};

const WAIT_MAX: Duration = Duration::from_secs(20);

/// An event loop with three Services; it answers queries and takes changes.
struct Loop {
    address: SocketAddr,
    changes: mpsc::Sender<Do>,
    status: StatusHandle,
}

enum Do {
    Push(Box<Change>),
    Notify(Notice),
}

async fn start() -> Loop {
    let process = ProcessInfo { version: "1.2.3".into(), identity: "pod-a".into() };
    let (status, queries) = StatusHandle::new(process, LeadershipStatus::NoElection);
    let options = PageOptions {
        connect: ConnectOptions::default(),
        settings: endpointd_plan::Settings::default(),
        playground: None,
    };
    let site = Site::new(&status, &Metrics::new()).with_added(router(options, &status));
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
    let address = listener.local_addr().expect("it is bound");
    tokio::spawn(serve(listener, None, site, std::future::pending::<()>()));
    let (changes, received) = mpsc::channel(16);
    tokio::spawn(answer(engine(), status.change_log(), queries, received));
    Loop { address, changes, status }
}

fn engine() -> Engine {
    let mut engine = Engine::new(Settings::default());
    for name in ["api", "db", "web"] {
        let service = Service { namespace: "shop".into(), name: name.into(), ..Service::default() };
        let event = ResourceEvent::Service(ObjectEvent::Applied(service));
        let signal = WatchSignal::Event(Box::new(event));
        engine.handle(Input::Watch(WatchedResource::Services, signal), MonotonicTime::START);
    }
    engine
}

async fn answer(
    engine: Engine,
    mut log: ChangeLog,
    mut queries: KeyQueries,
    mut received: mpsc::Receiver<Do>,
) {
    loop {
        tokio::select! {
            query = queries.next() => match query {
                LoopQuery::Key(query) => drop(query.reply.send(Vec::new())),
                LoopQuery::Question(question) => question.answer(&LoopState {
                    engine: &engine,
                    changes: &log,
                    now: MonotonicTime::START,
                }),
            },
            Some(one) = received.recv() => match one {
                Do::Push(change) => log.push(*change),
                Do::Notify(notice) => log.notify(notice),
            },
        }
    }
}

fn change(name: &str) -> Do {
    let sync = SyncSummary::new(Controller::Slices, Key::new("shop", name));
    Do::Push(Box::new(Change { at: SystemTime::now(), sync, writes: Vec::new() }))
}

async fn open(address: SocketAddr, head: &str) -> TcpStream {
    let mut stream = TcpStream::connect(address).await.expect("it listens");
    stream.write_all(format!("{head}\r\n\r\n").as_bytes()).await.expect("it reads");
    stream
}

async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    ask(address, &format!("GET {path} HTTP/1.1\r\nHost: 127.0.0.1")).await
}

async fn ask(address: SocketAddr, head: &str) -> (u16, String) {
    let mut stream = open(address, head).await;
    let mut text = String::new();
    timeout(WAIT_MAX, stream.read_to_string(&mut text)).await.expect("in time").expect("text");
    let (head, body) = text.split_once("\r\n\r\n").expect("a head and a body");
    let code = head.split(' ').nth(1).expect("a status line").parse().expect("a number");
    (code, body.to_owned())
}

/// Reads a stream until it has a text.
async fn read_until(stream: &mut TcpStream, wanted: &str) -> String {
    let mut text = Vec::new();
    let read = async {
        let mut bytes = [0; 4096];
        loop {
            let n = stream.read(&mut bytes).await.expect("it is open");
            assert!(n > 0, "the stream ended: {}", String::from_utf8_lossy(&text));
            text.extend_from_slice(&bytes[..n]);
            if String::from_utf8_lossy(&text).contains(wanted) {
                return;
            }
        }
    };
    timeout(WAIT_MAX, read).await.unwrap_or_else(|_| panic!("no {wanted}"));
    String::from_utf8(text).expect("text")
}

fn json(text: &str) -> Value {
    serde_json::from_str(text).expect("JSON")
}

#[tokio::test]
async fn the_api_has_all_services_and_says_its_version() {
    let page = start().await;
    let (code, index) = get(page.address, "/api/v1").await;
    assert_eq!((code, &json(&index)["mode"]), (200, &Value::from("run")));
    let (code, text) = get(page.address, "/api/v1/services").await;
    let value = json(&text);
    assert_eq!((code, &value["apiVersion"]), (200, &Value::from("v1")));
    let names: Vec<_> =
        value["services"].as_array().unwrap().iter().map(|one| &one["name"]).collect();
    assert_eq!(names, ["api", "db", "web"]);
    let (code, text) = get(page.address, "/api/v1/services/shop/web").await;
    assert_eq!((code, &json(&text)["service"]["selector"]), (200, &serde_json::json!({})));
    for missing in ["services/shop/nothing", "slices/shop/nothing", "playground"] {
        assert_eq!(get(page.address, &format!("/api/v1/{missing}")).await.0, 404, "{missing}");
    }
}

#[tokio::test]
async fn only_loopback_names_are_answered_and_nothing_can_be_changed() {
    let page = start().await;
    for path in ["/ui/", "/api/v1", "/api/v1/stream"] {
        let head = format!("GET {path} HTTP/1.1\r\nHost: rebound.example");
        assert_eq!(ask(page.address, &head).await.0, 421, "{path}");
    }
    for method in ["POST", "PUT", "DELETE", "PATCH"] {
        let head = format!(
            "{method} /api/v1/services HTTP/1.1\r\nHost: localhost\r\nx-endpointd: 1\r\ncontent-length: 0"
        );
        assert_eq!(ask(page.address, &head).await.0, 405, "{method}");
    }
    let head = "POST /api/v1/playground HTTP/1.1\r\nHost: localhost\r\nx-endpointd: 1\r\ncontent-length: 0";
    assert_eq!(ask(page.address, head).await.0, 404, "there are no buttons outside the playground");
}

/// While nobody looks, the event loop has no receiver to build anything for.
#[tokio::test]
async fn nothing_is_built_when_nobody_looks() {
    let page = start().await;
    let log = page.status.change_log();
    assert!(!log.is_watched());
    let _ = get(page.address, "/ui/").await;
    let _ = get(page.address, "/api/v1/services/shop/web").await;
    let _ = get(page.address, "/api/v1/changes").await;
    assert!(!log.is_watched(), "pages of one moment do not count");
    let stream = open(page.address, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost").await;
    let started = Instant::now();
    while !log.is_watched() {
        assert!(started.elapsed() < WAIT_MAX);
        sleep(Duration::from_millis(10)).await;
    }
    drop(stream);
    while log.is_watched() {
        assert!(started.elapsed() < WAIT_MAX, "the collector ends some time after the last reader");
        sleep(Duration::from_millis(50)).await;
    }
}

#[tokio::test]
async fn a_stream_has_changes_and_continues_after_an_id() {
    let page = start().await;
    let (_, text) = get(page.address, "/api/v1/services").await;
    let position = json(&text)["position"].as_str().unwrap().to_owned();
    let head = format!("GET /api/v1/stream?after={position} HTTP/1.1\r\nHost: localhost");
    let mut first = open(page.address, &head).await;
    read_until(&mut first, "\"status\"").await;
    page.changes.send(change("web")).await.unwrap();
    let text = read_until(&mut first, "\"name\":\"web\"").await;
    let id = text.lines().rev().find_map(|line| line.strip_prefix("id: ")).unwrap().to_owned();
    drop(first);
    page.changes.send(change("db")).await.unwrap();
    let head = format!("GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: {id}");
    let mut second = open(page.address, &head).await;
    let text = read_until(&mut second, "\"name\":\"db\"").await;
    assert!(!text.contains("event: reset"), "{text}");
    assert!(!text.contains("\"name\":\"web\""), "it has seen that: {text}");
    let head = "GET /api/v1/stream HTTP/1.1\r\nHost: localhost\r\nLast-Event-ID: 1-1";
    let mut other_run = open(page.address, head).await;
    read_until(&mut other_run, "event: reset").await;
}

#[tokio::test]
async fn streams_end_when_the_process_stops() {
    let page = start().await;
    let mut stream = open(page.address, "GET /api/v1/stream HTTP/1.1\r\nHost: localhost").await;
    read_until(&mut stream, "\"status\"").await;
    page.changes.send(Do::Notify(Notice::Stopping)).await.unwrap();
    let mut rest = Vec::new();
    timeout(WAIT_MAX, stream.read_to_end(&mut rest)).await.expect("it ends").unwrap();
}

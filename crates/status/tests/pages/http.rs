//! The pages over a real socket.

use std::net::SocketAddr;
use std::time::Duration;

use endpointd_status::{LeadershipStatus, Metrics, StatusHandle, serve};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::scripted::{board, report};

#[tokio::test]
async fn every_page_answers() {
    let site = Site::open(board()).await;
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
    assert_eq!(site.get("/healthz").await, (200, "ok".into()));
    let (status, text) = site.get("/readyz").await;
    assert_eq!((status, text.lines().count()), (503, 1), "{text}");

    site.board.post(report());
    assert_eq!(site.get("/readyz").await, (200, "ok".into()));
    let (status, text) = site.get("/metrics").await;
    assert!(status == 200 && text.contains("endpoint_slice_controller_num_endpoint_slices 2"));
    let (status, text) = site.get("/").await;
    assert!(status == 200 && text.contains("/report"), "{text}");
    site.close().await;
}

#[tokio::test]
async fn verbose_lists_each_check() {
    let site = Site::open(board()).await;
    site.board.post(report());
    let expected = "[+]process ok\n[+]engine ok\n[+]services ok\n[+]pods ok\n[+]endpointslices ok\n\
                    readyz check passed\n";
    assert_eq!(site.get("/readyz?verbose").await, (200, expected.into()));
    let mut lost = report();
    lost.watches[1].disconnected_reason = Some("cut off".into());
    site.board.post(lost);
    let (status, text) = site.get("/readyz?verbose").await;
    assert_eq!(status, 503);
    assert!(text.contains("[-]pods: the watch is not alive: cut off\n"), "{text}");
    assert!(text.ends_with("readyz check failed\n"), "{text}");
}

#[tokio::test]
async fn the_report_says_who_leads_and_what_waits() {
    let site = Site::open(board()).await;
    let (status, value) = site.get_json("/report").await;
    assert_eq!((status, &value["error"]), (503, &json!("nothing reported yet")));

    site.board.post(report());
    site.board.lead(LeadershipStatus::Leading { lease: "endpointd".into() });
    let (status, value) = site.get_json("/report").await;
    assert_eq!(status, 200);
    let leadership = json!({"state": "leading", "lease": "endpointd", "holder": "pod-a"});
    assert_eq!(value["process"]["leadership"], leadership);
    assert_eq!(value["keys"][0]["key"], "shop/web");
    assert_eq!(value["keys"][1]["state"], "backing_off");
    assert_eq!(value["keys"][1]["seconds"], 4.0);
    assert_eq!(value["watches"][1]["unreadable"], json!({"shop/odd": "podIP: not an address"}));
    let excluded_pods = json!({"InvalidAddress": 3, "NotScheduled": 1});
    assert_eq!(value["controllers"][0]["leftOut"], excluded_pods);
    assert_eq!(value["deletion_limiter"]["heldKeys"], 4);
}

#[tokio::test]
async fn one_key_can_be_asked_for() {
    let site = Site::open(board()).await;
    site.board.post(report());
    let (status, value) = site.get_json("/report?key=shop/web").await;
    assert_eq!(status, 200);
    assert_eq!(value["keys"].as_array().unwrap().len(), 1);
    assert_eq!(value["keys"][0]["lastError"], "quota exceeded");
    let (_, nobody) = site.get_json("/report?key=shop%2Fnobody").await;
    assert_eq!(nobody["keys"], json!([]));
    for wrong in ["web", "/web", "shop/", "a/b/c", ""] {
        let (status, _) = site.get_json(&format!("/report?key={wrong}")).await;
        assert_eq!(status, 400, "{wrong:?}");
    }
}

#[tokio::test]
async fn pretty_is_for_people() {
    let site = Site::open(board()).await;
    site.board.post(report());
    let (_, compact) = site.get("/report").await;
    let (_, pretty) = site.get("/report?pretty").await;
    assert_eq!(compact.lines().count(), 1);
    assert!(pretty.lines().count() > 50);
}

#[tokio::test]
async fn what_is_not_there_says_so_in_json() {
    let site = Site::open(board()).await;
    let (status, value) = site.get_json("/not_found").await;
    assert_eq!((status, &value["error"]), (404, &json!("no such page: /not_found")));
}

/// The kubelet's probes come through the same port.
#[tokio::test]
async fn idle_visitors_do_not_keep_others_out() {
    let site = Site::open(board()).await;
    let mut idle = Vec::new();
    for _ in 0..100 {
        idle.push(TcpStream::connect(site.address).await.unwrap());
    }
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
    drop(idle);
    site.close().await;
}

/// Nobody holds a place between two scrapes, whatever the visitor asks for.
#[tokio::test]
async fn a_connection_ends_with_its_answer() {
    let site = Site::open(board()).await;
    let answer = site.ask("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn nonsense_harms_nobody() {
    let site = Site::open(board()).await;
    assert!(site.ask("\0\0 nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
}

#[tokio::test]
async fn closing_does_not_wait_for_idle_visitors() {
    let site = Site::open(board()).await;
    let idle = TcpStream::connect(site.address).await.unwrap();
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
    let closing = tokio::time::timeout(Duration::from_secs(10), site.close());
    closing.await.expect("it closes");
    drop(idle);
}

struct Site {
    board: StatusHandle,
    address: SocketAddr,
    close: oneshot::Sender<()>,
    served: JoinHandle<std::io::Result<()>>,
}

impl Site {
    async fn open(board: StatusHandle) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let (close, closed) = oneshot::channel();
        let shutdown = async { drop(closed.await) };
        let served = tokio::spawn(serve(listener, board.clone(), Metrics::new(), shutdown));
        Self { board, address, close, served }
    }

    /// Everything that comes back until the connection ends.
    async fn ask(&self, request: &str) -> String {
        let mut stream = TcpStream::connect(self.address).await.expect("somebody listens");
        stream.write_all(request.as_bytes()).await.expect("it reads requests");
        let mut answer = String::new();
        stream.read_to_string(&mut answer).await.expect("it answers in UTF-8");
        answer
    }

    async fn get(&self, path: &str) -> (u16, String) {
        let answer = self.ask(&format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
        let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
        let status = head.split(' ').nth(1).expect("a status line").parse().expect("a number");
        (status, body.to_owned())
    }

    async fn get_json(&self, path: &str) -> (u16, Value) {
        let (status, text) = self.get(path).await;
        (status, serde_json::from_str(&text).expect("the page is JSON"))
    }

    async fn close(self) {
        self.close.send(()).expect("the site is still open");
        self.served.await.expect("no panic").expect("it closed without an error");
    }
}

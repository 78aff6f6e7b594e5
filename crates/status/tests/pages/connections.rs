//! Connections that are idle, slow, many, or streams.

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header;
use axum::routing::get;
use futures_util::stream;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;
use tokio::time::{Instant, sleep, timeout};

use crate::fixture::engine_status;
use crate::server::{self, Server};

/// What the kubelet waits for a probe in `deploy`.
const PROBE_MAX: Duration = Duration::from_secs(5);
const IDLE_CONNECTIONS: usize = 2_000;
const SCRAPES: u32 = 300;
const SCRAPE_PERIOD: Duration = Duration::from_millis(10);

/// No client holds a place between two scrapes, even if it asks for keep-alive.
#[tokio::test]
async fn connection_closes_after_one_response() {
    let site = Server::open().await;
    let answer = site.ask("GET /livez HTTP/1.1\r\nHost: x\r\n\r\n").await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close\r\n"), "{answer}");
}

#[tokio::test]
async fn malformed_request_is_rejected() {
    let site = Server::open().await;
    assert!(site.ask("\0\0 nonsense\r\n\r\n").await.starts_with("HTTP/1.1 400"));
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
}

/// The clock stands still while a task runs, and jumps to the next timer when all wait.
#[tokio::test(start_paused = true)]
async fn connection_without_a_complete_header_closes_after_three_seconds() {
    let site = Server::open().await;
    for part in ["", "GET /livez HTTP/1.1\r\nHost:"] {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        stream.write_all(part.as_bytes()).await.unwrap();
        let started = Instant::now();
        let mut rest = Vec::new();
        // An end or a reset.
        let _ = stream.read_to_end(&mut rest).await;
        let waited = started.elapsed().as_secs_f64();
        assert!((2.9..3.5).contains(&waited), "{part:?}: {waited}");
    }
}

#[tokio::test(start_paused = true)]
async fn response_that_is_not_read_ends_after_thirty_seconds() {
    let large = || async { vec![b'x'; 64 << 20] };
    let site = Server::open_with(Router::new().route("/large", get(large))).await;
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    let request = b"GET /large HTTP/1.1\r\nHost: x\r\n\r\n";
    stream.write_all(request).await.unwrap();
    sleep(Duration::from_secs(40)).await;
    let mut received = Vec::new();
    let _ = stream.read_to_end(&mut received).await;
    assert!(received.len() < 64 << 20, "the rest was not sent");
}

/// Sends an event each hour.
fn hourly_events() -> Router {
    let page = || async {
        let events = stream::unfold((), |()| async {
            sleep(Duration::from_secs(3600)).await;
            Some((Ok::<_, Infallible>(Bytes::from_static(b"data: hour\n\n")), ()))
        });
        ([(header::CONTENT_TYPE, "text/event-stream")], Body::from_stream(events))
    };
    Router::new().route("/events", get(page))
}

#[tokio::test(start_paused = true)]
async fn event_stream_stays_open() {
    let site = Server::open_with(hourly_events()).await;
    let mut stream = TcpStream::connect(site.address).await.unwrap();
    stream.write_all(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
    let started = Instant::now();
    let mut received = String::new();
    while received.matches("data: hour").count() < 3 {
        let mut buffer = [0; 1024];
        let n = stream.read(&mut buffer).await.unwrap();
        assert_ne!(n, 0, "closed after {:?}: {received}", started.elapsed());
        received.push_str(std::str::from_utf8(&buffer[..n]).unwrap());
    }
    assert!(started.elapsed() >= Duration::from_secs(3 * 3600));
}

/// Streams and pages have different places: many open streams keep no page out.
#[tokio::test]
async fn one_stream_too_many_is_refused_and_pages_go_on() {
    let site = Server::open_with(hourly_events()).await;
    let mut open = Vec::new();
    let refused = loop {
        let mut stream = TcpStream::connect(site.address).await.unwrap();
        stream.write_all(b"GET /events HTTP/1.1\r\nHost: x\r\n\r\n").await.unwrap();
        let mut head = [0; 12];
        stream.read_exact(&mut head).await.unwrap();
        match &head {
            b"HTTP/1.1 200" => open.push(stream),
            _ => break String::from_utf8_lossy(&head).into_owned(),
        }
    };
    assert_eq!((open.len(), &*refused), (128, "HTTP/1.1 503"));
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
    assert_eq!(site.get("/metrics").await.0, 200);
}

#[tokio::test]
async fn shutdown_does_not_wait_for_idle_connections() {
    let site = Server::open().await;
    let idle = TcpStream::connect(site.address).await.unwrap();
    assert_eq!(site.get("/livez").await, (200, "ok".into()));
    timeout(Duration::from_secs(10), site.close()).await.expect("it closes");
    drop(idle);
}

/// Opens a connection and sends nothing until the server closes it.
async fn wait_idle(address: SocketAddr) {
    if let Ok(mut stream) = TcpStream::connect(address).await {
        let _ = stream.read(&mut [0]).await;
    }
}

/// Probes are answered in time while 2,000 connections are kept open without a request and the
/// metrics are scraped a hundred times a second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn idle_connections_and_scrapes_do_not_delay_probes() {
    let site = Server::open().await;
    site.handle.publish(engine_status());
    let address = site.address;
    let is_over = Arc::new(AtomicBool::new(false));
    let idle = (0..IDLE_CONNECTIONS).map(|_| {
        let is_over = is_over.clone();
        tokio::spawn(async move {
            while !is_over.load(Ordering::Relaxed) {
                wait_idle(address).await;
            }
        })
    });
    let idle: Vec<_> = idle.collect();
    let scrapes = tokio::spawn(async move {
        let mut scrapes = Vec::new();
        for _ in 0..SCRAPES {
            scrapes.push(tokio::spawn(server::get(address, "/metrics")));
            sleep(SCRAPE_PERIOD).await;
        }
        let mut n_ok = 0;
        for scrape in scrapes {
            n_ok += u32::from(matches!(scrape.await, Ok((200, _))));
        }
        n_ok
    });
    let (mut n_probes, mut slowest) = (0, Duration::ZERO);
    while !scrapes.is_finished() {
        let asked = Instant::now();
        let answer = timeout(PROBE_MAX, site.get("/livez")).await.expect("in time");
        assert_eq!(answer, (200, "ok".into()));
        slowest = slowest.max(asked.elapsed());
        n_probes += 1;
        sleep(SCRAPE_PERIOD).await;
    }
    println!("{n_probes} probes, the slowest took {slowest:?}");
    assert!(n_probes > 20, "{n_probes}");
    assert!(scrapes.await.unwrap() > SCRAPES / 2, "scrapes are answered as well");
    is_over.store(true, Ordering::Relaxed);
    idle.iter().for_each(tokio::task::JoinHandle::abort);
}

//! A watch event is sent at once; it does not wait for the acknowledgement of the previous chunk.

use std::future::pending;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::time::{Duration, Instant};

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::{Server, Settings, SystemClockAndIds, Target, WriteOptions, kinds};
use serde_json::json;
use tokio::net::TcpListener;

const N_WATCHES: u32 = 20;
/// Sent before each watch: Linux delays acknowledgements only on connections in use.
const N_REQUESTS: usize = 20;
/// Half of the delay of an acknowledgement; a loopback round trip is much shorter.
const LATENCY_MAX: Duration = Duration::from_millis(20);

#[tokio::test]
async fn the_first_event_of_a_watch_is_not_delayed_by_nagle() {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("it is bound");
    let shared = Shared::new(Server::new(Box::new(SystemClockAndIds), Settings::default()));
    tokio::spawn(serve(listener, shared.clone(), pending()));
    let measured = tokio::task::spawn_blocking(move || {
        (0..N_WATCHES).map(|number| first_event(&shared, address, number)).collect()
    });
    let mut delays: Vec<Duration> = measured.await.expect("the client works");
    delays.sort();
    assert!(delays[delays.len() / 2] < LATENCY_MAX, "{delays:?}");
}

/// From a write to the first line of a watch.
fn first_event(shared: &Shared, address: SocketAddr, number: u32) -> Duration {
    let mut reader = BufReader::new(TcpStream::connect(address).expect("it listens"));
    for _ in 0..N_REQUESTS {
        send_get(&mut reader, "/version");
        let n_bytes = read_head(&mut reader).expect("its length is known");
        reader.read_exact(&mut vec![0; n_bytes]).expect("it answers");
    }
    let revision = shared.with(|server| server.store().revision());
    send_get(&mut reader, &format!("/api/v1/configmaps?watch=1&resourceVersion={revision}"));
    read_head(&mut reader);
    let kind = kinds::find("", "configmaps").expect("it is served");
    let target = Target::collection(kind, "default");
    let object = json!({"metadata": {"name": format!("number-{number}")}});
    let written = Instant::now();
    let created = shared.with(|server| server.create(&target, object, &WriteOptions::default()));
    created.expect("it is valid");
    let mut lines = reader.lines().map_while(Result::ok);
    assert!(lines.any(|line| line.contains("\"ADDED\"")), "the watch sends the event");
    written.elapsed()
}

fn send_get(reader: &mut BufReader<TcpStream>, path: &str) {
    let request = format!("GET {path} HTTP/1.1\r\nHost: localhost\r\n\r\n");
    reader.get_mut().write_all(request.as_bytes()).expect("it reads");
}

/// Reads the head of a response; returns its content length.
fn read_head(reader: &mut BufReader<TcpStream>) -> Option<usize> {
    let mut n_bytes = None;
    loop {
        let mut line = String::new();
        reader.read_line(&mut line).expect("it answers");
        if let Some(length) = line.strip_prefix("content-length: ") {
            n_bytes = length.trim().parse().ok();
        }
        if line == "\r\n" {
            return n_bytes;
        }
    }
}

//! Every fault of the proxy, in front of a small HTTP server that records what it receives.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::certificates;
use tempfile::TempDir;
use ureq::http::Response;
use ureq::tls::{Certificate, RootCerts, TlsConfig};
use ureq::{Agent, Body};

use crate::{Answer, Fault, FaultProxy, Requests, Verb, in_flight_max};

const SLICES: &str = "/apis/discovery.k8s.io/v1/namespaces/shop/endpointslices";
const PODS: &str = "/api/v1/namespaces/shop/pods";
const WATCH: &str = "/api/v1/pods?watch=true";
const EVENT: &str = r#"{"type":"BOOKMARK","object":{}}"#;
const LIMIT: Duration = Duration::from_secs(30);

/// The proxy, the server behind it, and a client.
struct Rig {
    proxy: FaultProxy,
    received: Arc<Mutex<Vec<String>>>,
    client: Agent,
    _directory: TempDir,
}

impl Rig {
    fn start() -> Self {
        let directory = tempfile::tempdir().unwrap();
        let authority = certificates::create(directory.path()).unwrap();
        let received = Arc::new(Mutex::new(Vec::new()));
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let server = format!("http://{}", listener.local_addr().unwrap());
        let recorded = Arc::clone(&received);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let recorded = Arc::clone(&recorded);
                thread::spawn(move || serve(&stream, &recorded));
            }
        });
        let proxy = FaultProxy::start(&server, directory.path()).unwrap();
        Self { proxy, received, client: client(&authority), _directory: directory }
    }

    fn send(&self, method: &str, target: &str) -> Result<Response<Body>, ureq::Error> {
        let request = ureq::http::Request::builder().method(method);
        let request = request.uri(format!("{}{target}", self.proxy.url()));
        self.client.run(request.body("{}".to_owned()).unwrap())
    }

    fn code(&self, method: &str, target: &str) -> Option<u16> {
        self.send(method, target).ok().map(|response| response.status().as_u16())
    }

    fn received(&self) -> Vec<String> {
        self.received.lock().unwrap().clone()
    }
}

fn client(authority: &str) -> Agent {
    let authority = Certificate::from_pem(authority.as_bytes()).unwrap();
    let tls = TlsConfig::builder().root_certs(RootCerts::new_with_certs(&[authority])).build();
    let builder = Agent::config_builder().proxy(None).http_status_as_error(false);
    builder.tls_config(tls).max_idle_connections(0).build().new_agent()
}

/// Answers requests on one connection: watches with an event every 10 ms, others with an object.
fn serve(stream: &TcpStream, received: &Mutex<Vec<String>>) -> Option<()> {
    let mut reader = BufReader::new(stream);
    let mut writer = stream;
    loop {
        let mut first = String::new();
        reader.read_line(&mut first).ok().filter(|&n| n > 0)?;
        let mut n_body = 0;
        loop {
            let mut header = String::new();
            reader.read_line(&mut header).ok()?;
            if header.trim().is_empty() {
                break;
            }
            if let Some(length) = header.to_lowercase().strip_prefix("content-length:") {
                n_body = length.trim().parse().ok()?;
            }
        }
        reader.read_exact(&mut vec![0; n_body]).ok()?;
        received.lock().unwrap().push(first.trim().trim_end_matches(" HTTP/1.1").to_owned());
        if !first.contains("watch=true") {
            write!(writer, "HTTP/1.1 200 OK\r\ncontent-length: 2\r\n\r\n{{}}").ok()?;
            continue;
        }
        write!(writer, "HTTP/1.1 200 OK\r\ntransfer-encoding: chunked\r\n\r\n").ok()?;
        loop {
            write!(writer, "{:x}\r\n{EVENT}\r\n", EVENT.len()).ok()?;
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Reads a watch until it ends or `n_events` have arrived.
fn read_watch(response: Response<Body>, n_events: usize) -> (String, bool) {
    let mut reader = response.into_body().into_reader();
    let (mut text, mut bytes) = (String::new(), [0; 256]);
    while text.len() < n_events * EVENT.len() {
        match reader.read(&mut bytes) {
            Ok(0) | Err(_) => return (text, true),
            Ok(n) => text.push_str(std::str::from_utf8(&bytes[..n]).unwrap()),
        }
    }
    (text, false)
}

#[test]
fn requests_and_watches_pass_without_a_fault() {
    let rig = Rig::start();
    assert_eq!(rig.code("GET", PODS), Some(200));
    assert_eq!(rig.code("POST", SLICES), Some(200));
    let (text, has_ended) = read_watch(rig.send("GET", WATCH).unwrap(), 3);
    assert!(text.starts_with(EVENT) && !has_ended, "{text}");
    let expected = [format!("GET {PODS}"), format!("POST {SLICES}"), format!("GET {WATCH}")];
    assert_eq!(rig.received(), expected);
    let exchanges = rig.proxy.exchanges_of(&Requests::all().verbs(&[Verb::Create]));
    assert_eq!(exchanges.len(), 1);
    assert_eq!(exchanges[0].code, Some(200));
}

#[test]
fn answer_replaces_the_response_of_the_server() {
    let rig = Rig::start();
    let creates = || Requests::all().verbs(&[Verb::Create]).resources(&["endpointslices"]);
    let answer = Answer::error(429).retry_after("30");
    let fault = rig.proxy.inject(creates(), Fault::Answer(answer));
    let response = rig.send("POST", SLICES).unwrap();
    assert_eq!(response.status(), 429);
    assert_eq!(response.headers()["retry-after"], "30");
    let body = response.into_body().read_to_string().unwrap();
    assert!(body.contains(r#""reason":"TooManyRequests""#), "{body}");
    assert!(body.contains(r#""retryAfterSeconds":30"#), "{body}");
    assert_eq!(rig.code("GET", SLICES), Some(200), "another verb");
    assert_eq!(rig.code("POST", PODS), Some(200), "another resource");
    assert_eq!(fault.n_fired(), 1);
    drop(fault);
    assert_eq!(rig.code("POST", SLICES), Some(200), "the fault has ended");
    assert_eq!(rig.received().len(), 3);

    let malformed = Answer::error(503).retry_after("soon");
    let _fault = rig.proxy.inject(creates(), Fault::Answer(malformed));
    assert_eq!(rig.send("POST", SLICES).unwrap().headers()["retry-after"], "soon");
}

#[test]
fn applied_request_gets_another_answer_or_none() {
    let rig = Rig::start();
    let first = Requests::all().occurrences(0..1);
    let timeout = rig.proxy.inject(first, Fault::ApplyAndAnswer(Answer::error(504)));
    assert_eq!(rig.code("POST", SLICES), Some(504));
    assert_eq!(rig.received(), [format!("POST {SLICES}")]);
    let lost = rig.proxy.inject(Requests::all(), Fault::LoseResponse);
    assert_eq!(rig.code("POST", SLICES), None);
    assert_eq!(rig.received().len(), 2);
    assert_eq!((timeout.n_fired(), lost.n_fired()), (1, 1));
}

#[test]
fn lost_request_does_not_reach_the_server() {
    let rig = Rig::start();
    let _fault = rig.proxy.inject(Requests::all().namespace("shop"), Fault::LoseRequest);
    assert_eq!(rig.code("POST", SLICES), None);
    assert_eq!(rig.received(), [""; 0]);
    assert_eq!(rig.proxy.exchanges()[0].code, None);
}

#[test]
fn delays_are_before_or_after_the_server() {
    const DELAY: Duration = Duration::from_millis(300);
    let rig = Rig::start();
    for fault in [Fault::DelayRequest(DELAY), Fault::DelayResponse(DELAY)] {
        let is_late = matches!(fault, Fault::DelayResponse(_));
        let _fault = rig.proxy.inject(Requests::all(), fault);
        let n_before = rig.received().len();
        thread::scope(|scope| {
            let started = Instant::now();
            let (one, two) = (
                scope.spawn(|| rig.code("POST", SLICES)),
                scope.spawn(|| rig.code("POST", SLICES)),
            );
            if is_late {
                wait_until(|| rig.received().len() == n_before + 2);
            }
            assert_eq!((one.join().unwrap(), two.join().unwrap()), (Some(200), Some(200)));
            assert!(started.elapsed() >= DELAY);
        });
    }
    assert_eq!(in_flight_max(&rig.proxy.exchanges()), 2);
}

#[test]
fn silence_is_neither_a_response_nor_an_end() {
    let rig = Rig::start();
    let fault = rig.proxy.inject(Requests::all(), Fault::Silence);
    thread::scope(|scope| {
        let silent = scope.spawn(|| rig.code("GET", PODS));
        fault.wait_until_fired(1, LIMIT);
        thread::sleep(Duration::from_millis(200));
        assert!(!silent.is_finished());
        rig.proxy.close_connections();
        assert_eq!(silent.join().unwrap(), None);
    });
    assert_eq!(rig.received(), [""; 0]);
}

#[test]
fn watch_is_cut_in_the_middle_of_an_event() {
    let rig = Rig::start();
    let response = rig.send("GET", WATCH).unwrap();
    // A watch that is already open is hit, too.
    let watches = Requests::all().verbs(&[Verb::Watch]).resources(&["pods"]);
    let fault = rig.proxy.inject(watches, Fault::CutBody);
    let (text, has_ended) = read_watch(response, usize::MAX >> 16);
    assert!(has_ended);
    assert_ne!(text.len() % EVENT.len(), 0, "{text}");
    assert_eq!(fault.n_fired(), 1);
}

#[test]
fn silent_watch_stays_open() {
    let rig = Rig::start();
    let response = rig.send("GET", WATCH).unwrap();
    let fault = rig.proxy.inject(Requests::all().verbs(&[Verb::Watch]), Fault::SilenceBody);
    thread::scope(|scope| {
        let reader = scope.spawn(|| read_watch(response, 1000));
        fault.wait_until_fired(20, LIMIT);
        assert!(!reader.is_finished());
        rig.proxy.close_connections();
        let (text, has_ended) = reader.join().unwrap();
        assert!(has_ended && text.len() < 1000 * EVENT.len());
    });
}

#[test]
fn stalled_watch_stays_silent_after_the_fault_has_ended() {
    let rig = Rig::start();
    let response = rig.send("GET", WATCH).unwrap();
    let watches = Requests::all().verbs(&[Verb::Watch]).occurrences(0..1);
    let fault = rig.proxy.inject(watches, Fault::StallBody);
    fault.wait_until_fired(1, LIMIT);
    drop(fault);
    let other = rig.send("GET", WATCH).unwrap();
    thread::scope(|scope| {
        let stalled = scope.spawn(|| read_watch(response, 1000));
        let (text, _) = read_watch(other, 10);
        assert!(text.len() >= 10 * EVENT.len(), "another watch continues");
        assert!(!stalled.is_finished());
        rig.proxy.close_connections();
        let (text, has_ended) = stalled.join().unwrap();
        assert!(has_ended && text.len() < 1000 * EVENT.len());
    });
}

#[test]
fn watch_error_is_an_event() {
    let rig = Rig::start();
    let watches = Requests::all().verbs(&[Verb::Watch]);
    let _fault = rig.proxy.inject(watches, Fault::Answer(Answer::watch_error(410)));
    let response = rig.send("GET", WATCH).unwrap();
    assert_eq!(response.status(), 200);
    let body = response.into_body().read_to_string().unwrap();
    assert!(body.starts_with(r#"{"object":{"#) && body.contains(r#""type":"ERROR""#), "{body}");
    assert!(body.contains(r#""reason":"Expired""#), "{body}");
}

#[test]
fn connections_are_reset_and_accepted_again() {
    let rig = Rig::start();
    let resets = rig.proxy.reset_connections();
    assert_eq!(rig.code("GET", PODS), None);
    assert_eq!(resets.n_reset(), 1);
    drop(resets);
    assert_eq!(rig.code("GET", PODS), Some(200));
}

#[test]
fn serving_certificate_can_be_replaced() {
    let rig = Rig::start();
    let directory = tempfile::tempdir().unwrap();
    let authority = certificates::create(directory.path()).unwrap();
    rig.proxy.use_serving_certificate(directory.path()).unwrap();
    assert_eq!(rig.code("GET", PODS), None, "the client does not know the new authority");
    let rig = Rig { client: client(&authority), ..rig };
    assert_eq!(rig.code("GET", PODS), Some(200));
}

#[test]
#[should_panic(expected = "the fault never fired: Answer")]
fn fault_that_never_fired_fails_the_test() {
    let rig = Rig::start();
    let deletes = Requests::all().verbs(&[Verb::Delete]);
    let _fault = rig.proxy.inject(deletes, Fault::status(500));
    assert_eq!(rig.code("GET", PODS), Some(200));
}

#[test]
#[should_panic(expected = "no connection was attempted")]
fn connection_resets_without_a_connection_fail_the_test() {
    drop(Rig::start().proxy.reset_connections());
}

fn wait_until(is_done: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_done() {
        assert!(started.elapsed() < LIMIT);
        thread::sleep(Duration::from_millis(5));
    }
}

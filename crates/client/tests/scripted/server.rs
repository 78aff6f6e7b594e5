//! An HTTP server with scripted replies.

use std::sync::{Arc, Mutex};

use endpointd_client::{Client, ConnectOptions};
use serde_json::{Value, json};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};

/// A received request.
#[derive(Clone, Debug)]
pub struct Request {
    pub method: String,
    /// Path and query.
    pub path: String,
    pub content_type: String,
    pub authorization: String,
}

/// The reply to a request.
pub enum Reply {
    /// A complete response.
    Whole { code: u16, headers: &'static str, body: String },
    /// A watch: these chunks, sent one by one, and then this end.
    Stream { chunks: Vec<String>, end: End },
    /// The head of a response that declares a length, and nothing of its body.
    Declared { n_bytes: usize },
    /// Reads the request and closes the connection.
    HangUp,
}

pub enum End {
    Close,
    /// Closes the connection in the middle of the body.
    Abort,
    /// Sends nothing more.
    Hold,
}

pub struct Server {
    pub url: String,
    requests: Arc<Mutex<Vec<Request>>>,
}

impl Server {
    /// Replies to each request with the result of `script` for its number, from zero. Checks of
    /// watches are refused; they have no number and are not recorded.
    pub async fn start(script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static) -> Self {
        Self::start_with_checks(script, |_| status(403, "Forbidden", "no checks")).await
    }

    pub async fn start_with_checks(
        script: impl Fn(usize, &Request) -> Reply + Send + Sync + 'static,
        check: impl Fn(&Request) -> Reply + Send + Sync + 'static,
    ) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("a free port");
        let url = format!("http://{}", listener.local_addr().expect("it is bound"));
        let requests = Arc::<Mutex<Vec<Request>>>::default();
        let recorded = requests.clone();
        let script = Arc::new(move |request: &Request| {
            if is_check(request) {
                return check(request);
            }
            let number = record_request(&recorded, request);
            script(number, request)
        });
        tokio::spawn(async move {
            while let Ok((socket, _)) = listener.accept().await {
                let script = script.clone();
                tokio::spawn(serve(socket, move |request| script(request)));
            }
        });
        Self { url, requests }
    }

    pub async fn client(&self) -> Client {
        Client::connect(self.options()).await.expect("a URL is enough")
    }

    pub fn options(&self) -> ConnectOptions {
        ConnectOptions {
            // An empty one, so that the tests do not depend on the machine's.
            kubeconfig: Some("/dev/null".into()),
            server: Some(self.url.clone()),
            user_agent: "endpointd-test".to_owned(),
            ..Default::default()
        }
    }

    pub fn requests(&self) -> Vec<Request> {
        self.requests.lock().expect("scripts do not panic").clone()
    }
}

fn is_check(request: &Request) -> bool {
    request.path.contains("fieldSelector=metadata.name") || request.path.ends_with("?limit=1")
}

/// Records a request; returns its number, from zero.
fn record_request(recorded: &Mutex<Vec<Request>>, request: &Request) -> usize {
    let mut recorded = recorded.lock().expect("scripts do not panic");
    recorded.push(request.clone());
    recorded.len() - 1
}

async fn serve(mut socket: TcpStream, script: impl Fn(&Request) -> Reply) {
    while let Some(request) = read_request(&mut socket).await {
        match script(&request) {
            Reply::HangUp => return,
            Reply::Declared { n_bytes } => {
                let head = format!(
                    "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                     content-length: {n_bytes}\r\n\r\n"
                );
                let _ = socket.write_all(head.as_bytes()).await;
                let _ = socket.read(&mut [0]).await;
                return;
            }
            Reply::Whole { code, headers, body } => {
                let head = format!(
                    "HTTP/1.1 {code} X\r\ncontent-type: application/json\r\n{headers}\
                     content-length: {}\r\n\r\n",
                    body.len()
                );
                if socket.write_all((head + &body).as_bytes()).await.is_err() {
                    return;
                }
            }
            Reply::Stream { chunks, end } => {
                stream(&mut socket, chunks, end).await;
                return;
            }
        }
    }
}

async fn stream(socket: &mut TcpStream, chunks: Vec<String>, end: End) {
    let head = "HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n\
                transfer-encoding: chunked\r\n\r\n";
    let _ = socket.write_all(head.as_bytes()).await;
    for chunk in chunks {
        let chunk = format!("{:x}\r\n{chunk}\r\n", chunk.len());
        let _ = socket.write_all(chunk.as_bytes()).await;
        let _ = socket.flush().await;
    }
    match end {
        End::Close => drop(socket.write_all(b"0\r\n\r\n").await),
        End::Abort => {}
        End::Hold => {
            // Until the client closes the connection.
            let _ = socket.read(&mut [0]).await;
        }
    }
}

async fn read_request(socket: &mut TcpStream) -> Option<Request> {
    let mut received = Vec::new();
    let head_end = loop {
        if let Some(at) = received.windows(4).position(|four| four == b"\r\n\r\n") {
            break at + 4;
        }
        let mut buffer = [0; 4096];
        let n_bytes = socket.read(&mut buffer).await.ok().filter(|&n_bytes| n_bytes > 0)?;
        received.extend_from_slice(&buffer[..n_bytes]);
    };
    let head = String::from_utf8_lossy(&received[..head_end]).into_owned();
    let header = |name: &str| {
        let lines = head.lines().filter_map(|line| line.split_once(": "));
        let mut values = lines.filter(|(key, _)| key.eq_ignore_ascii_case(name));
        values.next().map(|(_, value)| value.trim().to_owned()).unwrap_or_default()
    };
    let length: usize = header("content-length").parse().unwrap_or(0);
    let mut rest = vec![0; (head_end + length).saturating_sub(received.len())];
    socket.read_exact(&mut rest).await.ok()?;
    let mut first = head.lines().next()?.split(' ').map(str::to_owned);
    Some(Request {
        method: first.next()?,
        path: first.next()?,
        content_type: header("content-type"),
        authorization: header("authorization"),
    })
}

pub fn whole(code: u16, body: &Value) -> Reply {
    Reply::Whole { code, headers: "", body: body.to_string() }
}

pub fn status(code: u16, reason: &str, message: &str) -> Reply {
    whole(code, &status_object(code, reason, message))
}

pub fn status_object(code: u16, reason: &str, message: &str) -> Value {
    json!({
        "kind": "Status", "apiVersion": "v1", "status": "Failure",
        "code": code, "reason": reason, "message": message,
    })
}

pub fn watch(chunks: Vec<String>, end: End) -> Reply {
    Reply::Stream { chunks, end }
}

/// A frame of a watch.
pub fn line(type_: &str, object: &Value) -> String {
    format!("{}\n", json!({"type": type_, "object": object}))
}

pub fn service(name: &str, version: u32) -> Value {
    json!({
        "kind": "Service", "apiVersion": "v1",
        "metadata": {"namespace": "shop", "name": name, "resourceVersion": version.to_string()},
    })
}

pub fn bookmark(version: u32) -> String {
    let metadata = json!({"resourceVersion": version.to_string()});
    line("BOOKMARK", &json!({"kind": "Service", "apiVersion": "v1", "metadata": metadata}))
}

/// The bookmark that ends a list.
pub fn list_end(version: u32) -> String {
    let metadata = json!({
        "resourceVersion": version.to_string(),
        "annotations": {"k8s.io/initial-events-end": "true"},
    });
    line("BOOKMARK", &json!({"kind": "Service", "apiVersion": "v1", "metadata": metadata}))
}

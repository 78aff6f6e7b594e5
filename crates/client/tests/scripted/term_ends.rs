//! Leadership that ends while writes wait or are in flight: no byte of a write leaves afterwards.

use std::sync::Arc;
use std::time::{Duration, Instant};

use endpointd_client::election::{LeaderGuard, WritePermit};
use endpointd_client::{Client, ConnectOptions};
use endpointd_model::{DeleteTarget, Key, PublishedResource, Uid, Write, WriteResult};
use serde_json::json;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpListener;
use tokio::sync::watch;
use tokio::task::JoinHandle;
use tokio::time::timeout;

use crate::server::{End, Server, status, watch as stream, whole};

/// Shorter than every wait that the end of the term interrupts.
const END_MAX: Duration = Duration::from_secs(5);

type Term = watch::Sender<Option<Instant>>;

/// A term that ends in a minute, unless the test ends it.
fn term() -> (Arc<Term>, WritePermit) {
    let (term, guard) = watch::channel(Some(Instant::now() + Duration::from_secs(60)));
    (Arc::new(term), WritePermit::WhileLeader(LeaderGuard::new(guard)))
}

fn delete() -> Write {
    Write::Delete(DeleteTarget {
        resource: PublishedResource::Slices,
        key: Key::new("shop", "web-1"),
        uid: Uid::from("u"),
        resource_version: 7.into(),
    })
}

fn send(client: &Client, permit: &WritePermit) -> JoinHandle<WriteResult> {
    let (client, permit) = (client.clone(), permit.clone());
    tokio::spawn(async move { client.send(&delete(), &permit).await })
}

async fn result(sent: JoinHandle<WriteResult>) -> WriteResult {
    timeout(END_MAX, sent).await.expect("ends with the term").expect("without a panic")
}

#[tokio::test]
async fn writes_that_wait_for_the_rate_limit_are_not_sent() {
    for is_silent in [false, true] {
        let server = Server::start(|_, _| whole(200, &json!({"status": "Success"}))).await;
        let options = ConnectOptions { qps: Some(0.1), burst: Some(1), ..server.options() };
        let client = Client::connect(options).await.unwrap();
        let (term, permit) = term();
        assert_eq!(result(send(&client, &permit)).await, WriteResult::Deleted);
        let waiting: Vec<_> = (0..10).map(|_| send(&client, &permit)).collect();
        tokio::task::yield_now().await;
        // The election publishes the loss, or the term ends without a renewal.
        let end = is_silent.then(|| Instant::now() + Duration::from_millis(100));
        term.send_replace(end);
        for write in waiting {
            assert_eq!(result(write).await, WriteResult::NotLeader);
        }
        assert_eq!(server.requests().len(), 1, "only the one before the loss");
    }
}

#[tokio::test]
async fn write_rejected_for_its_credentials_is_not_sent_again() {
    let (term, permit) = term();
    let server = Server::start(move |_, _| {
        term.send_replace(None);
        status(401, "Unauthorized", "the token has expired")
    })
    .await;
    let sent = result(send(&server.client().await, &permit)).await;
    assert_eq!(sent.as_str(), "no_response", "{sent:?}");
    assert_eq!(server.requests().len(), 1);
}

/// A client whose connections wait for a proxy.
async fn client_behind(proxy: &TcpListener) -> Client {
    let kubeconfig = tempfile::NamedTempFile::new().expect("a temporary file");
    let proxy = proxy.local_addr().expect("it is bound");
    let text = format!(
        r#"{{apiVersion: v1, kind: Config, current-context: a,
clusters: [{{name: a, cluster: {{server: "http://10.0.0.1", proxy-url: "http://{proxy}"}}}}],
contexts: [{{name: a, context: {{cluster: a, user: a}}}}], users: [{{name: a, user: {{}}}}]}}"#
    );
    std::fs::write(kubeconfig.path(), text).expect("it can be written");
    let options = ConnectOptions {
        kubeconfig: Some(kubeconfig.path().to_owned()),
        user_agent: "endpointd-test".to_owned(),
        ..Default::default()
    };
    Client::connect(options).await.expect("the kubeconfig is valid")
}

#[tokio::test]
async fn write_that_waits_for_a_connection_is_not_sent() {
    let proxy = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let (term, permit) = term();
    let write = send(&client_behind(&proxy).await, &permit);
    let (mut socket, _) = proxy.accept().await.unwrap();
    let mut asked = [0; 7];
    socket.read_exact(&mut asked).await.unwrap();
    assert_eq!(&asked, b"CONNECT");
    // In the same instant the connection is established.
    term.send_replace(None);
    socket.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await.unwrap();
    assert_eq!(result(write).await.as_str(), "no_response");
    let mut received = String::new();
    // A reset also closes it: what the proxy sent was not read.
    let _ = timeout(END_MAX, socket.read_to_string(&mut received)).await.expect("it is closed");
    assert!(!received.contains("DELETE"), "{received}");
}

#[tokio::test]
async fn write_in_flight_ends_with_the_term() {
    let server = Server::start(|_, _| stream(vec![], End::Hold)).await;
    let (term, permit) = term();
    let write = send(&server.client().await, &permit);
    while server.requests().is_empty() {
        tokio::time::sleep(Duration::from_millis(5)).await;
    }
    term.send_replace(None);
    let WriteResult::NoResponse(failure) = result(write).await else { panic!("no response") };
    assert!(failure.message.contains("the lease was lost"), "{failure}");
}

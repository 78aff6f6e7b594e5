//! A server on loopback, and a client that writes requests by hand.

use std::net::SocketAddr;

use axum::Router;
use endpointd_status::{KeyQueries, Metrics, Site, StatusHandle, serve};
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::oneshot;
use tokio::task::JoinHandle;

use crate::fixture::handle;

pub struct Server {
    pub handle: StatusHandle,
    pub queries: KeyQueries,
    pub address: SocketAddr,
    close: oneshot::Sender<()>,
    served: JoinHandle<()>,
}

impl Server {
    pub async fn open() -> Self {
        Self::open_with(Router::new()).await
    }

    pub async fn open_with(added_pages: Router) -> Self {
        let (handle, queries) = handle();
        let listener = TcpListener::bind("127.0.0.1:0").await.expect("loopback has free ports");
        let address = listener.local_addr().expect("it is bound");
        let (close, closed) = oneshot::channel();
        let shutdown = async { drop(closed.await) };
        let site = Site::new(&handle, &Metrics::new()).with_added(added_pages);
        let served = tokio::spawn(serve(listener, None, site, shutdown));
        Self { handle, queries, address, close, served }
    }

    pub async fn ask(&self, request: &str) -> String {
        ask(self.address, request).await
    }

    pub async fn get(&self, path: &str) -> (u16, String) {
        get(self.address, path).await
    }

    pub async fn get_json(&self, path: &str) -> (u16, Value) {
        get_json(self.address, path).await
    }

    pub async fn close(self) {
        self.close.send(()).expect("the site is still open");
        self.served.await.expect("no panic");
    }
}

/// Sends a request and reads until the server closes the connection.
pub async fn ask(address: SocketAddr, request: &str) -> String {
    let mut stream = TcpStream::connect(address).await.expect("the server listens");
    stream.write_all(request.as_bytes()).await.expect("the server reads requests");
    let mut answer = String::new();
    stream.read_to_string(&mut answer).await.expect("the response is UTF-8");
    answer
}

pub async fn get(address: SocketAddr, path: &str) -> (u16, String) {
    let answer = ask(address, &format!("GET {path} HTTP/1.1\r\nHost: x\r\n\r\n")).await;
    let (head, body) = answer.split_once("\r\n\r\n").expect("a head and a body");
    let status = head.split(' ').nth(1).expect("a status line").parse().expect("a number");
    (status, body.to_owned())
}

pub async fn get_json(address: SocketAddr, path: &str) -> (u16, Value) {
    let (status, text) = get(address, path).await;
    (status, serde_json::from_str(&text).expect("the page is JSON"))
}

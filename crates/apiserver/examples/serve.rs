//! Serves an empty cluster on a port, for kubectl: `cargo run --example serve -- 8001`.

use endpointd_apiserver::http::{Shared, serve};
use endpointd_apiserver::{Server, Settings, SystemClockAndIds};
use tokio::net::TcpListener;

#[tokio::main(flavor = "current_thread")]
async fn main() -> std::io::Result<()> {
    let port = std::env::args().nth(1).and_then(|port| port.parse().ok()).unwrap_or(0);
    let listener = TcpListener::bind(("127.0.0.1", port)).await?;
    println!("kubectl --server=http://{} get services", listener.local_addr()?);
    let server = Server::new(Box::new(SystemClockAndIds), Settings::default());
    serve(listener, Shared::new(server), std::future::pending()).await
}

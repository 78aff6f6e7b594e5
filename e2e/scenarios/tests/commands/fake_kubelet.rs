//! A kubelet that only forwards ports, over WebSockets, as kube-apiserver asks for it. Upstream:
//! `pkg/streaming/portforward/websocket.go` in k8s.io/cri-streaming.

use std::net::Ipv4Addr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use futures_util::{SinkExt, StreamExt};
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::{TcpListener, TcpStream};
use tokio::runtime::{Builder, Runtime};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_rustls::rustls::pki_types::{PrivateKeyDer, PrivatePkcs8KeyDer};
use tokio_rustls::server::TlsStream;
use tokio_tungstenite::tungstenite::handshake::server::{ErrorResponse, Request, Response};
use tokio_tungstenite::tungstenite::http::HeaderValue;
use tokio_tungstenite::tungstenite::{Error, Message};
use tokio_tungstenite::{WebSocketStream, accept_hdr_async};

const PROTOCOL: &str = "v4.channel.k8s.io";
/// The channels of the first port.
const DATA: u8 = 0;
const ERROR: u8 = 1;

/// A client that does not answer a close is not waited for any longer.
const LINGER_MAX: Duration = Duration::from_secs(1);

/// Listens until it is dropped. Ports of pods are ports of 127.0.0.1.
pub struct FakeKubelet {
    pub port: u16,
    paths: Arc<Mutex<Vec<String>>>,
    _runtime: Runtime,
}

impl FakeKubelet {
    pub fn start() -> Self {
        let runtime = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let runtime = runtime.expect("a runtime");
        let listener = runtime.block_on(TcpListener::bind((Ipv4Addr::LOCALHOST, 0)));
        let listener = listener.expect("a free port");
        let port = listener.local_addr().expect("it is bound").port();
        let paths = Arc::default();
        runtime.spawn(serve(listener, acceptor(), Arc::clone(&paths)));
        Self { port, paths, _runtime: runtime }
    }

    /// The paths that were asked for.
    pub fn paths(&self) -> Vec<String> {
        self.paths.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }
}

/// kube-apiserver does not check the certificate of a kubelet without `--kubelet-certificate-authority`.
fn acceptor() -> TlsAcceptor {
    let key = rcgen::generate_simple_self_signed(["kubelet".to_owned()]).expect("a certificate");
    let private = PrivateKeyDer::from(PrivatePkcs8KeyDer::from(key.signing_key.serialize_der()));
    let provider = tokio_rustls::rustls::crypto::ring::default_provider();
    let config = ServerConfig::builder_with_provider(Arc::new(provider))
        .with_safe_default_protocol_versions()
        .expect("the provider has them")
        .with_no_client_auth()
        .with_single_cert(vec![key.cert.der().clone()], private);
    TlsAcceptor::from(Arc::new(config.expect("the key fits")))
}

async fn serve(listener: TcpListener, acceptor: TlsAcceptor, paths: Arc<Mutex<Vec<String>>>) {
    while let Ok((stream, _)) = listener.accept().await {
        let (acceptor, paths) = (acceptor.clone(), Arc::clone(&paths));
        tokio::spawn(async move {
            if let Ok(stream) = acceptor.accept(stream).await
                && let Err(error) = forward(stream, &paths).await
            {
                eprintln!("kubelet: {error}");
            }
        });
    }
}

async fn forward(
    stream: TlsStream<TcpStream>,
    paths: &Mutex<Vec<String>>,
) -> Result<(), Box<dyn std::error::Error + Send + Sync>> {
    let mut port = 0_u16;
    #[expect(clippy::result_large_err, reason = "the type of the library")]
    let choose = |request: &Request, mut response: Response| -> Result<Response, ErrorResponse> {
        let (path, query) = (request.uri().path(), request.uri().query().unwrap_or_default());
        paths.lock().unwrap_or_else(PoisonError::into_inner).push(path.to_owned());
        let asked = query.split('&').find_map(|one| one.strip_prefix("port="));
        port = asked.and_then(|port| port.parse().ok()).unwrap_or_default();
        let protocol = HeaderValue::from_static(PROTOCOL);
        response.headers_mut().insert("sec-websocket-protocol", protocol);
        Ok(response)
    };
    let mut socket = accept_hdr_async(stream, choose).await?;
    // Each channel begins with its port.
    let [low, high] = port.to_le_bytes();
    for channel in [DATA, ERROR] {
        socket.send(Message::binary(vec![channel, low, high])).await?;
    }
    match TcpStream::connect((Ipv4Addr::LOCALHOST, port)).await {
        Ok(pod) => copy(&mut socket, pod).await?,
        Err(error) => {
            let text = format!("an error occurred forwarding {port}: {error}");
            socket.send(Message::binary([&[ERROR], text.as_bytes()].concat())).await?;
        }
    }
    socket.close(None).await?;
    // What the client has sent meanwhile is read. Otherwise the kernel resets the connection, and the last message may be lost.
    let rest = async { while let Some(Ok(_)) = socket.next().await {} };
    let _ = tokio::time::timeout(LINGER_MAX, rest).await;
    Ok(())
}

/// Until one of the two closes its end.
async fn copy(
    socket: &mut WebSocketStream<TlsStream<TcpStream>>,
    mut pod: TcpStream,
) -> Result<(), Error> {
    let mut bytes = vec![0; 32 << 10];
    loop {
        tokio::select! {
            message = socket.next() => match message.transpose()? {
                Some(Message::Binary(data)) if data.first() == Some(&DATA) => {
                    pod.write_all(&data[1..]).await?;
                }
                Some(Message::Close(_)) | None => return Ok(()),
                Some(_) => {}
            },
            n = pod.read(&mut bytes) => match n? {
                0 => return Ok(()),
                n => {
                    let data = [&[DATA], &bytes[..n]].concat();
                    socket.send(Message::binary(data)).await?;
                }
            },
        }
    }
}

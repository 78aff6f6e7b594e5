//! A TCP proxy between the daemon and the API server. It can close connections, and it can freeze
//! them: they stay open and transfer no more bytes. It sees only encrypted bytes.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(20);

/// Forwards connections until it is dropped; drop closes them.
pub struct TcpProxy {
    address: SocketAddr,
    shared: Arc<Shared>,
}

/// The two sockets of one forwarded connection.
struct Connection {
    ends: [TcpStream; 2],
    is_frozen: AtomicBool,
}

struct Shared {
    target: SocketAddr,
    connections: Mutex<Vec<Arc<Connection>>>,
    is_closed: AtomicBool,
    n_accepted: AtomicUsize,
}

impl TcpProxy {
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let shared = Arc::new(Shared {
            target,
            connections: Mutex::default(),
            is_closed: AtomicBool::new(false),
            n_accepted: AtomicUsize::new(0),
        });
        let accepting = Arc::clone(&shared);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, shared })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn n_accepted(&self) -> usize {
        self.shared.n_accepted.load(Ordering::SeqCst)
    }

    /// Closes all current connections.
    pub fn close_connections(&self) {
        for connection in self.shared.take_connections() {
            connection.close();
        }
    }

    /// All current connections stay open but transfer no more bytes. New connections work.
    pub fn freeze_connections(&self) {
        for connection in self.shared.take_connections() {
            connection.is_frozen.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for TcpProxy {
    fn drop(&mut self) {
        self.shared.is_closed.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then ends.
        let _ = TcpStream::connect(self.address);
        self.close_connections();
    }
}

impl Shared {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            self.n_accepted.fetch_add(1, Ordering::SeqCst);
            // If the server is down, the client's connection is closed.
            let Some(connection) = client.and_then(|client| self.connect(client)).ok() else {
                continue;
            };
            for from in [0, 1] {
                let connection = Arc::clone(&connection);
                thread::spawn(move || connection.copy(from));
            }
        }
    }

    fn connect(&self, client: TcpStream) -> io::Result<Arc<Connection>> {
        let server = TcpStream::connect(self.target)?;
        for end in [&client, &server] {
            end.set_nodelay(true)?;
        }
        let connection =
            Arc::new(Connection { ends: [client, server], is_frozen: AtomicBool::new(false) });
        self.connections().push(Arc::clone(&connection));
        Ok(connection)
    }

    fn take_connections(&self) -> Vec<Arc<Connection>> {
        std::mem::take(&mut *self.connections())
    }

    fn connections(&self) -> std::sync::MutexGuard<'_, Vec<Arc<Connection>>> {
        self.connections.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Connection {
    fn copy(&self, from: usize) {
        let [mut source, mut sink] = [&self.ends[from], &self.ends[1 - from]];
        let mut bytes = vec![0; 64 << 10];
        loop {
            let n_read = source.read(&mut bytes).unwrap_or(0);
            if self.is_frozen.load(Ordering::SeqCst) {
                // The bytes are dropped; the sockets stay open until a peer closes them.
                if n_read == 0 {
                    return;
                }
                thread::sleep(POLL);
                continue;
            }
            if n_read == 0 || sink.write_all(&bytes[..n_read]).is_err() {
                return self.close();
            }
        }
    }

    fn close(&self) {
        for end in &self.ends {
            // Fails only if the peer has already closed the connection.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that returns the bytes it receives.
    fn echo_server() -> SocketAddr {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let address = listener.local_addr().unwrap();
        thread::spawn(move || {
            for mut stream in listener.incoming().flatten() {
                thread::spawn(move || {
                    let mut sink = stream.try_clone().unwrap();
                    let _ = io::copy(&mut stream, &mut sink);
                });
            }
        });
        address
    }

    fn connected(proxy: &TcpProxy) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, proxy.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream
    }

    fn echoes(stream: &mut TcpStream) -> io::Result<bool> {
        stream.write_all(b"word")?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer)?;
        Ok(&answer == b"word")
    }

    #[test]
    fn proxy_forwards_bytes_until_connections_are_closed() {
        let proxy = TcpProxy::start(echo_server()).unwrap();
        let mut stream = connected(&proxy);
        assert!(echoes(&mut stream).unwrap());
        proxy.close_connections();
        assert!(echoes(&mut stream).is_err());
        assert!(echoes(&mut connected(&proxy)).unwrap(), "a new connection works");
    }

    #[test]
    fn frozen_connection_stays_open_and_transfers_nothing() {
        let proxy = TcpProxy::start(echo_server()).unwrap();
        let mut stream = connected(&proxy);
        assert!(echoes(&mut stream).unwrap());
        proxy.freeze_connections();
        let error = echoes(&mut stream).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::WouldBlock, "neither end of file nor data");
        assert!(echoes(&mut connected(&proxy)).unwrap(), "a new connection works");
    }
}

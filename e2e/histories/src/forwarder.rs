//! A TCP forwarder between the daemon and the API server that can break the network in the ways
//! networks break: connections cut, and connections on which nothing moves any more and nobody
//! says so. It sees only encrypted bytes, as a network does.

use std::io::{self, Read, Write};
use std::net::{Ipv4Addr, Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::sync::{Arc, Mutex, PoisonError};
use std::thread;
use std::time::Duration;

const POLL: Duration = Duration::from_millis(20);

/// Forwards until it is dropped; then all its connections are cut.
pub struct Forwarder {
    address: SocketAddr,
    line: Arc<Line>,
}

/// One connection, both of its ends, and whether bytes still move on it.
struct Connection {
    ends: [TcpStream; 2],
    is_silent: AtomicBool,
}

struct Line {
    target: SocketAddr,
    connections: Mutex<Vec<Arc<Connection>>>,
    is_closed: AtomicBool,
    n_accepted: AtomicUsize,
}

impl Forwarder {
    pub fn start(target: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0))?;
        let address = listener.local_addr()?;
        let line = Arc::new(Line {
            target,
            connections: Mutex::default(),
            is_closed: AtomicBool::new(false),
            n_accepted: AtomicUsize::new(0),
        });
        let accepting = Arc::clone(&line);
        thread::spawn(move || accepting.accept(&listener));
        Ok(Self { address, line })
    }

    pub fn port(&self) -> u16 {
        self.address.port()
    }

    pub fn n_accepted(&self) -> usize {
        self.line.n_accepted.load(Ordering::SeqCst)
    }

    /// Cuts every connection there is, as a router does that restarts.
    pub fn cut(&self) {
        for connection in self.line.take_connections() {
            connection.cut();
        }
    }

    /// No byte moves on any connection there is, and neither end is told. New ones work.
    pub fn silence(&self) {
        for connection in self.line.take_connections() {
            connection.is_silent.store(true, Ordering::SeqCst);
        }
    }
}

impl Drop for Forwarder {
    fn drop(&mut self) {
        self.line.is_closed.store(true, Ordering::SeqCst);
        // Wakes the accepting thread, which then sees that it is over.
        let _ = TcpStream::connect(self.address);
        self.cut();
    }
}

impl Line {
    fn accept(self: &Arc<Self>, listener: &TcpListener) {
        for client in listener.incoming() {
            if self.is_closed.load(Ordering::SeqCst) {
                return;
            }
            self.n_accepted.fetch_add(1, Ordering::SeqCst);
            // When the server is down, its absence is passed on: the client's end closes.
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
            Arc::new(Connection { ends: [client, server], is_silent: AtomicBool::new(false) });
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
            if self.is_silent.load(Ordering::SeqCst) {
                // What came is lost; the ends stay open until the process ends or drops them.
                if n_read == 0 {
                    return;
                }
                thread::sleep(POLL);
                continue;
            }
            if n_read == 0 || sink.write_all(&bytes[..n_read]).is_err() {
                return self.cut();
            }
        }
    }

    fn cut(&self) {
        for end in &self.ends {
            // It fails only when the other side was faster.
            let _ = end.shutdown(Shutdown::Both);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A server that says back what it is told.
    fn echo() -> SocketAddr {
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

    fn connected(forwarder: &Forwarder) -> TcpStream {
        let stream = TcpStream::connect((Ipv4Addr::LOCALHOST, forwarder.port())).unwrap();
        stream.set_read_timeout(Some(Duration::from_millis(300))).unwrap();
        stream
    }

    fn says_back(stream: &mut TcpStream) -> io::Result<bool> {
        stream.write_all(b"word")?;
        let mut answer = [0; 4];
        stream.read_exact(&mut answer)?;
        Ok(&answer == b"word")
    }

    #[test]
    fn bytes_go_through_until_the_connection_is_cut() {
        let forwarder = Forwarder::start(echo()).unwrap();
        let mut stream = connected(&forwarder);
        assert!(says_back(&mut stream).unwrap());
        forwarder.cut();
        assert!(says_back(&mut stream).is_err());
        assert!(says_back(&mut connected(&forwarder)).unwrap(), "a new one works");
    }

    #[test]
    fn a_silenced_connection_stays_open_and_says_nothing() {
        let forwarder = Forwarder::start(echo()).unwrap();
        let mut stream = connected(&forwarder);
        assert!(says_back(&mut stream).unwrap());
        forwarder.silence();
        let silence = says_back(&mut stream).unwrap_err();
        assert_eq!(silence.kind(), io::ErrorKind::WouldBlock, "no end and no answer");
        assert!(says_back(&mut connected(&forwarder)).unwrap(), "a new one works");
    }
}

//! A TCP port of loopback that stays reserved while programs on it are restarted.
//!
//! The port is bound without listening until the value is dropped; a program started with
//! `--permit-port-sharing` listens on the same port. Another process cannot bind it, neither before
//! the program listens nor while it is restarted.

use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::os::fd::OwnedFd;

use rustix::net::{AddressFamily, SocketType, bind, getsockname, socket, sockopt};

#[derive(Debug)]
pub struct HeldPort {
    _socket: OwnedFd,
    number: u16,
}

impl HeldPort {
    pub fn reserve() -> io::Result<Self> {
        let socket = socket(AddressFamily::INET, SocketType::STREAM, None)?;
        sockopt::set_socket_reuseport(&socket, true)?;
        rustix::io::fcntl_setfd(&socket, rustix::io::FdFlags::CLOEXEC)?;
        bind(&socket, &SocketAddr::from((Ipv4Addr::LOCALHOST, 0)))?;
        let address = SocketAddr::try_from(getsockname(&socket)?)?;
        Ok(Self { _socket: socket, number: address.port() })
    }

    pub fn number(&self) -> u16 {
        self.number
    }
}

#[cfg(test)]
mod tests {
    use std::net::{TcpListener, TcpStream};

    use super::*;

    #[test]
    fn held_port_cannot_be_bound_by_others() {
        let held = HeldPort::reserve().unwrap();
        assert!(TcpListener::bind((Ipv4Addr::LOCALHOST, held.number())).is_err());
        assert_ne!(HeldPort::reserve().unwrap().number(), held.number());
    }

    #[test]
    fn held_port_refuses_connections_until_a_program_listens() {
        let held = HeldPort::reserve().unwrap();
        let refused = TcpStream::connect((Ipv4Addr::LOCALHOST, held.number())).unwrap_err();
        assert_eq!(refused.kind(), io::ErrorKind::ConnectionRefused);
    }
}

//! Requests to etcd itself, over its socket. Upstream: the gRPC gateway, `api/v3/etcdserverpb`.

use std::io::{self, Read, Write};
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::time::Duration;

use crate::flags;

const TIMEOUT: Duration = Duration::from_secs(10);

/// Whether etcd rejects writes because it has no space.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SpaceAlarm {
    Raised,
    Cleared,
}

/// Raises or clears the alarm that etcd raises itself when its quota is used up. Reads and deletes
/// still succeed while it is raised.
pub(crate) fn set_space_alarm(directory: &Path, alarm: SpaceAlarm) -> io::Result<()> {
    let action = match alarm {
        SpaceAlarm::Raised => "ACTIVATE",
        SpaceAlarm::Cleared => "DEACTIVATE",
    };
    let body = format!(r#"{{"action":"{action}","alarm":"NOSPACE"}}"#);
    let response = post(&flags::etcd_socket(directory), "/v3/maintenance/alarm", &body)?;
    if response.starts_with("HTTP/1.1 200") {
        return Ok(());
    }
    Err(io::Error::other(format!("etcd returned {response}")))
}

fn post(socket: &Path, path: &str, body: &str) -> io::Result<String> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(TIMEOUT))?;
    let length = body.len();
    write!(
        stream,
        "POST {path} HTTP/1.1\r\nHost: etcd\r\nContent-Type: application/json\r\n\
         Content-Length: {length}\r\nConnection: close\r\n\r\n{body}"
    )?;
    let mut response = String::new();
    stream.read_to_string(&mut response)?;
    Ok(response)
}

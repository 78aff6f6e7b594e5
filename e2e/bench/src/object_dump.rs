//! Objects that one engine has published, passed through a pipe to an engine in another process
//! that restarts from them.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use endpointd_model::{Key, PublishedResource};
use endpointd_wire::Bytes;

/// Encoded objects in list order: Endpoints before slices.
pub type Stored = BTreeMap<(PublishedResource, Key), Bytes>;

const ENDPOINTS: u8 = b'e';
const SLICES: u8 = b's';

/// Reads a dump object by object.
pub struct ObjectDump<R>(pub R);

/// Writes the resource, the length, and the bytes of each object.
pub fn write_dump(stored: &Stored, out: &mut impl Write) -> io::Result<()> {
    for ((resource, _), body) in stored {
        let n_bytes = u32::try_from(body.len()).map_err(io::Error::other)?;
        out.write_all(&[match resource {
            PublishedResource::Endpoints => ENDPOINTS,
            PublishedResource::Slices => SLICES,
            PublishedResource::ServiceStatus | PublishedResource::MultiCluster(_) => {
                return Err(io::ErrorKind::Unsupported.into());
            }
        }])?;
        out.write_all(&n_bytes.to_be_bytes())?;
        out.write_all(body)?;
    }
    out.flush()
}

impl<R: Read> ObjectDump<R> {
    fn read(&mut self) -> io::Result<Option<(PublishedResource, Bytes)>> {
        let mut first = [0];
        if self.0.read(&mut first)? == 0 {
            return Ok(None);
        }
        let resource = match first {
            [ENDPOINTS] => PublishedResource::Endpoints,
            [SLICES] => PublishedResource::Slices,
            [_] => return Err(io::ErrorKind::InvalidData.into()),
        };
        let mut n_bytes = [0; 4];
        self.0.read_exact(&mut n_bytes)?;
        let mut body = vec![0; u32::from_be_bytes(n_bytes) as usize];
        self.0.read_exact(&mut body)?;
        Ok(Some((resource, body.into())))
    }
}

impl<R: Read> Iterator for ObjectDump<R> {
    type Item = (PublishedResource, Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        self.read().expect("the pipe has a complete dump")
    }
}

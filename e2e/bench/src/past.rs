//! What one engine has published, for another one that starts on it: passed on through a pipe, so that
//! the other one can be in a process without a past.

use std::collections::BTreeMap;
use std::io::{self, Read, Write};

use endpointd_model::{Key, PublishedResource};
use endpointd_wire::Bytes;

/// Encoded objects, Endpoints before slices, as they are listed.
pub type Stored = BTreeMap<(PublishedResource, Key), Bytes>;

const ENDPOINTS: u8 = b'e';
const SLICES: u8 = b's';

/// What is read of it, object by object: nothing is kept.
pub struct Past<R>(pub R);

/// Of each object its resource, its length, and itself.
pub fn leave(stored: &Stored, out: &mut impl Write) -> io::Result<()> {
    for ((resource, _), body) in stored {
        let n_bytes = u32::try_from(body.len()).map_err(io::Error::other)?;
        out.write_all(&[match resource {
            PublishedResource::Endpoints => ENDPOINTS,
            PublishedResource::Slices => SLICES,
        }])?;
        out.write_all(&n_bytes.to_be_bytes())?;
        out.write_all(body)?;
    }
    out.flush()
}

impl<R: Read> Past<R> {
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

impl<R: Read> Iterator for Past<R> {
    type Item = (PublishedResource, Bytes);

    fn next(&mut self) -> Option<Self::Item> {
        self.read().expect("what was left can be read to its end")
    }
}

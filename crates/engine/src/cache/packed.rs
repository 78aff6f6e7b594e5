//! Published objects in few bytes. Of all we know they are the most, and nearly all the time nobody
//! looks at them; as objects they would be several times the size of the pods they tell of. So each
//! is kept as one run of bytes and unpacked for the time of one plan.
//!
//! Rows of a slice resemble each other: a text is written as what it shares with the text before it
//! in the same column, and the rest; uids and addresses as the numbers they are. Nothing is lost,
//! and one object has one form: equal bytes are equal objects.

mod columns;
mod endpoints;
mod meta;
mod reader;
mod slices;
#[cfg(test)]
mod tests;
mod writer;

use endpointd_model::{EndpointSlice, Endpoints, Meta, SharedStr, Subset, Uid};

use self::reader::Reader;
use self::writer::Writer;
use crate::pool::Pool;

/// An object without its key and its uid.
#[derive(Clone, Debug)]
pub struct Packed {
    bytes: Box<[u8]>,
    /// Before it is what every write changes.
    content_at: u32,
}

/// What an object is unpacked with.
pub struct Identity<'a> {
    pub namespace: &'a SharedStr,
    pub name: &'a SharedStr,
    pub uid: &'a Uid,
}

impl Packed {
    pub fn slice(slice: &EndpointSlice) -> Self {
        let Meta { namespace, name, .. } = &slice.meta;
        let mut writer = Writer::new(namespace, name, slice.endpoints.len());
        let content_at = writer.stamp(&slice.meta);
        writer.meta(&slice.meta);
        writer.slice(slice);
        Self { bytes: writer.finish(), content_at }
    }

    pub fn endpoints(endpoints: &Endpoints) -> Self {
        let Meta { namespace, name, .. } = &endpoints.meta;
        let n_addresses =
            |subset: &Subset| subset.addresses.len() + subset.not_ready_addresses.len();
        let n_rows = endpoints.subsets.iter().map(n_addresses).sum();
        let mut writer = Writer::new(namespace, name, n_rows);
        let content_at = writer.stamp(&endpoints.meta);
        writer.meta(&endpoints.meta);
        writer.subsets(&endpoints.subsets);
        Self { bytes: writer.finish(), content_at }
    }

    pub fn unpack_slice(&self, identity: &Identity<'_>, texts: &Pool<SharedStr>) -> EndpointSlice {
        let (mut reader, meta) = self.open(identity, texts);
        reader.slice(meta)
    }

    pub fn unpack_endpoints(&self, identity: &Identity<'_>, texts: &Pool<SharedStr>) -> Endpoints {
        let (mut reader, meta) = self.open(identity, texts);
        Endpoints { meta, subsets: reader.subsets() }
    }

    fn open<'a>(
        &'a self,
        identity: &Identity<'_>,
        texts: &'a Pool<SharedStr>,
    ) -> (Reader<'a>, Meta) {
        let mut reader = Reader::new(&self.bytes, identity, texts);
        let meta = reader.meta(identity);
        (reader, meta)
    }

    /// Equal but for what every write changes.
    pub fn says_the_same(&self, other: &Self) -> bool {
        self.content() == other.content()
    }

    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn content(&self) -> &[u8] {
        &self.bytes[self.content_at as usize..]
    }
}

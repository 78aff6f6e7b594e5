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
use crate::interner::Interner;

/// An object without its key and its uid.
#[derive(Clone, Debug)]
pub struct CompactObject {
    bytes: Box<[u8]>,
    /// Before it is what every write changes.
    content_offset: u32,
}

/// What an object is unpacked with.
pub struct Identity<'a> {
    pub namespace: &'a SharedStr,
    pub name: &'a SharedStr,
    pub uid: &'a Uid,
}

impl CompactObject {
    pub fn slice(slice: &EndpointSlice) -> Self {
        let Meta { namespace, name, .. } = &slice.meta;
        let mut writer = Writer::new(namespace, name, slice.endpoints.len());
        let content_offset = writer.encode_version(&slice.meta);
        writer.meta(&slice.meta);
        writer.slice(slice);
        Self { bytes: writer.finish(), content_offset }
    }

    pub fn endpoints(endpoints: &Endpoints) -> Self {
        let Meta { namespace, name, .. } = &endpoints.meta;
        let n_addresses =
            |subset: &Subset| subset.addresses.len() + subset.not_ready_addresses.len();
        let n_rows = endpoints.subsets.iter().map(n_addresses).sum();
        let mut writer = Writer::new(namespace, name, n_rows);
        let content_offset = writer.encode_version(&endpoints.meta);
        writer.meta(&endpoints.meta);
        writer.subsets(&endpoints.subsets);
        Self { bytes: writer.finish(), content_offset }
    }

    pub fn decode_slice(
        &self,
        identity: &Identity<'_>,
        strings: &Interner<SharedStr>,
    ) -> EndpointSlice {
        let (mut reader, meta) = self.open(identity, strings);
        reader.slice(meta)
    }

    pub fn decode_endpoints(
        &self,
        identity: &Identity<'_>,
        strings: &Interner<SharedStr>,
    ) -> Endpoints {
        let (mut reader, meta) = self.open(identity, strings);
        Endpoints { meta, subsets: reader.subsets() }
    }

    fn open<'a>(
        &'a self,
        identity: &Identity<'_>,
        strings: &'a Interner<SharedStr>,
    ) -> (Reader<'a>, Meta) {
        let mut reader = Reader::new(&self.bytes, identity, strings);
        let meta = reader.meta(identity);
        (reader, meta)
    }

    /// Equal but for what every write changes.
    pub fn same_content(&self, other: &Self) -> bool {
        self.content() == other.content()
    }

    pub fn n_bytes(&self) -> usize {
        self.bytes.len()
    }

    fn content(&self) -> &[u8] {
        &self.bytes[self.content_offset as usize..]
    }
}

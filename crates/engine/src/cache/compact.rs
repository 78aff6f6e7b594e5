//! Published objects in few bytes. They are most of what the cache holds, and are read only when
//! their key is planned. As structs they would take several times the memory of the pods they list,
//! so each is encoded as one byte string and decoded for one plan.
//!
//! The rows of a slice resemble each other, so a string is written as the number of bytes it shares
//! with the string before it in the same column, and the rest; uids and IP addresses are written as
//! numbers. The encoding is lossless and canonical: equal bytes mean equal objects.

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

/// An encoded object, without its key and uid.
#[derive(Clone, Debug)]
pub struct CompactObject {
    bytes: Box<[u8]>,
    /// Before it are resourceVersion and generation, which every write changes.
    content_offset: u32,
}

/// The part of an object that is stored beside its bytes.
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

    /// Equal except for resourceVersion and generation.
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

//! Names of new slices, derived so that a repeated create does not make a second slice (B13).
//!
//! Upstream lets the API server generate a random suffix, so a create that is repeated after a lost
//! response makes a duplicate. Here the suffix is a digest of the owner's uid, the group, and an
//! ordinal.

use std::collections::BTreeSet;

use endpointd_model::{AddressType, ClusterId, EndpointPort, EndpointSlice, SharedStr, Uid};

use crate::NamesInUse;
use crate::packing::SliceAction;

/// The longest name that the API server generates; also the longest label value.
const NAME_LEN_MAX: usize = 63;
/// 27^10 suffixes: a collision within one Service only costs the next ordinal.
const SUFFIX_LEN: usize = 10;
/// The alphabet of generated names in Kubernetes: no vowels, no characters that look alike.
const ALPHABET: &[u8; 27] = b"bcdfghjklmnpqrstvwxz2456789";

/// Gives names to the new slices of one Service, and never one that is taken.
pub struct SliceNames<'a> {
    service_name: &'a str,
    owner: &'a Uid,
    in_use: &'a dyn NamesInUse,
    taken: BTreeSet<SharedStr>,
}

impl<'a> SliceNames<'a> {
    pub fn new(service_name: &'a str, owner: &'a Uid, in_use: &'a dyn NamesInUse) -> Self {
        Self { service_name, owner, in_use, taken: BTreeSet::new() }
    }

    /// The names of all these slices are taken, whichever controller manages them.
    pub fn with(mut self, slices: &[&EndpointSlice]) -> Self {
        self.taken.extend(slices.iter().map(|slice| slice.meta.name.clone()));
        self
    }

    /// Names the slices to create.
    pub fn name_new(&mut self, actions: &mut [SliceAction]) {
        for action in actions {
            if let SliceAction::Create(slice) = action {
                slice.meta.name = self.next(&slice.address_type, &slice.ports);
            }
        }
    }

    /// The name with the lowest free ordinal in this group.
    fn next(&mut self, address_type: &AddressType, ports: &[EndpointPort]) -> SharedStr {
        let group = self.group_digest(address_type, ports);
        let free = (0u64..).map(|ordinal| self.name(group, ordinal)).find(|name| {
            let name: &str = name;
            !self.taken.contains(name) && !self.in_use.contains(name)
        });
        let name: SharedStr = free.expect("there are more ordinals than names taken").into();
        self.taken.insert(name.clone());
        name
    }

    fn name(&self, group: Digest, ordinal: u64) -> String {
        name_with(self.service_name, group.bytes(&ordinal.to_be_bytes()))
    }

    fn group_digest(&self, address_type: &AddressType, ports: &[EndpointPort]) -> Digest {
        let mut digest = Digest::new().text(&self.owner.to_string()).text(address_type.as_str());
        for EndpointPort { name, port, protocol, app_protocol } in ports {
            digest = digest
                .text(name.as_deref().unwrap_or("-"))
                .bytes(&port.unwrap_or(-1).to_be_bytes())
                .text(protocol.as_ref().map_or("-", |protocol| protocol.as_str()))
                .text(app_protocol.as_deref().unwrap_or("-"));
        }
        digest
    }
}

/// The name of the copy of a slice of another namespace. The addressType counts because the API
/// server lets no update change it.
pub fn imported_name(service_name: &str, source: &EndpointSlice, ordinal: u64) -> SharedStr {
    copied_name(service_name, Digest::new(), source, ordinal)
}

/// Likewise, of a slice of this cluster or another one.
pub fn imported_name_of_cluster(
    service_name: &str,
    cluster: &ClusterId,
    source: &EndpointSlice,
    ordinal: u64,
) -> SharedStr {
    copied_name(service_name, Digest::new().text(cluster.as_str()), source, ordinal)
}

fn copied_name(
    service_name: &str,
    digest: Digest,
    source: &EndpointSlice,
    ordinal: u64,
) -> SharedStr {
    let EndpointSlice { meta, address_type, .. } = source;
    let digest = digest.text(&meta.namespace).text(&meta.name).text(address_type.as_str());
    name_with(service_name, digest.bytes(&ordinal.to_be_bytes())).into()
}

/// How many names are tried after the first free one, to find a copy that exists already.
pub const ORDINALS_AFTER_FREE: u64 = 4;

/// All existing slices that have a name of the copy of this source slice: its earlier copy, whatever
/// its labels are now, and slices of others, whose names a new copy must not take.
pub fn slices_named_as_copy<T>(
    service_name: &str,
    source: &EndpointSlice,
    find: impl Fn(&SharedStr) -> Option<T>,
) -> Vec<T> {
    slices_named(|ordinal| imported_name(service_name, source, ordinal), find)
}

/// Likewise, of the copy of a slice of this cluster or another one.
pub fn cluster_slices_named_as_copy<T>(
    service_name: &str,
    cluster: &ClusterId,
    source: &EndpointSlice,
    find: impl Fn(&SharedStr) -> Option<T>,
) -> Vec<T> {
    slices_named(|ordinal| imported_name_of_cluster(service_name, cluster, source, ordinal), find)
}

fn slices_named<T>(
    name: impl Fn(u64) -> SharedStr,
    find: impl Fn(&SharedStr) -> Option<T>,
) -> Vec<T> {
    let (mut found, mut n_free) = (Vec::new(), 0);
    for ordinal in 0.. {
        match find(&name(ordinal)) {
            Some(slice) => found.push(slice),
            None if n_free == ORDINALS_AFTER_FREE => break,
            None => n_free += 1,
        }
    }
    found
}

fn name_with(service_name: &str, digest: Digest) -> String {
    let prefix = generate_name(service_name);
    // Names of the API server are ASCII; those in files for `endpointd plan` may not be.
    let base_len = prefix.floor_char_boundary(NAME_LEN_MAX - SUFFIX_LEN);
    format!("{}{}", &prefix[..base_len], suffix(digest))
}

/// `<service>-`, which is a prefix of valid names whenever the Service's own name is valid.
/// Upstream: `getEndpointSlicePrefix`, which drops the dash if the name would be too long.
pub fn generate_name(service_name: &str) -> String {
    const SUBDOMAIN_LEN_MAX: usize = 253;
    let dash = if service_name.len() < SUBDOMAIN_LEN_MAX { "-" } else { "" };
    format!("{service_name}{dash}")
}

/// FNV-1a, which Kubernetes also uses for derived names. It is stable, and a collision only costs
/// the next ordinal.
#[derive(Clone, Copy)]
struct Digest(u64);

impl Digest {
    fn new() -> Self {
        Self(0xcbf2_9ce4_8422_2325)
    }

    fn bytes(self, bytes: &[u8]) -> Self {
        let step = |hash: u64, byte: &u8| (hash ^ u64::from(*byte)).wrapping_mul(0x100_0000_01b3);
        Self(bytes.iter().fold(self.0, step))
    }

    /// With a terminator, so that two neighbouring texts have an unambiguous boundary.
    fn text(self, text: &str) -> Self {
        self.bytes(text.as_bytes()).bytes(&[0xff])
    }
}

fn suffix(digest: Digest) -> String {
    let mut rest = digest.0;
    let mut next = || {
        let digit = ALPHABET[(rest % 27) as usize];
        rest /= 27;
        char::from(digit)
    };
    (0..SUFFIX_LEN).map(|_| next()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn names(owner: &Uid) -> SliceNames<'_> {
        SliceNames::new("web", owner, &())
    }

    #[test]
    fn equal_groups_get_equal_names() {
        let owner = Uid::from("u1");
        let ports = [EndpointPort { port: Some(80), ..EndpointPort::default() }];
        let three =
            |mut names: SliceNames| [(); 3].map(|()| names.next(&AddressType::IPv4, &ports));
        let first = three(names(&owner));
        assert_eq!(first, three(names(&owner)));
        assert_eq!(first.iter().collect::<BTreeSet<_>>().len(), 3, "{first:?}");
    }

    #[test]
    fn names_differ_by_owner_family_and_ports() {
        let (one, two) = (Uid::from("u1"), Uid::from("u2"));
        let port = |number| [EndpointPort { port: Some(number), ..EndpointPort::default() }];
        let all = BTreeSet::from([
            names(&one).next(&AddressType::IPv4, &port(80)),
            names(&two).next(&AddressType::IPv4, &port(80)),
            names(&one).next(&AddressType::IPv6, &port(80)),
            names(&one).next(&AddressType::IPv4, &port(81)),
            names(&one).next(&AddressType::IPv4, &[]),
        ]);
        assert_eq!(all.len(), 5, "{all:?}");
    }

    #[test]
    fn a_taken_name_is_skipped() {
        let owner = Uid::from("u1");
        let taken = names(&owner).next(&AddressType::IPv4, &[]);
        let mut slice = EndpointSlice::default();
        slice.meta.name = taken.clone();
        let mut names = SliceNames::new("web", &owner, &()).with(&[&slice]);
        assert_ne!(names.next(&AddressType::IPv4, &[]), taken);
    }

    #[test]
    fn a_long_name_is_cut_to_63_characters() {
        let owner = Uid::from("u1");
        let long = "a".repeat(63);
        let name = SliceNames::new(&long, &owner, &()).next(&AddressType::IPv4, &[]);
        assert_eq!(name.len(), 63);
    }

    #[test]
    fn a_long_name_is_cut_between_characters() {
        let owner = Uid::from("u1");
        let long = "ä".repeat(30);
        let name = SliceNames::new(&long, &owner, &()).next(&AddressType::IPv4, &[]);
        assert!(name.starts_with(&"ä".repeat(26)) && name.len() == 62, "{name}");
    }
}

//! Canonical form of subsets (docs/spec.md, 3.5): each port has exactly the addresses that offer
//! it, and ports with equal addresses share a subset. Upstream: `RepackSubsets`.

use std::borrow::Cow;
use std::collections::BTreeMap;

use endpointd_model::{EndpointAddress, Subset, SubsetPort, Uid};

/// When two ports of different subsets count as the same port.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PortIdentity {
    /// Equal ports are the same port.
    Value,
    /// Ports with an `appProtocol` count as different ports. Upstream compares `appProtocol` by
    /// pointer, so ports of a decoded object never merge if they have one. Stored objects must be
    /// read the same way, or a takeover would rewrite them (B17).
    Position,
}

/// A port, and its position (subset and index) if that distinguishes it from equal ports.
type PortKey<'a> = (&'a SubsetPort, Option<(usize, usize)>);

/// Index into the sorted addresses, and whether the address is ready.
type AddressState = (usize, bool);

/// Expands the subsets and merges them again. An address is identified by IP and target uid. For
/// the same port, not ready wins over ready. Of two addresses with equal IP and uid, the first
/// gives the other fields; nothing else depends on the order of the input.
pub fn repack(subsets: Cow<'_, [Subset]>, port_identity: PortIdentity) -> Cow<'_, [Subset]> {
    if is_packed(&subsets) { subsets } else { Cow::Owned(merge(&subsets, port_identity)) }
}

/// Whether merging would change nothing. Nearly all objects have one subset in canonical form.
fn is_packed(subsets: &[Subset]) -> bool {
    let [Subset { addresses, not_ready_addresses, ports }] = subsets else {
        return subsets.is_empty();
    };
    let is_sorted = |list: &[EndpointAddress]| list.is_sorted_by(|a, b| identity(a) < identity(b));
    let is_ready = |one: &EndpointAddress| {
        let sought = identity(one);
        addresses.binary_search_by(|ready| identity(ready).cmp(&sought)).is_ok()
    };
    !(addresses.is_empty() && not_ready_addresses.is_empty())
        && ports.is_sorted_by(|a, b| a < b)
        && ports.iter().all(|port| port.port > 0)
        && is_sorted(addresses)
        && is_sorted(not_ready_addresses)
        && !not_ready_addresses.iter().any(is_ready)
}

/// Sorts addresses into canonical order. The sort is stable: of two addresses with equal identity,
/// the first stays first.
pub fn sort_addresses(subset: &mut Subset) {
    for list in [&mut subset.addresses, &mut subset.not_ready_addresses] {
        list.sort_by(|a, b| identity(a).cmp(&identity(b)));
    }
}

fn merge(subsets: &[Subset], port_identity: PortIdentity) -> Vec<Subset> {
    let addresses = Addresses::of(subsets);
    let mut ports_by_states: BTreeMap<Vec<AddressState>, Vec<PortKey>> = BTreeMap::new();
    for (members, ports) in ports_by_members(subsets, port_identity) {
        let states = addresses.states(subsets, &members);
        ports_by_states.entry(states).or_default().extend(ports);
    }
    let with_addresses = ports_by_states.into_iter().filter(|(states, _)| !states.is_empty());
    let mut packed: Vec<Subset> =
        with_addresses.map(|(states, ports)| addresses.subset(&states, ports)).collect();
    packed.sort_by(|a, b| a.ports.cmp(&b.ports));
    packed
}

/// Ports by the subsets that offer them. Working with subsets instead of addresses keeps the cost
/// of a thousand ports on a thousand pods far below a million steps.
fn ports_by_members(
    subsets: &[Subset],
    port_identity: PortIdentity,
) -> BTreeMap<Vec<usize>, Vec<PortKey<'_>>> {
    // Addresses without any port are kept under a port number that cannot exist.
    static NO_PORT: std::sync::LazyLock<SubsetPort> =
        std::sync::LazyLock::new(|| SubsetPort { port: -1, ..SubsetPort::default() });
    let mut members_by_port: BTreeMap<PortKey, Vec<usize>> = BTreeMap::new();
    for (member, subset) in subsets.iter().enumerate() {
        if subset.ports.is_empty() {
            members_by_port.entry((&NO_PORT, None)).or_default().push(member);
        }
        for (at, port) in subset.ports.iter().enumerate() {
            let is_distinct =
                port_identity == PortIdentity::Position && port.app_protocol.is_some();
            let key = (port, is_distinct.then_some((member, at)));
            let members = members_by_port.entry(key).or_default();
            if members.last() != Some(&member) {
                members.push(member);
            }
        }
    }
    let mut ports_by_members: BTreeMap<Vec<usize>, Vec<PortKey>> = BTreeMap::new();
    for (port, members) in members_by_port {
        ports_by_members.entry(members).or_default().push(port);
    }
    ports_by_members
}

/// All addresses of all subsets, sorted by IP text, then target uid, without repetition.
struct Addresses<'a> {
    sorted: Vec<&'a EndpointAddress>,
    /// For each subset, the indexes of its ready, then its not-ready addresses.
    indexes: Vec<Vec<AddressState>>,
}

impl<'a> Addresses<'a> {
    fn of(subsets: &'a [Subset]) -> Self {
        let all = subsets
            .iter()
            .flat_map(|subset| subset.addresses.iter().chain(&subset.not_ready_addresses));
        let mut sorted: Vec<&EndpointAddress> = all.collect();
        sorted.sort_by(|a, b| identity(a).cmp(&identity(b)));
        sorted.dedup_by(|later, first| identity(later) == identity(first));
        let index = |address: &EndpointAddress| {
            let sought = identity(address);
            sorted
                .binary_search_by(|candidate| identity(candidate).cmp(&sought))
                .expect("every address was put into the list")
        };
        let indexes = subsets.iter().map(|subset| {
            let ready = subset.addresses.iter().map(|address| (index(address), true));
            let not_ready = subset.not_ready_addresses.iter().map(|one| (index(one), false));
            ready.chain(not_ready).collect()
        });
        let indexes = indexes.collect();
        Self { sorted, indexes }
    }

    /// The addresses of several subsets together.
    fn states(&self, subsets: &[Subset], members: &[usize]) -> Vec<AddressState> {
        debug_assert_eq!(subsets.len(), self.indexes.len());
        let mut states: Vec<AddressState> =
            members.iter().flat_map(|member| &self.indexes[*member]).copied().collect();
        // Not ready sorts before ready, so it stays.
        states.sort_unstable();
        states.dedup_by_key(|(index, _)| *index);
        states
    }

    fn subset(&self, states: &[AddressState], ports: Vec<PortKey>) -> Subset {
        let with = |ready: bool| {
            let these = states.iter().filter(move |(_, is_ready)| *is_ready == ready);
            these.map(|(index, _)| self.sorted[*index].clone()).collect()
        };
        let real = ports.into_iter().map(|(port, _)| port).filter(|port| port.port > 0);
        let mut ports: Vec<SubsetPort> = real.cloned().collect();
        ports.sort_unstable();
        Subset { addresses: with(true), not_ready_addresses: with(false), ports }
    }
}

fn identity(address: &EndpointAddress) -> (&str, Option<&Uid>) {
    let uid = address.target_ref.as_ref().map(|target| &target.uid);
    (&address.ip, uid.filter(|uid| !uid.is_empty()))
}

/// Equality without the resourceVersion of targets, which every change of a pod increases.
pub fn same_subsets(a: &[Subset], b: &[Subset]) -> bool {
    let same_addresses = |a: &[EndpointAddress], b: &[EndpointAddress]| {
        a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same_address(a, b))
    };
    let same = |a: &Subset, b: &Subset| {
        let Subset { addresses, not_ready_addresses, ports } = a;
        ports == &b.ports
            && same_addresses(addresses, &b.addresses)
            && same_addresses(not_ready_addresses, &b.not_ready_addresses)
    };
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| same(a, b))
}

fn same_address(a: &EndpointAddress, b: &EndpointAddress) -> bool {
    let EndpointAddress { ip, hostname, node_name, target_ref } = a;
    let same_target = match (target_ref, &b.target_ref) {
        (Some(a), Some(b)) => a.same_object(b),
        (a, b) => a.is_none() && b.is_none(),
    };
    same_target && (ip, hostname, node_name) == (&b.ip, &b.hostname, &b.node_name)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn subset(ready: &[&str], not_ready: &[&str], ports: &[i32]) -> Subset {
        let address =
            |ip: &&str| EndpointAddress { ip: (*ip).into(), ..EndpointAddress::default() };
        let port = |port: &i32| SubsetPort { port: *port, ..SubsetPort::default() };
        Subset {
            addresses: ready.iter().map(address).collect(),
            not_ready_addresses: not_ready.iter().map(address).collect(),
            ports: ports.iter().map(port).collect(),
        }
    }

    #[test]
    fn subsets_count_as_packed_if_merging_changes_nothing() {
        for (subsets, is_canonical) in [
            (vec![], true),
            (vec![subset(&["10.0.0.1", "10.0.0.2"], &["10.0.0.3"], &[80, 443])], true),
            (vec![subset(&["10.0.0.1"], &[], &[])], true),
            (vec![subset(&["10.0.0.2", "10.0.0.1"], &[], &[80])], false),
            (vec![subset(&["10.0.0.1", "10.0.0.1"], &[], &[80])], false),
            (vec![subset(&["10.0.0.1"], &["10.0.0.1"], &[80])], false),
            (vec![subset(&["10.0.0.1"], &[], &[443, 80])], false),
            (vec![subset(&["10.0.0.1"], &[], &[80, 80])], false),
            (vec![subset(&["10.0.0.1"], &[], &[0])], false),
            (vec![subset(&[], &[], &[80])], false),
            (vec![subset(&["10.0.0.1"], &[], &[80]), subset(&["10.0.0.1"], &[], &[443])], false),
        ] {
            assert_eq!(is_packed(&subsets), is_canonical, "{subsets:?}");
            assert_eq!(
                merge(&subsets, PortIdentity::Value) == subsets,
                is_canonical,
                "{subsets:?}"
            );
        }
    }
}

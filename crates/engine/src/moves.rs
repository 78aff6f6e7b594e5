//! Endpoints that move between the slices of one Service. Packing leaves an endpoint in its slice. A
//! copy has the endpoints of its source slice, so they move when they move there, and no update may
//! take one away before another write has published it.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{Endpoint, EndpointSlice, Key, Object, SharedStr, Write};

use crate::additions::{addresses, written_slice};

/// The API server accepts so many endpoints of a slice. Those beyond move without overlap.
const ENDPOINTS_MAX: usize = 1000;

/// What the moves of one plan mean for its writes, which are named by index.
#[derive(Debug, Default, PartialEq)]
pub struct Moves {
    /// Updates, with the writes that publish what they take away.
    pub waits_for: BTreeMap<usize, Vec<usize>>,
    /// Updates that keep what they would take away: they change something else, which need not
    /// wait. The next plan completes them.
    pub n_incomplete: usize,
}

/// An endpoint that a write takes away, and the index of a write that publishes it.
type Move = (SharedStr, usize);

/// `cached` gives a slice as it was before the writes.
pub fn keep_moving_endpoints(
    writes: &mut [Write],
    cached: impl Fn(&Key) -> Option<EndpointSlice>,
) -> Moves {
    let mut moves = Moves::default();
    if writes.iter().filter_map(written_slice).count() < 2 {
        return moves;
    }
    let of_write = |write: &Write| written_slice(write).and_then(|_| cached(&write.key()));
    let before: Vec<Option<EndpointSlice>> = writes.iter().map(of_write).collect();
    let gains = gained(writes, &before);
    let moved: Vec<Vec<Move>> =
        (0..writes.len()).map(|at| moved_from(at, writes, &before, &gains)).collect();
    let gainers: BTreeSet<usize> = moved.iter().flatten().map(|(_, to)| *to).collect();
    for (at, moved) in moved.into_iter().enumerate() {
        let Some(before) = before[at].as_ref().filter(|_| !moved.is_empty()) else { continue };
        let Some(kept) = with_moving(&writes[at], &moved, writes) else { continue };
        let has_its_ports = kept.ports == before.ports;
        if has_its_ports && !is_same(before, &kept) {
            writes[at] = Write::Update(Object::Slice(kept));
            moves.n_incomplete += 1;
        } else if !gainers.contains(&at) {
            moves.waits_for.insert(at, moved.into_iter().map(|(_, to)| to).collect());
        }
        // Two slices that exchange endpoints and ports at once cannot have both meanwhile.
    }
    moves
}

/// The writes after which an address is in a slice where it was not before.
fn gained(writes: &[Write], before: &[Option<EndpointSlice>]) -> BTreeMap<SharedStr, Vec<usize>> {
    let mut gained: BTreeMap<SharedStr, Vec<usize>> = BTreeMap::new();
    for (at, write) in writes.iter().enumerate() {
        let Some(after) = written_slice(write) else { continue };
        let before = before[at].as_ref().filter(|before| before.ports == after.ports);
        let known: BTreeSet<&SharedStr> = addresses(before).collect();
        for address in addresses(Some(after)).filter(|address| !known.contains(address)) {
            gained.entry(address.clone()).or_default().push(at);
        }
    }
    gained
}

/// What this write takes away and another one publishes with the same ports.
fn moved_from(
    at: usize,
    writes: &[Write],
    before: &[Option<EndpointSlice>],
    gains: &BTreeMap<SharedStr, Vec<usize>>,
) -> Vec<Move> {
    let Some(before) = &before[at] else { return Vec::new() };
    let after = written_slice(&writes[at]).filter(|after| after.ports == before.ports);
    let remaining: BTreeSet<&SharedStr> = addresses(after).collect();
    let has_its_ports = |to: &&usize| {
        **to != at && written_slice(&writes[**to]).is_some_and(|one| one.ports == before.ports)
    };
    let lost = addresses(Some(before)).filter(|address| !remaining.contains(address));
    let publisher = |address: &SharedStr| gains.get(address)?.iter().find(has_its_ports).copied();
    lost.filter_map(|address| Some((address.clone(), publisher(address)?))).collect()
}

/// The written slice and what moves out of it, as it is published there.
fn with_moving(write: &Write, moved: &[Move], writes: &[Write]) -> Option<EndpointSlice> {
    let mut slice = written_slice(write)?.clone();
    for (address, to) in moved {
        let endpoints = written_slice(&writes[*to]).into_iter().flat_map(|one| &one.endpoints);
        let mut found = endpoints.filter(|one| one.addresses.contains(address));
        if let Some(endpoint) = found.next()
            && slice.endpoints.len() < ENDPOINTS_MAX
            && !slice.endpoints.contains(endpoint)
        {
            slice.endpoints.push(endpoint.clone());
        }
    }
    Some(slice)
}

/// Apart from hints, annotations, and order.
fn is_same(before: &EndpointSlice, after: &EndpointSlice) -> bool {
    let sorted = |slice: &EndpointSlice| {
        let without_hints = |one: &Endpoint| Endpoint { hints: None, ..one.clone() };
        let mut endpoints: Vec<Endpoint> = slice.endpoints.iter().map(without_hints).collect();
        endpoints.sort_by(|a, b| a.addresses.cmp(&b.addresses));
        endpoints
    };
    before.meta.labels == after.meta.labels
        && before.meta.owners == after.meta.owners
        && sorted(before) == sorted(after)
}

#[cfg(test)]
mod tests {
    use endpointd_model::{Conditions, EndpointPort, Meta};

    use super::*;

    /// `name port address…`; an address with `!` is not ready.
    fn slice(text: &str) -> EndpointSlice {
        let mut words = text.split(' ');
        let name = words.next().expect("a name").into();
        let port = words.next().expect("a port").parse().expect("a number");
        let endpoint = |word: &str| {
            let conditions =
                Conditions { ready: Some(!word.ends_with('!')), ..Conditions::default() };
            let addresses = vec![word.trim_end_matches('!').into()];
            Endpoint { addresses, conditions, ..Endpoint::default() }
        };
        EndpointSlice {
            meta: Meta { namespace: "ns".into(), name, ..Meta::default() },
            ports: vec![EndpointPort { port: Some(port), ..EndpointPort::default() }],
            endpoints: words.map(endpoint).collect(),
            ..EndpointSlice::default()
        }
    }

    fn text(write: &Write) -> String {
        let slice = written_slice(write).expect("a slice");
        let mut words = vec![slice.meta.name.to_string()];
        words.extend(slice.ports[0].port.map(|port| port.to_string()));
        words.extend(slice.endpoints.iter().map(|one| {
            let mark = if one.is_ready() { "" } else { "!" };
            format!("{}{mark}", one.addresses[0])
        }));
        words.join(" ")
    }

    /// What is written instead, and which updates wait for which.
    fn moves(before: &[&str], after: &[&str]) -> (Vec<String>, Moves) {
        let before: Vec<EndpointSlice> = before.iter().map(|one| slice(one)).collect();
        let cached = |key: &Key| before.iter().find(|one| one.meta.key() == *key).cloned();
        let write = |one: &&str| {
            let object = Object::Slice(slice(one));
            match cached(&object.meta().key()) {
                Some(_) => Write::Update(object),
                None => Write::Create(object),
            }
        };
        let mut writes: Vec<Write> = after.iter().map(write).collect();
        let moves = keep_moving_endpoints(&mut writes, cached);
        (writes.iter().map(text).collect(), moves)
    }

    fn unchanged(after: &[&str], waits_for: &[(usize, usize)]) -> (Vec<String>, Moves) {
        let waits_for = waits_for.iter().map(|(at, to)| (*at, vec![*to])).collect();
        let writes = after.iter().map(|one| (*one).to_owned()).collect();
        (writes, Moves { waits_for, n_incomplete: 0 })
    }

    fn incomplete(writes: &[&str], n_incomplete: usize) -> (Vec<String>, Moves) {
        let writes = writes.iter().map(|one| (*one).to_owned()).collect();
        (writes, Moves { n_incomplete, ..Moves::default() })
    }

    #[test]
    fn update_waits_for_the_write_that_publishes_what_it_takes_away() {
        let after = ["new 80 y", "a 80 x"];
        assert_eq!(moves(&["a 80 x y"], &after), unchanged(&after, &[(1, 0)]));
        let after = ["a 80 x", "b 80 y z"];
        assert_eq!(moves(&["a 80 x y", "b 80 z"], &after), unchanged(&after, &[(0, 1)]));
    }

    #[test]
    fn what_need_not_wait_does_not() {
        let before = ["a 80 x y", "b 80 z y"];
        let published_already = ["a 80 x", "b 80 z! y"];
        assert_eq!(moves(&before, &published_already), unchanged(&published_already, &[]));
        let gone = ["a 80 x", "b 80 z"];
        assert_eq!(moves(&before, &gone), unchanged(&gone, &[]));
        let other_ports = ["a 80 x", "b 90 y"];
        assert_eq!(moves(&["a 80 x y", "b 90 z"], &other_ports), unchanged(&other_ports, &[]));
    }

    #[test]
    fn other_changes_of_the_slice_are_written_at_once() {
        let before = ["a 80 x y z", "b 80 w"];
        // `z` is gone, `x` is not ready any more, and `y` moves.
        let after = ["a 80 x!", "b 80 w y"];
        assert_eq!(moves(&before, &after), incomplete(&["a 80 x! y", "b 80 w y"], 1));
        let next = ["a 80 x!"];
        assert_eq!(moves(&["a 80 x! y", "b 80 w y"], &next), unchanged(&next, &[]));
        let not_ready = ["a 80 x z", "b 80 w y!"];
        assert_eq!(moves(&before, &not_ready), incomplete(&["a 80 x z y!", "b 80 w y!"], 1));
    }

    #[test]
    fn exchanged_endpoints_are_in_both_slices_meanwhile() {
        let after = ["a 80 y", "b 80 x"];
        assert_eq!(moves(&["a 80 x", "b 80 y"], &after), incomplete(&["a 80 y x", "b 80 x y"], 2));
    }

    #[test]
    fn slice_that_changes_its_ports_waits_unless_it_is_waited_for() {
        let after = ["a 90 z", "b 80 x w"];
        assert_eq!(moves(&["a 80 x", "b 80 w"], &after), unchanged(&after, &[(0, 1)]));
        let exchanged = ["a 90 y", "b 80 x"];
        assert_eq!(moves(&["a 80 x", "b 90 y"], &exchanged), unchanged(&exchanged, &[]));
    }

    #[test]
    fn no_slice_gets_more_endpoints_than_the_api_server_accepts() {
        let numbered = |name: &str, range: std::ops::Range<usize>| {
            let addresses: Vec<String> = range.map(|n| format!("x{n}")).collect();
            format!("{name} 80 {}", addresses.join(" "))
        };
        let (a, b) = (numbered("a", 0..900), numbered("b", 900..1800));
        let (new_a, new_b) = (numbered("a", 900..1800), numbered("b", 0..900));
        let (writes, moves) = moves(&[&a, &b], &[&new_a, &new_b]);
        let lens: Vec<usize> = writes.iter().map(|one| one.split(' ').count() - 2).collect();
        assert_eq!((lens, moves.n_incomplete), (vec![1000, 1000], 2));
    }
}

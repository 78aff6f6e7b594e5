//! Dual-stack addresses of nodes and pods.

use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

/// Pod addresses of a node: a /24.
const SLOTS: u8 = 250;
const FIRST_HOST: u8 = 2;

/// The pod addresses of one node. A released address is reused last, as by common network
/// plugins.
#[derive(Clone, Debug, Default)]
pub struct Addresses {
    used: BTreeSet<u8>,
    next: u8,
}

impl Addresses {
    pub fn allocate(&mut self) -> Option<u8> {
        let after = (self.next..SLOTS).chain(0..self.next);
        let slot = after.into_iter().find(|slot| !self.used.contains(slot))?;
        self.used.insert(slot);
        self.next = (slot + 1) % SLOTS;
        Some(slot)
    }

    pub fn free(&mut self, slot: u8) {
        self.used.remove(&slot);
    }
}

/// `node` is the number of the node in order of creation.
pub fn of_pod(node: u16, slot: u8) -> [IpAddr; 2] {
    let [high, low] = node.to_be_bytes();
    let host = slot + FIRST_HOST;
    [
        Ipv4Addr::new(10, 128 + high, low, host).into(),
        Ipv6Addr::new(0xfd00, 0x10, 0x244, node, 0, 0, 0, u16::from(host)).into(),
    ]
}

pub fn of_node(node: u16) -> [IpAddr; 2] {
    let [high, low] = node.to_be_bytes();
    [
        Ipv4Addr::new(172, 20 + high, low, 10).into(),
        Ipv6Addr::new(0xfd00, 0x172, 0x20, node, 0, 0, 0, 0x10).into(),
    ]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_released_address_is_reused_last() {
        let mut addresses = Addresses::default();
        let all: BTreeSet<u8> = std::iter::from_fn(|| addresses.allocate()).collect();
        assert_eq!(all.len(), usize::from(SLOTS));
        addresses.free(7);
        assert_eq!((addresses.allocate(), addresses.allocate()), (Some(7), None));

        let mut addresses = Addresses::default();
        let first = addresses.allocate().expect("there are many");
        addresses.free(first);
        assert_ne!(addresses.allocate(), Some(first));
    }

    #[test]
    fn no_two_pods_share_an_address() {
        let all: BTreeSet<IpAddr> = (0..1100_u16)
            .flat_map(|node| (0..SLOTS).step_by(83).flat_map(move |slot| of_pod(node, slot)))
            .chain((0..1100).flat_map(of_node))
            .collect();
        assert_eq!(all.len(), 1100 * (4 * 2 + 2));
    }
}

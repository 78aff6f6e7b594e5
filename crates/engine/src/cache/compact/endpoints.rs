//! Endpoints: subsets.

use endpointd_model::{EndpointAddress, Subset, SubsetPort};

use super::columns::{Column, row};
use super::reader::Reader;
use super::writer::{Writer, canonical_v4};

impl<'a> Writer<'a> {
    pub fn subsets(&mut self, subsets: &'a [Subset]) {
        self.count(subsets.len());
        for Subset { addresses, not_ready_addresses, ports } in subsets {
            for addresses in [addresses, not_ready_addresses] {
                self.count(addresses.len());
                addresses.iter().for_each(|address| self.subset_address(address));
            }
            self.count(ports.len());
            ports.iter().for_each(|port| self.subset_port(port));
        }
    }

    fn subset_address(&mut self, address: &'a EndpointAddress) {
        let EndpointAddress { ip, hostname, node_name, target_ref } = address;
        let v4 = canonical_v4(ip);
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        self.byte(
            self.target_bits(target_ref.as_ref())
                | bit(v4.is_some(), row::ONE_V4)
                | bit(hostname.is_some(), row::HAS_EXTRAS),
        );
        match v4 {
            Some(v4) => self.v4(v4),
            None => self.address(ip),
        }
        self.optional_string(Column::Node, node_name.as_ref());
        target_ref.iter().for_each(|target| self.target(target));
        hostname.iter().for_each(|hostname| self.string(Column::Host, hostname));
    }

    fn subset_port(&mut self, port: &'a SubsetPort) {
        let SubsetPort { name, port, protocol, app_protocol } = port;
        self.string(Column::Port, name);
        self.signed((*port).into());
        self.protocol(protocol);
        self.optional_string(Column::Other, app_protocol.as_ref());
    }
}

impl Reader<'_> {
    pub fn subsets(&mut self) -> Vec<Subset> {
        self.list(|reader| Subset {
            addresses: reader.list(Self::subset_address),
            not_ready_addresses: reader.list(Self::subset_address),
            ports: reader.list(Self::subset_port),
        })
    }

    fn subset_address(&mut self) -> EndpointAddress {
        let bits = self.byte();
        EndpointAddress {
            ip: if bits & row::ONE_V4 == 0 { self.address() } else { self.v4() },
            node_name: self.optional_string(Column::Node),
            target_ref: self.target(bits),
            hostname: (bits & row::HAS_EXTRAS != 0).then(|| self.string(Column::Host)),
        }
    }

    fn subset_port(&mut self) -> SubsetPort {
        SubsetPort {
            name: self.string(Column::Port),
            port: self.signed() as i32,
            protocol: self.protocol(),
            app_protocol: self.optional_string(Column::Other),
        }
    }
}

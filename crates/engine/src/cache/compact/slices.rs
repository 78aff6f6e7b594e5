//! EndpointSlices: ports and endpoints.

use endpointd_model::{
    AddressType, Conditions, Endpoint, EndpointPort, EndpointSlice, Hints, Meta,
};

use super::columns::{Column, row};
use super::reader::Reader;
use super::writer::{Writer, canonical_v4};

impl<'a> Writer<'a> {
    pub fn slice(&mut self, slice: &'a EndpointSlice) {
        let EndpointSlice { meta: _, address_type, endpoints, ports } = slice;
        match address_type {
            AddressType::IPv4 => self.byte(0),
            AddressType::IPv6 => self.byte(1),
            AddressType::Fqdn => self.byte(2),
            AddressType::Other(string) => {
                self.byte(3);
                self.string(Column::Other, string);
            }
        }
        self.count(ports.len());
        ports.iter().for_each(|port| self.port(port));
        self.count(endpoints.len());
        let mut conditions = Conditions::default();
        for endpoint in endpoints {
            self.endpoint(endpoint, conditions);
            conditions = endpoint.conditions;
        }
    }

    fn port(&mut self, port: &'a EndpointPort) {
        let EndpointPort { name, port, protocol, app_protocol } = port;
        self.optional_string(Column::Port, name.as_ref());
        self.optional(*port, |writer, port| writer.signed(port.into()));
        self.optional(protocol.as_ref(), Self::protocol);
        self.optional_string(Column::Other, app_protocol.as_ref());
    }

    fn endpoint(&mut self, endpoint: &'a Endpoint, before: Conditions) {
        let Endpoint {
            addresses,
            conditions,
            hostname,
            node_name,
            target_ref,
            zone,
            hints,
            deprecated_topology,
        } = endpoint;
        let has_extras = hostname.is_some() || hints.is_some() || !deprecated_topology.is_empty();
        let only = if let [only] = &addresses[..] { canonical_v4(only) } else { None };
        let bit = |is_set: bool, bit: u8| if is_set { bit } else { 0 };
        self.byte(
            self.target_bits(target_ref.as_ref())
                | bit(only.is_some(), row::ONE_V4)
                | bit(*conditions == before, row::SAME_CONDITIONS)
                | bit(has_extras, row::HAS_EXTRAS),
        );
        match only {
            Some(ip) => self.v4(ip),
            None => {
                self.count(addresses.len());
                addresses.iter().for_each(|address| self.address(address));
            }
        }
        if *conditions != before {
            self.byte(conditions_byte(*conditions));
        }
        self.optional_string(Column::Node, node_name.as_ref());
        self.optional_string(Column::Zone, zone.as_ref());
        target_ref.iter().for_each(|target| self.target(target));
        if has_extras {
            self.optional_string(Column::Host, hostname.as_ref());
            self.optional(hints.as_ref(), Self::hints);
            self.labels(deprecated_topology);
        }
    }

    fn hints(&mut self, hints: &'a Hints) {
        self.strings(Column::Zone, &hints.for_zones);
        self.strings(Column::Node, &hints.for_nodes);
    }
}

impl Reader<'_> {
    pub fn slice(&mut self, meta: Meta) -> EndpointSlice {
        let address_type = match self.byte() {
            0 => AddressType::IPv4,
            1 => AddressType::IPv6,
            2 => AddressType::Fqdn,
            _ => AddressType::Other(self.string(Column::Other)),
        };
        let ports = self.list(Self::port);
        let count = self.count();
        let mut endpoints = Vec::with_capacity(count);
        let mut conditions = Conditions::default();
        for _ in 0..count {
            let endpoint = self.endpoint(conditions);
            conditions = endpoint.conditions;
            endpoints.push(endpoint);
        }
        EndpointSlice { meta, address_type, endpoints, ports }
    }

    fn port(&mut self) -> EndpointPort {
        EndpointPort {
            name: self.optional_string(Column::Port),
            port: self.optional(|reader| reader.signed() as i32),
            protocol: self.optional(Self::protocol),
            app_protocol: self.optional_string(Column::Other),
        }
    }

    fn endpoint(&mut self, before: Conditions) -> Endpoint {
        let bits = self.byte();
        let has = |bit: u8| bits & bit != 0;
        let addresses = if has(row::ONE_V4) { vec![self.v4()] } else { self.list(Self::address) };
        let conditions =
            if has(row::SAME_CONDITIONS) { before } else { conditions_of(self.byte()) };
        let mut endpoint = Endpoint {
            addresses,
            conditions,
            node_name: self.optional_string(Column::Node),
            zone: self.optional_string(Column::Zone),
            target_ref: self.target(bits),
            ..Endpoint::default()
        };
        if has(row::HAS_EXTRAS) {
            endpoint.hostname = self.optional_string(Column::Host);
            endpoint.hints = self.optional(Self::hints);
            endpoint.deprecated_topology = self.labels();
        }
        endpoint
    }

    fn hints(&mut self) -> Hints {
        Hints {
            for_zones: self.list(|reader| reader.string(Column::Zone)),
            for_nodes: self.list(|reader| reader.string(Column::Node)),
        }
    }
}

/// Two bits per condition: absent, false, or true.
fn conditions_byte(conditions: Conditions) -> u8 {
    let Conditions { ready, serving, terminating } = conditions;
    let bits = |condition: Option<bool>| condition.map_or(0, |is_set| 1 + u8::from(is_set));
    bits(ready) | bits(serving) << 2 | bits(terminating) << 4
}

fn conditions_of(byte: u8) -> Conditions {
    let condition = |shift: u8| match byte >> shift & 3 {
        0 => None,
        bits => Some(bits == 2),
    };
    Conditions { ready: condition(0), serving: condition(2), terminating: condition(4) }
}

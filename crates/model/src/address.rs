//! IP addresses as Kubernetes parses and formats them.

use std::fmt::{self, Write as _};
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::ops::Deref;

use crate::SharedStr;

/// IP family.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Family {
    V4,
    V6,
}

impl Family {
    pub fn of(ip: IpAddr) -> Self {
        if ip.is_ipv4() { Self::V4 } else { Self::V6 }
    }
}

impl fmt::Display for Family {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::V4 => "IPv4",
            Self::V6 => "IPv6",
        })
    }
}

/// Parses leniently: leading zeros in IPv4 are decimal, also inside an IPv4-mapped address, and
/// an IPv4-mapped address is IPv4. Upstream: `netutils.ParseIPSloppy` followed by `IP.String`.
pub fn parse_ip(text: &str) -> Option<IpAddr> {
    if let Ok(ip) = text.parse::<IpAddr>() {
        return Some(ip.to_canonical());
    }
    match text.rfind(':') {
        None => parse_ipv4_with_zeros(text).map(IpAddr::V4),
        Some(colon) => {
            let tail = parse_ipv4_with_zeros(&text[colon + 1..])?;
            let ip: Ipv6Addr = format!("{}{tail}", &text[..=colon]).parse().ok()?;
            Some(IpAddr::V6(ip).to_canonical())
        }
    }
}

fn parse_ipv4_with_zeros(text: &str) -> Option<Ipv4Addr> {
    let mut octets = [0u8; 4];
    let mut parts = text.split('.');
    for octet in &mut octets {
        let part = parts.next()?;
        if part.is_empty() || !part.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        let digits = part.trim_start_matches('0');
        *octet = if digits.is_empty() { 0 } else { digits.parse().ok()? };
    }
    parts.next().is_none().then(|| octets.into())
}

/// The text of an address, without an allocation. Addresses are most of the published content, and
/// formatting one with the standard library takes longer than the rest of its processing.
#[derive(Clone, Copy, Debug)]
pub struct IpStr {
    bytes: [u8; IP_TEXT_BYTES_MAX],
    n_bytes: usize,
}

/// The length of `ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff`.
const IP_TEXT_BYTES_MAX: usize = 39;

impl IpStr {
    pub fn new(ip: IpAddr) -> Self {
        let mut text = Self { bytes: [0; IP_TEXT_BYTES_MAX], n_bytes: 0 };
        match ip {
            IpAddr::V4(ip) => text.v4(ip),
            IpAddr::V6(ip) => write!(text, "{ip}").expect("no address is longer"),
        }
        text
    }

    fn v4(&mut self, ip: Ipv4Addr) {
        for (at, octet) in ip.octets().into_iter().enumerate() {
            if at > 0 {
                self.push(b'.');
            }
            if octet >= 100 {
                self.push(b'0' + octet / 100);
            }
            if octet >= 10 {
                self.push(b'0' + octet / 10 % 10);
            }
            self.push(b'0' + octet % 10);
        }
    }

    fn push(&mut self, byte: u8) {
        self.bytes[self.n_bytes] = byte;
        self.n_bytes += 1;
    }
}

impl fmt::Write for IpStr {
    fn write_str(&mut self, part: &str) -> fmt::Result {
        let room = self.bytes[self.n_bytes..].get_mut(..part.len()).ok_or(fmt::Error)?;
        room.copy_from_slice(part.as_bytes());
        self.n_bytes += part.len();
        Ok(())
    }
}

impl Deref for IpStr {
    type Target = str;

    fn deref(&self) -> &str {
        std::str::from_utf8(&self.bytes[..self.n_bytes]).expect("digits, dots, and colons")
    }
}

impl From<IpStr> for SharedStr {
    fn from(text: IpStr) -> Self {
        Self::from(&*text)
    }
}

/// Why the API server would reject an endpoint address.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum BadAddress {
    NotAnIp,
    Unspecified,
    Loopback,
    LinkLocal,
    Multicast,
}

impl fmt::Display for BadAddress {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::NotAnIp => "not an IP address",
            Self::Unspecified => "unspecified address",
            Self::Loopback => "loopback address",
            Self::LinkLocal => "link-local address",
            Self::Multicast => "multicast address",
        })
    }
}

/// One such address makes the API server reject the whole object (CVE-2021-25737 and later), so
/// plans exclude it. Upstream's validation: `ValidateEndpointIP`.
pub fn is_forbidden_endpoint_ip(ip: IpAddr) -> Option<BadAddress> {
    if ip.is_unspecified() {
        return Some(BadAddress::Unspecified);
    }
    if ip.is_loopback() {
        return Some(BadAddress::Loopback);
    }
    if ip.is_multicast() {
        return Some(BadAddress::Multicast);
    }
    let link_local = match ip {
        IpAddr::V4(ip) => ip.is_link_local(),
        IpAddr::V6(ip) => ip.is_unicast_link_local(),
    };
    link_local.then_some(BadAddress::LinkLocal)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn canonical(text: &str) -> Option<String> {
        parse_ip(text).map(|ip| ip.to_string())
    }

    #[test]
    fn addresses_parse_leniently_and_print_canonically() {
        for (text, want) in [
            ("10.0.0.1", Some("10.0.0.1")),
            ("010.000.0.002", Some("10.0.0.2")),
            ("::ffff:10.0.0.005", Some("10.0.0.5")),
            ("::FFFF:0A00:0001", Some("10.0.0.1")),
            ("FD00:0:0::1", Some("fd00::1")),
            ("fd00::010.0.0.1", Some("fd00::a00:1")),
            ("", None),
            ("10.0.0", None),
            ("10.0.0.256", None),
            ("10.0.0.1.2", None),
            ("10.0.0.-1", None),
            ("10.0.0.+1", None),
            ("1.2.3.99999999999999999999", None),
            ("example.com", None),
            ("fe80::1%eth0", None),
            ("é:0.0.0.0", None),
        ] {
            assert_eq!(canonical(text).as_deref(), want, "{text:?}");
        }
    }

    #[test]
    fn addresses_are_written_as_the_standard_library_writes_them() {
        let octets = 0..=u8::MAX;
        let v4 = octets.map(|octet| IpAddr::from([octet, u8::MAX - octet, 0, octet]));
        let v6 = ["::", "::1", "fd00::1", "::ffff:255.255.255.255"].map(str::to_owned);
        let longest = ["ffff"; 8].join(":");
        let v6 = v6.into_iter().chain([longest]).map(|text| text.parse().expect("an address"));
        for ip in v4.chain(v6) {
            assert_eq!(&*IpStr::new(ip), ip.to_string());
        }
    }

    #[test]
    fn addresses_the_api_server_refuses_are_known() {
        for (text, want) in [
            ("127.0.0.9", Some(BadAddress::Loopback)),
            ("::1", Some(BadAddress::Loopback)),
            ("0.0.0.0", Some(BadAddress::Unspecified)),
            ("::", Some(BadAddress::Unspecified)),
            ("169.254.1.1", Some(BadAddress::LinkLocal)),
            ("fe80::1", Some(BadAddress::LinkLocal)),
            ("224.0.0.1", Some(BadAddress::Multicast)),
            ("ff02::1", Some(BadAddress::Multicast)),
            ("::ffff:127.0.0.1", Some(BadAddress::Loopback)),
            ("10.0.0.1", None),
            ("fd00::1", None),
        ] {
            let ip = parse_ip(text).expect("a test address");
            assert_eq!(is_forbidden_endpoint_ip(ip), want, "{text}");
        }
    }
}

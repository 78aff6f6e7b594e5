//! User and groups of a client certificate: its common name and its organizations, as in Kubernetes.

use webpki::EndEntityCert;

/// A certificate that the TLS handshake has verified, in DER.
#[derive(Clone, Debug)]
pub struct ClientCertificate(pub Vec<u8>);

const SEQUENCE: u8 = 0x30;
const SET: u8 = 0x31;
const OBJECT_IDENTIFIER: u8 = 0x06;
/// 2.5.4.3 and 2.5.4.10.
const COMMON_NAME: &[u8] = &[0x55, 0x04, 0x03];
const ORGANIZATION: &[u8] = &[0x55, 0x04, 0x0a];

impl ClientCertificate {
    /// None without a common name: such a certificate names no user.
    pub fn user(&self) -> Option<(String, Vec<String>)> {
        let der = self.0.as_slice().into();
        let certificate = EndEntityCert::try_from(&der).ok()?;
        let (mut name, mut groups) = (None, Vec::new());
        for (attribute, value) in attributes(certificate.subject()) {
            match attribute {
                COMMON_NAME => name = Some(value),
                ORGANIZATION => groups.push(value),
                _ => {}
            }
        }
        Some((name.filter(|name| !name.is_empty())?, groups))
    }
}

/// The attributes of a distinguished name: sets of sequences of an identifier and a text.
fn attributes(name: &[u8]) -> Vec<(&[u8], String)> {
    let mut found = Vec::new();
    let sets = elements(name).filter(|(tag, _)| *tag == SET);
    for (_, content) in sets.flat_map(|(_, set)| elements(set)).filter(|(tag, _)| *tag == SEQUENCE)
    {
        let mut parts = elements(content);
        if let (Some((OBJECT_IDENTIFIER, id)), Some((_, value))) = (parts.next(), parts.next())
            && let Ok(value) = std::str::from_utf8(value)
        {
            found.push((id, value.to_owned()));
        }
    }
    found
}

/// Tag and content of each element of DER; ends at the first that is malformed.
fn elements(mut der: &[u8]) -> impl Iterator<Item = (u8, &[u8])> {
    std::iter::from_fn(move || {
        let (&tag, rest) = der.split_first()?;
        let (&first, rest) = rest.split_first()?;
        let (len, rest) = match first {
            0..=0x7f => (usize::from(first), rest),
            0x81 => rest.split_first().map(|(&len, rest)| (usize::from(len), rest))?,
            0x82 => {
                let (len, rest) = rest.split_at_checked(2)?;
                (usize::from(len[0]) << 8 | usize::from(len[1]), rest)
            }
            _ => return None,
        };
        let (content, rest) = rest.split_at_checked(len)?;
        der = rest;
        Some((tag, content))
    })
}

#[cfg(test)]
mod tests {
    use rcgen::{CertificateParams, DistinguishedName, DnType, KeyPair};

    use super::*;

    fn certificate(names: &[(DnType, &str)]) -> ClientCertificate {
        let mut params = CertificateParams::default();
        params.distinguished_name = DistinguishedName::new();
        for (kind, value) in names {
            params.distinguished_name.push(kind.clone(), *value);
        }
        let key = KeyPair::generate().unwrap();
        ClientCertificate(params.self_signed(&key).unwrap().der().to_vec())
    }

    #[test]
    fn user_is_the_common_name_and_groups_are_organizations() {
        let long = "x".repeat(300);
        let names =
            [(DnType::OrganizationName, "system:monitoring"), (DnType::CommonName, "prometheus")];
        let (user, groups) = certificate(&names).user().unwrap();
        assert_eq!((&*user, groups), ("prometheus", vec!["system:monitoring".to_owned()]));
        let (user, groups) = certificate(&[(DnType::CommonName, &long)]).user().unwrap();
        assert_eq!((user, groups.len()), (long, 0));
    }

    #[test]
    fn a_certificate_without_common_name_names_no_user() {
        assert_eq!(certificate(&[(DnType::OrganizationName, "system:masters")]).user(), None);
        assert_eq!(ClientCertificate(b"no DER".to_vec()).user(), None);
    }

    #[test]
    fn malformed_der_ends_the_elements() {
        for der in [&[0x30][..], &[0x30, 5, 1], &[0x30, 0x84, 1, 1, 1, 1], &[0x30, 0x82, 1]] {
            assert_eq!(elements(der).count(), 0);
        }
    }
}

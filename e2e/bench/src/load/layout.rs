//! Numbers and names of the objects. All names of a kind have the same length.

use std::ops::Range;

/// The objects of a cluster: Service `i` is in namespace `i % n_namespaces`, pod `j` belongs to
/// Service `j % n_services`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Layout {
    pub n_namespaces: usize,
    pub n_services: usize,
    pub n_pods: usize,
    pub n_nodes: usize,
}

/// Identifies a pod; numbers are not reused.
pub type PodNumber = usize;

/// Three digits, so that all addresses have the same length.
const OCTETS: Range<usize> = 100..250;
pub const PODS_MAX: usize = 150 * 150 * 150;

impl Layout {
    /// Twenty namespaces, and nodes with fifty pods each.
    pub fn spread(n_services: usize, n_pods: usize) -> Self {
        let n_nodes = n_pods.div_ceil(50).max(3);
        Self { n_namespaces: n_services.min(20), n_services, n_pods, n_nodes }
    }

    /// All Services in one namespace.
    pub fn in_one_namespace(n_services: usize, n_pods: usize) -> Self {
        Self { n_namespaces: 1, ..Self::spread(n_services, n_pods) }
    }

    pub fn service_of(&self, pod: PodNumber) -> usize {
        pod % self.n_services
    }

    /// The number of pods of a Service.
    pub fn n_pods_of(&self, service: usize) -> usize {
        let rest = usize::from(service < self.n_pods % self.n_services);
        self.n_pods / self.n_services + rest
    }

    pub fn namespace_of(&self, service: usize) -> String {
        namespace(service % self.n_namespaces)
    }

    pub fn describe(&self) -> String {
        let (services, pods) = (self.n_services, self.n_pods);
        format!("{} Services, {} pods", grouped(services), grouped(pods))
    }
}

/// With thousands separators: `1,000`.
pub fn grouped(number: usize) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (at, digit) in digits.chars().enumerate() {
        if at > 0 && (digits.len() - at).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

pub fn namespace(number: usize) -> String {
    format!("bench-{number:02}")
}

pub fn node(number: usize) -> String {
    format!("node-{number:04}")
}

/// Three zones.
pub fn zone(node: usize) -> &'static str {
    ["zone-a", "zone-b", "zone-c"][node % 3]
}

pub fn service(number: usize) -> String {
    format!("web-{number:05}")
}

pub fn pod(service_number: usize, number: PodNumber) -> String {
    format!("{}-7c9d8b6f5{}", service(service_number), pod_suffix(number))
}

pub fn pod_suffix(number: PodNumber) -> String {
    format!("-{number:06}")
}

pub fn ip(number: PodNumber) -> String {
    assert!(number < PODS_MAX, "the address range is exhausted");
    let width = OCTETS.len();
    let octet = |value: usize| OCTETS.start + value % width;
    format!("10.{}.{}.{}", octet(number / width / width), octet(number / width), octet(number))
}

/// The number in the name of a generated pod.
pub fn number_of_pod(name: &str) -> Option<PodNumber> {
    name.rsplit_once('-')?.1.parse().ok()
}

/// The number in the name of a generated Service.
pub fn number_of_service(name: &str) -> Option<usize> {
    name.strip_prefix("web-")?.parse().ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_pod_belongs_to_one_service() {
        let layout = Layout::spread(7, 45);
        let total: usize = (0..7).map(|service| layout.n_pods_of(service)).sum();
        assert_eq!(total, 45);
        for service in 0..7 {
            let n = (0..45).filter(|&pod| layout.service_of(pod) == service).count();
            assert_eq!(layout.n_pods_of(service), n, "service {service}");
        }
    }

    #[test]
    fn addresses_are_unique_and_of_equal_length() {
        let all: std::collections::BTreeSet<String> = (0..200_000).map(ip).collect();
        assert_eq!(all.len(), 200_000);
        assert!(all.iter().all(|one| one.len() == "10.100.100.100".len()));
    }

    #[test]
    fn numbers_are_parsed_from_names() {
        assert_eq!(number_of_pod(&pod(12, 345)), Some(345));
        assert_eq!(number_of_service(&service(12)), Some(12));
        assert_eq!(number_of_service("kubernetes"), None);
    }

    #[test]
    fn numbers_are_grouped_by_thousands() {
        assert_eq!(
            [0, 999, 1000, 1234567].map(grouped),
            ["0", "999", "1,000", "1,234,567"].map(String::from)
        );
    }
}

//! Fuzz target: a Lease as another client may have left it. What was read is written back unchanged.

use endpointd_fuzz::{Format, Target, fuzz, outcome_of};

use super::*;

const LEASE: &str = r#"{"apiVersion": "coordination.k8s.io/v1", "kind": "Lease",
    "metadata": {"namespace": "kube-system", "name": "endpointd", "resourceVersion": "812",
        "labels": {"a": "b"}, "uid": "u-1", "creationTimestamp": "2026-01-02T03:04:05Z"},
    "spec": {"holderIdentity": "host_1", "leaseDurationSeconds": 15, "leaseTransitions": 3,
        "acquireTime": "2026-01-02T03:04:05.000000Z", "renewTime": "2026-01-02T03:05:05.123456Z",
        "strategy": "OldestEmulationVersion", "preferredHolder": null}}"#;

#[test]
fn fuzz_lease() {
    let recorded = vec![LEASE.as_bytes().to_vec()];
    fuzz(
        &Target { name: "lease", format: Format::Json, recorded },
        |input| match Lease::from_json(input) {
            Err(error) => outcome_of(&error.to_string()),
            Ok(lease) => {
                let again = Lease::from_json(&lease.to_json()).expect("our own JSON");
                assert_eq!(again, lease);
                format!(
                    "{:?} {:?}",
                    lease.record.renewed.is_some(),
                    lease.record.acquired.is_some()
                )
            }
        },
    );
}

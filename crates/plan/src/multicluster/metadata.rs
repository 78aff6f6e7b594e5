//! The import as it should be, without its status (M4).

use std::collections::BTreeMap;

use endpointd_model::{
    Annotations, ImportType, Labels, Meta, ServiceImport, ServiceImportSpec, SharedStr,
    derived_name, names,
};

use super::MultiClusterSnapshot;
use super::derived::Derived;
use super::merge::{Basis, Effective, Merged};

pub fn wanted_import(
    snapshot: &MultiClusterSnapshot,
    merged: &Merged,
    effective: &Effective,
    derived: &Derived,
) -> ServiceImport {
    let observed = snapshot.import.cloned().unwrap_or_else(|| ServiceImport {
        meta: Meta {
            namespace: snapshot.key.namespace.clone(),
            name: snapshot.key.name.clone(),
            ..Meta::default()
        },
        ..ServiceImport::default()
    });
    let labels = match effective.basis {
        Basis::Merged => &merged.labels,
        Basis::Observed => &observed.meta.labels,
    };
    let meta = Meta {
        labels: labels.with(names::APP_MANAGED_BY, Some(names::ENDPOINTD)),
        annotations: annotations(snapshot, &observed.meta.annotations, merged, effective),
        ..observed.meta
    };
    // Both from one object, in one update (V3).
    let (families, ips) = match (effective.import_type, derived.addresses()) {
        (ImportType::Headless, _) => (effective.families.clone(), Vec::new()),
        (ImportType::ClusterSetIp, Some((families, ips))) => (families.to_vec(), ips.to_vec()),
        (ImportType::ClusterSetIp, None) => (Vec::new(), Vec::new()),
    };
    let spec = ServiceImportSpec {
        import_type: effective.import_type,
        ports: effective.ports.clone(),
        ips,
        families,
        traffic: effective.traffic,
        traffic_distribution: effective.traffic_distribution,
    };
    ServiceImport { meta, spec, status: observed.status }
}

/// Those of others stay. The keys of exported ones are remembered, so that they can go again.
fn annotations(
    snapshot: &MultiClusterSnapshot,
    observed: &Annotations,
    merged: &Merged,
    effective: &Effective,
) -> Annotations {
    let mut wanted: BTreeMap<SharedStr, SharedStr> = observed.to_map();
    if effective.basis == Basis::Merged {
        replace_exported(&mut wanted, &merged.annotations);
    }
    match effective.import_type {
        ImportType::ClusterSetIp => {
            wanted.insert(names::DERIVED_SERVICE.into(), derived_name(&snapshot.key));
        }
        ImportType::Headless => drop(wanted.remove(names::DERIVED_SERVICE)),
    }
    wanted.into_iter().collect()
}

fn replace_exported(annotations: &mut BTreeMap<SharedStr, SharedStr>, exported: &Labels) {
    if let Some(before) = annotations.remove(names::EXPORTED_ANNOTATIONS) {
        before.split(',').for_each(|key| drop(annotations.remove(key)));
    }
    if exported.is_empty() {
        return;
    }
    let keys: Vec<&str> = exported.iter().map(|(key, _)| key.as_ref()).collect();
    annotations.insert(names::EXPORTED_ANNOTATIONS.into(), keys.join(",").into());
    annotations.extend(exported.to_map());
}

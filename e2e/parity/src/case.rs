//! A cluster state and upstream's answer. `vectors/README.md` describes the format.

use anyhow::{Context, Result, anyhow};
use endpointd_model::{Controller, Key};
use endpointd_plan::{ClusterState, Settings};
use endpointd_wire::AnyObject;
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Case {
    pub id: String,
    pub controller: String,
    #[serde(default)]
    pub tags: Vec<String>,
    #[serde(default)]
    pub settings: CaseSettings,
    pub key: String,
    #[serde(rename = "world")]
    pub objects: ClusterObjects,
    pub expect: Expected,
    #[serde(default)]
    pub then: Option<Then>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CaseSettings {
    pub max_endpoints_per_slice: Option<usize>,
    pub max_endpoints_per_subset: Option<usize>,
    /// The API server rejects such requests during the first sync.
    pub inject: Option<Value>,
}

/// The objects of a cluster state as Kubernetes JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct ClusterObjects {
    pub services: Vec<Value>,
    pub pods: Vec<Value>,
    pub nodes: Vec<Value>,
    pub endpointslices: Vec<Value>,
    pub endpoints: Vec<Value>,
}

/// Upstream's results of one sync, and of a second one without any change.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct Expected {
    pub writes: Vec<Value>,
    pub events: Vec<Value>,
    pub error: Option<String>,
    pub errors: Vec<String>,
    pub end: Value,
    pub second_sync_writes: Vec<Value>,
    pub second_sync_error: Option<String>,
    pub nondeterministic: bool,
    pub stable: Vec<String>,
}

/// A later sync by the same controller, after the cluster changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Then {
    #[serde(rename = "world")]
    pub objects: ClusterObjects,
    pub expect: Expected,
}

impl Case {
    pub fn parse(line: &str) -> Result<Self> {
        serde_json::from_str(line).context("not a case")
    }

    pub fn controller(&self) -> Result<Controller> {
        match self.controller.as_str() {
            "endpointslice" => Ok(Controller::Slices),
            "endpoints" => Ok(Controller::Endpoints),
            "mirroring" => Ok(Controller::Mirror),
            other => Err(anyhow!("unknown controller `{other}`")),
        }
    }

    pub fn key(&self) -> Result<Key> {
        let (namespace, name) = self.key.split_once('/').context("a key is `namespace/name`")?;
        Ok(Key::new(namespace, name))
    }

    pub fn settings(&self) -> Settings {
        let default = Settings::default();
        let CaseSettings { max_endpoints_per_slice, max_endpoints_per_subset, inject: _ } =
            &self.settings;
        Settings {
            endpoints_per_slice_max: max_endpoints_per_slice
                .unwrap_or(default.endpoints_per_slice_max),
            mirrored_per_subset_max: max_endpoints_per_subset
                .unwrap_or(default.mirrored_per_subset_max),
            ..default
        }
    }
}

impl Expected {
    /// The slices and the Endpoints after the sync.
    pub fn end_objects(&self) -> impl Iterator<Item = &Value> {
        let slices = self.end["endpointslices"].as_array().into_iter().flatten();
        let endpoints = Some(&self.end["endpoints"]).filter(|endpoints| endpoints.is_object());
        slices.chain(endpoints)
    }
}

impl ClusterObjects {
    pub fn all(&self) -> impl Iterator<Item = &Value> {
        let Self { services, pods, nodes, endpointslices, endpoints } = self;
        services.iter().chain(pods).chain(nodes).chain(endpointslices).chain(endpoints)
    }

    pub fn to_cluster_state(&self) -> Result<ClusterState> {
        let mut cluster = ClusterState::default();
        for value in self.all() {
            let object = AnyObject::from_value(value)?;
            add(&mut cluster, object.context("an object of another kind")?);
        }
        Ok(cluster)
    }
}

/// Adds an object to the map of its kind.
pub fn add(cluster: &mut ClusterState, object: AnyObject) {
    match object {
        AnyObject::Service(one) => drop(cluster.services.insert(one.key(), one)),
        AnyObject::Pod(one) => drop(cluster.pods.insert(one.key(), one)),
        AnyObject::Node(one) => drop(cluster.nodes.insert(one.name.clone(), one)),
        AnyObject::Endpoints(one) => drop(cluster.endpoints.insert(one.meta.key(), one)),
        AnyObject::EndpointSlice(one) => drop(cluster.slices.insert(one.meta.key(), one)),
        AnyObject::ReferenceGrant(one) => drop(cluster.grants.insert(one.key(), one)),
    }
}

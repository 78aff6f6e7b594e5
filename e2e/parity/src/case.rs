//! A world and what upstream did with it. The format is described in `vectors/README.md`.

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
    pub world: WorldText,
    pub expect: Expected,
    #[serde(default)]
    pub then: Option<Then>,
}

#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct CaseSettings {
    pub max_endpoints_per_slice: Option<usize>,
    pub max_endpoints_per_subset: Option<usize>,
    /// The API server refuses such requests during the first sync.
    pub inject: Option<Value>,
}

/// Objects as Kubernetes JSON.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct WorldText {
    pub services: Vec<Value>,
    pub pods: Vec<Value>,
    pub nodes: Vec<Value>,
    pub endpointslices: Vec<Value>,
    pub endpoints: Vec<Value>,
}

/// What upstream did in one sync, and in a second one right after.
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

/// A third sync by the same controller, after the world changed.
#[derive(Clone, Debug, Serialize, Deserialize)]
pub struct Then {
    pub world: WorldText,
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
        }
    }
}

impl Expected {
    /// The slices and the Endpoints the sync left behind.
    pub fn end_objects(&self) -> impl Iterator<Item = &Value> {
        let slices = self.end["endpointslices"].as_array().into_iter().flatten();
        let endpoints = Some(&self.end["endpoints"]).filter(|endpoints| endpoints.is_object());
        slices.chain(endpoints)
    }
}

impl WorldText {
    pub fn objects(&self) -> impl Iterator<Item = &Value> {
        let Self { services, pods, nodes, endpointslices, endpoints } = self;
        services.iter().chain(pods).chain(nodes).chain(endpointslices).chain(endpoints)
    }

    pub fn to_world(&self) -> Result<ClusterState> {
        let mut world = ClusterState::default();
        for value in self.objects() {
            let object = AnyObject::from_value(value)?;
            add(&mut world, object.context("an object of a kind we do not know")?);
        }
        Ok(world)
    }
}

/// Puts an object where it belongs.
pub fn add(world: &mut ClusterState, object: AnyObject) {
    match object {
        AnyObject::Service(one) => drop(world.services.insert(one.key(), one)),
        AnyObject::Pod(one) => drop(world.pods.insert(one.key(), one)),
        AnyObject::Node(one) => drop(world.nodes.insert(one.name.clone(), one)),
        AnyObject::Endpoints(one) => drop(world.endpoints.insert(one.meta.key(), one)),
        AnyObject::EndpointSlice(one) => drop(world.slices.insert(one.meta.key(), one)),
    }
}

//! The plan as JSON. Objects are converted one at a time, while they are written.

use std::io;

use endpointd_model::{Controller, DeleteTarget, Write};
use endpointd_plan::{ClusterState, Plan};
use endpointd_wire::to_json_value;
use serde::{Serialize, Serializer};
use serde_json::Value;

use super::KeyPlan;
use crate::changes::{changes, object_before};

/// The controller in the JSON and in the table.
pub fn controller_label(controller: Controller) -> &'static str {
    match controller {
        Controller::Slices => "endpointslice",
        Controller::Endpoints => "endpoints",
        Controller::Mirror => "mirroring",
        Controller::Import => "import",
        Controller::MultiCluster => "multicluster",
    }
}

/// The version of this form; a field never changes its meaning.
const FORMAT_VERSION: &str = "1.0";

pub fn render(
    out: &mut impl io::Write,
    cluster: &ClusterState,
    planned: &[KeyPlan],
) -> io::Result<()> {
    let plans = planned.iter().map(|plan| InCluster { plan, cluster }).collect();
    let output = Output { format_version: FORMAT_VERSION, plans };
    serde_json::to_writer_pretty(&mut *out, &output)?;
    writeln!(out)
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Output<'a> {
    format_version: &'static str,
    plans: Vec<InCluster<'a>>,
}

/// A plan and the objects that it changes.
struct InCluster<'a> {
    plan: &'a KeyPlan,
    cluster: &'a ClusterState,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct PlanJson<'a> {
    controller: &'static str,
    key: String,
    writes: Vec<WriteJson<'a>>,
    events: Vec<EventJson<'a>>,
    excluded_pods: Vec<ExcludedPodJson<'a>>,
    retry: Option<String>,
}

impl Serialize for InCluster<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { plan: KeyPlan { key, controller, plan }, cluster } = self;
        let Plan { writes, event_records, excluded_pods, retry, counts: _, carried: _ } = plan;
        let events = event_records.iter().map(|record| EventJson {
            kind: record.event_type().as_str(),
            reason: record.reason.as_str(),
            message: &record.message,
        });
        let excluded_pods = excluded_pods
            .iter()
            .map(|one| ExcludedPodJson { pod: &one.pod, reason: one.reason.as_str() });
        let plan = PlanJson {
            controller: controller_label(*controller),
            key: key.to_string(),
            writes: writes.iter().map(|write| WriteJson { write, cluster }).collect(),
            events: events.collect(),
            excluded_pods: excluded_pods.collect(),
            retry: retry.as_ref().map(ToString::to_string),
        };
        plan.serialize(serializer)
    }
}

struct WriteJson<'a> {
    write: &'a Write,
    cluster: &'a ClusterState,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct WriteFields<'a> {
    verb: &'static str,
    resource: &'static str,
    name: &'a str,
    /// The object as it is; a create has none.
    before: Option<Value>,
    /// The object as it will be; a delete has none.
    object: Option<Value>,
    changes: Vec<String>,
    /// Preconditions of a delete.
    #[serde(skip_serializing_if = "Option::is_none")]
    uid: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    resource_version: Option<String>,
}

impl Serialize for WriteJson<'_> {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let Self { write, cluster } = self;
        let before = object_before(cluster, write);
        let key = write.key();
        let preconditions = match write {
            Write::Create(_) | Write::Update(_) => None,
            Write::Delete(DeleteTarget { uid, resource_version, .. }) => {
                Some((uid, resource_version))
            }
        };
        let fields = WriteFields {
            verb: write.verb(),
            resource: write.resource().as_str(),
            name: &key.name,
            changes: changes(before.as_ref(), write.object())
                .iter()
                .map(ToString::to_string)
                .collect(),
            before: before.as_ref().map(to_json_value),
            object: write.object().map(to_json_value),
            uid: preconditions.map(|(uid, _)| uid.to_string()),
            resource_version: preconditions.map(|(_, version)| version.to_string()),
        };
        fields.serialize(serializer)
    }
}

#[derive(Serialize)]
struct EventJson<'a> {
    #[serde(rename = "type")]
    kind: &'static str,
    reason: &'static str,
    message: &'a str,
}

#[derive(Serialize)]
struct ExcludedPodJson<'a> {
    pod: &'a str,
    reason: &'static str,
}

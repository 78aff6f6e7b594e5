//! Plans a case and compares the result with upstream's.

use std::fmt;

use anyhow::Result;
use endpointd_model::{Controller, DeleteTarget, Key, PublishedResource, Write, names};
use endpointd_plan::{CarriedState, ClusterState, Plan};
use endpointd_wire::AnyObject;
use serde_json::Value;

use crate::answer::Answer;
use crate::canonical::{self, HintsIn, KnownNames};
use crate::case::{Case, Expected};
use crate::deliberate::{DeliberateDifference, Sync, SyncStep};

/// The part of the results that was compared.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Aspect {
    Writes,
    WriteCounts,
    Events,
    Errors,
    End,
    EndShape,
    EndUnion,
    EndUnionWithHints,
    /// Our second plan must be empty, whatever upstream does.
    Idempotence,
}

#[derive(Clone, Debug)]
pub struct Difference {
    /// `first` or `then`.
    pub sync: &'static str,
    pub aspect: Aspect,
    /// The deliberate difference that explains it; none means a bug, upstream's or ours.
    pub deliberate: Option<DeliberateDifference>,
    pub upstream: String,
    pub ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sync, aspect, deliberate, upstream, ours } = self;
        let deliberate =
            deliberate.map_or(String::new(), |deliberate| format!(", deliberate {deliberate}"));
        write!(
            f,
            "{sync} sync, {aspect:?}{deliberate}:\n  upstream: {upstream}\n  ours:     {ours}"
        )
    }
}

/// All differences between upstream's result and ours.
pub fn judge(case: &Case) -> Result<Vec<Difference>> {
    judge_and_observe(case, |_| {})
}

/// The same; `observe` receives each sync.
pub fn judge_and_observe(case: &Case, mut observe: impl FnMut(&Sync)) -> Result<Vec<Difference>> {
    let mut judge = Judge {
        case,
        controller: case.controller()?,
        key: case.key()?,
        known: known_names(case),
        cluster: case.objects.to_cluster_state()?,
        carried: CarriedState::default(),
        differences: Vec::new(),
    };
    judge.sync(SyncStep::First, &case.expect, &mut observe);
    if let Some(then) = &case.then {
        judge.catch_up_with_upstream(&case.expect)?;
        judge.change_cluster(then.objects.to_cluster_state()?);
        judge.sync(SyncStep::AfterChange, &then.expect, &mut observe);
    }
    Ok(judge.differences)
}

pub(crate) fn known_names(case: &Case) -> KnownNames {
    let name = |object: &Value| Some(object["metadata"]["name"].as_str()?.to_owned());
    case.objects.all().filter_map(name).collect()
}

/// One controller on one key, from sync to sync.
struct Judge<'a> {
    case: &'a Case,
    controller: Controller,
    key: Key,
    known: KnownNames,
    cluster: ClusterState,
    carried: CarriedState,
    differences: Vec<Difference>,
}

impl Judge<'_> {
    /// Plans, applies, compares, and plans again.
    fn sync(&mut self, step: SyncStep, expected: &Expected, observe: &mut impl FnMut(&Sync)) {
        let before = self.cluster.clone();
        let (plan, ours) = self.plan();
        let upstream = Answer::expected(expected, &self.known);
        let sync = Sync {
            case: self.case,
            controller: self.controller,
            key: &self.key,
            before: &before,
            plan: &plan,
            after: &self.cluster,
            expected,
            upstream: &upstream,
            ours: &ours,
            step,
        };
        observe(&sync);
        for (aspect, upstream, ours) in compare(&upstream, &ours, expected) {
            let deliberate = sync.explain(aspect);
            self.differences.push(Difference {
                sync: step.as_str(),
                aspect,
                deliberate,
                upstream,
                ours,
            });
        }
        self.carried = plan.carried;
        let (again, ours) = self.plan();
        if !again.writes.is_empty() {
            self.differences.push(Difference {
                sync: step.as_str(),
                aspect: Aspect::Idempotence,
                deliberate: None,
                upstream: "-".into(),
                ours: view(&ours, Aspect::Idempotence),
            });
        }
        self.carried = again.carried;
    }

    fn plan(&mut self) -> (Plan, Answer) {
        let settings = self.case.settings();
        let plan = self.cluster.plan(self.controller, &self.key, &self.carried, &settings);
        plan.writes.iter().for_each(|write| self.cluster.apply(write));
        let answer = Answer::ours(&plan, &self.cluster, &self.key, &self.known);
        (plan, answer)
    }

    /// If upstream left another cluster state, at random or deliberately, the next sync starts from
    /// upstream's state, so that each sync is compared separately.
    fn catch_up_with_upstream(&mut self, expected: &Expected) -> Result<()> {
        let ours = Answer::ours(&Plan::default(), &self.cluster, &self.key, &self.known);
        let upstream = Answer::expected(expected, &self.known);
        let is_same = (&ours.slices, &ours.endpoints) == (&upstream.slices, &upstream.endpoints);
        if is_same && expected.second_sync_writes.is_empty() {
            return Ok(());
        }
        let Key { namespace, name } = &self.key;
        self.cluster.slices.retain(|_, slice| {
            slice.meta.namespace != *namespace || !slice.meta.labels.has(names::SERVICE_NAME, name)
        });
        self.cluster.endpoints.remove(&self.key);
        for object in expected.end_objects() {
            self.store(object)?;
        }
        for write in &expected.second_sync_writes {
            self.replay(write)?;
        }
        Ok(())
    }

    fn store(&mut self, object: &Value) -> Result<()> {
        match AnyObject::from_value(object)? {
            Some(AnyObject::EndpointSlice(one)) => {
                self.cluster.slices.insert(one.meta.key(), one);
            }
            Some(AnyObject::Endpoints(one)) => {
                self.cluster.endpoints.insert(one.meta.key(), one);
            }
            _ => {}
        }
        Ok(())
    }

    /// Applies one of upstream's writes as its API server did.
    fn replay(&mut self, write: &Value) -> Result<()> {
        if write["failed"].is_string() {
            return Ok(());
        }
        let name = write["assignedName"].as_str().or(write["name"].as_str()).unwrap_or("");
        let key = Key::new(self.key.namespace.clone(), name);
        let resource = match write["resource"].as_str() {
            Some("endpointslices") => PublishedResource::Slices,
            _ => PublishedResource::Endpoints,
        };
        let (slice, endpoints) = (self.cluster.slices.get(&key), self.cluster.endpoints.get(&key));
        let meta = match resource {
            PublishedResource::Slices => slice.map(|one| one.meta.clone()),
            PublishedResource::Endpoints => endpoints.map(|one| one.meta.clone()),
            PublishedResource::ServiceStatus | PublishedResource::MultiCluster(_) => None,
        };
        if write["verb"] == "delete" {
            if let Some(meta) = meta {
                self.cluster.apply(&Write::Delete(DeleteTarget::of(resource, &meta)));
            }
            return Ok(());
        }
        let mut object = write["object"].clone();
        object["metadata"]["name"] = name.into();
        object["metadata"]["namespace"] = self.key.namespace.as_ref().into();
        let uid = meta.map_or_else(|| format!("uid-{name}"), |meta| meta.uid.to_string());
        object["metadata"]["uid"] = uid.into();
        self.store(&object)
    }

    /// Replaces all objects except those that the controller writes. Names that are free again can
    /// be generated again.
    fn change_cluster(&mut self, next: ClusterState) {
        let (slices, key) = (&self.cluster.slices, &self.key);
        self.known.retain(|name| {
            let sought = Key::new(key.namespace.clone(), name.as_str());
            slices.contains_key(&sought) || name.as_str() == key.name.as_ref()
        });
        self.cluster.services = next.services;
        match self.controller {
            Controller::Mirror => self.cluster.endpoints = next.endpoints,
            // Upstream has no such controllers.
            Controller::Import | Controller::MultiCluster => {}
            Controller::Slices | Controller::Endpoints => {
                self.cluster.pods = next.pods;
                self.cluster.nodes = next.nodes;
            }
        }
    }
}

fn compare(upstream: &Answer, ours: &Answer, expected: &Expected) -> Vec<(Aspect, String, String)> {
    let aspects: Vec<Aspect> = if expected.nondeterministic {
        expected.stable.iter().filter_map(|name| stable_aspect(name)).collect()
    } else {
        vec![Aspect::Writes, Aspect::Events, Aspect::Errors, Aspect::End]
    };
    let views =
        aspects.into_iter().map(|aspect| (aspect, view(upstream, aspect), view(ours, aspect)));
    views.filter(|(_, upstream, ours)| upstream != ours).collect()
}

fn stable_aspect(name: &str) -> Option<Aspect> {
    match name {
        "writeCounts" => Some(Aspect::WriteCounts),
        "endShape" => Some(Aspect::EndShape),
        "endUnion" => Some(Aspect::EndUnion),
        "endUnionWithHints" => Some(Aspect::EndUnionWithHints),
        "events" => Some(Aspect::Events),
        "errors" => Some(Aspect::Errors),
        _ => None,
    }
}

fn view(answer: &Answer, aspect: Aspect) -> String {
    match aspect {
        Aspect::Writes | Aspect::Idempotence => answer.writes.join("\n            "),
        Aspect::WriteCounts => format!("{:?}", answer.n_writes),
        Aspect::Events => answer.events.join("\n            "),
        Aspect::Errors => answer.errors.join("\n            "),
        Aspect::End => format!("{:?} {}", answer.slices, answer.endpoints),
        Aspect::EndShape => format!("{:?}", canonical::shape(&answer.slices)),
        Aspect::EndUnion => format!("{:?}", canonical::union(&answer.slices, HintsIn::Ignored)),
        Aspect::EndUnionWithHints => {
            format!("{:?}", canonical::union(&answer.slices, HintsIn::Compared))
        }
    }
}

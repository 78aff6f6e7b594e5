//! Plans a case's world and compares with upstream.

use std::fmt;

use anyhow::Result;
use endpointd_model::{Controller, DeleteTarget, Key, PublishedResource, Write, names};
use endpointd_plan::{CarriedState, ClusterState, Plan};
use endpointd_wire::AnyObject;
use serde_json::Value;

use crate::answer::Answer;
use crate::canonical::{self, HintsIn, KnownNames};
use crate::case::{Case, Expected};
use crate::choice::{Choice, Sync, Turn};

/// What was compared.
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
    /// We must be at rest after one plan, whatever upstream does.
    Rest,
}

#[derive(Clone, Debug)]
pub struct Difference {
    /// `first` or `then`.
    pub sync: &'static str,
    pub aspect: Aspect,
    /// What explains it; without one it is a bug, theirs or ours.
    pub choice: Option<Choice>,
    pub upstream: String,
    pub ours: String,
}

impl fmt::Display for Difference {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { sync, aspect, choice, upstream, ours } = self;
        let choice = choice.map_or(String::new(), |choice| format!(", by choice {choice}"));
        write!(f, "{sync} sync, {aspect:?}{choice}:\n  upstream: {upstream}\n  ours:     {ours}")
    }
}

/// Every difference between upstream's answer and ours; none is agreement.
pub fn judge(case: &Case) -> Result<Vec<Difference>> {
    judge_and_tell(case, |_| {})
}

/// The same, and tells `see` about each sync.
pub fn judge_and_tell(case: &Case, mut see: impl FnMut(&Sync)) -> Result<Vec<Difference>> {
    let mut judge = Judge {
        case,
        controller: case.controller()?,
        key: case.key()?,
        known: known_names(case),
        world: case.world.to_world()?,
        carried: CarriedState::default(),
        differences: Vec::new(),
    };
    judge.sync(Turn::First, &case.expect, &mut see);
    if let Some(then) = &case.then {
        judge.catch_up_with_upstream(&case.expect)?;
        judge.move_on(then.world.to_world()?);
        judge.sync(Turn::Then, &then.expect, &mut see);
    }
    Ok(judge.differences)
}

pub(crate) fn known_names(case: &Case) -> KnownNames {
    let name = |object: &Value| Some(object["metadata"]["name"].as_str()?.to_owned());
    case.world.objects().filter_map(name).collect()
}

/// One controller on one key, from sync to sync.
struct Judge<'a> {
    case: &'a Case,
    controller: Controller,
    key: Key,
    known: KnownNames,
    world: ClusterState,
    carried: CarriedState,
    differences: Vec<Difference>,
}

impl Judge<'_> {
    /// Plans, applies, compares, and plans again.
    fn sync(&mut self, turn: Turn, expected: &Expected, see: &mut impl FnMut(&Sync)) {
        let before = self.world.clone();
        let (plan, ours) = self.plan();
        let upstream = Answer::expected(expected, &self.known);
        let seen = Sync {
            case: self.case,
            controller: self.controller,
            key: &self.key,
            before: &before,
            plan: &plan,
            after: &self.world,
            expected,
            upstream: &upstream,
            ours: &ours,
            turn,
        };
        see(&seen);
        for (aspect, upstream, ours) in compare(&upstream, &ours, expected) {
            let choice = seen.explain(aspect);
            self.differences.push(Difference {
                sync: turn.as_str(),
                aspect,
                choice,
                upstream,
                ours,
            });
        }
        self.carried = plan.carried;
        let (again, ours) = self.plan();
        if !again.writes.is_empty() {
            self.differences.push(Difference {
                sync: turn.as_str(),
                aspect: Aspect::Rest,
                choice: None,
                upstream: "-".into(),
                ours: view(&ours, Aspect::Rest),
            });
        }
        self.carried = again.carried;
    }

    fn plan(&mut self) -> (Plan, Answer) {
        let settings = self.case.settings();
        let plan = self.world.plan(self.controller, &self.key, &self.carried, &settings);
        plan.writes.iter().for_each(|write| self.world.apply(write));
        let answer = Answer::ours(&plan, &self.world, &self.key, &self.known);
        (plan, answer)
    }

    /// Where upstream left the world otherwise, by chance or by our choice, the next sync starts
    /// where upstream's starts: each sync is compared on its own.
    fn catch_up_with_upstream(&mut self, expected: &Expected) -> Result<()> {
        let ours = Answer::ours(&Plan::default(), &self.world, &self.key, &self.known);
        let upstream = Answer::expected(expected, &self.known);
        let is_same = (&ours.slices, &ours.endpoints) == (&upstream.slices, &upstream.endpoints);
        if is_same && expected.second_sync_writes.is_empty() {
            return Ok(());
        }
        let Key { namespace, name } = &self.key;
        self.world.slices.retain(|_, slice| {
            slice.meta.namespace != *namespace || !slice.meta.labels.has(names::SERVICE_NAME, name)
        });
        self.world.endpoints.remove(&self.key);
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
                self.world.slices.insert(one.meta.key(), one);
            }
            Some(AnyObject::Endpoints(one)) => {
                self.world.endpoints.insert(one.meta.key(), one);
            }
            _ => {}
        }
        Ok(())
    }

    /// One of upstream's writes, as its API server took it.
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
        let (slice, endpoints) = (self.world.slices.get(&key), self.world.endpoints.get(&key));
        let meta = match resource {
            PublishedResource::Slices => slice.map(|one| one.meta.clone()),
            PublishedResource::Endpoints => endpoints.map(|one| one.meta.clone()),
        };
        if write["verb"] == "delete" {
            if let Some(meta) = meta {
                self.world.apply(&Write::Delete(DeleteTarget::of(resource, &meta)));
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

    /// What the controller writes stays; all else is replaced. A name that is free again may be
    /// given out again.
    fn move_on(&mut self, next: ClusterState) {
        let (slices, key) = (&self.world.slices, &self.key);
        self.known.retain(|name| {
            let sought = Key::new(key.namespace.clone(), name.as_str());
            slices.contains_key(&sought) || name.as_str() == key.name.as_ref()
        });
        self.world.services = next.services;
        match self.controller {
            Controller::Mirror => self.world.endpoints = next.endpoints,
            Controller::Slices | Controller::Endpoints => {
                self.world.pods = next.pods;
                self.world.nodes = next.nodes;
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
        Aspect::Writes | Aspect::Rest => answer.writes.join("\n            "),
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

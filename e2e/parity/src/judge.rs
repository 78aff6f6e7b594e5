//! Plans a case's world and compares with upstream.

use std::fmt;

use anyhow::Result;
use endpointd_model::{Controller, Key};
use endpointd_plan::{Memory, Plan, World};

use crate::answer::Answer;
use crate::canonical::{self, HintsIn, KnownNames};
use crate::case::{Case, Expected};
use crate::choice::{Choice, Sync};

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
    let mut judge = Judge {
        case,
        controller: case.controller()?,
        key: case.key()?,
        known: known_names(case),
        world: case.world.to_world()?,
        memory: Memory::default(),
        differences: Vec::new(),
    };
    judge.sync("first", &case.expect);
    if let Some(then) = &case.then {
        judge.move_on(then.world.to_world()?);
        judge.sync("then", &then.expect);
    }
    Ok(judge.differences)
}

fn known_names(case: &Case) -> KnownNames {
    let name = |object: &serde_json::Value| Some(object["metadata"]["name"].as_str()?.to_owned());
    case.world.objects().filter_map(name).collect()
}

/// One controller on one key, from sync to sync.
struct Judge<'a> {
    case: &'a Case,
    controller: Controller,
    key: Key,
    known: KnownNames,
    world: World,
    memory: Memory,
    differences: Vec<Difference>,
}

impl Judge<'_> {
    /// Plans, applies, compares, and plans again.
    fn sync(&mut self, name: &'static str, expected: &Expected) {
        let before = self.world.clone();
        let (plan, ours) = self.plan();
        let upstream = Answer::expected(expected, &self.known);
        let seen = Sync {
            case: self.case,
            controller: self.controller,
            before: &before,
            upstream: &upstream,
            ours: &ours,
            is_first: name == "first",
        };
        for (aspect, upstream, ours) in compare(&upstream, &ours, expected) {
            let choice = seen.explain(aspect);
            self.differences.push(Difference { sync: name, aspect, choice, upstream, ours });
        }
        self.memory = plan.memory;
        let (again, ours) = self.plan();
        if !again.is_empty() {
            self.differences.push(Difference {
                sync: name,
                aspect: Aspect::Rest,
                choice: None,
                upstream: "-".into(),
                ours: view(&ours, Aspect::Rest),
            });
        }
        self.memory = again.memory;
    }

    fn plan(&mut self) -> (Plan, Answer) {
        let settings = self.case.settings();
        let plan = self.world.plan(self.controller, &self.key, &self.memory, &settings);
        plan.writes.iter().for_each(|write| self.world.apply(write));
        let answer = Answer::ours(&plan, &self.world, &self.key, &self.known);
        (plan, answer)
    }

    /// What the controller writes stays; all else is replaced.
    fn move_on(&mut self, next: World) {
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

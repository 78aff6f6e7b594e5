//! Plays a script from beginning to end.

use std::panic::{AssertUnwindSafe, catch_unwind};

use crate::census::{Census, Rule, Violation};
use crate::clock::Time;
use crate::script::Script;
use crate::world::{Snare, World};

/// What a run came to.
#[derive(Debug)]
pub struct Verdict {
    pub violation: Option<Violation>,
    pub census: Census,
    /// Writes sent before the final calm.
    pub n_sent: u64,
    pub story: Vec<String>,
}

/// How to play.
#[derive(Clone, Copy, Debug, Default)]
pub struct Manner {
    pub snare: Option<Snare>,
    pub tells_story: bool,
}

pub fn play(script: &Script) -> Verdict {
    play_with(script, Manner::default())
}

pub fn play_with(script: &Script, manner: Manner) -> Verdict {
    let run = AssertUnwindSafe(|| run(script, manner));
    catch_unwind(run).unwrap_or_else(|panic| {
        let text = panic.downcast_ref::<String>().cloned();
        let text = text.or_else(|| panic.downcast_ref::<&str>().map(|&text| text.to_owned()));
        let text = format!("panic: {}", text.unwrap_or_default());
        let violation = Some(Violation { rule: Rule::NoLeftovers, text });
        Verdict { violation, census: Census::default(), n_sent: 0, story: Vec::new() }
    })
}

fn run(script: &Script, manner: Manner) -> Verdict {
    let mut world = World::new(script);
    world.snare = manner.snare;
    world.story = manner.tells_story.then(Vec::new);
    for step in &script.steps {
        world.act(&step.act, step.pause);
        if world.violation.is_some() {
            break;
        }
    }
    let n_sent = world.n_sent;
    world.finish();
    world.census.n_seconds = world.now.since(Time::START).as_secs();
    let World { violation, census, story, .. } = world;
    Verdict { violation, census, n_sent, story: story.unwrap_or_default() }
}

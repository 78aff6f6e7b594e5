//! From a world that differs to the smallest one we can find that still differs.
//!
//! Works on the JSON, so that it knows nothing of Services or pods: any item of a list and any
//! field may go, as long as the difference stays.

use std::time::Instant;

use serde_json::Value;

use crate::case::{Case, Then, WorldText};

/// What a world may cost.
const ATTEMPTS_MAX: usize = 4000;

/// Without these an object is none, or none that an API server would show: it fills them in.
const KEPT_FIELDS: [&str; 13] = [
    "apiVersion",
    "kind",
    "metadata",
    "name",
    "namespace",
    "uid",
    "port",
    "containerPort",
    "protocol",
    "targetPort",
    "addressType",
    "ip",
    "resourceVersion",
];

/// `still` answers a smaller case and gives it back if it differs in the same way. When the time
/// is over, the smallest so far has to do.
pub fn shrink(case: Case, until: Instant, still: impl FnMut(Case) -> Option<Case>) -> Case {
    let mut shrinker = Shrinker { best: case, still, until, n_attempts: 0 };
    shrinker.drop_then();
    loop {
        let before = shrinker.n_attempts;
        let is_smaller = shrinker.pass(Part::ClusterState) | shrinker.pass(Part::Then);
        if !is_smaller || shrinker.n_attempts == before || shrinker.is_spent() {
            return shrinker.best;
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    ClusterState,
    Then,
}

struct Shrinker<F> {
    best: Case,
    still: F,
    until: Instant,
    n_attempts: usize,
}

impl<F: FnMut(Case) -> Option<Case>> Shrinker<F> {
    fn is_spent(&self) -> bool {
        self.n_attempts >= ATTEMPTS_MAX || Instant::now() >= self.until
    }

    fn attempt(&mut self, smaller: Case) -> bool {
        self.n_attempts += 1;
        match (self.still)(smaller) {
            Some(case) => {
                self.best = case;
                true
            }
            None => false,
        }
    }

    fn drop_then(&mut self) {
        if self.best.then.is_some() {
            let smaller = Case { then: None, ..self.best.clone() };
            self.attempt(smaller);
        }
    }

    /// Tries to take away everything once, the largest pieces first.
    fn pass(&mut self, part: Part) -> bool {
        let mut is_smaller = false;
        for depth in 1.. {
            let paths = paths(&self.text(part), depth);
            if paths.is_empty() || self.is_spent() {
                return is_smaller;
            }
            is_smaller |= self.remove_some(part, &paths);
        }
        is_smaller
    }

    /// Halves, quarters, and so on down to single pieces.
    fn remove_some(&mut self, part: Part, paths: &[String]) -> bool {
        let Some(depth) = paths.first().map(|path| depth_of(path)) else { return false };
        let mut n_chunk = paths.len().div_ceil(2);
        let mut is_smaller = false;
        loop {
            is_smaller |= self.remove_chunks(part, depth, n_chunk);
            if n_chunk <= 1 || self.is_spent() {
                return is_smaller;
            }
            n_chunk = n_chunk.div_ceil(2);
        }
    }

    fn remove_chunks(&mut self, part: Part, depth: usize, n_chunk: usize) -> bool {
        let mut left = paths(&self.text(part), depth);
        let (mut at, mut is_smaller) = (0, false);
        while at < left.len() && !self.is_spent() {
            let end = (at + n_chunk).min(left.len());
            if self.remove(part, &left[at..end]) {
                is_smaller = true;
                // What comes later in a list has moved up.
                left = paths(&self.text(part), depth);
            } else {
                at = end;
            }
        }
        is_smaller
    }

    fn remove(&mut self, part: Part, paths: &[String]) -> bool {
        let mut text = self.text(part);
        // From the end, so that the places before stay where they are.
        for path in paths.iter().rev() {
            remove_at(&mut text, path);
        }
        let Ok(world) = serde_json::from_value::<WorldText>(text) else { return false };
        let mut smaller = self.best.clone();
        match (part, &mut smaller.then) {
            (Part::ClusterState, _) => smaller.world = world,
            // A world does not remember that it once had nodes, which upstream does.
            (Part::Then, Some(_)) if world.nodes.is_empty() && !smaller.world.nodes.is_empty() => {
                return false;
            }
            (Part::Then, Some(then)) => {
                *then = Then { world, expect: then.expect.clone() };
            }
            (Part::Then, None) => return false,
        }
        self.attempt(smaller)
    }

    fn text(&self, part: Part) -> Value {
        let world = match (part, &self.best.then) {
            (Part::ClusterState, _) => Some(&self.best.world),
            (Part::Then, then) => then.as_ref().map(|then| &then.world),
        };
        let text = world.map(|world| serde_json::to_value(world).expect("a world is JSON"));
        text.unwrap_or_default()
    }
}

fn depth_of(path: &str) -> usize {
    path.matches('/').count() - 1
}

/// JSON pointers to all that may go at a depth: 1 is an object of a list, 2 one of its fields.
fn paths(world: &Value, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    collect(world, String::new(), depth + 1, &mut found);
    found
}

fn collect(value: &Value, path: String, depth: usize, found: &mut Vec<String>) {
    if depth == 0 {
        return found.push(path);
    }
    match value {
        Value::Array(items) => {
            for (at, item) in items.iter().enumerate() {
                collect(item, format!("{path}/{at}"), depth - 1, found);
            }
        }
        Value::Object(fields) => {
            for (field, value) in fields {
                if depth > 1 || !KEPT_FIELDS.contains(&field.as_str()) {
                    let field = field.replace('~', "~0").replace('/', "~1");
                    collect(value, format!("{path}/{field}"), depth - 1, found);
                }
            }
        }
        _ => {}
    }
}

fn remove_at(world: &mut Value, path: &str) {
    let Some((parent, last)) = path.rsplit_once('/') else { return };
    match world.pointer_mut(parent) {
        Some(Value::Array(items)) => {
            if let Some(at) = last.parse().ok().filter(|at| *at < items.len()) {
                let at: usize = at;
                items.remove(at);
            }
        }
        Some(Value::Object(fields)) => {
            fields.remove(&last.replace("~1", "/").replace("~0", "~"));
            // An empty selector selects everything and cannot come over the wire; it is no
            // smaller version of one that selects something.
            if fields.is_empty() && parent.ends_with("/selector") {
                remove_at(world, parent);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::generate::{Scope, world};

    fn soon() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// An artificial difference: some pod is in phase `Failed`.
    fn has_failed_pod(case: &Case) -> bool {
        case.world.pods.iter().any(|pod| pod["status"]["phase"] == "Failed")
    }

    #[test]
    fn a_world_shrinks_to_what_makes_the_difference() {
        let mut cases = (4..500).map(|index| world(5, index, Scope::All));
        let case = cases
            .find(|case| has_failed_pod(case) && case.world.pods.len() > 3)
            .expect("pods fail in some of many worlds");
        let small = shrink(case, soon(), |case| has_failed_pod(&case).then_some(case));
        let text = serde_json::to_value(&small.world.pods).expect("JSON");
        let only = serde_json::json!([{
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": small.world.pods[0]["metadata"]["name"],
                         "namespace": small.world.pods[0]["metadata"]["namespace"],
                         "uid": small.world.pods[0]["metadata"]["uid"],
                         "resourceVersion": small.world.pods[0]["metadata"]["resourceVersion"]},
            "status": {"phase": "Failed"},
        }]);
        assert_eq!(text, only);
        let WorldText { services, pods: _, nodes, endpointslices, endpoints } = small.world;
        assert!(services.is_empty() && nodes.is_empty());
        assert!(endpointslices.is_empty() && endpoints.is_empty());
        assert!(small.then.is_none());
    }

    #[test]
    fn what_cannot_shrink_stays() {
        let case = world(5, 4, Scope::All);
        let same = shrink(case.clone(), soon(), |_| None);
        assert_eq!(serde_json::to_value(same).ok(), serde_json::to_value(case).ok());
    }
}

//! Reduces a differing case to the smallest one found that still differs.
//!
//! It works on the JSON without knowledge of the kinds: any list item and any field may be removed
//! as long as the difference stays.

use std::time::Instant;

use serde_json::Value;

use crate::case::{Case, ClusterObjects, Then};

/// The limit of attempts per case.
const ATTEMPTS_MAX: usize = 4000;

/// Fields that every object of an API server has; they are not removed.
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

/// `still` compares a smaller case and returns it if it differs in the same way. At `until`, the
/// smallest case so far is the result.
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

    /// Tries to remove every part once, the largest parts first.
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

    /// Tries halves, quarters, and so on, down to single items.
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
                // Later items of a list have new indexes.
                left = paths(&self.text(part), depth);
            } else {
                at = end;
            }
        }
        is_smaller
    }

    fn remove(&mut self, part: Part, paths: &[String]) -> bool {
        let mut text = self.text(part);
        // From the end, so that earlier paths stay valid.
        for path in paths.iter().rev() {
            remove_at(&mut text, path);
        }
        let Ok(objects) = serde_json::from_value::<ClusterObjects>(text) else { return false };
        let mut smaller = self.best.clone();
        match (part, &mut smaller.then) {
            (Part::ClusterState, _) => smaller.objects = objects,
            // Upstream remembers that nodes once existed; a cluster state does not.
            (Part::Then, Some(_))
                if objects.nodes.is_empty() && !smaller.objects.nodes.is_empty() =>
            {
                return false;
            }
            (Part::Then, Some(then)) => {
                *then = Then { objects, expect: then.expect.clone() };
            }
            (Part::Then, None) => return false,
        }
        self.attempt(smaller)
    }

    fn text(&self, part: Part) -> Value {
        let objects = match (part, &self.best.then) {
            (Part::ClusterState, _) => Some(&self.best.objects),
            (Part::Then, then) => then.as_ref().map(|then| &then.objects),
        };
        let text = objects.map(|objects| serde_json::to_value(objects).expect("a objects is JSON"));
        text.unwrap_or_default()
    }
}

fn depth_of(path: &str) -> usize {
    path.matches('/').count() - 1
}

/// JSON pointers to everything that may be removed at a depth: 1 is an object of a list, 2 is one
/// of its fields.
fn paths(objects: &Value, depth: usize) -> Vec<String> {
    let mut found = Vec::new();
    collect(objects, String::new(), depth + 1, &mut found);
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

fn remove_at(objects: &mut Value, path: &str) {
    let Some((parent, last)) = path.rsplit_once('/') else { return };
    match objects.pointer_mut(parent) {
        Some(Value::Array(items)) => {
            if let Some(at) = last.parse().ok().filter(|at| *at < items.len()) {
                let at: usize = at;
                items.remove(at);
            }
        }
        Some(Value::Object(fields)) => {
            fields.remove(&last.replace("~1", "/").replace("~0", "~"));
            // An empty selector has another meaning, and no API server stores it.
            if fields.is_empty() && parent.ends_with("/selector") {
                remove_at(objects, parent);
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::generate::{Scope, generated_case};

    fn deadline() -> Instant {
        Instant::now() + Duration::from_secs(60)
    }

    /// An artificial difference: some pod is in phase `Failed`.
    fn has_failed_pod(case: &Case) -> bool {
        case.objects.pods.iter().any(|pod| pod["status"]["phase"] == "Failed")
    }

    #[test]
    fn a_case_shrinks_to_the_cause_of_its_difference() {
        let mut cases = (4..500).map(|index| generated_case(5, index, Scope::All));
        let case = cases
            .find(|case| has_failed_pod(case) && case.objects.pods.len() > 3)
            .expect("pods fail in some of many cases");
        let small = shrink(case, deadline(), |case| has_failed_pod(&case).then_some(case));
        let text = serde_json::to_value(&small.objects.pods).expect("JSON");
        let only = serde_json::json!([{
            "apiVersion": "v1", "kind": "Pod",
            "metadata": {"name": small.objects.pods[0]["metadata"]["name"],
                         "namespace": small.objects.pods[0]["metadata"]["namespace"],
                         "uid": small.objects.pods[0]["metadata"]["uid"],
                         "resourceVersion": small.objects.pods[0]["metadata"]["resourceVersion"]},
            "status": {"phase": "Failed"},
        }]);
        assert_eq!(text, only);
        let ClusterObjects { services, pods: _, nodes, endpointslices, endpoints } = small.objects;
        assert!(services.is_empty() && nodes.is_empty());
        assert!(endpointslices.is_empty() && endpoints.is_empty());
        assert!(small.then.is_none());
    }

    #[test]
    fn a_case_that_cannot_shrink_stays() {
        let case = generated_case(5, 4, Scope::All);
        let same = shrink(case.clone(), deadline(), |_| None);
        assert_eq!(serde_json::to_value(same).ok(), serde_json::to_value(case).ok());
    }
}

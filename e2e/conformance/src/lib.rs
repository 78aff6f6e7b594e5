//! Conversations with an API server, as data: what is asked (`scripts/*.txt`), what the real
//! kube-apiserver answered (`recorded/*.json`), and how the two are compared.
//!
//! Start at [`Script::all`] and [`hold`].

mod door;
mod mask;
mod script;

pub use door::{Door, DoorError, ours};
pub use script::{Comparison, Exchange, Script};

use serde_json::{Value, json};

/// Has the conversation and gives back every answer, with what differs from run to run masked.
pub fn hold(script: &Script, door: &Door) -> Result<Vec<Value>, DoorError> {
    let namespace = json!({"metadata": {"name": script.namespace()}}).to_string();
    door.ask("POST", "/api/v1/namespaces", &namespace)?;
    let mut variables = script.variables();
    let mut answers = Vec::new();
    for exchange in &script.exchanges {
        let path = script::filled(&exchange.path, &variables);
        let body = script::filled(&exchange.body, &variables);
        let (status, text) = door.ask(&exchange.method, &path, &body)?;
        let answer = mask::parsed(&text);
        for (name, pointer) in &exchange.captures {
            let found = answer.pointer(pointer).cloned().unwrap_or(Value::Null);
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            variables.insert(name.clone(), text);
        }
        let body = match exchange.comparison {
            Comparison::Whole => mask::masked(answer),
            Comparison::Reason => mask::reason(&answer),
        };
        answers.push(json!({"asked": exchange.line, "status": status, "body": body}));
    }
    Ok(answers)
}

/// The first differences between two conversations, each in a few lines; empty when they agree.
pub fn differences(recorded: &[Value], found: &[Value]) -> Vec<String> {
    let mut all = Vec::new();
    if recorded.len() != found.len() {
        all.push(format!("{} answers recorded, {} found", recorded.len(), found.len()));
    }
    for (recorded, found) in recorded.iter().zip(found) {
        let mut paths = Vec::new();
        mask::compare(recorded, found, "", &mut paths);
        if !paths.is_empty() {
            all.push(format!("{}\n  {}", recorded["asked"], paths.join("\n  ")));
        }
    }
    all
}

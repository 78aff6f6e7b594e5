//! Conformance of the embedded API server: requests (`scripts/*.txt`), recorded responses of
//! kube-apiserver (`recorded/*.json`), and their comparison.
//!
//! Start at [`Script::all`] and [`replay`].

mod client;
mod normalize;
mod script;

pub use client::{HttpClient, RequestError, start_embedded};
pub use script::{Comparison, Exchange, Script};

use serde_json::{Value, json};

/// Sends the requests of a script and returns the normalized responses.
pub fn replay(script: &Script, client: &HttpClient) -> Result<Vec<Value>, RequestError> {
    let namespace = json!({"metadata": {"name": script.namespace()}}).to_string();
    client.send("POST", "/api/v1/namespaces", &namespace)?;
    let mut variables = script.variables();
    let mut answers = Vec::new();
    for exchange in &script.exchanges {
        let path = script::substitute(&exchange.path, &variables);
        let body = script::substitute(&exchange.body, &variables);
        let (status, text) = client.send(&exchange.method, &path, &body)?;
        let answer = normalize::parse_body(&text);
        for (name, pointer) in &exchange.captures {
            let found = answer.pointer(pointer).cloned().unwrap_or(Value::Null);
            let text = found.as_str().map_or_else(|| found.to_string(), str::to_owned);
            variables.insert(name.clone(), text);
        }
        let body = match exchange.comparison {
            Comparison::Whole => normalize::normalize(answer),
            Comparison::Reason => normalize::status_reason(&answer),
        };
        answers.push(json!({"request": exchange.line, "status": status, "body": body}));
    }
    Ok(answers)
}

/// The differences between two lists of responses, a few lines each.
pub fn differences(recorded: &[Value], found: &[Value]) -> Vec<String> {
    let mut all = Vec::new();
    if recorded.len() != found.len() {
        all.push(format!("{} answers recorded, {} found", recorded.len(), found.len()));
    }
    for (recorded, found) in recorded.iter().zip(found) {
        let mut paths = Vec::new();
        normalize::compare(recorded, found, "", &mut paths);
        if !paths.is_empty() {
            all.push(format!("{}\n  {}", recorded["request"], paths.join("\n  ")));
        }
    }
    all
}

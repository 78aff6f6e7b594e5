//! Who reads Endpoints, from an audit log of the API server: one JSON event per line.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::{BufRead, BufReader};
use std::path::Path;

use serde_json::Value;

use super::survey::text;
use crate::cli_error::CliError;

/// Requests by user and user agent, then by verb.
pub type Readers = BTreeMap<(String, String), BTreeMap<String, usize>>;

const READS: [&str; 3] = ["get", "list", "watch"];

pub fn read(path: &Path) -> Result<Readers, CliError> {
    let unreadable = |reason: &dyn std::fmt::Display| {
        CliError::new(
            format!("cannot read the audit log `{}`: {reason}", path.display()),
            "it is the file of `--audit-log-path` of kube-apiserver, one JSON event per line",
        )
    };
    let file = File::open(path).map_err(|reason| unreadable(&reason))?;
    let mut readers = Readers::new();
    for (number, line) in (1..).zip(BufReader::new(file).lines()) {
        let line = line.map_err(|reason| unreadable(&reason))?;
        if line.trim().is_empty() {
            continue;
        }
        let event: Value = serde_json::from_str(&line)
            .map_err(|reason| unreadable(&format!("line {number}: {reason}")))?;
        add(&mut readers, &event);
    }
    Ok(readers)
}

/// Each request counts once: at its last stage.
fn add(readers: &mut Readers, event: &Value) {
    let (verb, stage) = (text(event, "/verb"), text(event, "/stage"));
    let is_read = text(event, "/objectRef/resource") == "endpoints" && READS.contains(&verb);
    // A watch that still runs has only begun its response.
    let is_last = match verb {
        "watch" => stage == "ResponseStarted",
        _ => stage == "ResponseComplete",
    };
    if is_read && is_last {
        let user = text(event, "/user/username").to_owned();
        let agent = text(event, "/userAgent").to_owned();
        *readers.entry((user, agent)).or_default().entry(verb.to_owned()).or_default() += 1;
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn requests_count_once_and_only_reads_of_endpoints() {
        let event = |verb: &str, resource: &str, stage: &str| {
            json!({"verb": verb, "stage": stage, "objectRef": {"resource": resource},
                "user": {"username": "prometheus"}, "userAgent": "p/1"})
        };
        let mut readers = Readers::new();
        for event in [
            event("list", "endpoints", "RequestReceived"),
            event("list", "endpoints", "ResponseComplete"),
            event("watch", "endpoints", "ResponseStarted"),
            event("watch", "endpoints", "ResponseComplete"),
            event("update", "endpoints", "ResponseComplete"),
            event("get", "endpointslices", "ResponseComplete"),
        ] {
            add(&mut readers, &event);
        }
        let counts = &readers[&("prometheus".to_owned(), "p/1".to_owned())];
        assert_eq!(counts, &[("list".to_owned(), 1), ("watch".to_owned(), 1)].into());
        assert_eq!(readers.len(), 1);
    }
}

//! Pages in the form of Kubernetes' components: `/statusz`, `/flagz`, and `/debug/flags/v`, which
//! changes the log level. Only processes of the same host or pod reach them.

use std::time::Duration;

use axum::Router;
use axum::http::StatusCode;
use axum::routing::get;
use endpointd_status::{StatusHandle, StatusSnapshot};
use tracing_subscriber::filter::LevelFilter;

use super::log::LogLevelHandle;

const WARNING: &str = "Warning: This endpoint is not meant to be machine parseable, has no \
                       formatting compatibility guarantees and is for debugging purposes only.";
const PATHS: &str = "/api/v1 /debug/flags/v /flagz /healthz /livez /metrics /readyz /report /statusz \
                     /ui/";
const LEVELS: [(&str, LevelFilter); 5] = [
    ("error", LevelFilter::ERROR),
    ("warn", LevelFilter::WARN),
    ("info", LevelFilter::INFO),
    ("debug", LevelFilter::DEBUG),
    ("trace", LevelFilter::TRACE),
];

/// The flags of this process as `name=value`, sorted.
pub type FlagValues = Vec<String>;

pub fn router(status: &StatusHandle, flags: FlagValues, log_level: LogLevelHandle) -> Router {
    let status = status.clone();
    let flagz = format!("endpointd flagz\n{WARNING}\n\n{}\n", flags.join("\n"));
    let current = log_level.clone();
    Router::new()
        .route("/statusz", get(async move || statusz(&status.snapshot())))
        .route("/flagz", get(async move || flagz))
        .route(
            "/debug/flags/v",
            get(async move || format!("{}\n", current.get()))
                .put(async move |body: String| set_level(&log_level, body.trim())),
        )
}

/// Upstream: `k8s.io/component-base/zpages/statusz`.
fn statusz(snapshot: &StatusSnapshot) -> String {
    format!(
        "endpointd statusz\n{WARNING}\n\nUp: {}\nBinary version: {}\nPaths: {PATHS}\n",
        uptime(snapshot.uptime),
        snapshot.process.version,
    )
}

/// `1 hr 02 min 03 sec`.
fn uptime(time: Duration) -> String {
    let secs = time.as_secs();
    format!("{} hr {:02} min {:02} sec", secs / 3600, secs / 60 % 60, secs % 60)
}

/// Upstream: `DebugFlags` in k8s.io/apiserver, with the levels of `--log-level`.
fn set_level(handle: &LogLevelHandle, text: &str) -> (StatusCode, String) {
    match LEVELS.iter().find(|(name, _)| *name == text) {
        Some((name, level)) => {
            handle.set(*level);
            tracing::info!(level = name, "log level changed");
            (StatusCode::OK, format!("successfully set the log level to {name}\n"))
        }
        None => {
            let names = LEVELS.map(|(name, _)| name).join(", ");
            (StatusCode::BAD_REQUEST, format!("unknown log level `{text}`: known are {names}\n"))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_uptime_has_the_form_of_kubernetes() {
        assert_eq!(uptime(Duration::from_secs(3723)), "1 hr 02 min 03 sec");
    }
}

//! Watch: finds the start and returns a cursor. Upstream: `Watch` in cacher, and
//! `ValidateListOptions` for `sendInitialEvents`.

use std::sync::Arc;

use serde_json::Value;

use super::Target;
use super::list::{ListOptions, VersionMatch, parse_version};
use crate::selectors::Selector;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::store::{Cursor, Stored};
use crate::validation::Causes;

/// Options of a watch.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    pub label_selector: String,
    pub field_selector: String,
    pub resource_version: String,
    pub version_match: Option<VersionMatch>,
    pub send_initial: Option<bool>,
    pub bookmarks: bool,
}

/// The start of a watch.
pub struct WatchStart {
    /// Sent as `ADDED` events first.
    pub initial: Vec<Arc<Stored>>,
    /// Whether a bookmark marks the end of them.
    pub marks_end: bool,
    pub cursor: Cursor,
}

impl Server {
    pub fn watch(
        &self,
        target: &Target,
        options: &WatchOptions,
    ) -> Result<WatchStart, StatusError> {
        check(options)?;
        let requested = version(&options.resource_version)?;
        let current = self.store.revision();
        let shows_state = match options.send_initial {
            Some(wanted) => wanted,
            // Without a version a watch starts with the current objects.
            None => requested.unwrap_or(0) == 0,
        };
        if let Some(requested) = requested.filter(|requested| *requested > current) {
            return Err(StatusError::too_new(requested, current));
        }
        let floor = self.store.floor(target.kind.storage);
        let starts_at =
            requested.filter(|requested| *requested > 0 && !shows_state).unwrap_or(current);
        if starts_at < floor {
            return Err(StatusError::too_old(starts_at, floor));
        }
        let initial = if shows_state {
            let selection = ListOptions {
                label_selector: options.label_selector.clone(),
                field_selector: options.field_selector.clone(),
                ..ListOptions::default()
            };
            self.list(target, &selection)?.objects
        } else {
            Vec::new()
        };
        let marks_end = options.send_initial == Some(true) && options.bookmarks;
        let cursor = self.cursor(target, options, starts_at)?;
        Ok(WatchStart { initial, marks_end, cursor })
    }

    fn cursor(
        &self,
        target: &Target,
        options: &WatchOptions,
        revision: u64,
    ) -> Result<Cursor, StatusError> {
        let kind = target.kind;
        let selector = Selector::parse(kind, &options.label_selector, &options.field_selector)?;
        Ok(Cursor {
            storage: kind.storage,
            namespace: (!target.namespace.is_empty()).then(|| target.namespace.clone()),
            matches: Box::new(move |object| selector.matches(object)),
            revision,
        })
    }
}

fn check(options: &WatchOptions) -> Result<(), StatusError> {
    let mut causes = Causes::default();
    let path = "resourceVersionMatch";
    match (options.send_initial, options.version_match) {
        (Some(_), None) => {
            let why = "sendInitialEvents requires setting resourceVersionMatch to NotOlderThan";
            causes.forbidden(path, why);
        }
        (Some(_), Some(VersionMatch::Exact)) => {
            causes.not_supported(path, &Value::from("Exact"), &["NotOlderThan"]);
        }
        (Some(true), Some(VersionMatch::NotOlderThan)) if !options.bookmarks => {
            let why = "sendInitialEvents requires allowWatchBookmarks to be set";
            causes.forbidden("sendInitialEvents", why);
        }
        (None, Some(_)) => {
            let why = "resourceVersionMatch is forbidden for watch unless sendInitialEvents is \
                       provided";
            causes.forbidden(path, why);
        }
        _ => return Ok(()),
    }
    Err(StatusError::invalid_options("ListOptions", causes.into_vec()))
}

/// For a malformed version, a watch has another error message than a list.
fn version(text: &str) -> Result<Option<u64>, StatusError> {
    parse_version(text).map_err(|error| {
        let message = error.message.trim_start_matches("invalid resource version: ");
        StatusError::internal(message)
    })
}

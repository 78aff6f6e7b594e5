//! Watch: where it starts, and the cursor that follows. Upstream: `Watch` in cacher, and
//! `ValidateListOptions` for `sendInitialEvents`.

use std::sync::Arc;

use serde_json::Value;

use super::Target;
use super::list::{ListOptions, VersionMatch, parse_version};
use crate::refusal::Refusal;
use crate::selectors::Selector;
use crate::server::Server;
use crate::store::{Cursor, Stored};
use crate::validation::Causes;

/// What a watch may be told.
#[derive(Clone, Debug, Default)]
pub struct WatchOptions {
    pub label_selector: String,
    pub field_selector: String,
    pub resource_version: String,
    pub version_match: Option<VersionMatch>,
    pub send_initial: Option<bool>,
    pub bookmarks: bool,
}

/// A watch that begins.
pub struct WatchStart {
    /// To be shown as `ADDED` before anything else.
    pub initial: Vec<Arc<Stored>>,
    /// Whether a bookmark tells the end of them.
    pub marks_end: bool,
    pub cursor: Cursor,
}

impl Server {
    pub fn watch(&self, target: &Target, options: &WatchOptions) -> Result<WatchStart, Refusal> {
        check(options)?;
        let asked = version(&options.resource_version)?;
        let current = self.store.revision();
        let shows_state = match options.send_initial {
            Some(wanted) => wanted,
            // Without a version a watch begins with what is there.
            None => asked.unwrap_or(0) == 0,
        };
        if let Some(asked) = asked.filter(|asked| *asked > current) {
            return Err(Refusal::too_new(asked, current));
        }
        let floor = self.store.floor(target.kind.shelf);
        let starts_at = asked.filter(|asked| *asked > 0 && !shows_state).unwrap_or(current);
        if starts_at < floor {
            return Err(Refusal::too_old(starts_at, floor));
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
    ) -> Result<Cursor, Refusal> {
        let kind = target.kind;
        let selector = Selector::parse(kind, &options.label_selector, &options.field_selector)?;
        Ok(Cursor {
            shelf: kind.shelf,
            namespace: (!target.namespace.is_empty()).then(|| target.namespace.clone()),
            matches: Box::new(move |object| selector.matches(object)),
            revision,
        })
    }
}

fn check(options: &WatchOptions) -> Result<(), Refusal> {
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
    Err(Refusal::invalid_options("ListOptions", causes.into_vec()))
}

/// A watch tells of a version it cannot read in other words than a list.
fn version(text: &str) -> Result<Option<u64>, Refusal> {
    parse_version(text).map_err(|refusal| {
        let message = refusal.message.trim_start_matches("invalid resource version: ");
        Refusal::internal(message)
    })
}

//! Watch: where it starts, and the cursor that follows. Upstream: `Watch` in cacher, and
//! `ValidateListOptions` for `sendInitialEvents`.

use std::sync::Arc;

use super::Target;
use super::list::{ListOptions, VersionMatch, parse_version};
use crate::refusal::Refusal;
use crate::selectors::Selector;
use crate::server::Server;
use crate::store::{Cursor, Stored};

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
        let asked = parse_version(&options.resource_version)?;
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
    let forbid = |why: &str| Err(Refusal::bad_request(why));
    match (options.send_initial, options.version_match) {
        (Some(_), None) => forbid(
            "resourceVersionMatch: Forbidden: sendInitialEvents requires setting \
             resourceVersionMatch to NotOlderThan",
        ),
        (Some(_), Some(VersionMatch::Exact)) => forbid(
            "resourceVersionMatch: Unsupported value: \"Exact\": supported values: \"NotOlderThan\"",
        ),
        (Some(true), Some(VersionMatch::NotOlderThan)) if !options.bookmarks => forbid(
            "sendInitialEvents: Forbidden: sendInitialEvents requires allowWatchBookmarks to be set",
        ),
        (None, Some(_)) => forbid(
            "resourceVersionMatch: Forbidden: resourceVersionMatch is forbidden for watch unless \
             sendInitialEvents is provided",
        ),
        _ => Ok(()),
    }
}

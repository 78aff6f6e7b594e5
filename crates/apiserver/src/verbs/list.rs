//! Get and list: pages, selectors, and old resource versions. Upstream: `GetList` in
//! storage/etcd3/store.go and cacher, `ValidateListOptions`.

use std::sync::Arc;

use base64::Engine;
use base64::prelude::BASE64_URL_SAFE_NO_PAD;
use serde_json::{Value, json};

use super::Target;
use crate::selectors::Selector;
use crate::server::Server;
use crate::status_error::StatusError;
use crate::store::{Gone, Snapshot, Stored};
use crate::validation::Causes;

/// Options of a list; an empty string means not given.
#[derive(Clone, Debug, Default)]
pub struct ListOptions {
    pub label_selector: String,
    pub field_selector: String,
    /// Zero: no limit.
    pub limit: usize,
    pub continue_token: String,
    pub resource_version: String,
    pub version_match: Option<VersionMatch>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum VersionMatch {
    Exact,
    NotOlderThan,
}

/// A page of a list. Objects are shared with the store.
#[derive(Debug)]
pub struct Page {
    pub revision: u64,
    pub objects: Vec<Arc<Stored>>,
    /// Empty on the last page.
    pub continue_token: String,
    pub n_remaining: Option<usize>,
}

/// Where the next page starts.
struct Token {
    revision: u64,
    /// The key of the last object of the previous page.
    after: String,
}

impl Server {
    pub fn get(&self, target: &Target) -> Result<Arc<Stored>, StatusError> {
        let found = self.store.get(target.kind.storage, &target.key());
        found.cloned().ok_or_else(|| StatusError::not_found(target.kind, &target.name))
    }

    pub fn list(&self, target: &Target, options: &ListOptions) -> Result<Page, StatusError> {
        check(options)?;
        let kind = target.kind;
        let selector = Selector::parse(kind, &options.label_selector, &options.field_selector)?;
        let token = Token::parse(&options.continue_token)?;
        let snapshot = self.snapshot(target, options, token.as_ref())?;
        let after = token.map(|token| token.after);
        let rest = snapshot
            .objects
            .into_iter()
            .filter(|object| after.as_ref().is_none_or(|after| object.key.path() > after.as_str()));
        let mut objects: Vec<Arc<Stored>> = if selector.is_empty() {
            rest.collect()
        } else {
            rest.filter(|object| selector.matches(object)).collect()
        };
        let mut page = Page {
            revision: snapshot.revision,
            objects: Vec::new(),
            continue_token: String::new(),
            n_remaining: None,
        };
        if options.limit > 0 && objects.len() > options.limit {
            let n_remaining = objects.len() - options.limit;
            // Upstream counts only without a selector: it would have to read all objects.
            page.n_remaining = selector.is_empty().then_some(n_remaining);
            objects.truncate(options.limit);
            let after = objects.last().map(|last| last.key.path().to_owned()).unwrap_or_default();
            page.continue_token = Token { revision: page.revision, after }.text();
        }
        page.objects = objects;
        Ok(page)
    }

    fn snapshot(
        &self,
        target: &Target,
        options: &ListOptions,
        token: Option<&Token>,
    ) -> Result<Snapshot, StatusError> {
        let storage = target.kind.storage;
        let namespace = (!target.namespace.is_empty()).then_some(target.namespace.as_str());
        let gone = |gone: Gone| match token {
            Some(token) => expired_token(self.store.revision(), &token.after),
            None => StatusError::too_old(gone.requested, gone.floor),
        };
        if let Some(token) = token {
            return self.store.list_at(storage, namespace, token.revision).map_err(gone);
        }
        let requested = parse_version(&options.resource_version)?;
        let current = self.store.revision();
        if requested.is_some_and(|requested| requested > current) {
            return Err(StatusError::too_new(requested.unwrap_or_default(), current));
        }
        match (requested, options.version_match) {
            (Some(revision), Some(VersionMatch::Exact)) => {
                self.store.list_at(storage, namespace, revision).map_err(gone)
            }
            _ => Ok(self.store.list(storage, namespace)),
        }
    }
}

/// `None` when none is given.
pub(super) fn parse_version(text: &str) -> Result<Option<u64>, StatusError> {
    if text.is_empty() {
        return Ok(None);
    }
    text.parse().map(Some).map_err(|_| {
        StatusError::bad_request(format!(
            "invalid resource version: resourceVersion: Invalid value: \"{text}\": strconv.ParseUint: parsing \"{text}\": \
             invalid syntax"
        ))
    })
}

/// Upstream: `ValidateListOptions`.
fn check(options: &ListOptions) -> Result<(), StatusError> {
    let (version, token) = (&options.resource_version, &options.continue_token);
    if !token.is_empty() && !version.is_empty() && version != "0" {
        return Err(StatusError::bad_request(
            "specifying resource version is not allowed when using continue",
        ));
    }
    let forbid = |why: &str| {
        let mut causes = Causes::default();
        causes.forbidden("resourceVersionMatch", why);
        Err(StatusError::invalid_options("ListOptions", causes.into_vec()))
    };
    match options.version_match {
        None => Ok(()),
        Some(_) if version.is_empty() => {
            forbid("resourceVersionMatch is forbidden unless resourceVersion is provided")
        }
        Some(_) if !token.is_empty() => {
            forbid("resourceVersionMatch is forbidden when continue is provided")
        }
        Some(VersionMatch::Exact) if version == "0" => {
            forbid("resourceVersionMatch \"exact\" is forbidden for resourceVersion \"0\"")
        }
        Some(_) => Ok(()),
    }
}

fn expired_token(revision: u64, after: &str) -> StatusError {
    StatusError::expired(
        "The provided continue parameter is too old to display a consistent list result. You can \
         start a new list without the continue parameter, or use the continue token in this \
         response to retrieve the remainder of the results. Continuing with the provided token \
         results in an inconsistent list - objects that were created, modified, or deleted between \
         the time the first chunk was returned and now may show up in the list.",
    )
    .continuing_with(Token { revision, after: after.to_owned() }.text())
}

impl Token {
    /// In the format of upstream, although it is opaque to clients.
    fn text(&self) -> String {
        let Self { revision, after } = self;
        let token = json!({"v": "meta.k8s.io/v1", "rv": revision, "start": format!("{after}\0")});
        BASE64_URL_SAFE_NO_PAD.encode(token.to_string())
    }

    fn parse(text: &str) -> Result<Option<Self>, StatusError> {
        if text.is_empty() {
            return Ok(None);
        }
        let read = || {
            let bytes = BASE64_URL_SAFE_NO_PAD.decode(text.trim_end_matches('=')).ok()?;
            let token: Value = serde_json::from_slice(&bytes).ok()?;
            let after = token["start"].as_str()?.trim_end_matches('\0').to_owned();
            Some(Self { revision: token["rv"].as_u64()?, after })
        };
        read().map(Some).ok_or_else(|| {
            StatusError::bad_request("invalid continue token: continue key is not valid")
        })
    }
}

//! Parses query parameters into options.

use std::collections::BTreeMap;
use std::time::Duration;

use serde_json::Value;

use crate::status_error::StatusError;
use crate::table::Include;
use crate::validation::Causes;
use crate::verbs::{
    DeleteOptions, FieldValidation, ListOptions, Propagation, VersionMatch, WatchOptions,
    WriteOptions,
};

/// Query parameters by name; the first of several with one name counts.
pub(super) struct Query(BTreeMap<String, String>);

impl Query {
    pub(super) fn parse(query: Option<&str>) -> Self {
        let mut found = BTreeMap::new();
        for (name, value) in form_urlencoded::parse(query.unwrap_or_default().as_bytes()) {
            found.entry(name.into_owned()).or_insert_with(|| value.into_owned());
        }
        Self(found)
    }

    fn text(&self, name: &str) -> String {
        self.0.get(name).cloned().unwrap_or_default()
    }

    fn is_true(&self, name: &str) -> bool {
        self.0.get(name).is_some_and(|value| ["true", "1", ""].contains(&value.as_str()))
    }

    fn number(&self, name: &str) -> Result<Option<i64>, StatusError> {
        let text = self.text(name);
        if text.is_empty() {
            return Ok(None);
        }
        text.parse().map(Some).map_err(|_| {
            StatusError::bad_request(format!(
                "strconv.ParseInt: parsing \"{text}\": invalid syntax"
            ))
        })
    }

    pub(super) fn is_watch(&self) -> bool {
        self.is_true("watch")
    }

    pub(super) fn include(&self) -> Include {
        match self.text("includeObject").as_str() {
            "None" => Include::None,
            "Object" => Include::Object,
            _ => Include::Metadata,
        }
    }

    fn version_match(&self) -> Result<Option<VersionMatch>, StatusError> {
        match self.text("resourceVersionMatch").as_str() {
            "" => Ok(None),
            "Exact" => Ok(Some(VersionMatch::Exact)),
            "NotOlderThan" => Ok(Some(VersionMatch::NotOlderThan)),
            other => {
                let supported = ["Exact", "NotOlderThan", ""];
                Err(unsupported("ListOptions", "resourceVersionMatch", other, &supported))
            }
        }
    }

    pub(super) fn list(&self) -> Result<ListOptions, StatusError> {
        let limit = self.number("limit")?.unwrap_or(0);
        Ok(ListOptions {
            label_selector: self.text("labelSelector"),
            field_selector: self.text("fieldSelector"),
            limit: usize::try_from(limit).unwrap_or(0),
            continue_token: self.text("continue"),
            resource_version: self.text("resourceVersion"),
            version_match: self.version_match()?,
        })
    }

    pub(super) fn watch(&self) -> Result<WatchOptions, StatusError> {
        Ok(WatchOptions {
            label_selector: self.text("labelSelector"),
            field_selector: self.text("fieldSelector"),
            resource_version: self.text("resourceVersion"),
            version_match: self.version_match()?,
            send_initial: self
                .0
                .contains_key("sendInitialEvents")
                .then(|| self.is_true("sendInitialEvents")),
            bookmarks: self.is_true("allowWatchBookmarks"),
        })
    }

    pub(super) fn timeout(&self) -> Result<Option<Duration>, StatusError> {
        let secs = self.number("timeoutSeconds")?.and_then(|secs| u64::try_from(secs).ok());
        Ok(secs.filter(|secs| *secs > 0).map(Duration::from_secs))
    }

    fn dry_run(&self, options: &str) -> Result<bool, StatusError> {
        match self.text("dryRun").as_str() {
            "" => Ok(false),
            "All" => Ok(true),
            other => Err(unsupported(options, "dryRun", other, &["All"])),
        }
    }

    /// `options` is upstream's type name, such as `CreateOptions`, for errors.
    pub(super) fn write(&self, options: &str) -> Result<WriteOptions, StatusError> {
        let field_validation = match self.text("fieldValidation").as_str() {
            "" | "Warn" => FieldValidation::Warn,
            "Ignore" => FieldValidation::Ignore,
            "Strict" => FieldValidation::Strict,
            other => {
                let supported = ["", "Ignore", "Strict", "Warn"];
                return Err(unsupported(options, "fieldValidation", other, &supported));
            }
        };
        Ok(WriteOptions { dry_run: self.dry_run(options)?, field_validation })
    }

    /// From query and body; the body takes precedence.
    pub(super) fn delete(&self, body: &Value) -> Result<DeleteOptions, StatusError> {
        let text = |value: &Value| value.as_str().map(str::to_owned);
        let policy = text(&body["propagationPolicy"]).or(self.0.get("propagationPolicy").cloned());
        let orphans = match body["orphanDependents"].as_bool() {
            Some(orphans) => Some(orphans),
            None => {
                self.0.contains_key("orphanDependents").then(|| self.is_true("orphanDependents"))
            }
        };
        let propagation = match (policy.as_deref(), orphans) {
            (None, None) => None,
            (None, Some(true)) | (Some("Orphan"), None) => Some(Propagation::Orphan),
            (None, Some(false)) | (Some("Background"), None) => Some(Propagation::Background),
            (Some("Foreground"), None) => Some(Propagation::Foreground),
            (Some(_), Some(_)) => {
                return Err(StatusError::bad_request(
                    "orphanDependents and deletionPropagation cannot be both set",
                ));
            }
            (Some(other), None) => {
                let supported = ["Foreground", "Background", "Orphan", "nil"];
                return Err(unsupported("DeleteOptions", "propagationPolicy", other, &supported));
            }
        };
        let dry_run = body["dryRun"].as_array().is_some_and(|all| all.iter().any(|it| it == "All"));
        Ok(DeleteOptions {
            grace_secs: body["gracePeriodSeconds"].as_i64().or(self.number("gracePeriodSeconds")?),
            propagation,
            uid: text(&body["preconditions"]["uid"]),
            resource_version: text(&body["preconditions"]["resourceVersion"]),
            dry_run: dry_run || self.dry_run("DeleteOptions")?,
        })
    }
}

fn unsupported(options: &str, field: &str, value: &str, supported: &[&str]) -> StatusError {
    let mut causes = Causes::default();
    causes.not_supported(field, &Value::from(value), supported);
    StatusError::invalid_options(options, causes.into_vec())
}

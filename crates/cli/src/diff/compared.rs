//! Reads, plans, and keeps what differs.

use std::collections::BTreeSet;

use endpointd_client::Client;
use endpointd_model::{Controller, DeleteTarget, Key, Object, Write};

use super::flags::Flags;
use super::read;
use crate::changes::{Change, changes, object_before};
use crate::cli_error::CliError;
use crate::cluster::{Scope, connect};
use crate::duration::parse_duration;
use crate::input::Source;
use crate::plan::{KeyPlan, KeySelection, LoadedObjects, Request, load_objects, nodes_note, plans};
use crate::target::{Kind, Target};

/// The result of a comparison.
#[derive(Debug, Default)]
pub struct Compared {
    /// Services and Endpoints that were planned.
    pub n_keys: usize,
    /// Ordered by key, then by controller.
    pub differences: Vec<Difference>,
    /// What Services have left that had a selector before, and that no plan deletes.
    pub left_behind: Vec<DeleteTarget>,
    pub warnings: Vec<String>,
}

/// The writes of one controller for one key.
#[derive(Debug)]
pub struct Difference {
    pub key: Key,
    pub controller: Controller,
    pub writes: Vec<ComparedWrite>,
}

#[derive(Debug)]
pub struct ComparedWrite {
    pub write: Write,
    pub before: Option<Object>,
    pub changes: Vec<Change>,
}

/// What to compare.
struct Comparison {
    request: Request,
    scope: Scope,
}

pub async fn compare(flags: &Flags) -> Result<Compared, CliError> {
    let settle_time = parse_duration(&flags.settle_time).ok_or_else(|| {
        CliError::new(
            format!("`--settle-time` must be a duration: `{}`", flags.settle_time),
            "a number with `ms`, `s`, `m`, or `h`, as in `500ms` or `1m30s`",
        )
    })?;
    let target = Target::parse(&flags.object)?;
    if !flags.files.files.is_empty() {
        let loaded = load_objects(&Source::find(&flags.files.files)?)?;
        // Without `-n`, all namespaces of the files: they were chosen by the dump.
        let scope = match (&flags.namespace.namespace, &target) {
            (None, None) => Scope::AllNamespaces,
            _ => flags.namespace.scope(None),
        };
        return comparison(flags, target.as_ref(), scope)?.of(&loaded);
    }
    let client = connect(&flags.connect).await?;
    let scope = flags.namespace.scope(Some(&client));
    let comparison = comparison(flags, target.as_ref(), scope)?;
    let first = comparison.read(&client).await?;
    if first.differences.is_empty() {
        return Ok(first);
    }
    let differed: BTreeSet<(Key, Controller)> =
        first.differences.iter().map(|one| (one.key.clone(), one.controller)).collect();
    // Two states of a large cluster would be too much memory.
    drop(first);
    tokio::time::sleep(settle_time).await;
    let mut second = comparison.read(&client).await?;
    second.differences.retain(|one| differed.contains(&(one.key.clone(), one.controller)));
    Ok(second)
}

fn comparison(
    flags: &Flags,
    target: Option<&Target>,
    scope: Scope,
) -> Result<Comparison, CliError> {
    let selection = match target {
        None => KeySelection::All,
        Some(Target { kind: Kind::Service | Kind::Endpoints, name }) => {
            let namespace = scope.namespace().ok_or_else(|| {
                CliError::new(
                    "an object is in one namespace, and `-A` means all",
                    "choose its namespace with `-n`",
                )
            })?;
            KeySelection::Named([Key::new(namespace, name.as_str())].into())
        }
        Some(Target { kind: Kind::Pod | Kind::EndpointSlice, .. }) => {
            return Err(CliError::new(
                "only Services and Endpoints are compared",
                "`endpointd explain` says which Services choose a pod",
            ));
        }
    };
    let request = Request {
        controllers: flags.controllers.selected_of_one_cluster()?,
        selection,
        settings: flags.limits.settings()?,
    };
    Ok(Comparison { request, scope })
}

impl Comparison {
    async fn read(&self, client: &Client) -> Result<Compared, CliError> {
        let loaded = read::read(client, &self.scope, &self.request.controllers).await?;
        self.of(&loaded)
    }

    fn of(&self, loaded: &LoadedObjects) -> Result<Compared, CliError> {
        self.check_key_exists(loaded)?;
        let indexed = loaded.cluster.index();
        let (mut keys, mut differences) = (BTreeSet::new(), Vec::new());
        let (settings, mut left_behind) = (&self.request.settings, Vec::new());
        let is_in_scope = |key: &Key| match self.scope.namespace() {
            Some(namespace) => *key.namespace == *namespace,
            None => true,
        };
        // A plan without writes is not kept: of a large cluster, all plans are a lot of memory.
        for planned in plans(&self.request, loaded, &indexed)?.filter(|one| is_in_scope(&one.key)) {
            keys.insert(planned.key.clone());
            match planned.plan.writes.is_empty() {
                true => {
                    let KeyPlan { controller, key, .. } = &planned;
                    left_behind.extend(indexed.left_behind(*controller, key, settings));
                }
                false => differences.push(difference(loaded, planned)),
            }
        }
        let n_keys = keys.len();
        let mut warnings = loaded.warnings.clone();
        warnings.extend(nodes_note(&self.request, loaded));
        Ok(Compared { n_keys, differences, left_behind, warnings })
    }

    /// A misspelt name would be compared as a deleted Service.
    fn check_key_exists(&self, loaded: &LoadedObjects) -> Result<(), CliError> {
        let KeySelection::Named(keys) = &self.request.selection else { return Ok(()) };
        for key in keys {
            if let Some(hint) = loaded.unknown_key_hint(key) {
                return Err(CliError::new(
                    format!("there is no Service, Endpoints, or slice for `{key}`"),
                    hint,
                ));
            }
        }
        Ok(())
    }
}

fn difference(loaded: &LoadedObjects, planned: KeyPlan) -> Difference {
    let KeyPlan { key, controller, plan } = planned;
    let compared = |write: Write| {
        let before = object_before(&loaded.cluster, &write);
        let changes = changes(before.as_ref(), write.object());
        ComparedWrite { write, before, changes }
    };
    Difference { key, controller, writes: plan.writes.into_iter().map(compared).collect() }
}

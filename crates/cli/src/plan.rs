//! `endpointd plan`: prints the writes that the controllers would send for the objects in files.
//! The plan goes to standard output, everything else to standard error.

mod flags;
mod load_objects;
mod multicluster;
mod render_json;
mod render_table;
mod write_summary;

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};
use std::process::ExitCode;

use endpointd_model::{Controller, Key};
use endpointd_plan::{CarriedState, ClusterState, IndexedCluster, Plan};

use self::flags::Format;
pub use self::flags::{Flags, KeySelection, Request};
pub use self::load_objects::{LoadedObjects, load_objects};
pub use self::render_json::controller_label;
use crate::cli_error::CliError;
use crate::input::Source;
use crate::{EXIT_FINDINGS, output, stderr};

/// For objects and `--service` without a namespace, as in kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// The plan of one key for one controller.
pub struct KeyPlan {
    pub key: Key,
    pub controller: Controller,
    pub plan: Plan,
}

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    if !flags.multicluster.clusters.is_empty() {
        return multicluster::run(flags);
    }
    let request = Request::resolve(flags)?;
    let loaded = load_objects(&Source::find(&flags.files)?)?;
    for warning in &loaded.warnings {
        stderr::line(format_args!("warning: {warning}"));
    }
    let indexed = loaded.cluster.index();
    let planned: Vec<KeyPlan> = plans(&request, &loaded, &indexed)?.collect();
    for note in notes(&request, &loaded, &planned) {
        stderr::line(format_args!("note: {note}"));
    }
    print(flags.output, &loaded.cluster, &planned)?;
    stderr::line(format_args!("{}", summary(&planned)));
    let writes_something = planned.iter().any(|one| !one.plan.writes.is_empty());
    Ok(match flags.exit_code && writes_something {
        true => ExitCode::from(EXIT_FINDINGS),
        false => ExitCode::SUCCESS,
    })
}

/// The plans, ordered by key, then by controller; each is made when it is asked for.
pub fn plans<'a>(
    request: &'a Request,
    loaded: &LoadedObjects,
    indexed: &'a IndexedCluster<'a>,
) -> Result<impl Iterator<Item = KeyPlan> + 'a, CliError> {
    let mut pairs: BTreeSet<(Key, Controller)> = BTreeSet::new();
    for &controller in &request.controllers {
        let keys = match &request.selection {
            KeySelection::All => &indexed.keys(controller, &request.settings) - &loaded.malformed,
            KeySelection::Named(keys) => keys.clone(),
        };
        pairs.extend(keys.into_iter().map(|key| (key, controller)));
    }
    if let KeySelection::Named(keys) = &request.selection {
        keys.iter().try_for_each(|key| check_readable(key, loaded))?;
    }
    let carried = CarriedState::default();
    let plan = move |(key, controller)| {
        let plan = indexed.plan(controller, &key, &carried, &request.settings);
        KeyPlan { key, controller, plan }
    };
    Ok(pairs.into_iter().map(plan))
}

/// Fails if a key that the user named is malformed, because it cannot be planned.
fn check_readable(key: &Key, loaded: &LoadedObjects) -> Result<(), CliError> {
    if loaded.malformed.contains(key) {
        return Err(CliError::new(
            format!("cannot plan a malformed object: `{key}`"),
            "correct the object named in the warning above",
        ));
    }
    Ok(())
}

/// Notes about the input as a whole.
fn notes(request: &Request, loaded: &LoadedObjects, planned: &[KeyPlan]) -> Vec<String> {
    let mut notes = Vec::new();
    if request.controllers.is_empty() {
        notes.push("`--controllers` selects no controller: begin with `*` to exclude some".into());
    } else if planned.is_empty() {
        notes.push(nothing_to_plan(loaded));
    }
    if let KeySelection::Named(keys) = &request.selection {
        notes.extend(keys.iter().filter_map(|key| {
            let hint = loaded.unknown_key_hint(key)?;
            Some(format!("the input has no Service, Endpoints, or slice for `{key}`: {hint}"))
        }));
    }
    notes.extend(nodes_note(request, loaded));
    notes
}

/// A dump without nodes is a common mistake, and its plan removes all endpoints.
pub fn nodes_note(request: &Request, loaded: &LoadedObjects) -> Option<String> {
    let ClusterState { pods, nodes, .. } = &loaded.cluster;
    let needs_nodes = request.controllers.contains(&Controller::Slices)
        && pods.values().any(|pod| pod.node_name.is_some());
    (needs_nodes && nodes.is_empty()).then(|| {
        "the input has pods but no nodes: slices exclude pods whose node is not found".to_owned()
    })
}

fn nothing_to_plan(loaded: &LoadedObjects) -> String {
    let kinds = loaded.n_ignored_by_kind.iter();
    let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} of kind `{kind}`")).collect();
    if kinds.is_empty() {
        "the input has no Service and no Endpoints to plan".to_owned()
    } else {
        format!("the input has no Service and no Endpoints to plan; ignored: {}", kinds.join(", "))
    }
}

fn print(format: Format, cluster: &ClusterState, planned: &[KeyPlan]) -> Result<(), CliError> {
    print_with(|mut out| match format {
        Format::Table => render_table::render(&mut out, cluster, planned),
        Format::Json => render_json::render(&mut out, cluster, planned),
    })
}

fn print_with(render: impl FnOnce(&mut dyn Write) -> io::Result<()>) -> Result<(), CliError> {
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = render(&mut out);
    output::checked(printed.and_then(|()| out.flush()))
}

fn summary(planned: &[KeyPlan]) -> String {
    let keys: BTreeSet<&Key> = planned.iter().map(|one| &one.key).collect();
    let writes = || planned.iter().flat_map(|one| &one.plan.writes);
    let count = |verb: &str| writes().filter(|write| write.verb() == verb).count();
    let [creates, updates, deletes] =
        ["create", "update", "delete"].map(|verb| counted(count(verb), verb));
    format!("planned {}: {creates}, {updates}, {deletes}", counted(keys.len(), "key"))
}

/// `1 key`, `2 keys`.
fn counted(n: usize, noun: &str) -> String {
    let ending = match (n, noun.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{n} {noun}{ending}")
}

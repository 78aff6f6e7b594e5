//! `endpointd plan`: what would be written for the objects in files. Reads, plans, prints; the
//! plan itself goes to standard output, everything else to standard error.

mod document;
mod flags;
mod gather;
mod json;
mod read;
mod render_json;
mod render_table;
mod what;
mod yaml;
mod yaml_scalar;

use std::collections::BTreeSet;
use std::io::{self, BufWriter, Write};

use endpointd_model::{Controller, Key, names};
use endpointd_plan::{CarriedState, ClusterState, IndexedCluster, Plan};

pub use self::flags::Flags;
use self::flags::{Choice, Format, Request};
use self::gather::Gathered;
use self::read::Source;
use crate::refusal::Refusal;
use crate::stderr;

/// Of objects and `--service` that name none, as for kubectl.
const DEFAULT_NAMESPACE: &str = "default";

/// One key, planned for one controller.
struct Planned {
    key: Key,
    controller: Controller,
    plan: Plan,
}

pub fn run(flags: &Flags) -> Result<(), Refusal> {
    let request = Request::resolve(flags)?;
    let gathered = gather::gather(&Source::find(&flags.files)?)?;
    for warning in &gathered.warnings {
        stderr::line(format_args!("warning: {warning}"));
    }
    let indexed = gathered.world.index();
    let planned = plan(&request, &gathered, &indexed)?;
    for note in notes(&request, &gathered, &planned) {
        stderr::line(format_args!("note: {note}"));
    }
    print(flags.output, &gathered.world, &planned)?;
    stderr::line(format_args!("{}", summary(&planned)));
    Ok(())
}

/// By key, then controller.
fn plan(
    request: &Request,
    gathered: &Gathered,
    indexed: &IndexedCluster<'_>,
) -> Result<Vec<Planned>, Refusal> {
    let mut pairs: BTreeSet<(Key, Controller)> = BTreeSet::new();
    for &controller in &request.controllers {
        let keys = match &request.choice {
            Choice::All => &indexed.keys(controller) - &gathered.malformed,
            Choice::Named(keys) => keys.clone(),
        };
        pairs.extend(keys.into_iter().map(|key| (key, controller)));
    }
    if let Choice::Named(keys) = &request.choice {
        keys.iter().try_for_each(|key| check_readable(key, gathered))?;
    }
    let carried = CarriedState::default();
    let plan = |(key, controller)| {
        let plan = indexed.plan(controller, &key, &carried, &request.settings);
        Planned { key, controller, plan }
    };
    Ok(pairs.into_iter().map(plan).collect())
}

/// Naming what could not be read asks for an answer there is none to.
fn check_readable(key: &Key, gathered: &Gathered) -> Result<(), Refusal> {
    if gathered.malformed.contains(key) {
        return Err(Refusal::new(
            format!("cannot plan what is malformed: `{key}`"),
            "correct the object named in the warning above",
        ));
    }
    Ok(())
}

/// A key that left no trace in the input is planned as one that is gone, but is probably misspelt.
fn misspelt(key: &Key, world: &ClusterState) -> Option<String> {
    let mut slices = world.slices.values().map(|slice| &slice.meta);
    let has_slice = slices.any(|meta| {
        meta.namespace == key.namespace && meta.labels.has(names::SERVICE_NAME, &key.name)
    });
    if world.services.contains_key(key) || world.endpoints.contains_key(key) || has_slice {
        return None;
    }
    let mut elsewhere = world.services.keys().chain(world.endpoints.keys());
    let hint = match elsewhere.find(|one| one.name == key.name) {
        Some(other) => format!("did you mean `--service {other}`?"),
        None => "check the name, and whether the input has its namespace".to_owned(),
    };
    Some(format!("the input has no Service, Endpoints, or slice for `{key}`: {hint}"))
}

/// What is odd about the input as a whole.
fn notes(request: &Request, gathered: &Gathered, planned: &[Planned]) -> Vec<String> {
    let ClusterState { pods, nodes, .. } = &gathered.world;
    let mut notes = Vec::new();
    if request.controllers.is_empty() {
        notes.push("`--controllers` leaves no controller: begin with `*` to leave some out".into());
    } else if planned.is_empty() {
        notes.push(nothing_to_plan(gathered));
    }
    if let Choice::Named(keys) = &request.choice {
        notes.extend(keys.iter().filter_map(|key| misspelt(key, &gathered.world)));
    }
    let n_on_nodes = pods.values().filter(|pod| pod.node_name.is_some()).count();
    if nodes.is_empty() && n_on_nodes > 0 && request.controllers.contains(&Controller::Slices) {
        notes.push(
            "the input has pods but no nodes: slices leave pods out whose node is not found".into(),
        );
    }
    notes
}

fn nothing_to_plan(gathered: &Gathered) -> String {
    let kinds = gathered.n_ignored_by_kind.iter();
    let kinds: Vec<String> = kinds.map(|(kind, n)| format!("{n} of kind `{kind}`")).collect();
    if kinds.is_empty() {
        "the input has no Service and no Endpoints to plan".to_owned()
    } else {
        format!("the input has no Service and no Endpoints to plan; ignored: {}", kinds.join(", "))
    }
}

fn print(format: Format, world: &ClusterState, planned: &[Planned]) -> Result<(), Refusal> {
    let mut out = BufWriter::new(io::stdout().lock());
    let printed = match format {
        Format::Table => render_table::render(&mut out, world, planned),
        Format::Json => render_json::render(&mut out, planned),
    };
    match printed.and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // Whoever reads, `head` for one, has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Refusal::new(
            format!("cannot write the plan: {error}"),
            "standard output must be writable",
        )),
    }
}

fn summary(planned: &[Planned]) -> String {
    let keys: BTreeSet<&Key> = planned.iter().map(|one| &one.key).collect();
    let writes = || planned.iter().flat_map(|one| &one.plan.writes);
    let count = |verb: &str| writes().filter(|write| write.verb() == verb).count();
    let [creates, updates, deletes] =
        ["create", "update", "delete"].map(|verb| counted(count(verb), verb));
    format!("planned {}: {creates}, {updates}, {deletes}", counted(keys.len(), "key"))
}

/// `1 key`, `2 keys`.
fn counted(n: usize, what: &str) -> String {
    let ending = match (n, what.ends_with('s')) {
        (1, _) => "",
        (_, true) => "es",
        (_, false) => "s",
    };
    format!("{n} {what}{ending}")
}

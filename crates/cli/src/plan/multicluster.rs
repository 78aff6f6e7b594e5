//! `endpointd plan --cluster`: what one cluster would write for the Services that several clusters
//! export, from a file for each cluster.

mod load;
mod render;

use std::collections::BTreeSet;
use std::process::ExitCode;

use clap::Args;
use endpointd_model::{ClusterId, Key, MultiClusterObject, Object, Timestamp, Write};
use endpointd_plan::{ClusterSetState, MultiClusterPlan, SourceState};

use self::load::Loaded;
use super::flags::{Flags, Format, KeySelection, selection};
use super::{counted, print_with};
use crate::cli_error::CliError;
use crate::input::Source;
use crate::{EXIT_FINDINGS, stderr};

/// The flags for Services of several clusters.
#[derive(Args)]
pub struct MultiClusterFlags {
    /// Plan the imports of Services that several clusters export, instead of the controllers: `-f`
    /// has the objects of this cluster, FILE those of the cluster NAME; repeatable
    #[arg(long = "cluster", value_name = "NAME=FILE")]
    pub clusters: Vec<String>,

    /// With `--cluster`: the name of this cluster
    #[arg(long, value_name = "NAME", default_value = "local", requires = "clusters")]
    pub cluster_id: String,

    /// With `--cluster`: plan as if this cluster had not answered for five minutes; repeatable
    #[arg(long = "lost", value_name = "NAME", requires = "clusters")]
    pub lost: Vec<String>,
}

/// The plan of one key, and all writes until nothing is left to write.
pub struct KeyPlan {
    pub key: Key,
    pub writes: Vec<Write>,
    pub plan: MultiClusterPlan,
}

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    let selection = selection(&flags.services)?;
    let mut loaded = load(flags)?;
    for warning in &loaded.warnings {
        stderr::line(format_args!("warning: {warning}"));
    }
    let keys = match selection {
        KeySelection::All => &loaded.state.keys() - &loaded.malformed,
        KeySelection::Named(keys) => keys,
    };
    let planned: Vec<KeyPlan> = keys
        .into_iter()
        .map(|key| {
            let (writes, plan) = loaded.state.settle(&key);
            KeyPlan { key, writes, plan }
        })
        .collect();
    for note in notes(&planned) {
        stderr::line(format_args!("note: {note}"));
    }
    print_with(|out| match flags.output {
        Format::Table => render::table(out, &planned),
        Format::Json => render::json(out, &planned),
    })?;
    let n_writes = planned.iter().map(|one| one.writes.len()).sum::<usize>();
    let (keys, writes) = (counted(planned.len(), "key"), counted(n_writes, "write"));
    stderr::line(format_args!("planned {keys}: {writes}"));
    Ok(match flags.exit_code && n_writes > 0 {
        true => ExitCode::from(EXIT_FINDINGS),
        false => ExitCode::SUCCESS,
    })
}

fn load(flags: &Flags) -> Result<Loaded, CliError> {
    let MultiClusterFlags { clusters, cluster_id, lost } = &flags.multicluster;
    let home = cluster(cluster_id)?;
    let mut seen: BTreeSet<ClusterId> = [home.clone()].into();
    let mut loaded = Loaded {
        state: ClusterSetState::new(home, Timestamp::now()),
        malformed: BTreeSet::new(),
        warnings: Vec::new(),
    };
    loaded.read_home(&Source::find(&flags.files)?)?;
    for text in clusters {
        let Some((name, file)) = text.split_once('=').filter(|(_, file)| !file.is_empty()) else {
            return Err(CliError::new(
                format!("`--cluster` must be NAME=FILE: `{text}`"),
                "for example `--cluster eu1=eu1.yaml`",
            ));
        };
        let id = cluster(name)?;
        if !seen.insert(id.clone()) {
            return Err(CliError::new(
                format!("two clusters have the name `{id}`"),
                "give each `--cluster` another name, and this one with `--cluster-id`",
            ));
        }
        loaded.read_remote(id, &Source::find(&[file.into()])?)?;
    }
    for name in lost {
        let id = cluster(name)?;
        let remote = loaded.state.remotes.iter_mut().find(|remote| remote.id == id);
        let Some(remote) = remote else {
            return Err(CliError::new(
                format!("`--lost` names no cluster of `--cluster`: `{name}`"),
                "the plan is made by this cluster, so only others can be lost",
            ));
        };
        remote.state = SourceState::Demoted { last_contact: None };
    }
    Ok(loaded)
}

fn cluster(name: &str) -> Result<ClusterId, CliError> {
    ClusterId::parse(name)
        .map_err(|error| CliError::new(error.to_string(), "it is the name of a cluster in labels"))
}

fn notes(planned: &[KeyPlan]) -> Vec<String> {
    let mut notes = Vec::new();
    if planned.is_empty() {
        notes.push("no cluster has a ServiceExport or ServiceImport to plan".to_owned());
    }
    let is_derived = |write: &Write| {
        matches!(write, Write::Create(Object::MultiCluster(MultiClusterObject::Derived(_))))
    };
    if planned.iter().flat_map(|one| &one.writes).any(is_derived) {
        notes.push(
            "the API server assigns the addresses of derived Services, so imports lack them here"
                .to_owned(),
        );
    }
    notes
}

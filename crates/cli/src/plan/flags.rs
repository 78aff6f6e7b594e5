//! The flags of `plan`, and their validation.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use endpointd_model::{Controller, Key};
use endpointd_plan::Settings;

use super::multicluster::MultiClusterFlags;
use crate::cli_error::CliError;
use crate::shared_flags::{ControllersFlag, LimitFlags};

/// Show what would be written for the objects in files
#[derive(Args)]
#[command(
    long_about = "Show what would be written for the objects in files.\n\n\
        Reads Services, pods, nodes, Endpoints, and EndpointSlices from YAML or JSON, and prints \
        the writes that the controllers would send. Contacts no cluster. Objects of other kinds \
        are ignored; malformed objects are reported and excluded. Objects without a namespace are \
        in `default`.\n\n\
        The plan goes to standard output, everything else to standard error. Exit code: 0 with \
        or without writes in the plan, 1 with writes and `--exit-code`; 2 after an error.",
    after_long_help = "Examples:\n  \
        kubectl get svc,pod,node,endpoints,endpointslices -A -o yaml | endpointd plan -f -\n  \
        endpointd plan -f dump.yaml --service shop/web\n  \
        endpointd plan -f services.yaml pods.json --controllers '*,-endpoints-controller'\n  \
        endpointd plan -f dump.yaml -o json | jq '.plans[] | select(.writes != [])'\n  \
        endpointd plan -f here.yaml --cluster eu1=eu1.yaml --lost eu1"
)]
pub struct Flags {
    /// Files to read, YAML or JSON; a directory stands for the files in it, `-` for standard input
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,

    /// A table for people, or JSON for programs
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Format,

    /// Exit with code 1 if the plan writes something
    #[arg(long)]
    pub exit_code: bool,

    /// Plan only this Service or Endpoints; without a namespace it is in `default`; repeatable
    #[arg(long = "service", value_name = "NAMESPACE/NAME")]
    pub services: Vec<String>,

    #[command(flatten)]
    pub controllers: ControllersFlag,

    #[command(flatten)]
    pub limits: LimitFlags,

    #[command(flatten)]
    pub multicluster: MultiClusterFlags,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum Format {
    #[default]
    Table,
    Json,
}

/// Validated flags.
#[derive(Debug, PartialEq, Eq)]
pub struct Request {
    pub controllers: BTreeSet<Controller>,
    pub selection: KeySelection,
    pub settings: Settings,
}

/// Which keys to plan.
#[derive(Debug, PartialEq, Eq)]
pub enum KeySelection {
    /// All Services and Endpoints of the input.
    All,
    Named(BTreeSet<Key>),
}

impl Request {
    pub fn resolve(flags: &Flags) -> Result<Self, CliError> {
        Ok(Self {
            controllers: flags.controllers.selected_of_one_cluster()?,
            selection: selection(&flags.services)?,
            settings: flags.limits.settings()?,
        })
    }
}

pub fn selection(services: &[String]) -> Result<KeySelection, CliError> {
    if services.is_empty() {
        return Ok(KeySelection::All);
    }
    services.iter().map(|text| key(text)).collect::<Result<_, _>>().map(KeySelection::Named)
}

fn key(text: &str) -> Result<Key, CliError> {
    let (namespace, name) = text.split_once('/').unwrap_or((super::DEFAULT_NAMESPACE, text));
    if namespace.is_empty() || name.is_empty() || name.contains('/') {
        return Err(CliError::new(
            format!("`--service` must be `namespace/name` or `name`: `{text}`"),
            "for example `--service shop/web`",
        ));
    }
    Ok(Key::new(namespace, name))
}

//! The flags of `plan`, and their validation.

use std::collections::BTreeSet;
use std::path::PathBuf;

use clap::{Args, ValueEnum};
use endpointd_model::{Controller, Key};
use endpointd_plan::Settings;

use crate::cli_error::CliError;
use crate::shared_flags::{self, ENDPOINTS_MAX, number};

/// Show what would be written for the objects in files
#[derive(Args)]
#[command(
    long_about = "Show what would be written for the objects in files.\n\n\
        Reads Services, pods, nodes, Endpoints, and EndpointSlices from YAML or JSON, prints \
        the writes that the controllers would send. Contacts no cluster. Objects of other kinds \
        are ignored; malformed objects are reported and excluded. Objects without a namespace are \
        in `default`.\n\n\
        The plan goes to standard output, everything else to standard error. Exit code: 0 with \
        or without writes in the plan; 2 after an error.",
    after_long_help = "Examples:\n  \
        kubectl get svc,pod,node,endpoints,endpointslices -A -o yaml | endpointd plan -f -\n  \
        endpointd plan -f dump.yaml --service shop/web\n  \
        endpointd plan -f services.yaml pods.json --controllers '*,-endpoints-controller'\n  \
        endpointd plan -f dump.yaml -o json | jq '.plans[] | select(.writes != [])'"
)]
pub struct Flags {
    /// Files to read, YAML or JSON; a directory stands for the files in it, `-` for standard input
    #[arg(short, long = "filename", value_name = "FILE", required = true, num_args = 1..)]
    pub files: Vec<PathBuf>,

    /// A table for people, or JSON for programs
    #[arg(short, long, value_name = "FORMAT", value_enum, default_value_t)]
    pub output: Format,

    /// Plan only this Service or Endpoints; without a namespace it is in `default`; repeatable
    #[arg(long = "service", value_name = "NAMESPACE/NAME")]
    pub services: Vec<String>,

    /// Controllers to plan for: `*` for all, `name`, `-name` to exclude one, separated by commas
    ///
    /// Known are `endpointslice-controller` (`endpointslice`), `endpoints-controller`
    /// (`endpoint`), and `endpointslice-mirroring-controller` (`endpointslicemirroring`).
    #[arg(
        long,
        value_name = "LIST",
        default_value = "*",
        value_delimiter = ',',
        allow_hyphen_values = true
    )]
    pub controllers: Vec<String>,

    /// The most endpoints in a slice, from 1 to 1000
    #[arg(long, value_name = "N", default_value = "100", allow_hyphen_values = true)]
    pub max_endpoints_per_slice: String,

    /// The most addresses mirrored from one subset of Endpoints, from 1 to 1000
    #[arg(long, value_name = "N", default_value = "1000", allow_hyphen_values = true)]
    pub mirroring_max_endpoints_per_subset: String,
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
        let Flags { files: _, output: _, services, controllers, .. } = flags;
        let defaults = Settings::default();
        let settings = Settings {
            endpoints_per_slice_max: number(
                "max-endpoints-per-slice",
                &flags.max_endpoints_per_slice,
                ENDPOINTS_MAX,
                defaults.endpoints_per_slice_max,
            )?,
            mirrored_per_subset_max: number(
                "mirroring-max-endpoints-per-subset",
                &flags.mirroring_max_endpoints_per_subset,
                ENDPOINTS_MAX,
                defaults.mirrored_per_subset_max,
            )?,
        };
        Ok(Self {
            controllers: shared_flags::controllers(controllers)?,
            selection: selection(services)?,
            settings,
        })
    }
}

fn selection(services: &[String]) -> Result<KeySelection, CliError> {
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

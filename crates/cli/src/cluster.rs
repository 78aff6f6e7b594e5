//! Reads complete objects for commands that explain and compare: from a cluster, from files, or from
//! both. Start at [`load`].

mod connect;
mod flags;
mod follow_up;
mod live;
mod resource;
mod what_if;

use endpointd_client::Client;
use endpointd_explain::Objects;
use endpointd_model::Key;
use serde_json::Value;

pub use self::connect::{cannot_connect, connect, connect_options, run_async, unreachable};
pub use self::flags::{ConnectFlags, FileFlags, NamespaceFlags};
pub use self::follow_up::follow_up;
pub use self::live::{Scope, namespaces, read_all_nodes, read_into, read_live};
pub use self::resource::{
    ENDPOINT_SLICES, ENDPOINTS, LEASES, PODS, Resource, SERVICE_IMPORTS, SERVICES,
};
pub use self::what_if::load_what_if;

use crate::cli_error::CliError;
use crate::input::{self, Source};

/// In a dump, a kind without objects may simply not have been dumped. Without these two, a dump
/// would say nothing at all.
const EXPECTED_IN_FILES: [&str; 2] = ["Service", "Pod"];

/// Where the objects came from.
pub struct Loaded {
    pub objects: Objects,
    /// `None` for files.
    pub client: Option<Client>,
    /// The namespaces that were read.
    pub scope: Scope,
}

/// Reads the namespace, or all of them, from the cluster; or the files, if there are some. `service` is
/// the only one that is asked about.
pub async fn load(
    connect_flags: &ConnectFlags,
    namespace: &NamespaceFlags,
    files: &FileFlags,
    service: Option<&str>,
) -> Result<Loaded, CliError> {
    if !files.files.is_empty() {
        let objects = read_files(files)?;
        let scope = match (&namespace.namespace, only_namespace(&objects)) {
            (None, Some(only)) if !namespace.all_namespaces => Scope::Namespace(only),
            _ => namespace.scope(None),
        };
        return Ok(Loaded { objects, client: None, scope });
    }
    let client = connect(connect_flags).await?;
    let scope = match (namespace.scope(Some(&client)), service) {
        (Scope::Namespace(namespace), Some(name)) => Scope::Service(Key::new(namespace, name)),
        (scope, _) => scope,
    };
    let objects = read_live(&client, &scope).await?;
    Ok(Loaded { objects, client: Some(client), scope })
}

/// The namespace of all Services and pods, if it is one: a dump of it needs no `-n`.
fn only_namespace(objects: &Objects) -> Option<String> {
    let named = EXPECTED_IN_FILES.iter().flat_map(|kind| objects.of_kind_anywhere(kind));
    let mut namespaces = named.map(|(name, _)| &name.namespace);
    let first = namespaces.next()?;
    namespaces.all(|one| one == first).then(|| first.clone())
}

/// The objects in the files; of one name, the last counts.
fn read_files(files: &FileFlags) -> Result<Objects, CliError> {
    let mut objects = Objects::default();
    for object in values(files)? {
        if let Some(kind) = object.get("kind").and_then(Value::as_str) {
            objects.complete(kind);
        }
        objects.add(object);
    }
    EXPECTED_IN_FILES.iter().for_each(|kind| objects.complete(kind));
    objects.assume_nodes();
    Ok(objects)
}

pub fn values(files: &FileFlags) -> Result<Vec<Value>, CliError> {
    input::read_objects(&Source::find(&files.files)?)
}

//! Connects to the cluster, and the errors if that is not possible.

use endpointd_client::{Client, ConnectError, ConnectOptions, ReadError};
use tokio::runtime::Builder;

use super::flags::ConnectFlags;
use crate::cli_error::CliError;

/// Prepares connections; the first read finds out whether the server can be reached.
pub async fn connect(flags: &ConnectFlags) -> Result<Client, CliError> {
    Client::connect(connect_options(flags)).await.map_err(|error| cannot_connect(&error))
}

pub fn connect_options(flags: &ConnectFlags) -> ConnectOptions {
    let ConnectFlags { kubeconfig, context, server, impersonate, impersonate_groups } = flags;
    ConnectOptions {
        kubeconfig: kubeconfig.clone(),
        context: context.clone(),
        server: server.clone(),
        impersonate: impersonate.clone(),
        impersonate_groups: impersonate_groups.clone(),
        user_agent: format!("endpointd/{}", env!("CARGO_PKG_VERSION")),
        ..ConnectOptions::default()
    }
}

pub fn cannot_connect(error: &ConnectError) -> CliError {
    let text = error.to_string();
    // Its text has the hint in a second line.
    let (message, hint) = text.split_once("\nhint: ").unwrap_or((&text, "check the kubeconfig"));
    CliError::new(message, hint)
}

/// The error if nothing can be read from the cluster.
pub fn unreachable(client: &Client, error: &ReadError) -> CliError {
    let server = client.server();
    match error.code {
        Some(401) => CliError::new(
            format!("the API server at {server} does not accept the credentials: {error}"),
            "check the user of the context: `kubectl auth whoami`",
        ),
        Some(_) | None => CliError::new(
            format!("cannot read from the API server at {server}: {error}"),
            "check the cluster of the context: `kubectl cluster-info`; `-f FILE` reads a dump",
        ),
    }
}

/// Runs a command that waits for a server, on this thread.
pub fn run_async<T>(work: impl Future<Output = Result<T, CliError>>) -> Result<T, CliError> {
    let runtime = Builder::new_current_thread().enable_all().build().map_err(|reason| {
        CliError::new(reason.to_string(), "check the limit of threads (`ulimit -u`)")
    })?;
    runtime.block_on(work)
}

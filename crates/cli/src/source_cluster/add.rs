//! `endpointd cluster add`: the account there, its token, and the kubeconfig here, in this order, so that
//! after an error nothing here names a cluster that cannot be read.

use std::net::IpAddr;
use std::time::Duration;

use endpointd_client::{
    Client, ConnectOptions, Credentials, KubeconfigSummary, kubeconfig_summary,
};
use endpointd_model::ClusterId;
use tokio::time::{Instant, sleep};

use super::account::{self, Applied};
use super::flags::AddFlags;
use super::place::Place;
use super::token::{self, Lifetime, Token};
use super::{cluster_id, identity};
use crate::cli_error::CliError;
use crate::cluster::{cannot_connect, connect_options};
use crate::yaml_output::to_yaml;

const EXPORTS: &str = "/apis/multicluster.x-k8s.io/v1beta1/serviceexports?limit=1";
/// API servers notice a new account and its permissions within moments.
const PERMISSIONS_TIMEOUT: Duration = Duration::from_secs(15);
const PERMISSIONS_POLL: Duration = Duration::from_millis(200);

/// The other cluster, and that it may be added.
struct Remote {
    id: ClusterId,
    client: Client,
    uid: String,
    /// As the user's context says.
    context: KubeconfigSummary,
    /// As endpointd will use it.
    server: String,
}

pub async fn add(flags: &AddFlags) -> Result<String, CliError> {
    let id = cluster_id(&flags.name)?;
    let lifetime = Lifetime::parse(flags.token_lifetime.as_deref())?;
    let place = Place::open(&flags.place).await?;
    let remote = check(flags, id, &place).await?;
    let mut out = format!("{}: {}, kube-system uid {}\n", remote.id, remote.server, remote.uid);
    if flags.dry_run {
        out.push_str(&preview(&remote, &place));
        return Ok(out);
    }
    for object in account::objects() {
        let Applied { outcome, object } = account::apply(&remote.client, &object).await?;
        out.push_str(&format!("  {outcome} there: {object}\n"));
    }
    let token = token::request(&remote.client, lifetime).await?;
    wait_for_permissions(&remote, &token).await?;
    let written = KubeconfigSummary { server: remote.server.clone(), ..remote.context.clone() };
    let kubeconfig = token::kubeconfig(&written, &remote.uid, Some(&token));
    place.write(remote.id.as_str(), &kubeconfig).await?;
    out.push_str(&format!("  written here: `{}` in {}\n", remote.id, place.name()));
    out.push_str(&format!("  token: {}\n", lifetime_text(token.credentials())));
    out.push_str(&notes(&remote, &place).await);
    Ok(out)
}

async fn check(flags: &AddFlags, id: ClusterId, place: &Place) -> Result<Remote, CliError> {
    let entries = place.entries().await?;
    let is_known = entries.iter().any(|one| one.name == id.as_str());
    if is_known && !flags.replace {
        return Err(CliError::new(
            format!("cluster `{id}` is known already: {} has it", place.name()),
            format!("`--replace` writes it again; `endpointd cluster remove {id}` forgets it"),
        ));
    }
    let options = flags.place.options(Some(&flags.context));
    let context = kubeconfig_summary(&options).map_err(|error| cannot_connect(&error))?;
    let client = identity::connect(options).await?;
    let uid = identity::uid_for_user(&client).await?;
    let home = match place {
        Place::Secret { client, .. } => Some(client.clone()),
        Place::Directory(_) => match &flags.place.home_context {
            Some(context) => Some(identity::connect(flags.place.options(Some(context))).await?),
            None => None,
        },
    };
    if let Some(home) = home
        && identity::uid_for_user(&home).await? == uid
    {
        return Err(CliError::new(
            format!("`{id}` is this cluster: both contexts lead to the cluster with uid {uid}"),
            "`--context` is the other cluster, `--home-context` the one that imports",
        ));
    }
    if let Some(other) = identity::same_cluster(&entries, id.as_str(), &uid).await {
        return Err(CliError::new(
            format!("`{id}` is the same cluster as `{other}`, which {} has", place.name()),
            format!("`endpointd cluster remove {other}` forgets it"),
        ));
    }
    if let Some(known) = entries.iter().find(|one| one.name == id.as_str())
        && let Some(known) = identity::known_uid(known).await
        && known != uid
    {
        return Err(CliError::new(
            format!("`{id}` is known as another cluster, with the uid {known}"),
            format!("if it was replaced: `endpointd cluster remove {id}`, then add it"),
        ));
    }
    identity::check_name(&client, &id).await?;
    let server = flags.server_address.clone().unwrap_or_else(|| context.server.clone());
    let with_server = ConnectOptions { server: Some(server.clone()), ..ConnectOptions::default() };
    identity::connect(with_server).await?;
    Ok(Remote { id, client, uid, context, server })
}

/// What would be written, without a token.
fn preview(remote: &Remote, place: &Place) -> String {
    let mut out = "  would be written there:\n".to_owned();
    let indented = |text: &str| -> String {
        text.lines().map(|line| format!("    {line}\n")).collect::<String>()
    };
    for (at, object) in account::objects().iter().enumerate() {
        out.push_str(if at > 0 { "    ---\n" } else { "" });
        out.push_str(&indented(&to_yaml(object)));
    }
    out.push_str(&format!("  would be written here: `{}` in {}\n", remote.id, place.name()));
    let written = KubeconfigSummary { server: remote.server.clone(), ..remote.context.clone() };
    out.push_str(&indented(token::kubeconfig(&written, &remote.uid, None).expose()));
    out
}

/// With the token, under the address that the user reaches.
async fn wait_for_permissions(remote: &Remote, token: &Token) -> Result<(), CliError> {
    let text = token::kubeconfig(&remote.context, &remote.uid, Some(token));
    let options =
        ConnectOptions { kubeconfig_text: Some(text), ..connect_options(&Default::default()) };
    let client = identity::connect(options).await?;
    let deadline = Instant::now() + PERMISSIONS_TIMEOUT;
    loop {
        let missing = match account::missing_permissions(&client).await {
            Ok(missing) if missing.is_empty() => return Ok(()),
            Ok(missing) => format!("may not {}", missing.join(", ")),
            Err(error) => format!("is not accepted: {error}"),
        };
        if Instant::now() >= deadline {
            return Err(CliError::new(
                format!("the account {} of `{}` {missing}", account::ACCOUNT, remote.id),
                "is there an authorizer besides RBAC? `kubectl auth can-i --list` shows its permissions",
            ));
        }
        sleep(PERMISSIONS_POLL).await;
    }
}

pub fn lifetime_text(credentials: Credentials) -> String {
    match credentials {
        Credentials::TokenUntil(end) => format!("valid until {end}"),
        Credentials::TokenWithoutEnd => "no end".to_owned(),
        Credentials::Other => "unknown".to_owned(),
    }
}

/// What will not work yet.
async fn notes(remote: &Remote, place: &Place) -> String {
    let mut out = String::new();
    let exports = remote.client.get_value(EXPORTS).await;
    if exports.is_err_and(|error| error.is_not_found()) {
        out.push_str(
            "note: the cluster has no ServiceExports yet: `kubectl apply -k deploy/multicluster` there\n",
        );
    }
    if remote.context.skips_tls_verification {
        out.push_str(
            "note: nobody verifies the certificate of the API server, as in your context\n",
        );
    }
    if matches!(place, Place::Secret { .. }) && is_loopback(&remote.server) {
        out.push_str(&format!(
            "note: from a pod {} is the pod itself: `--server-address` has the address for pods\n",
            remote.server
        ));
    }
    out
}

fn is_loopback(server: &str) -> bool {
    let host = server.split("://").nth(1).unwrap_or(server);
    let host = host.split('/').next().unwrap_or_default();
    let host = host.rsplit_once(':').map_or(host, |(host, _)| host);
    let host = host.trim_start_matches('[').trim_end_matches(']');
    host == "localhost" || host.parse().is_ok_and(|address: IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loopback_addresses_are_found() {
        for server in ["https://127.0.0.1:6443", "https://[::1]:6443/x", "http://localhost:80"] {
            assert!(is_loopback(server), "{server}");
        }
        for server in ["https://10.0.0.1:6443", "https://api.example.com", "https://[fd00::1]:1"] {
            assert!(!is_loopback(server), "{server}");
        }
    }
}

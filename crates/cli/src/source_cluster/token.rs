//! A token of the account: one without an end in a Secret, as Istio and Linkerd use it for the same
//! purpose, or one with an end by the TokenRequest API.

use std::time::Duration;

use endpointd_client::{
    Client, Credentials, KUBECONFIG_EXTENSION, KubeconfigSummary, KubeconfigText,
};
use endpointd_client::{ReadError, credentials_of};
use serde_json::{Value, json};
use tokio::time::{Instant, sleep};

use super::account::{self, ACCOUNT, NAMESPACE, SECRETS};
use crate::cli_error::CliError;
use crate::duration::parse_duration;
use crate::yaml_output::to_yaml;

/// The least that the TokenRequest API accepts.
const LIFETIME_MIN: Duration = Duration::from_secs(600);
/// kube-controller-manager writes the token into the Secret within moments, if it runs.
const SECRET_TIMEOUT: Duration = Duration::from_secs(15);
const SECRET_POLL: Duration = Duration::from_millis(200);

/// How long a token is to be valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Lifetime {
    /// Until the account or the Secret is deleted.
    WithoutEnd,
    Limited(Duration),
}

impl Lifetime {
    pub fn parse(text: Option<&str>) -> Result<Self, CliError> {
        let Some(text) = text else { return Ok(Self::WithoutEnd) };
        match parse_duration(text).filter(|time| *time >= LIFETIME_MIN) {
            Some(time) => Ok(Self::Limited(time)),
            None => Err(CliError::new(
                format!("`--token-lifetime` must be a duration of at least 10m: `{text}`"),
                "as in `720h`; without the flag the token has no end",
            )),
        }
    }
}

/// A token, which is never shown.
pub struct Token(String);

impl Token {
    pub fn credentials(&self) -> Credentials {
        credentials_of(&self.0)
    }
}

/// The Secret into which kube-controller-manager writes a token without an end.
pub fn secret() -> Value {
    json!({
        "apiVersion": "v1", "kind": "Secret", "type": "kubernetes.io/service-account-token",
        "metadata": {
            "namespace": NAMESPACE, "name": ACCOUNT,
            "annotations": {"kubernetes.io/service-account.name": ACCOUNT},
        },
    })
}

pub async fn request(client: &Client, lifetime: Lifetime) -> Result<Token, CliError> {
    match lifetime {
        Lifetime::WithoutEnd => from_secret(client).await,
        Lifetime::Limited(time) => limited(client, time).await,
    }
}

async fn limited(client: &Client, time: Duration) -> Result<Token, CliError> {
    let path = format!("/api/v1/namespaces/{NAMESPACE}/serviceaccounts/{ACCOUNT}/token");
    let request = json!({
        "apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest",
        "spec": {"expirationSeconds": time.as_secs()},
    });
    let answer =
        client.post_value(&path, &request).await.map_err(|error| cannot(client, &error))?;
    let token = answer.pointer("/status/token").and_then(Value::as_str).unwrap_or_default();
    Ok(Token(token.to_owned()))
}

async fn from_secret(client: &Client) -> Result<Token, CliError> {
    account::apply(client, &secret()).await?;
    let path = format!("{}/{ACCOUNT}", SECRETS.path(Some(NAMESPACE)));
    let deadline = Instant::now() + SECRET_TIMEOUT;
    loop {
        let found = client.get_value(&path).await.map_err(|error| cannot(client, &error))?;
        let token = found.value.pointer("/data/token").and_then(Value::as_str);
        if let Some(token) = token.and_then(KubeconfigText::from_base64) {
            return Ok(Token(token.expose().to_owned()));
        }
        if Instant::now() >= deadline {
            return Err(CliError::new(
                format!(
                    "nobody has written a token into Secret {NAMESPACE}/{ACCOUNT} at {}",
                    client.server()
                ),
                "kube-controller-manager does it, unless its serviceaccount-token-controller is off; \
                 `--token-lifetime 720h` asks the API server instead",
            ));
        }
        sleep(SECRET_POLL).await;
    }
}

fn cannot(client: &Client, error: &ReadError) -> CliError {
    CliError::new(
        format!("cannot get a token of {ACCOUNT} at {}: {error}", client.server()),
        format!(
            "`kubectl auth can-i create serviceaccounts/token -n {NAMESPACE}` with that context, and the \
             same for `get secrets`"
        ),
    )
}

/// The kubeconfig of a cluster. Without a token its place is marked.
pub fn kubeconfig(cluster: &KubeconfigSummary, uid: &str, token: Option<&Token>) -> KubeconfigText {
    let token = token.map_or("(omitted)", |token| token.0.as_str());
    let mut entry = json!({
        "server": cluster.server,
        "extensions": [{"name": KUBECONFIG_EXTENSION, "extension": {"uid": uid}}],
    });
    if let Some(authority) = &cluster.certificate_authority {
        entry["certificate-authority-data"] = authority.as_str().into();
    }
    if let Some(name) = &cluster.tls_server_name {
        entry["tls-server-name"] = name.as_str().into();
    }
    if cluster.skips_tls_verification {
        entry["insecure-skip-tls-verify"] = true.into();
    }
    let name = ACCOUNT;
    KubeconfigText::new(to_yaml(&json!({
        "apiVersion": "v1", "kind": "Config", "current-context": name,
        "clusters": [{"name": name, "cluster": entry}],
        "contexts": [{"name": name, "context": {"cluster": name, "user": name}}],
        "users": [{"name": name, "user": {"token": token}}],
    })))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lifetime_is_at_least_what_the_api_accepts() {
        let parsed = |text| Lifetime::parse(Some(text)).map_err(|error| error.message);
        assert_eq!(parsed("10m"), Ok(Lifetime::Limited(LIFETIME_MIN)));
        for bad in ["9m", "soon", "0", "-1h"] {
            assert!(parsed(bad).is_err_and(|error| error.contains(bad)), "{bad}");
        }
        assert!(Lifetime::parse(None).is_ok_and(|one| one == Lifetime::WithoutEnd));
    }
}

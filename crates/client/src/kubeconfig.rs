//! Kubeconfigs as texts, for the commands that make and list those of other clusters: what a file says
//! of its cluster without its credentials, and how long its token is valid.

use std::fmt;
use std::fs;

use endpointd_model::Timestamp;
use k8s_openapi::ByteString;
use kube::config::{AuthInfo, Cluster, Kubeconfig, NamedExtension};
use serde_json::Value;

use crate::config;
use crate::connect::{ConnectError, ConnectOptions};

/// The extension of a kubeconfig's cluster in which a command keeps what it knows of the cluster.
pub const EXTENSION: &str = "endpointd";

/// The content of a kubeconfig, which is never shown.
#[derive(Clone, PartialEq, Eq)]
pub struct KubeconfigText(String);

impl KubeconfigText {
    pub fn new(text: impl Into<String>) -> Self {
        Self(text.into())
    }

    /// A value of a Secret's `data`.
    pub fn from_base64(text: &str) -> Option<Self> {
        Some(Self(String::from_utf8(decode(text)?).ok()?))
    }

    /// For writing it to where it belongs.
    pub fn expose(&self) -> &str {
        &self.0
    }
}

impl fmt::Debug for KubeconfigText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("KubeconfigText(hidden)")
    }
}

/// What the current context of a kubeconfig, or the chosen one, says of its cluster.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct KubeconfigSummary {
    pub server: String,
    /// PEM, as base64; `None`: that of the system.
    pub certificate_authority: Option<String>,
    pub tls_server_name: Option<String>,
    pub skips_tls_verification: bool,
    /// The uid of the namespace kube-system when a command wrote the file.
    pub uid: Option<String>,
    pub credentials: Credentials,
}

/// How long the credentials of a kubeconfig are valid.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Credentials {
    /// A token that says until when.
    TokenUntil(Timestamp),
    /// A token of a ServiceAccount that does not say until when.
    TokenWithoutEnd,
    /// A certificate, a plugin, or a token of another kind.
    Other,
}

/// Reads the kubeconfig of the options. Sends nothing and runs no plugin.
pub fn summary(options: &ConnectOptions) -> Result<KubeconfigSummary, ConnectError> {
    let kubeconfig = config::read_kubeconfig(options)?.ok_or(ConnectError::NoCluster)?;
    let wanted = config::wanted_context(&kubeconfig, options)?;
    let bad = |reason: String| ConnectError::BadConfig { reason };
    let context = kubeconfig.contexts.iter().find(|one| one.name == wanted);
    let context = context.and_then(|one| one.context.clone()).unwrap_or_default();
    let cluster = kubeconfig.clusters.iter().find(|one| one.name == context.cluster);
    let cluster = cluster.and_then(|one| one.cluster.clone()).ok_or_else(|| {
        bad(format!(
            "the context `{wanted}` names the cluster `{}`, which it lacks",
            context.cluster
        ))
    })?;
    let user = context.user.as_ref().and_then(|user| {
        kubeconfig.auth_infos.iter().find(|one| one.name == *user)?.auth_info.as_ref()
    });
    let server = cluster.server.clone().filter(|server| !server.is_empty());
    Ok(KubeconfigSummary {
        server: server
            .ok_or_else(|| bad(format!("the cluster `{}` has no server", context.cluster)))?,
        certificate_authority: certificate_authority(&cluster)?,
        tls_server_name: cluster.tls_server_name.clone(),
        skips_tls_verification: cluster.insecure_skip_tls_verify.unwrap_or(false),
        uid: uid(cluster.extensions.as_deref().unwrap_or_default()),
        credentials: user.map_or(Credentials::Other, credentials),
    })
}

/// Our extension of the cluster. A kubeconfig that cannot be read has none: the attempt to connect says
/// why.
pub fn extension(options: &ConnectOptions) -> Option<Value> {
    let kubeconfig = config::read_kubeconfig(options).ok()??;
    let wanted = config::wanted_context(&kubeconfig, options).ok()?;
    let context = kubeconfig.contexts.iter().find(|one| one.name == wanted)?.context.as_ref()?;
    let cluster = kubeconfig.clusters.iter().find(|one| one.name == context.cluster)?;
    ours(cluster.cluster.as_ref()?.extensions.as_deref()?).cloned()
}

fn ours(extensions: &[NamedExtension]) -> Option<&Value> {
    Some(&extensions.iter().find(|one| one.name == EXTENSION)?.extension)
}

fn certificate_authority(cluster: &Cluster) -> Result<Option<String>, ConnectError> {
    if let Some(authority) = &cluster.certificate_authority_data {
        return Ok(Some(authority.clone()));
    }
    let Some(path) = &cluster.certificate_authority else { return Ok(None) };
    let bytes = fs::read(path).map_err(|error| ConnectError::BadConfig {
        reason: format!("cannot read the certificate authority `{path}`: {error}"),
    })?;
    let text = serde_json::to_value(ByteString(bytes)).ok();
    Ok(text.and_then(|text| text.as_str().map(str::to_owned)))
}

fn uid(extensions: &[NamedExtension]) -> Option<String> {
    ours(extensions)?.get("uid")?.as_str().map(str::to_owned)
}

fn credentials(user: &AuthInfo) -> Credentials {
    // The token is not readable otherwise.
    let user = serde_json::to_value(user).unwrap_or_default();
    match user.get("token").and_then(Value::as_str).filter(|token| !token.is_empty()) {
        Some(token) => credentials_of(token),
        None => Credentials::Other,
    }
}

/// Upstream: the claims of k8s.io/kubernetes/pkg/serviceaccount; a token of a Secret has no `exp`.
pub fn credentials_of(token: &str) -> Credentials {
    let claims = || -> Option<Value> {
        let payload = token.split('.').nth(1)?.replace('-', "+").replace('_', "/");
        let padding = "=".repeat((4 - payload.len() % 4) % 4);
        serde_json::from_slice(&decode(&format!("{payload}{padding}"))?).ok()
    };
    let Some(claims) = claims() else { return Credentials::Other };
    match claims.get("exp").map(|end| end.as_i64().map(Timestamp::from_second)) {
        None => Credentials::TokenWithoutEnd,
        Some(Some(Ok(end))) => Credentials::TokenUntil(end),
        Some(_) => Credentials::Other,
    }
}

fn decode(base64: &str) -> Option<Vec<u8>> {
    serde_json::from_value::<ByteString>(base64.into()).ok().map(|bytes| bytes.0)
}

/// Another program or file that a kubeconfig names. Who may write a Secret must not thereby run programs
/// or read files of who lists it.
pub(crate) fn reference(kubeconfig: &Kubeconfig) -> Option<&'static str> {
    let clusters = kubeconfig.clusters.iter().filter_map(|one| one.cluster.as_ref());
    let users = kubeconfig.auth_infos.iter().filter_map(|one| one.auth_info.as_ref());
    let of_user = |user: &AuthInfo| {
        let AuthInfo { exec, auth_provider, token_file, client_certificate, client_key, .. } = user;
        let named = [
            ("exec", exec.is_some()),
            ("auth-provider", auth_provider.is_some()),
            ("tokenFile", token_file.is_some()),
            ("client-certificate", client_certificate.is_some()),
            ("client-key", client_key.is_some()),
        ];
        named.into_iter().find(|(_, is_named)| *is_named).map(|(field, _)| field)
    };
    let of_cluster =
        |one: &Cluster| one.certificate_authority.as_ref().map(|_| "certificate-authority");
    users.filter_map(of_user).chain(clusters.filter_map(of_cluster)).next()
}

#[cfg(test)]
mod tests {
    use super::*;

    const CERTIFICATE: &str = "UEVN";

    fn options(user: &str, cluster: &str) -> ConnectOptions {
        let text = format!(
            r#"{{apiVersion: v1, kind: Config, current-context: a, users: [{{name: a, user: {user}}}],
clusters: [{{name: a, cluster: {{server: "https://10.0.0.1:6443", {cluster}}}}}],
contexts: [{{name: a, context: {{cluster: a, user: a}}}}]}}"#
        );
        ConnectOptions {
            kubeconfig_text: Some(KubeconfigText::new(text)),
            user_agent: "test".to_owned(),
            ..ConnectOptions::default()
        }
    }

    #[test]
    fn a_kubeconfig_says_which_cluster_and_how_long() {
        let extension = r#"extensions: [{name: endpointd, extension: {uid: "1234"}}],
tls-server-name: api, certificate-authority-data: UEVN"#;
        // {"exp":1700000000}
        let found = summary(&options("{token: h.eyJleHAiOjE3MDAwMDAwMDB9.s}", extension));
        let found = found.expect("a kubeconfig");
        assert_eq!(found.uid.as_deref(), Some("1234"));
        assert_eq!(found.server, "https://10.0.0.1:6443");
        assert_eq!(found.certificate_authority.as_deref(), Some(CERTIFICATE));
        assert_eq!(found.tls_server_name.as_deref(), Some("api"));
        let end = Timestamp::from_second(1_700_000_000).expect("a time");
        assert_eq!(found.credentials, Credentials::TokenUntil(end));
    }

    #[test]
    fn the_extension_is_that_of_the_cluster() {
        let found = extension(&options(
            "{}",
            "extensions: [{name: other, extension: {zones: keep}},
{name: endpointd, extension: {zones: drop}}]",
        ));
        assert_eq!(found, Some(serde_json::json!({"zones": "drop"})));
        assert_eq!(extension(&options("{}", "tls-server-name: api")), None);
        assert_eq!(extension(&options("{", "")), None, "it cannot be read");
    }

    #[test]
    fn tokens_without_an_end_and_other_credentials_are_told_apart() {
        // {"sub":"a?b~c"}: with letters that only the alphabet for URLs has.
        assert_eq!(credentials_of("h.eyJzdWIiOiJhP2J-YyJ9.s"), Credentials::TokenWithoutEnd);
        for token in ["", "opaque", "a.b.c", "h.eyJleHAiOiJzb29uIn0.s"] {
            assert_eq!(credentials_of(token), Credentials::Other, "{token}");
        }
    }

    #[test]
    fn a_text_names_no_programs_and_no_files() {
        let users = [
            ("exec", "{exec: {command: id}}"),
            ("tokenFile", "{tokenFile: /etc/shadow}"),
            ("client-key", "{client-key: /etc/shadow}"),
            ("client-certificate", "{client-certificate: /etc/shadow}"),
            ("auth-provider", "{auth-provider: {name: gcp, config: {}}}"),
        ];
        for (field, user) in users {
            let error = summary(&options(user, "")).expect_err("refused").to_string();
            assert!(error.contains(&format!("`{field}`")), "{error}");
        }
        let error = summary(&options("{token: a}", "certificate-authority: /etc/shadow"));
        assert!(error.expect_err("refused").to_string().contains("certificate-authority"));
    }

    #[test]
    fn credentials_are_not_shown() {
        let options = options("{token: top-secret}", "");
        assert!(!format!("{options:?}").contains("top-secret"));
        let broken = ConnectOptions {
            kubeconfig_text: Some(KubeconfigText::new("users: [top-secret")),
            ..ConnectOptions::default()
        };
        let error = summary(&broken).expect_err("no YAML").to_string();
        assert!(!error.contains("top-secret"), "{error}");
    }

    #[test]
    fn a_value_of_a_secret_is_decoded() {
        let text = KubeconfigText::from_base64("YTogYg==").expect("base64");
        assert_eq!(text.expose(), "a: b");
        assert_eq!(KubeconfigText::from_base64("?"), None);
    }
}

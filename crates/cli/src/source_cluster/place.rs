//! Where the kubeconfigs of the other clusters are: a directory, or a Secret of this cluster, which is
//! the directory of a pod.

use std::fs::{self, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use endpointd_client::{Client, KubeconfigText, ReadError};
use serde_json::{Map, Value, json};

use super::Entry;
use super::account::SECRETS;
use super::flags::PlaceFlags;
use super::identity;
use crate::cli_error::CliError;
use crate::cluster::{connect_options, unreachable};

/// Somebody else may write the Secret between our read and our write.
const ATTEMPTS_MAX: usize = 5;

pub enum Place {
    Directory(PathBuf),
    Secret { client: Client, namespace: String, name: String },
}

impl Place {
    pub async fn open(flags: &PlaceFlags) -> Result<Self, CliError> {
        if let Some(directory) = &flags.clusters {
            return match directory.is_dir() {
                true => Ok(Self::Directory(directory.clone())),
                false => Err(CliError::new(
                    format!("`--clusters` is no directory: `{}`", directory.display()),
                    "create it; without the flag the kubeconfigs are in a Secret",
                )),
            };
        }
        let client = identity::connect(flags.options(flags.home_context.as_ref())).await?;
        let (namespace, name) = (flags.namespace.clone(), flags.secret.clone());
        Ok(Self::Secret { client, namespace, name })
    }

    /// `Secret endpointd/endpointd-clusters` or `/etc/endpointd/clusters`.
    pub fn name(&self) -> String {
        match self {
            Self::Directory(path) => path.display().to_string(),
            Self::Secret { namespace, name, .. } => format!("Secret {namespace}/{name}"),
        }
    }

    /// All of them, by name.
    pub async fn entries(&self) -> Result<Vec<Entry>, CliError> {
        let options = connect_options(&Default::default());
        match self {
            Self::Directory(directory) => {
                let names = names(directory).map_err(|error| unreadable(directory, &error))?;
                let entry = |name: String| {
                    let kubeconfig = Some(directory.join(&name));
                    let options =
                        endpointd_client::ConnectOptions { kubeconfig, ..options.clone() };
                    Entry { name, options }
                };
                Ok(names.into_iter().map(entry).collect())
            }
            Self::Secret { .. } => {
                let secret = self.read_secret().await?;
                let values = secret.as_ref().and_then(|secret| secret["data"].as_object());
                let entry = |(name, value): (&String, &Value)| {
                    let text = value.as_str().and_then(KubeconfigText::from_base64);
                    let kubeconfig_text = Some(text.unwrap_or_else(|| KubeconfigText::new("")));
                    let options =
                        endpointd_client::ConnectOptions { kubeconfig_text, ..options.clone() };
                    Entry { name: name.clone(), options }
                };
                Ok(values.into_iter().flatten().map(entry).collect())
            }
        }
    }

    /// None if there is no such Secret.
    async fn read_secret(&self) -> Result<Option<Value>, CliError> {
        let Self::Secret { client, .. } = self else { return Ok(None) };
        match client.get_value(&self.path()).await {
            Ok(found) => Ok(Some(found.value)),
            Err(error) if error.is_not_found() => Ok(None),
            Err(error) => Err(self.cannot("read", client, &error)),
        }
    }

    pub async fn write(&self, cluster: &str, text: &KubeconfigText) -> Result<(), CliError> {
        match self {
            Self::Directory(directory) => write_file(directory, cluster, text).map_err(|error| {
                let path = directory.join(cluster);
                CliError::new(
                    format!("cannot write `{}`: {error}", path.display()),
                    "the directory must be writable for you, and readable for endpointd",
                )
            }),
            Self::Secret { .. } => {
                let change = |secret: &mut Value| {
                    secret["stringData"] = json!({cluster: text.expose()});
                };
                self.change_secret(&change).await
            }
        }
    }

    pub async fn remove(&self, cluster: &str) -> Result<(), CliError> {
        match self {
            Self::Directory(directory) => {
                let path = directory.join(cluster);
                fs::remove_file(&path).map_err(|error| {
                    CliError::new(
                        format!("cannot delete `{}`: {error}", path.display()),
                        "the directory must be writable for you",
                    )
                })
            }
            Self::Secret { .. } => {
                let change = |secret: &mut Value| {
                    secret["data"]
                        .as_object_mut()
                        .map(|values: &mut Map<_, _>| values.remove(cluster));
                };
                self.change_secret(&change).await
            }
        }
    }

    /// Reads, changes, and writes the Secret until nobody else has written it meanwhile.
    async fn change_secret(&self, change: &impl Fn(&mut Value)) -> Result<(), CliError> {
        let Self::Secret { client, namespace, name } = self else { return Ok(()) };
        let mut n_attempts = 0;
        loop {
            n_attempts += 1;
            let written = match self.read_secret().await? {
                Some(mut secret) => {
                    change(&mut secret);
                    client.put_value(&self.path(), &secret).await
                }
                None => {
                    let mut secret = json!({
                        "apiVersion": "v1", "kind": "Secret",
                        "metadata": {"namespace": namespace, "name": name},
                    });
                    change(&mut secret);
                    client.post_value(&SECRETS.path(Some(namespace)), &secret).await
                }
            };
            match written {
                Ok(_) => return Ok(()),
                Err(error) if error.code == Some(409) && n_attempts < ATTEMPTS_MAX => {}
                Err(error) => return Err(self.cannot("write", client, &error)),
            }
        }
    }

    fn path(&self) -> String {
        match self {
            Self::Directory(_) => String::new(),
            Self::Secret { namespace, name, .. } => {
                format!("{}/{name}", SECRETS.path(Some(namespace)))
            }
        }
    }

    fn cannot(&self, verb: &str, client: &Client, error: &ReadError) -> CliError {
        let Self::Secret { namespace, .. } = self else { return unreachable(client, error) };
        if error.is_about_connection() {
            return unreachable(client, error);
        }
        let hint = match error.is_not_found() {
            true => format!(
                "`kubectl create namespace {namespace}`, or `-n` with the namespace of endpointd"
            ),
            false => format!(
                "`kubectl auth can-i update secrets -n {namespace}`; `--clusters DIR` needs no Secret"
            ),
        };
        let place = format!("{} at {}", self.name(), client.server());
        CliError::new(format!("cannot {verb} {place}: {error}"), hint)
    }
}

/// As `endpointd run` reads the directory: names with a dot in front are not those of clusters.
fn names(directory: &Path) -> io::Result<Vec<String>> {
    let mut names = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        names.extend(name.filter(|name| !name.starts_with('.') && path.is_file()));
    }
    names.sort_unstable();
    Ok(names)
}

fn unreadable(directory: &Path, error: &io::Error) -> CliError {
    CliError::new(
        format!("cannot read the directory `{}`: {error}", directory.display()),
        "`--clusters` is the directory with the kubeconfigs",
    )
}

/// Only its owner may read it. A reader never sees a part of it.
fn write_file(directory: &Path, name: &str, text: &KubeconfigText) -> io::Result<()> {
    // endpointd skips names with a dot in front.
    let temporary = directory.join(format!(".{name}.new"));
    let mut options = OpenOptions::new();
    options.write(true).create(true).truncate(true);
    #[cfg(unix)]
    std::os::unix::fs::OpenOptionsExt::mode(&mut options, 0o600);
    let mut file = options.open(&temporary)?;
    file.write_all(text.expose().as_bytes())?;
    file.sync_all()?;
    fs::rename(&temporary, directory.join(name))
}

//! The kubeconfig of the playground.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Only files that begin with this line are overwritten.
const HEAD: &str = "# Written by `endpointd playground`.";
/// The only user, and the context of a cluster alone.
pub const USER: &str = "playground";

/// Where the kubeconfig is written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum KubeconfigTarget {
    /// A temporary file, one for each port, removed at exit.
    Temporary,
    /// Not removed.
    Path(PathBuf),
}

/// A written kubeconfig.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    place: KubeconfigTarget,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write the kubeconfig `{}`: {reason}", path.display())]
pub struct WriteError {
    pub path: PathBuf,
    pub reason: String,
}

impl Kubeconfig {
    /// With a context for each server; the first is the current one.
    pub fn write(place: KubeconfigTarget, servers: &[(&str, u16)]) -> Result<Self, WriteError> {
        let port = servers.first().map_or(0, |(_, port)| *port);
        let path = match &place {
            KubeconfigTarget::Path(path) => path.clone(),
            KubeconfigTarget::Temporary => {
                std::env::temp_dir().join(format!("endpointd-playground-{port}.kubeconfig"))
            }
        };
        match write(&path, &Self::text(servers)) {
            Ok(()) => Ok(Self { path, place }),
            Err(reason) => Err(WriteError { path, reason }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Plain HTTP on the loopback interface, so it contains no credentials.
    pub fn text(servers: &[(&str, u16)]) -> String {
        let entries = |entry: &dyn Fn(&str, u16) -> String| -> String {
            servers.iter().map(|(name, port)| entry(name, *port)).collect()
        };
        let clusters = entries(&|name, port| {
            format!("- name: {name}\n\x20 cluster: {{server: 'http://127.0.0.1:{port}'}}\n")
        });
        let contexts = entries(&|name, _| {
            format!("- name: {name}\n\x20 context: {{cluster: {name}, user: {USER}}}\n")
        });
        let current = servers.first().map_or("", |(name, _)| name);
        format!(
            "{HEAD}\n\
             apiVersion: v1\n\
             kind: Config\n\
             clusters:\n\
             {clusters}\
             contexts:\n\
             {contexts}\
             users:\n\
             - name: {USER}\n\
             \x20 user: {{}}\n\
             current-context: {current}\n"
        )
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if self.place == KubeconfigTarget::Temporary {
            // A file that remains only names a closed port.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Does not overwrite other files and does not follow symbolic links.
fn write(path: &Path, text: &str) -> Result<(), String> {
    match is_ours(path) {
        Ok(true) => fs::remove_file(path).map_err(|error| error.to_string())?,
        Ok(false) => return Err("the file exists and was not written by endpointd".to_owned()),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {}
        Err(error) => return Err(error.to_string()),
    }
    let mut file = OpenOptions::new()
        .write(true)
        .create_new(true)
        .open(path)
        .map_err(|error| error.to_string())?;
    file.write_all(text.as_bytes()).map_err(|error| error.to_string())
}

fn is_ours(path: &Path) -> io::Result<bool> {
    let mut head = vec![0; HEAD.len()];
    let read = fs::File::open(path)?.read_exact(&mut head);
    Ok(read.is_ok() && head == HEAD.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_file_of_the_playground_is_replaced_and_other_files_are_kept() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let place = KubeconfigTarget::Path(path.clone());
        drop(Kubeconfig::write(place.clone(), &[(USER, 1)]).expect("a new file"));
        drop(Kubeconfig::write(place.clone(), &[(USER, 2)]).expect("our own file"));
        let written = fs::read_to_string(&path).expect("a chosen file stays");
        assert!(written.contains("http://127.0.0.1:2'"), "{written}");

        fs::write(&path, "apiVersion: v1\n").expect("writable");
        let error = Kubeconfig::write(place, &[(USER, 3)]).expect_err("another file");
        assert!(error.to_string().contains("was not written by endpointd"), "{error}");
        assert_eq!(fs::read_to_string(&path).expect("still there"), "apiVersion: v1\n");
    }

    #[test]
    fn a_temporary_file_is_removed_at_the_end() {
        // No server has port 0, so no other test has this file.
        let written =
            Kubeconfig::write(KubeconfigTarget::Temporary, &[(USER, 0)]).expect("a new file");
        let path = written.path().to_owned();
        assert!(path.exists());
        drop(written);
        assert!(!path.exists());
    }
}

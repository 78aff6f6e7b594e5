//! The file that tells kubectl where the playground is.

use std::fs::{self, OpenOptions};
use std::io::{self, Read, Write};
use std::path::{Path, PathBuf};

/// Who may be overwritten: what begins with this is ours.
const HEAD: &str = "# Written by `endpointd playground`.";

/// Where it goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// A file of its own for each port, gone when the playground is.
    Temporary,
    /// Stays.
    Chosen(PathBuf),
}

/// A written file.
#[derive(Debug)]
pub struct Kubeconfig {
    path: PathBuf,
    place: Place,
}

#[derive(Debug, thiserror::Error)]
#[error("cannot write the kubeconfig `{}`: {reason}", path.display())]
pub struct WriteError {
    pub path: PathBuf,
    pub reason: String,
}

impl Kubeconfig {
    pub fn write(place: Place, port: u16) -> Result<Self, WriteError> {
        let path = match &place {
            Place::Chosen(path) => path.clone(),
            Place::Temporary => {
                std::env::temp_dir().join(format!("endpointd-playground-{port}.kubeconfig"))
            }
        };
        match write(&path, &text(port)) {
            Ok(()) => Ok(Self { path, place }),
            Err(reason) => Err(WriteError { path, reason }),
        }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }
}

impl Drop for Kubeconfig {
    fn drop(&mut self) {
        if self.place == Place::Temporary {
            // A leftover only names a port where nobody listens.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Plain HTTP on this machine only: there is no secret in it.
fn text(port: u16) -> String {
    format!(
        "{HEAD}\n\
         apiVersion: v1\n\
         kind: Config\n\
         clusters:\n\
         - name: playground\n\
         \x20 cluster: {{server: 'http://127.0.0.1:{port}'}}\n\
         contexts:\n\
         - name: playground\n\
         \x20 context: {{cluster: playground, user: playground}}\n\
         users:\n\
         - name: playground\n\
         \x20 user: {{}}\n\
         current-context: playground\n"
    )
}

/// Never over a file of somebody else, and never through a link.
fn write(path: &Path, text: &str) -> Result<(), String> {
    match is_ours(path) {
        Ok(true) => fs::remove_file(path).map_err(|error| error.to_string())?,
        Ok(false) => return Err("there is a file that is not ours".to_owned()),
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
    fn ours_is_replaced_and_others_are_left_alone() {
        let folder = tempfile::tempdir().expect("a folder");
        let path = folder.path().join("config");
        let place = Place::Chosen(path.clone());
        drop(Kubeconfig::write(place.clone(), 1).expect("a new file"));
        drop(Kubeconfig::write(place.clone(), 2).expect("our own file"));
        let written = fs::read_to_string(&path).expect("a chosen file stays");
        assert!(written.contains("http://127.0.0.1:2'"), "{written}");

        fs::write(&path, "apiVersion: v1\n").expect("writable");
        let refused = Kubeconfig::write(place, 3).expect_err("not ours");
        assert!(refused.to_string().contains("not ours"), "{refused}");
        assert_eq!(fs::read_to_string(&path).expect("still there"), "apiVersion: v1\n");
    }

    #[test]
    fn a_temporary_one_goes_with_its_playground() {
        // No port has this number, so no other test has this file.
        let written = Kubeconfig::write(Place::Temporary, 0).expect("a new file");
        let path = written.path().to_owned();
        assert!(path.exists());
        drop(written);
        assert!(!path.exists());
    }
}

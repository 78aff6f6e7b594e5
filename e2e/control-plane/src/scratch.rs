//! The temporary directory of one cluster, and the removal of those whose owner died without its
//! keeper (both killed at once, or the machine went down). Start at [`create`].

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Short: the path of etcd's socket below it must fit the 107 bytes of a Unix socket address.
const PREFIX: &str = "endpointd-cluster-";
/// Locked by the owner for as long as it lives.
const OWNER_FILE: &str = "owner.lock";
/// A directory younger than this may not have its owner file yet.
const UNOWNED_AGE_MAX: Duration = Duration::from_secs(60);

/// A directory, and the lock that shows it is in use. Its removal is the keeper's work.
#[derive(Debug)]
pub struct Scratch {
    pub path: PathBuf,
    _owner: File,
}

/// A new directory in `parent`, after sweeping those of dead runs.
pub fn create(parent: &Path) -> io::Result<Scratch> {
    sweep(parent, SystemTime::now());
    let directory = tempfile::Builder::new().prefix(PREFIX).rand_bytes(8).tempdir_in(parent)?;
    let owner = File::create(directory.path().join(OWNER_FILE))?;
    owner.lock()?;
    Ok(Scratch { path: directory.keep(), _owner: owner })
}

fn sweep(parent: &Path, now: SystemTime) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && is_abandoned(&entry.path(), now) {
            // Another run may be sweeping the same directory, or it may be another user's.
            let _ = fs::remove_dir_all(entry.path());
        }
    }
}

fn is_abandoned(directory: &Path, now: SystemTime) -> bool {
    match File::open(directory.join(OWNER_FILE)) {
        Ok(owner) => owner.try_lock().is_ok(),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            let modified = directory.metadata().and_then(|directory| directory.modified());
            modified.is_ok_and(|then| now.duration_since(then).is_ok_and(|a| a > UNOWNED_AGE_MAX))
        }
        Err(_) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::turns;

    #[test]
    fn a_directory_in_use_is_kept_and_one_of_a_dead_owner_is_swept() {
        let _turn = turns::take();
        let parent = tempfile::tempdir().unwrap();
        let used = create(parent.path()).unwrap();
        let dead = create(parent.path()).unwrap().path; // The lock is released here.
        sweep(parent.path(), SystemTime::now());
        assert!(used.path.exists());
        assert!(!dead.exists());
    }

    #[test]
    fn a_directory_without_owner_is_swept_only_when_old() {
        let parent = tempfile::tempdir().unwrap();
        let unowned = parent.path().join(format!("{PREFIX}x"));
        fs::create_dir(&unowned).unwrap();
        sweep(parent.path(), SystemTime::now());
        assert!(unowned.exists());
        sweep(parent.path(), SystemTime::now() + 2 * UNOWNED_AGE_MAX);
        assert!(!unowned.exists());
    }

    #[test]
    fn what_is_not_ours_is_never_swept() {
        let parent = tempfile::tempdir().unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        sweep(parent.path(), SystemTime::now() + 2 * UNOWNED_AGE_MAX);
        assert!(other.exists());
    }
}

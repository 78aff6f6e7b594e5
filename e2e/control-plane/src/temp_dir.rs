//! The temporary directory of one cluster, and the removal of directories that a dead process left
//! (its reaper was killed with it, or the machine went down). Start at [`create`].

use std::fs::{self, File};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Short: the path of etcd's socket below it must fit the 107 bytes of a Unix socket address.
const PREFIX: &str = "endpointd-cluster-";
/// Locked by the owner until the owner's process ends.
const OWNER_FILE: &str = "owner.lock";
/// The name of the owner file until it is locked.
const UNLOCKED_OWNER_FILE: &str = "owner.new";
/// A directory without an owner file is abandoned when it is older than this.
const UNOWNED_AGE_MAX: Duration = Duration::from_secs(60);

/// A directory, and the lock that shows it is in use. The process reaper removes it.
#[derive(Debug)]
pub struct TempDir {
    pub path: PathBuf,
    _owner: File,
}

/// A new directory in `parent`. Abandoned directories are removed first.
///
/// Several processes do this at the same time. The owner file therefore gets its name only after
/// it is locked: a sweep that finds it unlocked may conclude that the owner is dead.
pub fn create(parent: &Path) -> io::Result<TempDir> {
    sweep(parent, SystemTime::now());
    let directory = tempfile::Builder::new().prefix(PREFIX).rand_bytes(8).tempdir_in(parent)?;
    let unlocked = directory.path().join(UNLOCKED_OWNER_FILE);
    let owner = File::create(&unlocked)?;
    owner.lock()?;
    fs::rename(unlocked, directory.path().join(OWNER_FILE))?;
    Ok(TempDir { path: directory.keep(), _owner: owner })
}

fn sweep(parent: &Path, now: SystemTime) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries {
        let ours = entry.file_name().to_string_lossy().starts_with(PREFIX);
        if ours && is_abandoned(&entry.path(), now) {
            // Fails if another process sweeps the same directory, or if it is another user's.
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
    use std::thread;

    use super::*;
    use crate::test_lock;

    #[test]
    fn sweep_keeps_a_locked_directory_and_removes_an_unlocked_one() {
        let _guard = test_lock::acquire();
        let parent = tempfile::tempdir().unwrap();
        let used = create(parent.path()).unwrap();
        let dead = create(parent.path()).unwrap().path; // The lock is released here.
        sweep(parent.path(), SystemTime::now());
        assert!(used.path.exists());
        assert!(!dead.exists());
    }

    #[test]
    fn sweep_removes_a_directory_without_owner_file_only_when_it_is_old() {
        let parent = tempfile::tempdir().unwrap();
        let unowned = parent.path().join(format!("{PREFIX}x"));
        fs::create_dir(&unowned).unwrap();
        sweep(parent.path(), SystemTime::now());
        assert!(unowned.exists());
        sweep(parent.path(), SystemTime::now() + 2 * UNOWNED_AGE_MAX);
        assert!(!unowned.exists());
    }

    #[test]
    fn sweep_keeps_directories_with_other_names() {
        let parent = tempfile::tempdir().unwrap();
        let other = parent.path().join("other");
        fs::create_dir(&other).unwrap();
        sweep(parent.path(), SystemTime::now() + 2 * UNOWNED_AGE_MAX);
        assert!(other.exists());
    }

    /// Clusters that start at the same time: each sweeps while the others create.
    #[test]
    fn concurrent_creates_never_remove_a_directory_in_use() {
        let _guard = test_lock::acquire();
        let parent = tempfile::tempdir().unwrap();
        let create_many = || {
            for _ in 0..250 {
                let created = create(parent.path()).expect("no sweep removes a new directory");
                assert!(created.path.join(OWNER_FILE).exists());
            }
        };
        thread::scope(|scope| {
            let creators: Vec<_> = (0..8).map(|_| scope.spawn(create_many)).collect();
            creators.into_iter().for_each(|creator| creator.join().expect("no creator fails"));
        });
    }
}

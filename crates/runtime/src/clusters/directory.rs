//! Looks for kubeconfigs, and starts and ends the tasks of their clusters.

use std::collections::hash_map::DefaultHasher;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::hash::{Hash, Hasher};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use endpointd_engine::{Input, KubeconfigFile, SourceInput, Zones};
use endpointd_model::{ClusterId, Timestamp};
use tokio::task::{AbortHandle, JoinSet};
use tokio::time::Instant;

use super::identity::Identity;
use super::overrides::{self, Overrides};
use super::{ClusterOptions, Connected, Message, Shared, connection, leases};

/// Between two looks.
const INTERVAL: Duration = Duration::from_secs(1);
/// Files that are missing are counted so often; a file that is replaced is missing for a moment.
const LOOK_INTERVAL: Duration = Duration::from_secs(5);
/// After the start, a volume may not have all files yet.
const COMPLETE_AFTER: Duration = Duration::from_secs(10);
/// A cluster whose watches are to begin with lists again and again waits so long.
const RESTART_INTERVAL: Duration = Duration::from_secs(5);

struct Known {
    path: PathBuf,
    /// Of the content.
    hash: u64,
    task: AbortHandle,
    started: Instant,
    missing: Option<(Timestamp, u32)>,
}

struct Directory {
    shared: Arc<Shared>,
    known: BTreeMap<ClusterId, Known>,
    tasks: JoinSet<()>,
    /// Names that were refused, so that each is logged once.
    refused: BTreeSet<String>,
    n_tasks: u64,
    n_looks: u64,
    unreadable: bool,
}

pub async fn run(shared: Arc<Shared>) {
    let mut directory = Directory {
        shared,
        known: BTreeMap::new(),
        tasks: JoinSet::new(),
        refused: BTreeSet::new(),
        n_tasks: 0,
        n_looks: 0,
        unreadable: false,
    };
    let started = Instant::now();
    let (mut is_complete, mut last_look) = (false, None::<Instant>);
    loop {
        if last_look.is_none_or(|at| at.elapsed() >= LOOK_INTERVAL) {
            last_look = Some(Instant::now());
            directory.look().await;
        }
        if !is_complete && !directory.unreadable && started.elapsed() >= COMPLETE_AFTER {
            is_complete = true;
            let message = Message { from: None, input: Input::SourcesListed };
            let _ = directory.shared.sender.send(message).await;
        }
        directory.restart_tasks();
        tokio::time::sleep(INTERVAL).await;
    }
}

impl Directory {
    async fn look(&mut self) {
        let path = self.shared.options.directory.clone();
        let files = match read(&path) {
            Ok(files) => files,
            Err(error) => {
                if !std::mem::replace(&mut self.unreadable, true) {
                    tracing::error!(directory = %path.display(), %error, "cannot read kubeconfigs");
                }
                return;
            }
        };
        self.unreadable = false;
        self.n_looks += 1;
        let mut present = BTreeSet::new();
        for (name, path, hash) in files {
            let Some(id) = self.accept(&name) else { continue };
            present.insert(id.clone());
            let is_known = self.known.get_mut(&id).is_some_and(|known| {
                let was_there = known.missing.take().is_none();
                was_there && known.hash == hash
            });
            if !is_known {
                self.configure(id, path, hash).await;
            }
        }
        self.note_missing(&present).await;
    }

    /// None, and a sentence once, for a name that no cluster can have.
    fn accept(&mut self, name: &str) -> Option<ClusterId> {
        let reason = match ClusterId::parse(name) {
            Ok(id) if id == self.shared.home_id => "it is the name of this cluster".to_owned(),
            Ok(id) => return Some(id),
            Err(error) => error.to_string(),
        };
        if self.refused.insert(name.to_owned()) {
            tracing::warn!(file = name, reason, "a kubeconfig is not used");
        }
        None
    }

    async fn configure(&mut self, id: ClusterId, path: PathBuf, hash: u64) {
        self.shared.clusters().entry(id.clone()).or_insert_with(|| Connected {
            identity: Identity::found_in(self.n_looks),
            ..Connected::default()
        });
        tracing::info!(cluster = %id, "a kubeconfig is new or has changed");
        let last_contact = leases::last_contact(&self.shared, &id).await;
        let Overrides { limits, zones } = self.overrides(&id, &path);
        self.shared.tell(&id, SourceInput::Configured { limits, zones, last_contact }).await;
        let task = self.start(&id, path.clone());
        let known = Known { path, hash, task, started: Instant::now(), missing: None };
        if let Some(old) = self.known.insert(id, known) {
            old.task.abort();
        }
    }

    /// Where they are wrong, the flags count.
    fn overrides(&self, id: &ClusterId, kubeconfig: &Path) -> Overrides {
        let ClusterOptions { limits, parse_duration, .. } = self.shared.options;
        overrides::of(kubeconfig, limits, parse_duration).unwrap_or_else(|reason| {
            tracing::warn!(cluster = %id, reason, "settings of a cluster are not used");
            Overrides { limits, zones: Zones::default() }
        })
    }

    fn start(&mut self, id: &ClusterId, path: PathBuf) -> AbortHandle {
        self.n_tasks += 1;
        let mut clusters = self.shared.clusters();
        let connected = clusters.entry(id.clone()).or_default();
        (connected.n_task, connected.client, connected.must_restart) = (self.n_tasks, None, false);
        drop(clusters);
        self.tasks.spawn(connection::run(self.shared.clone(), id.clone(), self.n_tasks, path))
    }

    async fn note_missing(&mut self, present: &BTreeSet<ClusterId>) {
        for (id, known) in &mut self.known {
            if present.contains(id) {
                continue;
            }
            let (since, n_looks) = known.missing.get_or_insert((Timestamp::now(), 0));
            *n_looks += 1;
            let missing = KubeconfigFile::Missing { since: *since, n_looks: *n_looks };
            self.shared.tell(id, SourceInput::Kubeconfig(missing)).await;
            if *n_looks == 3 {
                tracing::warn!(cluster = %id, "its kubeconfig is gone");
                known.task.abort();
                self.shared.clusters().remove(id);
            }
        }
    }

    /// Ends the tasks that are to begin with lists, and starts them again.
    fn restart_tasks(&mut self) {
        while self.tasks.try_join_next().is_some() {}
        let must_restart: Vec<ClusterId> = {
            let clusters = self.shared.clusters();
            let asked = clusters.iter().filter(|(_, one)| one.must_restart);
            asked.map(|(id, _)| id.clone()).collect()
        };
        for id in must_restart {
            let Some(known) = self.known.get(&id) else { continue };
            if known.started.elapsed() < RESTART_INTERVAL {
                continue;
            }
            known.task.abort();
            let path = known.path.clone();
            let task = self.start(&id, path);
            if let Some(known) = self.known.get_mut(&id) {
                (known.task, known.started) = (task, Instant::now());
            }
        }
    }
}

/// The names, paths, and contents (as hashes) of the files, sorted. Names with a dot in front are those
/// of kubelet.
fn read(directory: &Path) -> std::io::Result<Vec<(String, PathBuf, u64)>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(directory)? {
        let path = entry?.path();
        let name = path.file_name().map(|name| name.to_string_lossy().into_owned());
        let Some(name) = name.filter(|name| !name.starts_with('.')) else { continue };
        // A directory, or a file that is gone already.
        let Ok(content) = fs::read(&path) else { continue };
        let mut hasher = DefaultHasher::new();
        content.hash(&mut hasher);
        files.push((name, path, hasher.finish()));
    }
    files.sort_unstable();
    Ok(files)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn files_of_kubelet_are_skipped_and_changes_are_seen() {
        let name = format!("endpointd-clusters-{}", std::process::id());
        let directory = std::env::temp_dir().join(name);
        fs::create_dir_all(directory.join("..data")).expect("a temporary directory");
        for (name, content) in [("us1", "b"), ("eu1", "a"), (".hidden", "c")] {
            fs::write(directory.join(name), content).expect("writable");
        }
        let before = read(&directory).expect("readable");
        let names: Vec<&str> = before.iter().map(|(name, ..)| name.as_str()).collect();
        assert_eq!(names, ["eu1", "us1"]);
        fs::write(directory.join("eu1"), "other").expect("writable");
        let after = read(&directory).expect("readable");
        assert_ne!(before[0].2, after[0].2);
        assert_eq!(before[1], after[1]);
        fs::remove_dir_all(&directory).expect("ours");
    }
}

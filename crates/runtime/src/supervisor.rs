//! The tasks that must run as long as the process: watches, leader election, Events, and the
//! status server. The end of any of them ends the process, so that it is restarted as a whole.

use std::future::Future;

use tokio::task::{AbortHandle, Id, JoinError, JoinSet};

/// A task ended although nobody asked it to.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("task `{task}` {reason}")]
pub struct TaskEnd {
    pub task: String,
    /// `panicked: …` or `returned`.
    pub reason: String,
}

impl TaskEnd {
    pub(crate) fn panicked(task: &str, error: JoinError) -> Self {
        let payload = error.try_into_panic();
        let message = payload.as_deref().ok().and_then(|payload| {
            let text = payload.downcast_ref::<String>().map(String::as_str);
            text.or_else(|| payload.downcast_ref::<&str>().copied())
        });
        let reason = format!("panicked: {}", message.unwrap_or("no message"));
        Self { task: task.to_owned(), reason }
    }
}

/// Owns the tasks; dropping it aborts them.
#[derive(Default)]
pub(crate) struct Supervisor {
    tasks: JoinSet<()>,
    names: Vec<(Id, String)>,
}

impl Supervisor {
    pub fn spawn(
        &mut self,
        name: impl Into<String>,
        task: impl Future<Output = ()> + Send + 'static,
    ) -> AbortHandle {
        let handle = self.tasks.spawn(task);
        self.names.push((handle.id(), name.into()));
        handle
    }

    /// The next task that ends without having been aborted; stays pending while all of them run.
    /// Cancel safe.
    pub async fn unexpected_end(&mut self) -> TaskEnd {
        while let Some(ended) = self.tasks.join_next_with_id().await {
            match ended {
                Ok((id, ())) => {
                    return TaskEnd { task: self.take_name(id), reason: "returned".to_owned() };
                }
                Err(error) if error.is_cancelled() => drop(self.take_name(error.id())),
                Err(error) => return TaskEnd::panicked(&self.take_name(error.id()), error),
            }
        }
        std::future::pending().await
    }

    /// Waits for a task that was asked to stop. How it ends no longer matters.
    pub async fn wait_for(&mut self, task: &AbortHandle) {
        while !task.is_finished() {
            if self.tasks.join_next().await.is_none() {
                return;
            }
        }
    }

    #[cfg(test)]
    pub fn task_names(&self) -> Vec<&str> {
        self.names.iter().map(|(_, name)| name.as_str()).collect()
    }

    fn take_name(&mut self, id: Id) -> String {
        let at = self.names.iter().position(|(known, _)| *known == id);
        at.map(|at| self.names.swap_remove(at).1).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use std::future::{pending, ready};
    use std::time::Duration;

    use tokio::time::timeout;

    use super::*;

    #[tokio::test]
    async fn panicking_task_is_reported_with_its_name_and_message() {
        let mut supervisor = Supervisor::default();
        supervisor.spawn("watch pods", pending());
        supervisor.spawn("events", async { panic!("queue {} is gone", 7) });
        let end = supervisor.unexpected_end().await;
        assert_eq!(end.to_string(), "task `events` panicked: queue 7 is gone");
    }

    #[tokio::test]
    async fn returning_task_is_reported_with_its_name() {
        let mut supervisor = Supervisor::default();
        supervisor.spawn("watch pods", pending());
        supervisor.spawn("status server", ready(()));
        let end = supervisor.unexpected_end().await;
        assert_eq!(end.to_string(), "task `status server` returned");
    }

    #[tokio::test(start_paused = true)]
    async fn aborted_task_is_not_reported() {
        let mut supervisor = Supervisor::default();
        supervisor.spawn("watch pods", pending()).abort();
        let end = timeout(Duration::from_secs(1), supervisor.unexpected_end()).await;
        assert!(end.is_err(), "{end:?}");
    }

    #[tokio::test]
    async fn stopped_task_can_be_waited_for() {
        let mut supervisor = Supervisor::default();
        supervisor.spawn("watch pods", pending()).abort();
        let server = supervisor.spawn("status server", ready(()));
        supervisor.wait_for(&server).await;
        assert!(server.is_finished());
    }
}

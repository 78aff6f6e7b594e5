//! Leadership as the event loop and the pages see it.

use endpointd_client::Client;
use endpointd_client::election::{
    ElectionOptions, InvalidElectionConfig, LeaderElector, LeadershipState, WritePermit,
};
use endpointd_model::SharedStr;
use endpointd_status::LeadershipStatus;
use tokio::sync::watch;

use crate::supervisor::Supervisor;

/// Leader election, or permanent leadership when it is disabled.
pub struct Leadership(Option<Elected>);

struct Elected {
    elector: LeaderElector,
    changes: LeadershipChanges,
}

/// The changes of leadership, in the form that status and metrics show.
struct LeadershipChanges {
    state: watch::Receiver<LeadershipState>,
    lease: SharedStr,
    was_leading: bool,
}

impl Leadership {
    pub fn start(
        client: Client,
        options: Option<ElectionOptions>,
        supervisor: &mut Supervisor,
    ) -> Result<Self, InvalidElectionConfig> {
        let Some(options) = options else { return Ok(Self(None)) };
        let lease = options.lease.name.clone();
        let (elector, task) = LeaderElector::new(client, options)?;
        supervisor.spawn("leader election", task);
        let mut state = elector.state();
        state.mark_changed();
        let changes = LeadershipChanges { state, lease, was_leading: false };
        Ok(Self(Some(Elected { elector, changes })))
    }

    /// Leader election is disabled: this process leads from the start.
    pub fn is_permanent(&self) -> bool {
        self.0.is_none()
    }

    pub fn permit(&self) -> WritePermit {
        match &self.0 {
            None => WritePermit::Always,
            Some(elected) => WritePermit::WhileLeader(elected.elector.guard()),
        }
    }

    /// Waits for the next change. Cancel safe.
    pub async fn next_change(&mut self) -> LeadershipStatus {
        match &mut self.0 {
            None => std::future::pending().await,
            Some(elected) => elected.changes.next().await,
        }
    }

    /// Releases the lease, if this process holds it.
    pub async fn release(self) {
        if let Some(elected) = self.0 {
            elected.elector.release().await;
        }
    }
}

impl LeadershipChanges {
    async fn next(&mut self) -> LeadershipStatus {
        if self.state.changed().await.is_err() {
            // The election task has ended; the supervisor reports that.
            return std::future::pending().await;
        }
        let state = self.state.borrow_and_update().clone();
        let lease = self.lease.clone();
        let is_leading = state == LeadershipState::Leading;
        if is_leading && self.was_leading {
            // The lease was lost and acquired again since the last call: the engine must see both.
            self.was_leading = false;
            self.state.mark_changed();
            return LeadershipStatus::Standby { lease, holder: None };
        }
        self.was_leading = is_leading;
        match state {
            LeadershipState::Leading => LeadershipStatus::Leading { lease },
            LeadershipState::Standby { holder } => {
                LeadershipStatus::Standby { lease, holder: holder.map(Into::into) }
            }
            LeadershipState::Lost => LeadershipStatus::Standby { lease, holder: None },
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn changes() -> (watch::Sender<LeadershipState>, LeadershipChanges) {
        let (sender, state) = watch::channel(LeadershipState::Standby { holder: None });
        (sender, LeadershipChanges { state, lease: "endpointd".into(), was_leading: false })
    }

    #[tokio::test]
    async fn each_change_is_reported() {
        let (sender, mut changes) = changes();
        sender.send_replace(LeadershipState::Leading);
        assert!(changes.next().await.is_leading());
        sender.send_replace(LeadershipState::Lost);
        assert!(!changes.next().await.is_leading());
        sender.send_replace(LeadershipState::Standby { holder: Some("b".to_owned()) });
        let standby =
            LeadershipStatus::Standby { lease: "endpointd".into(), holder: Some("b".into()) };
        assert_eq!(changes.next().await, standby);
    }

    #[tokio::test]
    async fn loss_between_two_calls_is_reported_before_the_next_term() {
        let (sender, mut changes) = changes();
        sender.send_replace(LeadershipState::Leading);
        assert!(changes.next().await.is_leading());
        sender.send_replace(LeadershipState::Lost);
        sender.send_replace(LeadershipState::Leading);
        assert!(!changes.next().await.is_leading());
        assert!(changes.next().await.is_leading());
    }
}

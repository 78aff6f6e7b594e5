//! Whether this process may write.

use std::time::Duration;

use endpointd_client::Client;
use endpointd_client::election::{
    ElectionOptions, InvalidElectionConfig, LeaderElector, LeadershipState,
};
use endpointd_model::SharedStr;
use endpointd_status::LeadershipStatus;
use tokio::sync::watch;

/// A losing process waits this long before it stands again, so that the winner has settled.
const STAND_AGAIN: Duration = Duration::from_secs(1);

/// With an election, a candidate; without one, an office for life.
pub struct Leadership {
    election: Option<ElectorTask>,
    may_write: watch::Sender<Option<endpointd_client::election::LeaderGuard>>,
}

struct ElectorTask {
    client: Client,
    options: ElectionOptions,
    candidate: LeaderElector,
    standing: watch::Receiver<LeadershipState>,
    /// How often we have stood; each time under a name of its own.
    n_terms: u32,
}

/// Whether a write may leave at this instant; follows the office from term to term.
#[derive(Clone)]
pub enum WritePermit {
    Always,
    WhileLeader(watch::Receiver<Option<endpointd_client::election::LeaderGuard>>),
}

/// What changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LeadershipChange {
    Lead,
    Follow,
}

impl WritePermit {
    pub fn may_write(&self) -> bool {
        match self {
            Self::Always => true,
            Self::WhileLeader(term) => term.borrow().as_ref().is_some_and(|term| term.may_write()),
        }
    }
}

impl Leadership {
    pub fn open(
        client: Client,
        options: Option<ElectionOptions>,
    ) -> Result<Self, InvalidElectionConfig> {
        let election = options.map(|options| ElectorTask::begin(client, options, 0)).transpose()?;
        let term = election.as_ref().map(|campaign| campaign.candidate.term());
        Ok(Self { election, may_write: watch::Sender::new(term) })
    }

    pub fn term(&self) -> WritePermit {
        match &self.election {
            None => WritePermit::Always,
            Some(_) => WritePermit::WhileLeader(self.may_write.subscribe()),
        }
    }

    /// The first word: without an election we lead at once.
    pub fn first_turn(&self) -> Option<LeadershipChange> {
        self.election.is_none().then_some(LeadershipChange::Lead)
    }

    /// Waits for the next change of our standing.
    pub async fn next_turn(&mut self) -> (LeadershipChange, LeadershipStatus) {
        let Some(campaign) = &mut self.election else { return std::future::pending().await };
        let lease = campaign.options.lease.name.clone();
        let standing = campaign.next_standing().await;
        match standing {
            LeadershipState::Leading => {
                (LeadershipChange::Lead, LeadershipStatus::Leading { lease })
            }
            LeadershipState::Standby { holder } => {
                let holder: Option<SharedStr> = holder.map(Into::into);
                (LeadershipChange::Follow, LeadershipStatus::Standby { lease, holder })
            }
            LeadershipState::Lost => {
                (LeadershipChange::Follow, LeadershipStatus::Standby { lease, holder: None })
            }
        }
    }

    /// After a loss: a new candidate takes the old one's place.
    pub async fn stand_again(&mut self) {
        let Some(campaign) = &mut self.election else { return };
        if *campaign.standing.borrow() != LeadershipState::Lost {
            return;
        }
        tokio::time::sleep(STAND_AGAIN).await;
        let (client, options) = (campaign.client.clone(), campaign.options.clone());
        match ElectorTask::begin(client, options, campaign.n_terms + 1) {
            Ok(next) => {
                self.may_write.send_replace(Some(next.candidate.term()));
                *campaign = next;
            }
            // The same options were good before.
            Err(reason) => tracing::error!(%reason, "cannot stand for election again"),
        }
    }

    /// Hands the lease back, if we hold one.
    pub async fn close(self) {
        if let Some(campaign) = self.election {
            campaign.candidate.release().await;
        }
    }
}

impl ElectorTask {
    fn begin(
        client: Client,
        options: ElectionOptions,
        n_terms: u32,
    ) -> Result<Self, InvalidElectionConfig> {
        let mut named = options.clone();
        if n_terms > 0 {
            named.identity = format!("{}_{n_terms}", options.identity);
        }
        let candidate = LeaderElector::start(client.clone(), named)?;
        let mut standing = candidate.standing();
        standing.mark_changed();
        Ok(Self { client, options, candidate, standing, n_terms })
    }

    async fn next_standing(&mut self) -> LeadershipState {
        if self.standing.changed().await.is_err() {
            // The campaign is over, and has said its last word.
            return std::future::pending().await;
        }
        self.standing.borrow_and_update().clone()
    }
}

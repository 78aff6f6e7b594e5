//! Carries writes and live reads to the API server, each in a task of its own. How many are under
//! way at once is the engine's decision.

use std::time::Instant;

use endpointd_client::{Client, InFlightWrite};
use endpointd_engine::{Input, RequestId};
use endpointd_model::{Controller, LiveRead, Write, WriteResult};
use endpointd_status::{CompletedWrite, Metrics};
use tokio::sync::mpsc;

use crate::office::WritePermit;

pub struct RequestDispatcher {
    client: Client,
    term: WritePermit,
    metrics: Metrics,
    /// As many as there are errands, which the engine bounds.
    sender: mpsc::UnboundedSender<Completion>,
    receiver: mpsc::UnboundedReceiver<Completion>,
}

/// An errand's answer.
pub struct Completion {
    pub input: Input,
    /// Of a write: to be dropped once the engine knows.
    pub in_flight_write: Option<InFlightWrite>,
}

/// Answers taken at once.
const ANSWERS_MAX: usize = 256;

impl RequestDispatcher {
    pub fn new(client: Client, term: WritePermit, metrics: Metrics) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { client, term, metrics, sender, receiver }
    }

    pub fn send(&self, id: RequestId, controller: Controller, write: Box<Write>) {
        let (client, term) = (self.client.clone(), self.term.clone());
        let (metrics, sender) = (self.metrics.clone(), self.sender.clone());
        let in_flight_write = Some(client.begin(&write));
        tokio::spawn(async move {
            let began = Instant::now();
            // The last look before it leaves: the lease may be over since the engine decided.
            let outcome =
                if term.may_write() { client.send(&write).await } else { WriteResult::NotLeader };
            metrics.wrote(&CompletedWrite {
                controller,
                verb: write.verb(),
                resource: write.resource(),
                outcome: outcome.as_str(),
                took: began.elapsed(),
            });
            // Nobody listens only when all is over.
            let _ =
                sender.send(Completion { input: Input::WriteResult(id, outcome), in_flight_write });
        });
    }

    pub fn look(&self, id: RequestId, read: LiveRead) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        tokio::spawn(async move {
            let found = client.look(&read).await;
            let _ = sender.send(Completion {
                input: Input::LiveReadResult(id, found),
                in_flight_write: None,
            });
        });
    }

    /// Adds the answers that have arrived, at least one; waits for it if need be.
    pub async fn receive(&mut self, answers: &mut Vec<Completion>) {
        self.receiver.recv_many(answers, ANSWERS_MAX).await;
    }
}

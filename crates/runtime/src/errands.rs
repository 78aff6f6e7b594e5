//! Carries writes and live reads to the API server, each in a task of its own. How many are under
//! way at once is the engine's decision.

use std::time::Instant;

use endpointd_client::{Client, UnderWay};
use endpointd_engine::{Input, Ticket};
use endpointd_model::{Controller, Lookup, Outcome, Write};
use endpointd_status::{Metrics, Wrote};
use tokio::sync::mpsc;

use crate::office::Term;

pub struct Errands {
    client: Client,
    term: Term,
    metrics: Metrics,
    /// As many as there are errands, which the engine bounds.
    sender: mpsc::UnboundedSender<Done>,
    receiver: mpsc::UnboundedReceiver<Done>,
}

/// An errand's answer.
pub struct Done {
    pub input: Input,
    /// Of a write: to be dropped once the engine knows.
    pub under_way: Option<UnderWay>,
}

/// Answers taken at once.
const ANSWERS_MAX: usize = 256;

impl Errands {
    pub fn new(client: Client, term: Term, metrics: Metrics) -> Self {
        let (sender, receiver) = mpsc::unbounded_channel();
        Self { client, term, metrics, sender, receiver }
    }

    pub fn send(&self, ticket: Ticket, controller: Controller, write: Box<Write>) {
        let (client, term) = (self.client.clone(), self.term.clone());
        let (metrics, sender) = (self.metrics.clone(), self.sender.clone());
        let under_way = Some(client.begin(&write));
        tokio::spawn(async move {
            let began = Instant::now();
            // The last look before it leaves: the lease may be over since the engine decided.
            let outcome =
                if term.may_write() { client.send(&write).await } else { Outcome::Unsent };
            metrics.wrote(&Wrote {
                controller,
                verb: write.verb(),
                resource: write.resource(),
                outcome: outcome.as_str(),
                took: began.elapsed(),
            });
            // Nobody listens only when all is over.
            let _ = sender.send(Done { input: Input::Outcome(ticket, outcome), under_way });
        });
    }

    pub fn look(&self, ticket: Ticket, lookup: Lookup) {
        let (client, sender) = (self.client.clone(), self.sender.clone());
        tokio::spawn(async move {
            let found = client.look(&lookup).await;
            let _ = sender.send(Done { input: Input::Found(ticket, found), under_way: None });
        });
    }

    /// Adds the answers that have arrived, at least one; waits for it if need be.
    pub async fn receive(&mut self, answers: &mut Vec<Done>) {
        self.receiver.recv_many(answers, ANSWERS_MAX).await;
    }
}

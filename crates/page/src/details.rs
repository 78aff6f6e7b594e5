//! Details of single Services, asked of the event loop one at a time and kept for a moment, so that
//! many readers of one Service cost as much as one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Duration, Instant};

use endpointd_model::Key;
use endpointd_status::StatusHandle;
use tokio::sync::Mutex;

use crate::{detail_json, import_json};

/// Changes in a timeline.
const CHANGES_MAX: usize = 100;
/// The event loop is asked about one Service at most this often.
const KEPT_FOR: Duration = Duration::from_millis(400);
const KEPT_MAX: usize = 64;
/// The same for all consumers together.
const CONSUMERS_KEPT_FOR: Duration = Duration::from_millis(900);
const CONSUMERS_MAX: usize = 200;

#[derive(Default)]
pub struct Details {
    kept: Mutex<BTreeMap<Key, (Instant, Arc<str>)>>,
    consumers: Mutex<Option<(Instant, Arc<str>)>>,
}

/// Why there is no detail.
pub enum NoDetail {
    NotFound,
    NoAnswer,
}

impl Details {
    pub async fn get(&self, status: &StatusHandle, key: &Key) -> Result<Arc<str>, NoDetail> {
        // Held while waiting: the next reader finds the answer.
        let mut kept = self.kept.lock().await;
        kept.retain(|_, (at, _)| at.elapsed() < KEPT_FOR);
        if let Some((_, text)) = kept.get(key) {
            return Ok(text.clone());
        }
        let asked = key.clone();
        let answer = status.ask(move |state| {
            let detail = state.engine.service_detail(&asked, state.now)?;
            Some((detail, state.changes.of_key(&asked, CHANGES_MAX)))
        });
        let (detail, changes) =
            answer.await.ok_or(NoDetail::NoAnswer)?.ok_or(NoDetail::NotFound)?;
        let text: Arc<str> = detail_json::detail(key, &detail, &changes).to_string().into();
        if kept.len() < KEPT_MAX {
            kept.insert(key.clone(), (Instant::now(), text.clone()));
        }
        Ok(text)
    }

    /// Services that ask for the endpoints of others. `None`: the event loop did not answer.
    pub async fn consumers(&self, status: &StatusHandle) -> Option<Arc<str>> {
        let mut kept = self.consumers.lock().await;
        if let Some((at, text)) = &*kept
            && at.elapsed() < CONSUMERS_KEPT_FOR
        {
            return Some(text.clone());
        }
        let (consumers, n_more) = status.ask(|state| state.engine.consumers(CONSUMERS_MAX)).await?;
        let text: Arc<str> = import_json::consumers(&consumers, n_more).to_string().into();
        *kept = Some((Instant::now(), text.clone()));
        Some(text)
    }
}

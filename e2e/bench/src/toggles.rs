//! Readiness toggles at a fixed rate, independent of their results (an open loop).

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::load::{PodNumber, Readiness, report_pod};
use crate::published::Observer;
use crate::test_bed::Drivers;

/// Which pod toggles next. Every second toggle makes a pod unready; the others make the pod ready
/// that has been unready longest.
#[derive(Debug, Default)]
pub struct ToggleSequence {
    unready: VecDeque<(PodNumber, UpdateLock)>,
    next: PodNumber,
    n_toggles: usize,
}

/// Held while a status update of the pod is in flight: if the server stalls, the updates of one pod
/// must keep their order.
type UpdateLock = Arc<Mutex<()>>;

/// Attempts of one status update. If all fail, the server is broken.
const ATTEMPTS_MAX: usize = 5;

/// One change of the readiness of one pod.
#[derive(Clone, Debug)]
pub struct Toggle {
    pub pod: PodNumber,
    pub readiness: Readiness,
    update: UpdateLock,
}

impl ToggleSequence {
    /// Toggles until `n_unready` pods are unready, which determines how long each stays unready.
    pub fn prepare(&mut self, n_pods: usize, n_unready: usize) -> Vec<Toggle> {
        let mut toggles = Vec::new();
        while self.unready.len() < n_unready {
            toggles.push(self.make_unready(n_pods));
        }
        while self.unready.len() > n_unready {
            toggles.extend(self.make_ready());
        }
        toggles
    }

    pub fn next(&mut self, n_pods: usize) -> Toggle {
        self.n_toggles += 1;
        let ready = if self.n_toggles.is_multiple_of(2) { self.make_ready() } else { None };
        ready.unwrap_or_else(|| self.make_unready(n_pods))
    }

    fn make_unready(&mut self, n_pods: usize) -> Toggle {
        let (pod, update) = (self.next, UpdateLock::default());
        self.next = (pod + 1) % n_pods;
        self.unready.push_back((pod, update.clone()));
        Toggle { pod, readiness: Readiness::Unready, update }
    }

    fn make_ready(&mut self) -> Option<Toggle> {
        let (pod, update) = self.unready.pop_front()?;
        Some(Toggle { pod, readiness: Readiness::Ready, update })
    }
}

/// Sends toggles without measuring, and returns when all are published.
pub async fn prepare(drivers: &Drivers, toggles: Vec<Toggle>, limit: Duration) -> Result<()> {
    for toggle in toggles {
        announce(&drivers.observer, &toggle);
        send(drivers, &toggle).await?;
    }
    drivers.observer.wait_until(limit, |published| published.is_converged()).await?;
    drivers.observer.with(|published| drop(published.take_completed()));
    Ok(())
}

/// Sends `n` toggles at `rate` per second. Returns the maximum delay of a send.
pub async fn run(
    drivers: &Drivers,
    sequence: &mut ToggleSequence,
    rate: u32,
    n: usize,
) -> Result<Duration> {
    let began = tokio::time::Instant::now();
    let mut late = Duration::ZERO;
    let mut sent: JoinSet<Result<()>> = JoinSet::new();
    for number in 0..n {
        let due = began + Duration::from_secs(1) * u32::try_from(number)? / rate;
        tokio::time::sleep_until(due).await;
        late = late.max(due.elapsed());
        let toggle = sequence.next(drivers.layout.n_pods);
        announce(&drivers.observer, &toggle);
        let drivers = drivers.clone();
        sent.spawn(async move { send(&drivers, &toggle).await });
    }
    while let Some(one) = sent.join_next().await {
        one??;
    }
    Ok(late)
}

fn announce(observer: &Observer, toggle: &Toggle) {
    observer
        .with(|published| published.toggle_started(toggle.pod, toggle.readiness, Instant::now()));
}

/// Like a kubelet, repeats a status update that was not acknowledged: an overloaded server lets
/// requests time out.
async fn send(drivers: &Drivers, toggle: &Toggle) -> Result<()> {
    let Drivers { sender, templates, layout, observer } = drivers;
    let _guard = toggle.update.lock().await;
    let report = || report_pod(sender, templates, layout, (toggle.pod, toggle.readiness));
    let mut reported = report().await;
    for _ in 1..ATTEMPTS_MAX {
        if reported.is_ok() {
            break;
        }
        reported = report().await;
    }
    reported?;
    observer.with(|published| {
        published.toggle_acknowledged(toggle.pod, toggle.readiness, Instant::now())
    });
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn toggles_alternate_and_pods_stay_unready_for_a_while() {
        let mut sequence = ToggleSequence::default();
        let unready = |pod| (pod, Readiness::Unready);
        let ready = |pod| (pod, Readiness::Ready);
        let plain = |toggles: Vec<Toggle>| -> Vec<(PodNumber, Readiness)> {
            toggles.into_iter().map(|toggle| (toggle.pod, toggle.readiness)).collect()
        };
        assert_eq!(plain(sequence.prepare(10, 2)), [unready(0), unready(1)]);
        let toggles = (0..6).map(|_| sequence.next(10)).collect();
        assert_eq!(
            plain(toggles),
            [unready(2), ready(0), unready(3), ready(1), unready(4), ready(2)]
        );
        assert_eq!(plain(sequence.prepare(10, 1)), [ready(3)]);
    }

    #[test]
    fn updates_of_one_pod_share_a_lock() {
        let mut sequence = ToggleSequence::default();
        let (first, second) = (sequence.next(10), sequence.next(10));
        assert_eq!(first.pod, second.pod);
        let guard = first.update.try_lock().expect("the lock is free");
        assert!(second.update.try_lock().is_err());
        drop(guard);
        assert!(second.update.try_lock().is_ok());
    }
}

//! Pods that flip at a fixed rate, whatever becomes of the flips: an open loop.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::sync::Mutex;
use tokio::task::JoinSet;

use crate::load::{PodNumber, Readiness, report_pod};
use crate::published::Observer;
use crate::stage::Actors;

/// Which pod flips next. Every second flip takes a pod out; between them, pods that were taken
/// out long before come back.
#[derive(Debug, Default)]
pub struct Flipper {
    unready: VecDeque<(PodNumber, Turn)>,
    next: PodNumber,
    n_flips: usize,
}

/// Held while a write of the pod is under way: when the server stalls, a pod must not come back
/// before it has gone.
type Turn = Arc<Mutex<()>>;

/// Reports of one flip; a server that takes none of them is broken.
const REPORTS_MAX: usize = 5;

/// One change of one pod.
#[derive(Clone, Debug)]
pub struct Flip {
    pub pod: PodNumber,
    pub readiness: Readiness,
    turn: Turn,
}

impl Flipper {
    /// Changes how many pods are out, and so how long each stays out; these flips do not count.
    pub fn prepare(&mut self, n_pods: usize, n_out: usize) -> Vec<Flip> {
        let mut flips = Vec::new();
        while self.unready.len() < n_out {
            flips.push(self.take_out(n_pods));
        }
        while self.unready.len() > n_out {
            flips.extend(self.bring_back());
        }
        flips
    }

    pub fn next(&mut self, n_pods: usize) -> Flip {
        self.n_flips += 1;
        let back = if self.n_flips.is_multiple_of(2) { self.bring_back() } else { None };
        back.unwrap_or_else(|| self.take_out(n_pods))
    }

    fn take_out(&mut self, n_pods: usize) -> Flip {
        let (pod, turn) = (self.next, Turn::default());
        self.next = (pod + 1) % n_pods;
        self.unready.push_back((pod, turn.clone()));
        Flip { pod, readiness: Readiness::Unready, turn }
    }

    fn bring_back(&mut self) -> Option<Flip> {
        let (pod, turn) = self.unready.pop_front()?;
        Some(Flip { pod, readiness: Readiness::Ready, turn })
    }
}

/// Flips without measuring, and returns when all are published.
pub async fn prepare(stage: &Actors, flips: Vec<Flip>, limit: Duration) -> Result<()> {
    for flip in flips {
        announce(&stage.observer, &flip);
        send(stage, &flip).await?;
    }
    stage.observer.wait_until(limit, |published| published.is_settled()).await?;
    stage.observer.with(|published| drop(published.take_flips()));
    Ok(())
}

/// Flips `n` pods at `rate` a second. Gives back how late the latest was sent.
pub async fn flip(stage: &Actors, flipper: &mut Flipper, rate: u32, n: usize) -> Result<Duration> {
    let began = tokio::time::Instant::now();
    let mut late = Duration::ZERO;
    let mut sent: JoinSet<Result<()>> = JoinSet::new();
    for number in 0..n {
        let due = began + Duration::from_secs(1) * u32::try_from(number)? / rate;
        tokio::time::sleep_until(due).await;
        late = late.max(due.elapsed());
        let flip = flipper.next(stage.layout.n_pods);
        announce(&stage.observer, &flip);
        let stage = stage.clone();
        sent.spawn(async move { send(&stage, &flip).await });
    }
    while let Some(one) = sent.join_next().await {
        one??;
    }
    Ok(late)
}

fn announce(observer: &Observer, flip: &Flip) {
    observer.with(|published| published.flip(flip.pod, flip.readiness, Instant::now()));
}

/// As a kubelet does: a server with more to do than it can lets requests time out, and what was not
/// acknowledged is reported again.
async fn send(stage: &Actors, flip: &Flip) -> Result<()> {
    let Actors { sender, templates, layout, observer } = stage;
    let _turn = flip.turn.lock().await;
    let report = || report_pod(sender, templates, layout, (flip.pod, flip.readiness));
    let mut reported = report().await;
    for _ in 1..REPORTS_MAX {
        if reported.is_ok() {
            break;
        }
        reported = report().await;
    }
    reported?;
    observer.with(|published| published.flipped(flip.pod, flip.readiness, Instant::now()));
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn flips_alternate_and_a_pod_stays_out_for_a_while() {
        let mut flipper = Flipper::default();
        let out = |pod| (pod, Readiness::Unready);
        let back = |pod| (pod, Readiness::Ready);
        let plain = |flips: Vec<Flip>| -> Vec<(PodNumber, Readiness)> {
            flips.into_iter().map(|flip| (flip.pod, flip.readiness)).collect()
        };
        assert_eq!(plain(flipper.prepare(10, 2)), [out(0), out(1)]);
        let flips = (0..6).map(|_| flipper.next(10)).collect();
        assert_eq!(plain(flips), [out(2), back(0), out(3), back(1), out(4), back(2)]);
        assert_eq!(plain(flipper.prepare(10, 1)), [back(3)]);
    }

    #[test]
    fn a_pod_comes_back_in_its_turn() {
        let mut flipper = Flipper::default();
        let (out, back) = (flipper.next(10), flipper.next(10));
        assert_eq!(out.pod, back.pod);
        let turn = out.turn.try_lock().expect("nobody has it yet");
        assert!(back.turn.try_lock().is_err());
        drop(turn);
        assert!(back.turn.try_lock().is_ok());
    }
}

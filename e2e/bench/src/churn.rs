//! Pods that flip at a fixed rate, whatever becomes of the flips: an open loop.

use std::collections::VecDeque;
use std::time::{Duration, Instant};

use anyhow::Result;
use tokio::task::JoinSet;

use crate::load::{PodNumber, Readiness, report_pod};
use crate::stage::Stage;

/// Which pod flips next. Every second flip takes a pod out; between them, pods that were taken
/// out long before come back.
#[derive(Debug, Default)]
pub struct Flipper {
    unready: VecDeque<PodNumber>,
    next: PodNumber,
    n_flips: usize,
}

impl Flipper {
    /// Changes how many pods are out, and so how long each stays out; these flips do not count.
    pub fn prepare(&mut self, n_pods: usize, n_out: usize) -> Vec<(PodNumber, Readiness)> {
        let mut flips = Vec::new();
        while self.unready.len() < n_out {
            flips.push(self.take_out(n_pods));
        }
        while self.unready.len() > n_out {
            flips.extend(self.bring_back());
        }
        flips
    }

    pub fn next(&mut self, n_pods: usize) -> (PodNumber, Readiness) {
        self.n_flips += 1;
        let back = if self.n_flips.is_multiple_of(2) { self.bring_back() } else { None };
        back.unwrap_or_else(|| self.take_out(n_pods))
    }

    fn take_out(&mut self, n_pods: usize) -> (PodNumber, Readiness) {
        let pod = self.next;
        self.next = (pod + 1) % n_pods;
        self.unready.push_back(pod);
        (pod, Readiness::Unready)
    }

    fn bring_back(&mut self) -> Option<(PodNumber, Readiness)> {
        Some((self.unready.pop_front()?, Readiness::Ready))
    }
}

/// Flips without measuring, and returns when all are published.
pub async fn prepare(
    stage: &Stage,
    flips: Vec<(PodNumber, Readiness)>,
    limit: Duration,
) -> Result<()> {
    for flip in flips {
        send(stage, flip).await?;
    }
    stage.observer.wait_until(limit, |published| published.is_settled()).await?;
    stage.observer.with(|published| drop(published.take_shown()));
    Ok(())
}

/// Flips `n` pods at `rate` a second. Gives back how late the latest was sent.
pub async fn flip(stage: &Stage, flipper: &mut Flipper, rate: u32, n: usize) -> Result<Duration> {
    let began = tokio::time::Instant::now();
    let mut late = Duration::ZERO;
    let mut sent: JoinSet<Result<()>> = JoinSet::new();
    for number in 0..n {
        let due = began + Duration::from_secs(1) * u32::try_from(number)? / rate;
        tokio::time::sleep_until(due).await;
        late = late.max(due.elapsed());
        let flip = flipper.next(stage.layout.n_pods);
        let (sender, templates) = (stage.sender.clone(), stage.templates.clone());
        let (observer, layout) = (stage.observer.clone(), stage.layout);
        observer.with(|published| published.flip(flip.0, flip.1, Instant::now()));
        sent.spawn(async move {
            report_pod(&sender, &templates, &layout, flip).await?;
            observer.with(|published| published.flipped(flip.0, Instant::now()));
            Ok(())
        });
    }
    while let Some(one) = sent.join_next().await {
        one??;
    }
    Ok(late)
}

async fn send(stage: &Stage, flip: (PodNumber, Readiness)) -> Result<()> {
    let Stage { sender, templates, layout, observer, .. } = stage;
    observer.with(|published| published.flip(flip.0, flip.1, Instant::now()));
    report_pod(sender, templates, layout, flip).await?;
    observer.with(|published| published.flipped(flip.0, Instant::now()));
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
        assert_eq!(flipper.prepare(10, 2), [out(0), out(1)]);
        let flips: Vec<_> = (0..6).map(|_| flipper.next(10)).collect();
        assert_eq!(flips, [out(2), back(0), out(3), back(1), out(4), back(2)]);
        assert_eq!(flipper.prepare(10, 1), [back(3)]);
    }
}

//! One line a second at most, and only when something changed.

use std::time::Duration;

use super::{clock, short};
use crate::picture::{Conditions, Picture};

/// What is remembered between two looks.
#[derive(Default)]
pub struct Plain {
    said: String,
    last_told: Option<Duration>,
}

impl Plain {
    /// What is new since the last look.
    pub fn lines(&mut self, picture: &Picture) -> Vec<String> {
        let last = self.last_told;
        let new = picture.told.iter().filter(|(at, _)| last.is_none_or(|last| *at > last));
        let mut lines: Vec<String> =
            new.map(|(at, text)| format!("{}  {text}", clock(*at))).collect();
        self.last_told = picture.told.last().map(|(at, _)| *at).or(last);
        let state = state(picture);
        if state != self.said {
            lines.push(format!("{}  {state}", clock(picture.elapsed)));
            self.said = state;
        }
        lines
    }
}

/// Without anything that moves by itself, such as rates.
fn state(picture: &Picture) -> String {
    let Picture { zones, pods, services, slices, writes, latency, work, .. } = picture;
    let n_nodes: usize = zones.values().map(|zone| zone.n_nodes).sum();
    let n_ready_nodes: usize = zones.values().map(|zone| zone.n_ready).sum();
    let mut all = Conditions::default();
    let by_zone = services.iter().flat_map(|service| service.by_zone.values());
    by_zone.for_each(|conditions| all.add(*conditions));
    let mut text = format!(
        "nodes {n_ready_nodes}/{n_nodes}  pods {}/{}  slices {}  endpoints {} ready {} not ready \
         {} terminating  writes {}  latency p50 {} p99 {}",
        pods.n_ready,
        pods.n_pods,
        slices.n_slices,
        all.n_ready,
        all.n_unready,
        all.n_terminating,
        writes.n_slice_writes + writes.n_endpoints_writes,
        short(latency.median),
        short(latency.p99),
    );
    if let Some(error) = &work.error {
        text.push_str(&format!("  failing: {error}"));
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_state_is_said_once_and_a_happening_once() {
        let mut plain = Plain::default();
        let mut picture = Picture::default();
        assert_eq!(plain.lines(&picture).len(), 1);
        picture.elapsed = Duration::from_secs(7);
        assert_eq!(plain.lines(&picture), Vec::<String>::new(), "only time has passed");
        picture.told.push((Duration::from_secs(7), "web is scaled to 3".to_owned()));
        assert_eq!(plain.lines(&picture), ["0:07  web is scaled to 3"]);
        picture.pods.n_pods = 1;
        assert_eq!(plain.lines(&picture).len(), 1);
    }
}

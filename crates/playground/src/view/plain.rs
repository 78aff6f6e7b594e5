//! Plain lines, at most one state line for each call and only after a change.

use std::time::Duration;

use super::{clock, short};
use crate::view_state::{Conditions, ViewState};

/// What was printed before.
#[derive(Default)]
pub struct Plain {
    last_state: String,
    last_logged: Option<Duration>,
}

impl Plain {
    /// The lines that are new since the last call.
    pub fn lines(&mut self, view_state: &ViewState) -> Vec<String> {
        let last = self.last_logged;
        let new = view_state.log.iter().filter(|(at, _)| last.is_none_or(|last| *at > last));
        let mut lines: Vec<String> =
            new.map(|(at, text)| format!("{}  {text}", clock(*at))).collect();
        self.last_logged = view_state.log.last().map(|(at, _)| *at).or(last);
        let state = state(view_state);
        if state != self.last_state {
            lines.push(format!("{}  {state}", clock(view_state.elapsed)));
            self.last_state = state;
        }
        lines
    }
}

/// Without values that change without a write, such as rates.
fn state(view_state: &ViewState) -> String {
    let ViewState { zones, pods, services, slices, writes, latency, work, .. } = view_state;
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
    fn an_unchanged_state_and_a_log_line_are_printed_once() {
        let mut plain = Plain::default();
        let mut view_state = ViewState::default();
        assert_eq!(plain.lines(&view_state).len(), 1);
        view_state.elapsed = Duration::from_secs(7);
        assert_eq!(plain.lines(&view_state), Vec::<String>::new(), "only time has passed");
        view_state.log.push((Duration::from_secs(7), "web is scaled to 3".to_owned()));
        assert_eq!(plain.lines(&view_state), ["0:07  web is scaled to 3"]);
        view_state.pods.n_pods = 1;
        assert_eq!(plain.lines(&view_state).len(), 1);
    }
}

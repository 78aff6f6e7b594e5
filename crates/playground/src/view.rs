//! Views: a page that is redrawn on a terminal ([`page`]), or plain lines ([`plain`]). Both are
//! functions from a [`ViewState`](crate::view_state::ViewState) to text; [`screen`] draws a page.

pub mod page;
pub mod plain;
pub mod screen;
mod span;

pub use span::{Colour, Line};

use std::path::Path;
use std::time::Duration;

/// The constant properties of a run.
#[derive(Clone, Debug)]
pub struct SessionInfo {
    pub scenario: &'static str,
    pub seed: u64,
    pub url: String,
    /// The live page.
    pub page: Option<String>,
    pub status_address: Option<String>,
    pub kubeconfig: String,
    pub has_workload: bool,
    /// If there are several.
    pub clusters: Vec<ClusterInfo>,
}

/// One of several clusters.
#[derive(Clone, Debug)]
pub struct ClusterInfo {
    pub name: &'static str,
    pub url: String,
    pub page: Option<String>,
}

impl ClusterInfo {
    /// `cluster us1 at http://127.0.0.1:1, page http://127.0.0.1:2/ui/`.
    pub fn line(&self) -> String {
        let page = self.page.as_ref().map_or_else(String::new, |page| format!(", page {page}"));
        format!("cluster {} at {}{page}", self.name, self.url)
    }
}

/// Commands to try, in order.
pub fn suggestions(session: &SessionInfo) -> Vec<String> {
    let mut lines = vec![format!("export KUBECONFIG={}", session.kubeconfig)];
    if let [_, .., last] = session.clusters.as_slice() {
        let name = last.name;
        lines.extend([
            "kubectl get serviceexports,serviceimports -n shop".to_owned(),
            "kubectl get endpointslices -n shop -L multicluster.kubernetes.io/source-cluster"
                .to_owned(),
            format!("kubectl --context {name} delete serviceexport web -n shop"),
            format!("kubectl --context {name} scale deployment web -n shop --replicas=30"),
        ]);
    } else if session.has_workload {
        lines.extend(
            [
                "kubectl get endpointslices -n shop -w",
                "kubectl scale deployment web -n shop --replicas=150",
                "kubectl set image deployment web -n shop app=playground.example/web:next",
                "kubectl annotate pods -n shop -l app=api endpointd-playground/ready=false",
                "kubectl delete node node-01",
            ]
            .map(str::to_owned),
        );
    } else {
        lines.extend(
            [
                "kubectl create deployment web --image=nginx --replicas=3 --port=80",
                "kubectl expose deployment web",
                "kubectl get endpointslices -w",
            ]
            .map(str::to_owned),
        );
    }
    lines.extend(
        session
            .status_address
            .iter()
            .map(|status_address| format!("curl -s {status_address}/report?pretty")),
    );
    lines
}

/// `1:05`.
pub fn clock(time: Duration) -> String {
    format!("{}:{:02}", time.as_secs() / 60, time.as_secs() % 60)
}

/// `0.8 ms`, `12 ms`, `1.2 s`.
pub fn short(time: Duration) -> String {
    let millis = time.as_secs_f64() * 1000.0;
    if millis < 10.0 {
        format!("{millis:.1} ms")
    } else if millis < 1000.0 {
        format!("{millis:.0} ms")
    } else {
        format!("{:.1} s", millis / 1000.0)
    }
}

/// A path, quoted for a shell.
pub fn quoted(path: &Path) -> String {
    let text = path.display().to_string();
    let is_plain = |c: char| c.is_ascii_alphanumeric() || "/._-+".contains(c);
    if text.chars().all(is_plain) {
        return text;
    }
    format!("'{}'", text.replace('\'', r"'\''"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_short() {
        assert_eq!(clock(Duration::from_secs(65)), "1:05");
        assert_eq!(short(Duration::from_micros(812)), "0.8 ms");
        assert_eq!(short(Duration::from_millis(12)), "12 ms");
        assert_eq!(short(Duration::from_millis(1234)), "1.2 s");
    }

    #[test]
    fn unusual_paths_are_quoted() {
        assert_eq!(quoted(Path::new("here/a-1.kubeconfig")), "here/a-1.kubeconfig");
        assert_eq!(quoted(Path::new("it's here")), r"'it'\''s here'");
    }
}

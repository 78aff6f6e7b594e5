//! Displays a playground, as a page on a terminal or as plain lines, until it ends.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use endpointd_playground::view::page::page;
use endpointd_playground::view::plain::Plain;
use endpointd_playground::view::screen::{Colours, Screen, size};
use endpointd_playground::view::{SessionInfo, quoted, suggestions};
use endpointd_playground::view_state::ViewState;
use endpointd_playground::{ClusterSet, Workload};

/// How often a page is drawn, and how often a line may be printed.
const FRAME: Duration = Duration::from_millis(200);
const LINE: Duration = Duration::from_secs(1);

type Out = Box<dyn Write>;

/// With `json`, standard output is for the summary only.
pub async fn show_until(set: &ClusterSet, json: bool, ended: impl Future<Output = ()>) {
    let (playground, session) = (set.first(), session(set));
    let mut ended = pin!(ended);
    let mut view = View::open(json, &session).ok();
    loop {
        let wait = view.as_ref().map_or(LINE, View::period);
        tokio::select! {
            biased;
            () = &mut ended => return,
            () = tokio::time::sleep(wait) => {}
        }
        // If the output is closed, the playground continues without a view.
        view = view.and_then(|view| view.show(&session, &playground.view_state()).ok());
    }
}

/// The lines that stay on a terminal after the page is closed.
pub fn final_lines(view_state: &ViewState) -> Vec<String> {
    Plain::default().lines(&ViewState { log: Vec::new(), ..view_state.clone() })
}

enum View {
    Page(Screen<Out>),
    Lines(Plain, Out),
}

impl View {
    fn open(json: bool, session: &SessionInfo) -> io::Result<Self> {
        let (mut out, is_terminal): (Out, bool) = if json {
            (Box::new(io::stderr()), io::stderr().is_terminal())
        } else {
            (Box::new(io::stdout()), io::stdout().is_terminal())
        };
        if is_terminal {
            let is_plain = std::env::var_os("NO_COLOR").is_some_and(|value| !value.is_empty());
            let colours = if is_plain { Colours::Off } else { Colours::On };
            return Ok(Self::Page(Screen::open(out, colours)?));
        }
        writeln!(out, "API server at {}, scenario {}", session.url, session.scenario)?;
        if let Some(page) = &session.page {
            writeln!(out, "live page at {page}")?;
        }
        for cluster in session.clusters.iter().skip(1) {
            writeln!(out, "{}", cluster.line())?;
        }
        writeln!(out, "try in another terminal:")?;
        for line in suggestions(session) {
            writeln!(out, "  {line}")?;
        }
        out.flush()?;
        Ok(Self::Lines(Plain::default(), out))
    }

    fn period(&self) -> Duration {
        match self {
            Self::Page(_) => FRAME,
            Self::Lines(..) => LINE,
        }
    }

    fn show(mut self, session: &SessionInfo, view_state: &ViewState) -> io::Result<Self> {
        match &mut self {
            Self::Page(screen) => {
                let (width, height) = size();
                screen.draw(&page(session, view_state, width, height))?;
            }
            Self::Lines(plain, out) => {
                for line in plain.lines(view_state) {
                    writeln!(out, "{line}")?;
                }
                out.flush()?;
            }
        }
        Ok(self)
    }
}

fn session(set: &ClusterSet) -> SessionInfo {
    let playground = set.first();
    let options = playground.options();
    SessionInfo {
        scenario: set.scenario().name(),
        seed: options.seed,
        url: playground.url().to_owned(),
        page: playground.page_url(),
        status_address: playground.status_address().map(|address| format!("http://{address}")),
        kubeconfig: quoted(playground.kubeconfig()),
        has_workload: options.workload == Workload::Default,
        clusters: set.clusters(),
    }
}

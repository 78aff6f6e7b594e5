//! Shows a playground to people, on a terminal or line by line, until it ends.

use std::future::Future;
use std::io::{self, IsTerminal, Write};
use std::pin::pin;
use std::time::Duration;

use endpointd_playground::picture::Picture;
use endpointd_playground::view::page::page;
use endpointd_playground::view::plain::Plain;
use endpointd_playground::view::screen::{Colours, Screen, size};
use endpointd_playground::view::{About, quoted, suggestions};
use endpointd_playground::{Playground, Workload};

/// How often a page is drawn, and how often a line may be said.
const FRAME: Duration = Duration::from_millis(200);
const LINE: Duration = Duration::from_secs(1);

type Out = Box<dyn Write>;

/// With `json`, standard output is for the summary alone.
pub async fn until(playground: &Playground, json: bool, ended: impl Future<Output = ()>) {
    let about = about(playground);
    let mut ended = pin!(ended);
    let mut view = View::open(json, &about).ok();
    loop {
        let wait = view.as_ref().map_or(LINE, View::period);
        tokio::select! {
            biased;
            () = &mut ended => return,
            () = tokio::time::sleep(wait) => {}
        }
        // Nobody looking is no reason to stop.
        view = view.and_then(|view| view.show(&about, &playground.picture()).ok());
    }
}

/// What stays on a terminal when the page is gone.
pub fn last_words(picture: &Picture) -> Vec<String> {
    Plain::default().lines(&Picture { told: Vec::new(), ..picture.clone() })
}

enum View {
    Page(Screen<Out>),
    Lines(Plain, Out),
}

impl View {
    fn open(json: bool, about: &About) -> io::Result<Self> {
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
        writeln!(out, "API server at {}, scenario {}", about.url, about.scenario)?;
        writeln!(out, "try in another terminal:")?;
        for line in suggestions(about) {
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

    fn show(mut self, about: &About, picture: &Picture) -> io::Result<Self> {
        match &mut self {
            Self::Page(screen) => {
                let (width, height) = size();
                screen.draw(&page(about, picture, width, height))?;
            }
            Self::Lines(plain, out) => {
                for line in plain.lines(picture) {
                    writeln!(out, "{line}")?;
                }
                out.flush()?;
            }
        }
        Ok(self)
    }
}

fn about(playground: &Playground) -> About {
    let options = playground.options();
    About {
        scenario: options.scenario.name(),
        seed: options.seed,
        url: playground.url().to_owned(),
        pages: playground.pages().map(|address| format!("http://{address}")),
        kubeconfig: quoted(playground.kubeconfig()),
        has_workload: options.workload == Workload::World,
    }
}

//! `endpointd playground`: a world without a cluster, until Ctrl-C or its time is up.

mod flags;
mod resolve;
mod show;

use std::io::{self, IsTerminal, Write};

use endpointd_playground::{Playground, StartError, Summary};

pub use self::flags::Flags;
use crate::refusal::Refusal;
use crate::{shell, stderr};

pub fn run(flags: &Flags) -> Result<(), Refusal> {
    let options = resolve::resolve(flags)?;
    let duration = resolve::duration(flags)?;
    let summary = shell::workers()?.block_on(async {
        let stopped = shell::stop_signal()?;
        let playground = Playground::start(options).await.map_err(refusal)?;
        let over = async {
            match duration {
                Some(duration) => tokio::time::sleep(duration).await,
                None => std::future::pending().await,
            }
        };
        let ended = async {
            tokio::select! {
                () = stopped => {}
                () = over => {}
            }
        };
        show::until(&playground, flags.json, ended).await;
        Ok::<Summary, Refusal>(playground.stop().await)
    })?;
    if flags.json {
        return print(&summary);
    }
    if io::stdout().is_terminal() {
        show::last_words(&summary.picture)
            .iter()
            .for_each(|line| stderr::line(format_args!("{line}")));
    }
    Ok(())
}

fn print(summary: &Summary) -> Result<(), Refusal> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", summary.to_json()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // Whoever reads has read enough.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(Refusal::new(
            format!("cannot write the summary: {error}"),
            "standard output must be writable",
        )),
    }
}

fn refusal(error: StartError) -> Refusal {
    let hint = match &error {
        StartError::Bind { .. } => "without `--port` any that is free is taken",
        StartError::Kubeconfig(_) => "choose another file with `--kubeconfig-out`",
        StartError::Controllers(_) => "is the loopback interface up?",
    };
    Refusal::new(error.to_string().replace("\nhint: ", ": "), hint)
}

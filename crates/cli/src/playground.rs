//! `endpointd playground`: a cluster in one process, until a signal or the end of `--duration`.

mod flags;
mod resolve;
mod show;

use std::io::{self, IsTerminal, Write};

use endpointd_playground::{ClusterSet, StartError, Summary};

pub use self::flags::Flags;
use crate::cli_error::CliError;
use crate::{browser, stderr, tokio_runtime};

pub fn run(flags: &Flags) -> Result<(), CliError> {
    let options = resolve::resolve(flags)?;
    let n_clusters = resolve::n_clusters(flags, options.scenario)?;
    let duration = resolve::duration(flags)?;
    let summary = tokio_runtime::workers()?.block_on(async {
        let stopped = tokio_runtime::stop_signal()?;
        let set = ClusterSet::start(options, n_clusters).await.map_err(cli_error)?;
        if let (true, Some(page)) = (opens_page(flags), set.first().page_url()) {
            // The view has the address; a browser that cannot be started is no reason to stop.
            browser::open(&page);
        }
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
        show::show_until(&set, flags.json, ended).await;
        Ok::<Summary, CliError>(set.stop().await)
    })?;
    if flags.json {
        return print(&summary);
    }
    if io::stdout().is_terminal() {
        show::final_lines(&summary.view_state)
            .iter()
            .for_each(|line| stderr::line(format_args!("{line}")));
    }
    Ok(())
}

/// For somebody who looks, not for a program.
fn opens_page(flags: &Flags) -> bool {
    !flags.no_open && !flags.json && io::stdout().is_terminal() && browser::has_desktop()
}

fn print(summary: &Summary) -> Result<(), CliError> {
    let mut out = io::stdout().lock();
    match writeln!(out, "{}", summary.to_json()).and_then(|()| out.flush()) {
        Ok(()) => Ok(()),
        // The reader needs no more output.
        Err(error) if error.kind() == io::ErrorKind::BrokenPipe => Ok(()),
        Err(error) => Err(CliError::new(
            format!("cannot write the summary: {error}"),
            "standard output must be writable",
        )),
    }
}

fn cli_error(error: StartError) -> CliError {
    let hint = match &error {
        StartError::Bind { .. } => "without `--port` a free port is chosen",
        StartError::Kubeconfig(_) => "choose another file with `--kubeconfig-out`",
        StartError::Controllers(_) => "check the loopback interface",
    };
    CliError::new(error.to_string().replace("\nhint: ", ": "), hint)
}

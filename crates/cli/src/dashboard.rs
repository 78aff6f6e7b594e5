//! `endpointd dashboard`: forwards a local port to the live page of a running endpointd, and opens the
//! page in a browser. The page is served on the loopback interface of the pod only.

mod flags;
mod forward;
mod pod;

use std::process::ExitCode;
use std::sync::Arc;

use endpointd_client::PortForwarder;
use tokio::net::TcpListener;

pub use self::flags::Flags;
use self::forward::Forward;
use self::pod::PodChoice;
use crate::cli_error::CliError;
use crate::cluster::{cannot_connect, connect, connect_options, run_async};
use crate::target::{Kind, Target};
use crate::{browser, output, stderr};

pub fn run(flags: &Flags) -> Result<ExitCode, CliError> {
    run_async(serve(flags))?;
    Ok(ExitCode::SUCCESS)
}

async fn serve(flags: &Flags) -> Result<(), CliError> {
    let name = match Target::parse(&flags.pod)? {
        None => None,
        Some(Target { kind: Kind::Pod, name }) => Some(name),
        Some(_) => {
            return Err(CliError::new(
                "only pods have ports to forward",
                "as in `pod/endpointd-5d8f`; without a name the pod that leads is chosen",
            ));
        }
    };
    let options = connect_options(&flags.connect);
    let client = connect(&flags.connect).await?;
    let forwarder =
        PortForwarder::connect(&options).await.map_err(|error| cannot_connect(&error))?;
    let choice = PodChoice {
        namespace: flags.namespace.clone(),
        selector: flags.selector.clone(),
        name,
        client,
    };
    let forward = Arc::new(Forward::start(choice, forwarder, flags.pod_port).await?);
    let listener = TcpListener::bind(("127.0.0.1", flags.port)).await.map_err(|error| {
        CliError::new(
            format!("cannot listen on 127.0.0.1:{}: {error}", flags.port),
            "without `--port` any free port is used",
        )
    })?;
    let address = listener.local_addr().map_err(|error| {
        CliError::new(format!("cannot listen: {error}"), "check the loopback interface")
    })?;
    let url = format!("http://{address}/ui/");
    output::print(&format!("live page of {} at {url}\n", forward.whose()))?;
    if !flags.no_open && browser::has_desktop() && !browser::open(&url) {
        stderr::line(format_args!("no browser could be started: open the address in one"));
    }
    tokio::select! {
        () = forward::accept(&listener, &forward) => {}
        () = forward.follow() => {}
        _ = tokio::signal::ctrl_c() => {}
    }
    Ok(())
}

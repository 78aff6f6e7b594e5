//! The client against a real API server.

mod credentials;
mod elections;
mod events;
mod outage;
mod watches;
mod writes;

use std::path::PathBuf;

use endpointd_client::{Client, ConnectOptions};

pub async fn connect(kubeconfig: PathBuf) -> Client {
    let options = ConnectOptions {
        kubeconfig: Some(kubeconfig),
        user_agent: "endpointd-test".to_owned(),
        ..Default::default()
    };
    Client::connect(options).await.expect("the kubeconfig is valid")
}

//! The authorities of client certificates, which the API server publishes for its extensions in the
//! ConfigMap `kube-system/extension-apiserver-authentication`. Without permission to read it, clients
//! need tokens.

use std::convert::Infallible;
use std::time::Duration;

use endpointd_client::Client;
use endpointd_secure_serving::Tls;
use tokio::time::sleep;

const PATH: &str = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication";
const PERIOD: Duration = Duration::from_secs(60);

/// Reads the ConfigMap once a minute. What was read last stays if it cannot be read again.
pub(crate) async fn follow(client: &Client, tls: &Tls) -> Infallible {
    let mut known = None;
    loop {
        match client.get_value(PATH).await {
            Ok(response) => {
                let pem = response.value["data"]["client-ca-file"].as_str().map(ToOwned::to_owned);
                if pem != known {
                    tls.set_client_authorities(pem.as_deref().unwrap_or_default());
                    known = pem;
                }
            }
            Err(error) => tracing::debug!(%error, "client certificates: no authorities"),
        }
        sleep(PERIOD).await;
    }
}

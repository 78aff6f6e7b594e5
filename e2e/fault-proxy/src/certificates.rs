//! TLS on both sides of the proxy, with the certificates of a test cluster.

use std::io;
use std::path::Path;
use std::sync::Arc;

use endpointd_control_plane::certificates::{CA_FILE, SERVING_FILE, SERVING_KEY_FILE};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::crypto::{CryptoProvider, ring};
use tokio_rustls::rustls::pki_types::pem::{self, PemObject};
use tokio_rustls::rustls::pki_types::{CertificateDer, PrivateKeyDer};
use tokio_rustls::rustls::{self, ClientConfig, RootCertStore, ServerConfig};

/// Serves with the serving certificate in `directory`.
pub(crate) fn acceptor(directory: &Path) -> io::Result<TlsAcceptor> {
    let chain = certificates(&directory.join(SERVING_FILE))?;
    let key = PrivateKeyDer::from_pem_file(directory.join(SERVING_KEY_FILE)).map_err(from_pem)?;
    let config = ServerConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .and_then(|builder| builder.with_no_client_auth().with_single_cert(chain, key))
        .map_err(from_tls)?;
    Ok(TlsAcceptor::from(Arc::new(config)))
}

/// Trusts the certificate authority in `directory`.
pub(crate) fn client_config(directory: &Path) -> io::Result<ClientConfig> {
    let mut roots = RootCertStore::empty();
    for certificate in certificates(&directory.join(CA_FILE))? {
        roots.add(certificate).map_err(from_tls)?;
    }
    let builder = ClientConfig::builder_with_provider(provider())
        .with_safe_default_protocol_versions()
        .map_err(from_tls)?;
    Ok(builder.with_root_certificates(roots).with_no_client_auth())
}

fn certificates(file: &Path) -> io::Result<Vec<CertificateDer<'static>>> {
    let certificates = CertificateDer::pem_file_iter(file).map_err(from_pem)?;
    certificates.collect::<Result<_, _>>().map_err(from_pem)
}

fn provider() -> Arc<CryptoProvider> {
    Arc::new(ring::default_provider())
}

fn from_pem(error: pem::Error) -> io::Error {
    io::Error::other(error)
}

fn from_tls(error: rustls::Error) -> io::Error {
    io::Error::other(error)
}

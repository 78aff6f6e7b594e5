//! The TLS side of a server: versions, cipher suites, certificates of both sides.

use std::io;
use std::path::PathBuf;
use std::sync::{Arc, PoisonError, RwLock};

use rustls::crypto::{CryptoProvider, ring};
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject;
use rustls::server::WebPkiClientVerifier;
use rustls::server::danger::ClientCertVerifier;
use rustls::{RootCertStore, ServerConfig, SupportedProtocolVersion, version};
use tokio::io::{AsyncRead, AsyncWrite};
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;

use crate::certificate::{CertificateSource, CurrentCertificate};
use crate::subject::ClientCertificate;

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum TlsVersion {
    #[default]
    Tls12,
    Tls13,
}

#[derive(Clone, Debug)]
pub struct TlsOptions {
    pub certificate: CertificateSource,
    pub version_min: TlsVersion,
    /// Names as in Go's crypto/tls; empty: all that rustls has.
    pub cipher_suites: Vec<String>,
}

#[derive(Debug, thiserror::Error)]
pub enum TlsError {
    #[error("cannot use `{}`: {reason}\nhint: it must be PEM", path.display())]
    Unreadable { path: PathBuf, reason: String },
    #[error(
        "the key `{}` does not belong to the certificate `{}`\nhint: check \
         `--tls-cert-file` and `--tls-private-key-file`",
        key.display(),
        certificate.display()
    )]
    Mismatch { certificate: PathBuf, key: PathBuf },
    #[error("cannot make a certificate: {reason}\nhint: pass `--tls-cert-file`")]
    SelfSigned { reason: String },
    #[error("unknown cipher suite: `{name}`\nhint: known are {}", cipher_suite_names().join(", "))]
    UnknownCipherSuite { name: String },
    #[error("cannot serve HTTPS: {0}\nhint: check `--tls-min-version` and `--tls-cipher-suites`")]
    Config(rustls::Error),
}

/// Accepts TLS connections. Clones share the certificates.
#[derive(Clone)]
pub struct Tls(Arc<Inner>);

struct Inner {
    provider: Arc<CryptoProvider>,
    version_min: TlsVersion,
    certificate: Arc<CurrentCertificate>,
    /// Replaced when the authorities of client certificates change.
    config: RwLock<Arc<ServerConfig>>,
}

impl Tls {
    pub fn new(options: TlsOptions) -> Result<Self, TlsError> {
        let TlsOptions { certificate, version_min, cipher_suites } = options;
        let provider = with_cipher_suites(&cipher_suites)?;
        let certificate = Arc::new(CurrentCertificate::new(certificate, provider.clone())?);
        let verifier = WebPkiClientVerifier::no_client_auth();
        let config = config(&provider, version_min, &certificate, verifier)?;
        let config = RwLock::new(Arc::new(config));
        Ok(Self(Arc::new(Inner { provider, version_min, certificate, config })))
    }

    /// Asks clients for certificates of these authorities from now on; clients need not have one.
    /// With none, certificates are not asked for.
    pub fn set_client_authorities(&self, pem: &str) {
        let Inner { provider, version_min, certificate, config: current } = &*self.0;
        let mut roots = RootCertStore::empty();
        let parsed = CertificateDer::pem_slice_iter(pem.as_bytes()).filter_map(Result::ok);
        roots.add_parsable_certificates(parsed);
        let verifier = if roots.is_empty() {
            WebPkiClientVerifier::no_client_auth()
        } else {
            let builder =
                WebPkiClientVerifier::builder_with_provider(roots.into(), provider.clone());
            match builder.allow_unauthenticated().build() {
                Ok(verifier) => verifier,
                Err(error) => {
                    tracing::warn!(%error, "client certificates are not accepted");
                    WebPkiClientVerifier::no_client_auth()
                }
            }
        };
        if let Ok(config) = config(provider, *version_min, certificate, verifier) {
            *current.write().unwrap_or_else(PoisonError::into_inner) = Arc::new(config);
        }
    }

    /// The handshake, and the certificate of the client if it has one.
    pub async fn accept<S: AsyncRead + AsyncWrite + Unpin>(
        &self,
        stream: S,
    ) -> io::Result<(TlsStream<S>, Option<ClientCertificate>)> {
        let config = self.0.config.read().unwrap_or_else(PoisonError::into_inner).clone();
        let stream = TlsAcceptor::from(config).accept(stream).await?;
        let chain = stream.get_ref().1.peer_certificates().unwrap_or_default();
        let certificate = chain.first().map(|one| ClientCertificate(one.to_vec()));
        Ok((stream, certificate))
    }
}

fn config(
    provider: &Arc<CryptoProvider>,
    version_min: TlsVersion,
    certificate: &Arc<CurrentCertificate>,
    verifier: Arc<dyn ClientCertVerifier>,
) -> Result<ServerConfig, TlsError> {
    let versions: &[&SupportedProtocolVersion] = match version_min {
        TlsVersion::Tls12 => &[&version::TLS13, &version::TLS12],
        TlsVersion::Tls13 => &[&version::TLS13],
    };
    let builder = ServerConfig::builder_with_provider(provider.clone())
        .with_protocol_versions(versions)
        .map_err(TlsError::Config)?
        .with_client_cert_verifier(verifier);
    let mut config = builder.with_cert_resolver(certificate.clone());
    config.alpn_protocols = vec![b"http/1.1".to_vec()];
    Ok(config)
}

fn with_cipher_suites(wanted: &[String]) -> Result<Arc<CryptoProvider>, TlsError> {
    if let Some(unknown) = wanted.iter().find(|name| !cipher_suite_names().contains(name)) {
        return Err(TlsError::UnknownCipherSuite { name: unknown.clone() });
    }
    let mut provider = ring::default_provider();
    if !wanted.is_empty() {
        provider.cipher_suites.retain(|suite| wanted.contains(&go_name(suite.suite())));
    }
    Ok(Arc::new(provider))
}

/// The names of kube-controller-manager's flag.
pub fn cipher_suite_names() -> Vec<String> {
    ring::ALL_CIPHER_SUITES.iter().map(|suite| go_name(suite.suite())).collect()
}

fn go_name(suite: rustls::CipherSuite) -> String {
    let name = format!("{suite:?}");
    // rustls names the suites of TLS 1.3 `TLS13_…`.
    name.strip_prefix("TLS13_").map_or_else(|| name.clone(), |rest| format!("TLS_{rest}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn options(suites: &[&str]) -> TlsOptions {
        TlsOptions {
            certificate: CertificateSource::SelfSigned,
            version_min: TlsVersion::Tls12,
            cipher_suites: suites.iter().map(ToString::to_string).collect(),
        }
    }

    #[test]
    fn cipher_suites_have_the_names_of_go() {
        let names = cipher_suite_names();
        assert!(names.contains(&"TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256".to_owned()), "{names:?}");
        assert!(names.contains(&"TLS_AES_128_GCM_SHA256".to_owned()), "{names:?}");
        assert!(Tls::new(options(&["TLS_AES_128_GCM_SHA256"])).is_ok());
        let error = Tls::new(options(&["TLS_RSA_WITH_RC4_128_SHA"])).err().unwrap().to_string();
        assert!(error.starts_with("unknown cipher suite: `TLS_RSA_WITH_RC4_128_SHA`"), "{error}");
    }

    #[test]
    fn versions_and_cipher_suites_that_exclude_each_other_are_an_error() {
        let suites = &["TLS_ECDHE_RSA_WITH_AES_128_GCM_SHA256"];
        let both = TlsOptions { version_min: TlsVersion::Tls13, ..options(suites) };
        let error = Tls::new(both).err().unwrap().to_string();
        assert!(error.starts_with("cannot serve HTTPS"), "{error}");
    }
}

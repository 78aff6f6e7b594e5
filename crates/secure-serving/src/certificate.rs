//! The certificate of the server: from files, which are read again, or made in memory.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use rcgen::{CertificateParams, DnType, KeyPair};
use rustls::crypto::CryptoProvider;
use rustls::pki_types::pem::PemObject;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, PrivatePkcs8KeyDer};
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use tokio::time::Instant;

use crate::tls::TlsError;

/// How old the files may be; they are read at a handshake.
const RELOAD_PERIOD: Duration = Duration::from_secs(10);

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CertificateSource {
    /// A new key and certificate each time the process starts. Clients cannot verify it.
    SelfSigned,
    Files {
        certificate: PathBuf,
        key: PathBuf,
    },
}

/// Gives each handshake the current certificate.
#[derive(Debug)]
pub struct CurrentCertificate {
    source: CertificateSource,
    provider: Arc<CryptoProvider>,
    current: Mutex<Current>,
}

#[derive(Debug)]
struct Current {
    key: Arc<CertifiedKey>,
    read: Instant,
    /// An error is logged once.
    error: Option<String>,
}

impl CurrentCertificate {
    pub fn new(source: CertificateSource, provider: Arc<CryptoProvider>) -> Result<Self, TlsError> {
        let key = match &source {
            CertificateSource::SelfSigned => self_signed(&provider)?,
            CertificateSource::Files { certificate, key } => read(certificate, key, &provider)?,
        };
        let current = Current { key: Arc::new(key), read: Instant::now(), error: None };
        Ok(Self { source, provider, current: Mutex::new(current) })
    }

    /// Files that cannot be used, or do not fit each other because they are just being replaced,
    /// change nothing.
    fn current(&self) -> Arc<CertifiedKey> {
        let mut current = self.current.lock().unwrap_or_else(PoisonError::into_inner);
        let CertificateSource::Files { certificate, key } = &self.source else {
            return current.key.clone();
        };
        if current.read.elapsed() >= RELOAD_PERIOD {
            current.read = Instant::now();
            match read(certificate, key, &self.provider) {
                Ok(key) if key.cert != current.key.cert => {
                    tracing::info!(file = %certificate.display(), "serving with a new certificate");
                    *current = Current { key: Arc::new(key), read: current.read, error: None };
                }
                Ok(_) => current.error = None,
                Err(error) => {
                    let text = error.to_string();
                    if current.error.as_ref() != Some(&text) {
                        tracing::warn!(%error, "serving with the old certificate");
                        current.error = Some(text);
                    }
                }
            }
        }
        current.key.clone()
    }
}

impl ResolvesServerCert for CurrentCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(self.current())
    }
}

fn read(
    certificate: &Path,
    key: &Path,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, TlsError> {
    let unreadable =
        |path: &Path, reason: String| TlsError::Unreadable { path: path.to_owned(), reason };
    let bytes = |path: &Path| fs::read(path).map_err(|error| unreadable(path, error.to_string()));
    let (certificate_pem, key_pem) = (bytes(certificate)?, bytes(key)?);
    let chain: Vec<CertificateDer> = CertificateDer::pem_slice_iter(&certificate_pem)
        .collect::<Result<_, _>>()
        .map_err(|error| unreadable(certificate, error.to_string()))?;
    if chain.is_empty() {
        return Err(unreadable(certificate, "it contains no certificate".to_owned()));
    }
    let private = PrivateKeyDer::from_pem_slice(&key_pem)
        .map_err(|error| unreadable(key, error.to_string()))?;
    certified(chain, private, provider).map_err(|error| match error {
        rustls::Error::InconsistentKeys(_) => {
            TlsError::Mismatch { certificate: certificate.to_owned(), key: key.to_owned() }
        }
        error => unreadable(key, error.to_string()),
    })
}

fn certified(
    chain: Vec<CertificateDer<'static>>,
    key: PrivateKeyDer<'static>,
    provider: &CryptoProvider,
) -> Result<CertifiedKey, rustls::Error> {
    let certified = CertifiedKey::new(chain, provider.key_provider.load_private_key(key)?);
    certified.keys_match()?;
    Ok(certified)
}

fn self_signed(provider: &CryptoProvider) -> Result<CertifiedKey, TlsError> {
    let failed = |error: &dyn std::fmt::Display| TlsError::SelfSigned { reason: error.to_string() };
    let key = KeyPair::generate().map_err(|error| failed(&error))?;
    let names = vec!["endpointd".to_owned(), "localhost".to_owned()];
    let mut params = CertificateParams::new(names).map_err(|error| failed(&error))?;
    params.distinguished_name.push(DnType::CommonName, "endpointd");
    let certificate = params.self_signed(&key).map_err(|error| failed(&error))?;
    let private = PrivatePkcs8KeyDer::from(key.serialize_der());
    certified(vec![certificate.der().clone()], private.into(), provider)
        .map_err(|error| failed(&error))
}

#[cfg(test)]
mod tests {
    use rustls::crypto::ring;

    use super::*;

    fn provider() -> Arc<CryptoProvider> {
        Arc::new(ring::default_provider())
    }

    fn pem() -> (String, String) {
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(vec!["localhost".to_owned()]).unwrap();
        (params.self_signed(&key).unwrap().pem(), key.serialize_pem())
    }

    struct Files(tempfile::TempDir);

    impl Files {
        fn new() -> Self {
            let files = Self(tempfile::tempdir().unwrap());
            files.write(&pem());
            files
        }

        fn write(&self, (certificate, key): &(String, String)) {
            fs::write(self.0.path().join("tls.crt"), certificate).unwrap();
            fs::write(self.0.path().join("tls.key"), key).unwrap();
        }

        fn open(&self) -> Result<CurrentCertificate, TlsError> {
            let (certificate, key) = (self.0.path().join("tls.crt"), self.0.path().join("tls.key"));
            CurrentCertificate::new(CertificateSource::Files { certificate, key }, provider())
        }
    }

    #[tokio::test(start_paused = true)]
    async fn new_files_are_used_after_ten_seconds() {
        let files = Files::new();
        let certificate = files.open().unwrap();
        let first = certificate.current().cert.clone();
        files.write(&pem());
        assert_eq!(certificate.current().cert, first);
        tokio::time::advance(RELOAD_PERIOD).await;
        assert_ne!(certificate.current().cert, first);
    }

    #[tokio::test(start_paused = true)]
    async fn files_that_cannot_be_used_change_nothing() {
        let files = Files::new();
        let certificate = files.open().unwrap();
        let first = certificate.current().cert.clone();
        let (other, key) = (pem(), pem());
        for broken in [(other.0, key.1), ("no PEM".to_owned(), "no PEM".to_owned())] {
            files.write(&broken);
            tokio::time::advance(RELOAD_PERIOD).await;
            assert_eq!(certificate.current().cert, first);
        }
    }

    #[test]
    fn a_key_of_another_certificate_is_an_error() {
        let files = Files::new();
        files.write(&(pem().0, pem().1));
        let error = files.open().unwrap_err().to_string();
        assert!(error.contains("does not belong to the certificate"), "{error}");
        files.write(&(String::new(), pem().1));
        let error = files.open().unwrap_err().to_string();
        assert!(error.contains("it contains no certificate"), "{error}");
        fs::remove_file(files.0.path().join("tls.key")).unwrap();
        assert!(matches!(files.open(), Err(TlsError::Unreadable { .. })));
    }

    #[test]
    fn a_certificate_is_made_without_files() {
        let one = CurrentCertificate::new(CertificateSource::SelfSigned, provider()).unwrap();
        let other = CurrentCertificate::new(CertificateSource::SelfSigned, provider()).unwrap();
        assert_ne!(one.current().cert, other.current().cert);
    }
}

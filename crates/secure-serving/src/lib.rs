//! HTTPS as kube-controller-manager serves it. [`Tls`] holds the certificates, [`Guard`] asks the
//! API server who sends a request and whether that user may see the page.

mod cache;
mod certificate;
mod guard;
mod subject;
mod tls;

pub use certificate::CertificateSource;
pub use guard::{Guard, GuardOptions, ReviewApi, ReviewFuture};
pub use subject::ClientCertificate;
pub use tls::{Tls, TlsError, TlsOptions, TlsVersion, cipher_suite_names};

//! The keys of one cluster: a certificate authority, a serving certificate for loopback, and the
//! key that signs ServiceAccount tokens. Every cluster has new ones.

use std::fs;
use std::io;
use std::path::Path;

use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair, KeyUsagePurpose};

pub const CA_FILE: &str = "ca.crt";
pub const SERVING_FILE: &str = "serving.crt";
pub const SERVING_KEY_FILE: &str = "serving.key";
pub const TOKEN_KEY_FILE: &str = "service-account.key";
pub const TOKEN_PUBLIC_KEY_FILE: &str = "service-account.pub";

/// Writes the five files into `directory` and returns the authority as PEM.
pub fn create(directory: &Path) -> io::Result<String> {
    let keys = generate().map_err(io::Error::other)?;
    let Keys { authority, serving, serving_key, token_key, token_public_key } = keys;
    fs::write(directory.join(CA_FILE), &authority)?;
    fs::write(directory.join(SERVING_FILE), serving)?;
    fs::write(directory.join(SERVING_KEY_FILE), serving_key)?;
    fs::write(directory.join(TOKEN_KEY_FILE), token_key)?;
    fs::write(directory.join(TOKEN_PUBLIC_KEY_FILE), token_public_key)?;
    Ok(authority)
}

/// All keys and certificates as PEM.
struct Keys {
    authority: String,
    serving: String,
    serving_key: String,
    token_key: String,
    token_public_key: String,
}

fn generate() -> Result<Keys, rcgen::Error> {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "endpointd test cluster");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    let authority_key = KeyPair::generate()?;
    let authority_pem = authority.self_signed(&authority_key)?.pem();

    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc"];
    let serving = CertificateParams::new(names.map(str::to_owned))?;
    let serving_key = KeyPair::generate()?;
    let serving = serving.signed_by(&serving_key, &Issuer::new(authority, authority_key))?;

    let token_key = KeyPair::generate()?;
    Ok(Keys {
        authority: authority_pem,
        serving: serving.pem(),
        serving_key: serving_key.serialize_pem(),
        token_key: token_key.serialize_pem(),
        token_public_key: token_key.public_key_pem(),
    })
}

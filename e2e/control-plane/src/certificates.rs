//! The keys of one cluster: a certificate authority, a serving certificate for loopback, and the
//! key that signs ServiceAccount tokens. Every cluster has new ones. On demand, client certificates.

use std::fs;
use std::io;
use std::path::Path;
use std::time::{Duration, SystemTime};

use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose,
};

pub const CA_FILE: &str = "ca.crt";
const CA_KEY_FILE: &str = "ca.key";
pub const SERVING_FILE: &str = "serving.crt";
pub const SERVING_KEY_FILE: &str = "serving.key";
pub const TOKEN_KEY_FILE: &str = "service-account.key";
pub const TOKEN_PUBLIC_KEY_FILE: &str = "service-account.pub";

/// Writes the six files into `directory` and returns the authority as PEM.
pub fn create(directory: &Path) -> io::Result<String> {
    let keys = generate().map_err(io::Error::other)?;
    let Keys { authority, authority_key, serving, serving_key, token_key, token_public_key } = keys;
    fs::write(directory.join(CA_FILE), &authority)?;
    fs::write(directory.join(CA_KEY_FILE), authority_key)?;
    fs::write(directory.join(SERVING_FILE), serving)?;
    fs::write(directory.join(SERVING_KEY_FILE), serving_key)?;
    fs::write(directory.join(TOKEN_KEY_FILE), token_key)?;
    fs::write(directory.join(TOKEN_PUBLIC_KEY_FILE), token_public_key)?;
    Ok(authority)
}

/// All keys and certificates as PEM.
struct Keys {
    authority: String,
    authority_key: String,
    serving: String,
    serving_key: String,
    token_key: String,
    token_public_key: String,
}

/// A certificate of a client, and its key, as PEM.
pub struct ClientCertificate {
    pub certificate: String,
    pub key: String,
}

/// A client certificate of the authority in `directory`, valid for this time from now on.
pub fn client(
    directory: &Path,
    user: &str,
    group: &str,
    valid_for: Duration,
) -> io::Result<ClientCertificate> {
    let authority_key = fs::read_to_string(directory.join(CA_KEY_FILE))?;
    sign_client(&authority_key, user, group, valid_for).map_err(io::Error::other)
}

fn sign_client(
    authority_key: &str,
    user: &str,
    group: &str,
    valid_for: Duration,
) -> Result<ClientCertificate, rcgen::Error> {
    let issuer = Issuer::new(authority_params(), KeyPair::from_pem(authority_key)?);
    let mut client = CertificateParams::default();
    client.distinguished_name.push(DnType::CommonName, user);
    client.distinguished_name.push(DnType::OrganizationName, group);
    client.extended_key_usages = vec![ExtendedKeyUsagePurpose::ClientAuth];
    let since_epoch = SystemTime::now().duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
    client.not_after = rcgen::date_time_ymd(1970, 1, 1) + since_epoch + valid_for;
    let key = KeyPair::generate()?;
    let certificate = client.signed_by(&key, &issuer)?.pem();
    Ok(ClientCertificate { certificate, key: key.serialize_pem() })
}

/// Without the key, which is random.
fn authority_params() -> CertificateParams {
    let mut authority = CertificateParams::default();
    authority.distinguished_name.push(DnType::CommonName, "endpointd test cluster");
    authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
    authority.key_usages = vec![KeyUsagePurpose::KeyCertSign, KeyUsagePurpose::CrlSign];
    authority
}

fn generate() -> Result<Keys, rcgen::Error> {
    let authority = authority_params();
    let authority_key = KeyPair::generate()?;
    let authority_key_pem = authority_key.serialize_pem();
    let authority_pem = authority.self_signed(&authority_key)?.pem();

    // The last one is a Service whose webhook a test serves.
    let names = ["127.0.0.1", "localhost", "kubernetes.default.svc", "webhook.policy.svc"];
    let serving = CertificateParams::new(names.map(str::to_owned))?;
    let serving_key = KeyPair::generate()?;
    let serving = serving.signed_by(&serving_key, &Issuer::new(authority, authority_key))?;

    let token_key = KeyPair::generate()?;
    Ok(Keys {
        authority: authority_pem,
        authority_key: authority_key_pem,
        serving: serving.pem(),
        serving_key: serving_key.serialize_pem(),
        token_key: token_key.serialize_pem(),
        token_public_key: token_key.public_key_pem(),
    })
}

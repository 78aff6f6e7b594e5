//! Validates the flags about pages.

use std::net::{IpAddr, SocketAddr, ToSocketAddrs};

use endpointd_runtime::{CertificateSource, GuardOptions, SecureServing, TlsOptions, TlsVersion};

use super::flags::ServingFlags;
use super::resolve::time;
use crate::cli_error::CliError;

/// Plain HTTP has no authentication, so it is for the same host or pod only.
pub fn plain(flags: &ServingFlags) -> Result<Option<SocketAddr>, CliError> {
    let text = flags.metrics_bind_address.as_str();
    if text.is_empty() || text == "0" {
        return Ok(None);
    }
    let address = text.to_socket_addrs().ok().and_then(|mut addresses| addresses.next());
    let Some(address) = address else {
        return Err(CliError::new(
            format!("`--metrics-bind-address` is not an address and port: `{text}`"),
            "for example `127.0.0.1:10271`, or `0` for none",
        ));
    };
    if !address.ip().is_loopback() {
        return Err(CliError::new(
            format!("`--metrics-bind-address` is not a loopback address: `{text}`"),
            "plain HTTP has no authentication; `--secure-port` serves others over HTTPS",
        ));
    }
    Ok(Some(address))
}

pub fn secure(flags: &ServingFlags) -> Result<Option<SecureServing>, CliError> {
    let port = flags.secure_port.as_str();
    let port: u16 = port.parse().map_err(|_| {
        CliError::new(
            format!("`--secure-port` must be a port from 0 to 65535: `{port}`"),
            "by default it is 10270; 0 serves no HTTPS",
        )
    })?;
    if port == 0 {
        return Ok(None);
    }
    let ip = flags.bind_address.as_str();
    let ip: IpAddr = ip.parse().map_err(|_| {
        CliError::new(
            format!("`--bind-address` is not an IP address: `{ip}`"),
            "for example `0.0.0.0` or `::` for all interfaces",
        )
    })?;
    Ok(Some(SecureServing { address: (ip, port).into(), tls: tls(flags)?, guard: guard(flags)? }))
}

fn tls(flags: &ServingFlags) -> Result<TlsOptions, CliError> {
    let certificate = match (&flags.tls_cert_file, &flags.tls_private_key_file, &flags.cert_dir) {
        (Some(certificate), Some(key), _) => {
            CertificateSource::Files { certificate: certificate.clone(), key: key.clone() }
        }
        (_, _, Some(directory)) => CertificateSource::Files {
            certificate: directory.join("tls.crt"),
            key: directory.join("tls.key"),
        },
        (_, _, None) => CertificateSource::SelfSigned,
    };
    let version_min = match flags.tls_min_version.as_str() {
        "VersionTLS12" => TlsVersion::Tls12,
        "VersionTLS13" => TlsVersion::Tls13,
        other => {
            return Err(CliError::new(
                format!("unknown `--tls-min-version`: `{other}`"),
                "known are `VersionTLS12` and `VersionTLS13`",
            ));
        }
    };
    Ok(TlsOptions { certificate, version_min, cipher_suites: flags.tls_cipher_suites.clone() })
}

fn guard(flags: &ServingFlags) -> Result<GuardOptions, CliError> {
    Ok(GuardOptions {
        always_allow_paths: flags.authorization_always_allow_paths.clone(),
        token_ttl: time(
            "authentication-token-webhook-cache-ttl",
            &flags.authentication_token_webhook_cache_ttl,
        )?,
        authorized_ttl: time(
            "authorization-webhook-cache-authorized-ttl",
            &flags.authorization_webhook_cache_authorized_ttl,
        )?,
        unauthorized_ttl: time(
            "authorization-webhook-cache-unauthorized-ttl",
            &flags.authorization_webhook_cache_unauthorized_ttl,
        )?,
    })
}

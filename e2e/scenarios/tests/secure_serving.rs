//! The pages of a daemon over HTTPS, on a real control plane: the API server decides who sees them,
//! and the certificate can be replaced.

use std::fs;
use std::net::TcpListener;
use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use endpointd_control_plane::{Api, Binaries, Cluster, Options, Program, Stop, certificates};
use endpointd_scenarios::cluster::create_admin_account;
use endpointd_scenarios::{Daemon, DaemonFlags};
use rcgen::{CertificateParams, KeyPair};
use serde_json::json;
use ureq::tls::{Certificate, ClientCert, PrivateKey, RootCerts, TlsConfig, TlsConfigBuilder};

/// How long the answers of the API server are kept in this test.
const TTL: Duration = Duration::from_secs(3);
/// The daemon reads the certificate again after ten seconds, the authorities of client certificates
/// when it starts.
const CHANGE_MAX: Duration = Duration::from_secs(40);
const POLL: Duration = Duration::from_millis(200);

#[test]
fn the_api_server_decides_who_sees_the_pages() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).expect("a cluster starts");
    let server = Server::start(&cluster, &[]);
    let insecure = || TlsConfig::builder().disable_verification(true);
    let get = |path: &str, token: Option<&str>| server.get(insecure(), path, token);

    assert_eq!(get("/readyz", None), Some(200), "a probe");
    assert_eq!(get("/metrics", None), Some(401));
    assert_eq!(get("/metrics", Some("no-such-token")), Some(401));
    let (nobody, prometheus) = (token_of(&cluster, "nobody"), token_of(&cluster, "prometheus"));
    permit_monitoring(&cluster, "prometheus");
    assert_eq!(get("/metrics", Some(&nobody)), Some(403));
    assert_eq!(get("/metrics", Some(&prometheus)), Some(200));
    assert_eq!(get("/report", Some(&prometheus)), Some(403), "system:monitoring does not cover it");

    let with_certificate = |path: &str, group: &str| {
        let client = certificates::client(cluster.directory(), "somebody", group, CHANGE_MAX * 10);
        let client = client.expect("the authority signs it");
        let chain = vec![Certificate::from_pem(client.certificate.as_bytes()).expect("PEM")];
        let key = PrivateKey::from_pem(client.key.as_bytes()).expect("PEM");
        let tls = insecure().client_cert(Some(ClientCert::new_with_certs(&chain, key)));
        server.get(tls, path, None)
    };
    wait_for("client certificates count", || {
        with_certificate("/report", "system:masters") == Some(200)
    });
    assert_eq!(with_certificate("/report", "nobodies"), Some(403));

    assert_eq!(get("/metrics", Some(&prometheus)), Some(200));
    cluster.stop(Program::ApiServer, Stop::Kill).expect("it runs");
    assert_eq!(get("/metrics", Some(&prometheus)), Some(200), "the answer is kept");
    wait_for("nobody knows the token", || get("/metrics", Some(&prometheus)) == Some(401));
    assert_eq!(get("/livez", None), Some(200), "a probe asks nobody");
}

#[test]
fn a_new_certificate_is_served_without_a_restart() {
    let Some(binaries) = Binaries::for_test() else { return };
    let cluster = Cluster::start(&binaries, Options::default()).expect("a cluster starts");
    let directory = cluster.directory().join("serving");
    fs::create_dir(&directory).expect("we own the directory of a cluster");
    let first = write_certificate(&directory);
    let server = Server::start(&cluster, &[format!("--cert-dir={}", directory.display())]);
    let is_served = |certificate: &Certificate<'static>| {
        let roots = RootCerts::new_with_certs(std::slice::from_ref(certificate));
        server.get(TlsConfig::builder().root_certs(roots), "/livez", None) == Some(200)
    };
    assert!(is_served(&first));
    let second = write_certificate(&directory);
    wait_for("the new certificate is served", || is_served(&second));
    assert!(!is_served(&first));
}

/// A daemon with an HTTPS port.
struct Server {
    _daemon: Daemon,
    port: u16,
}

impl Server {
    /// Returns when the daemon is ready.
    fn start(cluster: &Cluster, flags: &[String]) -> Self {
        // Free until now; the daemon ends at once if somebody else takes it, which fails the test.
        let port = TcpListener::bind("127.0.0.1:0").and_then(|listener| listener.local_addr());
        let port = port.expect("a free port").port();
        let kubeconfig = create_admin_account(cluster);
        let mut all = DaemonFlags::new(&kubeconfig)
            .with("--bind-address=127.0.0.1")
            .with(&format!("--secure-port={port}"));
        for cached in
            ["authentication-token-webhook-cache-ttl", "authorization-webhook-cache-authorized-ttl"]
        {
            all = all.with(&format!("--{cached}={}s", TTL.as_secs()));
        }
        let all = flags.iter().fold(all, |all, flag| all.with(flag));
        let server = Self { _daemon: Daemon::start(cluster, "endpointd", &all), port };
        wait_for("the daemon is ready", || {
            let tls = TlsConfig::builder().disable_verification(true);
            server.get(tls, "/readyz", None) == Some(200)
        });
        server
    }

    /// The status of the response; none if the handshake fails.
    fn get(&self, tls: TlsConfigBuilder, path: &str, token: Option<&str>) -> Option<u16> {
        let agent = ureq::Agent::config_builder()
            .tls_config(tls.build())
            .http_status_as_error(false)
            .timeout_global(Some(Duration::from_secs(20)))
            .build()
            .new_agent();
        let mut request = agent.get(format!("https://localhost:{}{path}", self.port));
        if let Some(token) = token {
            request = request.header("Authorization", format!("Bearer {token}"));
        }
        request.call().ok().map(|response| response.status().as_u16())
    }
}

/// A certificate for `localhost` that signs itself.
fn write_certificate(directory: &Path) -> Certificate<'static> {
    let key = KeyPair::generate().expect("a key");
    let params = CertificateParams::new(vec!["localhost".to_owned()]).expect("a name");
    let pem = params.self_signed(&key).expect("it signs itself").pem();
    fs::write(directory.join("tls.crt"), &pem).expect("we own the directory");
    fs::write(directory.join("tls.key"), key.serialize_pem()).expect("we own the directory");
    Certificate::from_pem(pem.as_bytes()).expect("PEM")
}

fn token_of(cluster: &Cluster, account: &str) -> String {
    let accounts = "/api/v1/namespaces/default/serviceaccounts";
    let api: &Api = cluster.api();
    api.create(accounts, &json!({"metadata": {"name": account}})).expect("it is new");
    let path = format!("{accounts}/{account}/token");
    let answer = api.create(&path, &json!({"spec": {"expirationSeconds": 3600}}));
    answer.expect("a token")["status"]["token"].as_str().expect("text").to_owned()
}

fn permit_monitoring(cluster: &Cluster, account: &str) {
    let binding = json!({
        "metadata": {"name": "monitoring"},
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "system:monitoring",
        },
        "subjects": [{"kind": "ServiceAccount", "namespace": "default", "name": account}],
    });
    let path = "/apis/rbac.authorization.k8s.io/v1/clusterrolebindings";
    cluster.api().create(path, &binding).expect("it is new");
}

fn wait_for(what: &str, is_so: impl Fn() -> bool) {
    let started = Instant::now();
    while !is_so() {
        assert!(started.elapsed() < CHANGE_MAX, "not in time: {what}");
        thread::sleep(POLL);
    }
}

//! Users of a cluster, and their kubeconfig files.

use std::fs;
use std::io;
use std::path::Path;

use crate::certificates::CA_FILE;

/// A bearer token. It has no `Debug`, so that it cannot get into logs.
#[derive(Clone)]
pub struct Token(String);

impl Token {
    pub fn random() -> io::Result<Self> {
        let half = || getrandom::u64().map_err(io::Error::other);
        Ok(Self(format!("{:016x}{:016x}", half()?, half()?)))
    }

    pub fn from_text(text: &str) -> Self {
        Self(text.to_owned())
    }

    pub fn text(&self) -> &str {
        &self.0
    }
}

/// The two users of every cluster.
pub struct Users {
    pub admin: Token,
    pub controller_manager: Token,
}

impl Users {
    pub fn random() -> io::Result<Self> {
        Ok(Self { admin: Token::random()?, controller_manager: Token::random()? })
    }

    /// For kube-apiserver's `--token-auth-file`: token, user, uid, groups.
    pub fn token_file(&self) -> String {
        let Self { admin, controller_manager } = self;
        format!(
            "{},admin,admin,system:masters\n{},system:kube-controller-manager,kcm,\n",
            admin.text(),
            controller_manager.text(),
        )
    }
}

/// Writes a kubeconfig for `url` with `token` and the certificate authority in `directory`.
pub fn write(path: &Path, directory: &Path, url: &str, token: &Token) -> io::Result<()> {
    let authority = directory.join(CA_FILE);
    let text = format!(
        r#"apiVersion: v1
kind: Config
clusters:
- name: test
  cluster:
    server: {url}
    certificate-authority: {authority:?}
users:
- name: test
  user:
    token: {token}
contexts:
- name: test
  context:
    cluster: test
    user: test
current-context: test
"#,
        token = token.text(),
    );
    fs::write(path, text)
}

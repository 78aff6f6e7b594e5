//! `endpointd cluster list`: asks each of the other clusters with its kubeconfig.

use std::collections::BTreeMap;

use endpointd_client::{Client, Credentials, kubeconfig_summary};
use endpointd_model::Timestamp;
use tokio::task::JoinSet;

use super::flags::ListFlags;
use super::place::Place;
use super::{Entry, account, cluster_id, identity};
use crate::cli_error::CliError;

/// What is known of one cluster.
pub struct Row {
    pub name: String,
    pub server: String,
    pub uid: Option<String>,
    pub credentials: Credentials,
    pub state: State,
    /// The reason for a state, and other remarks.
    pub remarks: Vec<String>,
    pub missing_permissions: Vec<String>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum State {
    Reachable,
    /// Some permissions are missing.
    Limited,
    Unreachable,
    /// 401 or 403.
    Denied,
    /// endpointd does not use the kubeconfig.
    Refused,
}

impl State {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Reachable => "reachable",
            Self::Limited => "limited",
            Self::Unreachable => "unreachable",
            Self::Denied => "denied",
            Self::Refused => "refused",
        }
    }
}

impl Row {
    pub fn has_findings(&self) -> bool {
        self.state != State::Reachable
    }

    fn new(name: String) -> Self {
        Self {
            name,
            server: String::new(),
            uid: None,
            credentials: Credentials::Other,
            state: State::Reachable,
            remarks: Vec::new(),
            missing_permissions: Vec::new(),
        }
    }

    fn because(mut self, state: State, remark: String) -> Self {
        self.state = state;
        self.remarks.push(remark);
        self
    }
}

/// By name.
pub async fn list(flags: &ListFlags) -> Result<Vec<Row>, CliError> {
    let place = Place::open(&flags.place).await?;
    let mut asked = JoinSet::new();
    for entry in place.entries().await? {
        asked.spawn(ask(entry));
    }
    let mut rows = asked.join_all().await;
    rows.sort_by(|a, b| a.name.cmp(&b.name));
    let home = match (&place, &flags.place.home_context) {
        (Place::Secret { client, .. }, _) => identity::uid(client).await.ok(),
        (Place::Directory(_), Some(context)) => {
            let home = identity::connect(flags.place.options(Some(context))).await?;
            Some(identity::uid_for_user(&home).await?)
        }
        (Place::Directory(_), None) => None,
    };
    Ok(refuse_known(rows, home.as_deref()))
}

/// One cluster at most, and not the one that imports: as a running endpointd does it.
fn refuse_known(rows: Vec<Row>, home: Option<&str>) -> Vec<Row> {
    let mut names: BTreeMap<String, String> = BTreeMap::new();
    let check = |row: Row| {
        let Some(uid) = row.uid.clone() else { return row };
        if home == Some(uid.as_str()) {
            return row.because(State::Refused, "it is this cluster".to_owned());
        }
        match names.get(&uid) {
            Some(other) => {
                let remark = format!("it is the same cluster as `{other}`");
                row.because(State::Refused, remark)
            }
            None => {
                names.insert(uid, row.name.clone());
                row
            }
        }
    };
    rows.into_iter().map(check).collect()
}

async fn ask(entry: Entry) -> Row {
    let mut row = Row::new(entry.name);
    if let Err(error) = cluster_id(&row.name) {
        return row.because(State::Refused, error.message);
    }
    let summary = match kubeconfig_summary(&entry.options) {
        Ok(summary) => summary,
        Err(error) => return row.because(State::Refused, first_line(&error.to_string())),
    };
    (row.server, row.uid, row.credentials) = (summary.server, summary.uid, summary.credentials);
    if let Credentials::TokenUntil(end) = row.credentials
        && end <= Timestamp::now()
    {
        return row.because(State::Denied, format!("its token ended at {end}"));
    }
    let client = match Client::connect(entry.options).await {
        Ok(client) => client,
        Err(error) => return row.because(State::Refused, first_line(&error.to_string())),
    };
    let uid = match identity::uid(&client).await {
        Ok(uid) => uid,
        Err(error) => {
            let state = match error.code {
                Some(401 | 403) => State::Denied,
                Some(_) | None => State::Unreachable,
            };
            return row.because(state, error.message);
        }
    };
    if let Some(known) = row.uid.replace(uid.clone())
        && known != uid
    {
        row.remarks
            .push(format!("it is another cluster than when it was added: that had uid {known}"));
    }
    match account::missing_permissions(&client).await {
        Ok(missing) if missing.is_empty() => row,
        Ok(missing) => {
            let remark = format!("may not {}", missing.join(", "));
            row.missing_permissions = missing;
            row.because(State::Limited, remark)
        }
        Err(error) => {
            row.because(State::Limited, format!("its permissions are not known: {}", error.message))
        }
    }
}

fn first_line(text: &str) -> String {
    text.lines().next().unwrap_or_default().to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn row(name: &str, uid: &str) -> Row {
        Row { uid: Some(uid.to_owned()), ..Row::new(name.to_owned()) }
    }

    #[test]
    fn one_cluster_under_two_names_and_this_cluster_are_refused() {
        let rows = refuse_known(vec![row("a", "1"), row("b", "1"), row("c", "2")], Some("2"));
        let found: Vec<_> = rows.iter().map(|row| (row.state, row.remarks.join(""))).collect();
        let want = [
            (State::Reachable, String::new()),
            (State::Refused, "it is the same cluster as `a`".to_owned()),
            (State::Refused, "it is this cluster".to_owned()),
        ];
        assert_eq!(found, want);
    }
}

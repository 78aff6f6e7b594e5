//! `endpointd cluster remove`: first the kubeconfig here, so that endpointd stops to read the cluster,
//! then the account there.

use super::account::{self, Applied};
use super::flags::RemoveFlags;
use super::identity;
use super::place::Place;
use crate::cli_error::CliError;

pub async fn remove(flags: &RemoveFlags) -> Result<String, CliError> {
    let place = Place::open(&flags.place).await?;
    let entries = place.entries().await?;
    let name = flags.name.as_str();
    let Some(entry) = entries.iter().find(|entry| entry.name == name) else {
        let known: Vec<String> = entries.iter().map(|one| format!("`{}`", one.name)).collect();
        let hint = match known.is_empty() {
            true => "it has none; `--clusters` and `--home-context` say where to look".to_owned(),
            false => format!("it has {}", known.join(", ")),
        };
        return Err(CliError::new(format!("{} has no cluster `{name}`", place.name()), hint));
    };
    let remote = match (&flags.context, flags.purge) {
        (Some(context), true) => {
            let client = identity::connect(flags.place.options(Some(context))).await?;
            let uid = identity::uid_for_user(&client).await?;
            if let Some(known) = identity::known_uid(entry).await
                && known != uid
            {
                return Err(CliError::new(
                    format!("the context `{context}` leads to another cluster than `{name}`"),
                    format!("`{name}` has the uid {known}, that one {uid}; nothing was deleted"),
                ));
            }
            Some(client)
        }
        (Some(_) | None, _) => None,
    };
    place.remove(name).await?;
    let mut out = format!("{name}\n  deleted here: `{name}` in {}\n", place.name());
    match remote {
        Some(client) => {
            for Applied { outcome, object } in account::delete(&client).await? {
                out.push_str(&format!("  {outcome} there: {object}\n"));
            }
        }
        None => out.push_str(
            "  kept there: the account, whose token stays valid; `--purge --context NAME` deletes it\n",
        ),
    }
    Ok(out)
}

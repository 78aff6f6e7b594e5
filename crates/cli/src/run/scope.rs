//! Validates the flags about what this instance looks at.

use endpointd_model::{InvalidSelector, LabelSelector, NamespaceScope, SHARDS_MAX, Scope, Shard};

use super::flags::ScopeFlags;
use crate::cli_error::CliError;

/// Of a name of a namespace.
const NAME_BYTES_MAX: usize = 63;

pub fn resolve(flags: &ScopeFlags) -> Result<Scope, CliError> {
    let ScopeFlags { namespaces, service_selector, shard } = flags;
    let namespaces = match (namespaces.as_slice(), shard) {
        ([], None) => NamespaceScope::All,
        ([], Some(text)) => NamespaceScope::Shard(parse_shard(text)?),
        (names, _) => {
            let names = names.iter().map(|name| namespace(name.trim()));
            NamespaceScope::Named(names.collect::<Result<_, _>>()?)
        }
    };
    let service_selector = service_selector.as_deref().map(selector).transpose()?;
    Ok(Scope { namespaces, service_selector })
}

fn namespace(name: &str) -> Result<String, CliError> {
    let is_valid = !name.is_empty()
        && name.len() <= NAME_BYTES_MAX
        && name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '-');
    match is_valid {
        true => Ok(name.to_owned()),
        false => Err(CliError::new(
            format!("`--namespaces` names no namespace: `{name}`"),
            "names of namespaces, separated by commas, as in `--namespaces shop,test`",
        )),
    }
}

fn selector(text: &str) -> Result<LabelSelector, CliError> {
    LabelSelector::parse(text).map_err(|InvalidSelector(part)| {
        CliError::new(
            format!("`--service-selector` is not a label selector: `{part}`"),
            "known are `key=value`, `key!=value`, `key`, and `!key`, separated by commas",
        )
    })
}

fn parse_shard(text: &str) -> Result<Shard, CliError> {
    let numbers = text.split_once('/');
    let shard = numbers.and_then(|(index, count)| {
        Shard::new(index.trim().parse().ok()?, count.trim().parse().ok()?)
    });
    shard.ok_or_else(|| {
        CliError::new(
            format!("`--shard` must be `i/n` with i from 1 to n: `{text}`"),
            format!("as in `--shard 2/4`; n is at most {SHARDS_MAX}"),
        )
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scope(namespaces: &[&str], selector: Option<&str>, shard: Option<&str>) -> String {
        let flags = ScopeFlags {
            namespaces: namespaces.iter().map(|one| (*one).to_owned()).collect(),
            service_selector: selector.map(str::to_owned),
            shard: shard.map(str::to_owned),
        };
        resolve(&flags).map_or_else(|error| error.message, |scope| scope.to_string())
    }

    #[test]
    fn flags_give_a_scope() {
        assert_eq!(scope(&[], None, None), "");
        assert_eq!(scope(&["test", " shop"], None, None), "namespaces:shop,test");
        assert_eq!(scope(&[], Some("team=a"), Some("2/4")), "shard:2-of-4;services:team=a");
    }

    #[test]
    fn wrong_values_are_one_sentence() {
        for text in ["4/2", "0/2", "1", "a/b", "1/0", "1/2/3"] {
            let message = format!("`--shard` must be `i/n` with i from 1 to n: `{text}`");
            assert_eq!(scope(&[], None, Some(text)), message);
        }
        assert_eq!(scope(&["Shop"], None, None), "`--namespaces` names no namespace: `Shop`");
        assert_eq!(scope(&[""], None, None), "`--namespaces` names no namespace: ``");
        let message = "`--service-selector` is not a label selector: `a in (b)`";
        assert_eq!(scope(&[], Some("a in (b)"), None), message);
    }
}

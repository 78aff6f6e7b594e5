//! Settings of one cluster, in its kubeconfig: they count instead of the flags.

use std::path::Path;
use std::time::Duration;

use endpointd_client::{ConnectOptions, kubeconfig_extension};
use endpointd_engine::{ContactLimits, Zones};
use serde_json::Value;

/// What is known of a cluster before it is connected.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Overrides {
    pub limits: ContactLimits,
    pub zones: Zones,
}

/// How a duration is written, as in flags.
pub type ParseDuration = fn(&str) -> Option<Duration>;

/// The settings of the cluster of this kubeconfig, or the sentence that says what is wrong there.
pub(super) fn of(
    kubeconfig: &Path,
    limits: ContactLimits,
    parse: ParseDuration,
) -> Result<Overrides, String> {
    let kubeconfig = Some(kubeconfig.to_owned());
    match kubeconfig_extension(&ConnectOptions { kubeconfig, ..ConnectOptions::default() }) {
        Some(extension) => apply(&extension, limits, parse),
        None => Ok(Overrides { limits, zones: Zones::default() }),
    }
}

fn apply(
    extension: &Value,
    limits: ContactLimits,
    parse: ParseDuration,
) -> Result<Overrides, String> {
    let settings = extension.as_object();
    let settings = settings.ok_or("the extension `endpointd` is no object")?;
    let mut overrides = Overrides { limits, zones: Zones::default() };
    for (name, value) in settings {
        let text = value.as_str().unwrap_or_default();
        let secs = || match parse(text) {
            Some(time) => Ok(i64::try_from(time.as_secs()).unwrap_or(i64::MAX)),
            None => Err(format!("`{name}` must be a duration such as `5m`, not {value}")),
        };
        match name.as_str() {
            "demoteAfter" => overrides.limits.demote_after = secs()?,
            "expireAfter" => {
                overrides.limits.expire_after = Some(secs()?).filter(|secs| *secs > 0);
            }
            "zones" => overrides.zones = zones(text, value)?,
            // What `endpointd cluster add` notes.
            "uid" => {}
            _ => {
                let known = "`demoteAfter`, `expireAfter`, and `zones`";
                return Err(format!("`{name}` is no setting: there are {known}"));
            }
        }
    }
    Ok(overrides)
}

fn zones(text: &str, value: &Value) -> Result<Zones, String> {
    match text {
        "keep" => Ok(Zones::Keep),
        "drop" => Ok(Zones::Drop),
        "prefix" => Ok(Zones::Prefix),
        _ => Err(format!("`zones` must be `keep`, `drop`, or `prefix`, not {value}")),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn parse(text: &str) -> Option<Duration> {
        let minutes: u64 = text.strip_suffix('m')?.parse().ok()?;
        Some(Duration::from_secs(60 * minutes))
    }

    fn applied(extension: Value) -> Result<Overrides, String> {
        apply(&extension, ContactLimits::default(), parse)
    }

    #[test]
    fn settings_count_instead_of_the_flags() {
        let given =
            json!({"uid": "1234", "demoteAfter": "1m", "expireAfter": "60m", "zones": "prefix"});
        let limits =
            ContactLimits { demote_after: 60, expire_after: Some(3600), ..Default::default() };
        assert_eq!(applied(given), Ok(Overrides { limits, zones: Zones::Prefix }));
        let never = applied(json!({"expireAfter": "0m"})).expect("a duration");
        assert_eq!(never.limits.expire_after, None);
        let none = applied(json!({})).expect("no setting");
        assert_eq!((none.limits, none.zones), (ContactLimits::default(), Zones::Keep));
    }

    #[test]
    fn bad_settings_give_one_sentence() {
        for (given, sentence) in [
            (json!([]), "the extension `endpointd` is no object"),
            (json!({"demoteAfter": 5}), "`demoteAfter` must be a duration such as `5m`, not 5"),
            (json!({"zones": "drp"}), "`zones` must be `keep`, `drop`, or `prefix`, not \"drp\""),
            (
                json!({"lostAfter": "1m"}),
                "`lostAfter` is no setting: there are `demoteAfter`, `expireAfter`, and `zones`",
            ),
        ] {
            assert_eq!(applied(given), Err(sentence.to_owned()));
        }
    }
}

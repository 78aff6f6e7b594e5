//! Ages in at most two units. Upstream: `duration.HumanDuration`.

use jiff::Timestamp;
use serde_json::Value;

pub(crate) fn since(time: &Value, now: Timestamp) -> String {
    let then: Option<Timestamp> = time.as_str().and_then(|text| text.parse().ok());
    then.map_or_else(|| "<unknown>".to_owned(), |then| describe(now.as_second() - then.as_second()))
}

fn describe(secs: i64) -> String {
    let two = |big: i64, unit: &str, small: i64, small_unit: &str| match small {
        0 => format!("{big}{unit}"),
        small => format!("{big}{unit}{small}{small_unit}"),
    };
    let (minutes, hours) = (secs / 60, secs / 3600);
    match secs {
        ..-1 => "<invalid>".to_owned(),
        -1 => "0s".to_owned(),
        0..120 => format!("{secs}s"),
        _ if minutes < 10 => two(minutes, "m", secs % 60, "s"),
        _ if minutes < 180 => format!("{minutes}m"),
        _ if hours < 8 => two(hours, "h", minutes % 60, "m"),
        _ if hours < 48 => format!("{hours}h"),
        _ if hours < 192 => two(hours / 24, "d", hours % 24, "h"),
        _ if hours < 24 * 365 * 2 => format!("{}d", hours / 24),
        _ if hours < 24 * 365 * 8 => two(hours / 24 / 365, "y", hours / 24 % 365, "d"),
        _ => format!("{}y", hours / 24 / 365),
    }
}

#[cfg(test)]
mod tests {
    use super::describe;

    #[test]
    fn ages_have_at_most_two_units() {
        for (secs, shown) in [
            (0, "0s"),
            (119, "119s"),
            (120, "2m"),
            (125, "2m5s"),
            (3600, "60m"),
            (5 * 3600 + 60, "5h1m"),
            (49 * 3600, "2d1h"),
            (10 * 86_400, "10d"),
        ] {
            assert_eq!(describe(secs), shown);
        }
    }
}

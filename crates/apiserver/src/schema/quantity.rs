//! Quantities in Go's canonical form, such as `1` for `1000m`. Upstream:
//! `apimachinery/pkg/api/resource`.

const MALFORMED: &str =
    "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'";

const DECIMAL: [(&str, i32); 10] = [
    ("n", -9),
    ("u", -6),
    ("m", -3),
    ("", 0),
    ("k", 3),
    ("M", 6),
    ("G", 9),
    ("T", 12),
    ("P", 15),
    ("E", 18),
];
const BINARY: [(&str, u32); 6] =
    [("Ki", 10), ("Mi", 20), ("Gi", 30), ("Ti", 40), ("Pi", 50), ("Ei", 60)];

/// The canonical form, or Go's error for a malformed quantity.
pub(crate) fn canonical(text: &str) -> Result<String, &'static str> {
    let end = text.find(|c: char| !matches!(c, '+' | '-' | '.' | '0'..='9')).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    let (negative, digits) = match number.strip_prefix('-') {
        Some(rest) => (true, rest),
        None => (false, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    let is_digits = |part: &str| part.bytes().all(|byte| byte.is_ascii_digit());
    if digits.is_empty() || digits == "." || !is_digits(whole) || !is_digits(fraction) {
        return Err(MALFORMED);
    }
    let mantissa: i128 = format!("{whole}{fraction}").parse().map_err(|_| MALFORMED)?;
    let point = i32::try_from(fraction.len()).map_err(|_| MALFORMED)?;
    let sign = if negative && mantissa != 0 { "-" } else { "" };
    let amount = if let Some((_, bits)) = BINARY.iter().find(|(name, _)| *name == suffix) {
        binary(mantissa, point, *bits)
    } else if let Some((_, exponent)) = DECIMAL.iter().find(|(name, _)| *name == suffix) {
        decimal(mantissa, exponent - point)
    } else {
        let exponent = suffix.strip_prefix(['e', 'E']).and_then(|e| e.parse::<i32>().ok());
        exponential(mantissa, exponent.ok_or(MALFORMED)? - point)
    };
    Ok(format!("{sign}{amount}"))
}

/// With the largest suffix that needs no fraction. Below 1Ki Go uses decimal suffixes.
fn binary(mantissa: i128, point: i32, bits: u32) -> String {
    let divisor = 10_i128.pow(u32::try_from(point.min(18)).expect("not negative"));
    let scaled = mantissa << bits.min(60);
    if scaled % divisor != 0 {
        // A fraction of a byte is rounded up in thousandths, as decimal.
        return decimal((scaled * 1000).div_euclid(divisor) + 1, -3);
    }
    let amount = scaled / divisor;
    let fits = |bits: &u32| amount != 0 && amount % (1_i128 << bits) == 0;
    match BINARY.iter().rev().find(|(_, bits)| fits(bits)) {
        Some((suffix, bits)) => format!("{}{suffix}", amount >> bits),
        None => amount.to_string(),
    }
}

fn decimal(mut mantissa: i128, mut exponent: i32) -> String {
    if mantissa == 0 {
        return "0".to_owned();
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    // Below a billionth Go rounds up.
    while exponent < -9 {
        mantissa = mantissa / 10 + i128::from(mantissa % 10 != 0);
        exponent += 1;
    }
    while exponent > 18 || exponent.rem_euclid(3) != 0 {
        mantissa *= 10;
        exponent -= 1;
    }
    let suffix = DECIMAL.iter().find(|(_, one)| *one == exponent).map_or("", |(name, _)| name);
    format!("{mantissa}{suffix}")
}

fn exponential(mut mantissa: i128, mut exponent: i32) -> String {
    if mantissa == 0 {
        return "0".to_owned();
    }
    while mantissa % 10 == 0 {
        mantissa /= 10;
        exponent += 1;
    }
    while exponent.rem_euclid(3) != 0 {
        mantissa *= 10;
        exponent -= 1;
    }
    if exponent == 0 { mantissa.to_string() } else { format!("{mantissa}e{exponent}") }
}

#[cfg(test)]
mod tests {
    use super::canonical;

    #[test]
    fn quantities_are_canonical_as_in_go() {
        for (given, written) in [
            ("1", "1"),
            ("1000m", "1"),
            ("0.5", "500m"),
            ("1500m", "1500m"),
            ("1024Mi", "1Gi"),
            ("1Gi", "1Gi"),
            ("1.5Gi", "1536Mi"),
            ("1000", "1k"),
            ("128974848", "128974848"),
            ("-5", "-5"),
            ("0", "0"),
            ("1e3", "1e3"),
            ("12e6", "12e6"),
            ("100Ki", "100Ki"),
            ("1000Ki", "1000Ki"),
        ] {
            assert_eq!(canonical(given).as_deref(), Ok(written), "{given}");
        }
        for wrong in ["", "x", "1x", "1..2", "--1", "1 Gi"] {
            assert!(canonical(wrong).is_err(), "{wrong}");
        }
    }
}

//! Quantities in their canonical form, which is how the server stores them: `1000m` is `1`,
//! `1024Mi` is `1Gi`, `0.5` is `500m`, `1000Ki` stays.
//!
//! Source: `apimachinery/pkg/api/resource`, the rules in the comment of `Quantity`.

use serde_json::{Map, Value};

/// Nano, the smallest unit a quantity has.
const NANO: i128 = 1_000_000_000;
const DECIMAL: &[&str] = &["n", "u", "m", "", "k", "M", "G", "T", "P", "E"];
const BINARY: &[&str] = &["", "Ki", "Mi", "Gi", "Ti", "Pi", "Ei"];

/// Rewrites every quantity of a map such as `requests`.
pub(super) fn canonicalise_map(quantities: Option<&mut Value>) {
    let fields = quantities.and_then(Value::as_object_mut).map(Map::values_mut);
    for quantity in fields.into_iter().flatten() {
        let text = match &*quantity {
            Value::String(text) => text.clone(),
            // YAML writes whole numbers without quotes
            Value::Number(number) => number.to_string(),
            _ => continue,
        };
        if let Some(canonical) = canonical(&text) {
            *quantity = Value::String(canonical);
        }
    }
}

/// `None` when the text is no quantity, or too large to tell.
fn canonical(text: &str) -> Option<String> {
    let end =
        text.find(|letter: char| !(letter.is_ascii_digit() || "+-.".contains(letter))).unwrap_or(text.len());
    let (number, suffix) = text.split_at(end);
    if let Some(power) = BINARY.iter().skip(1).position(|one| *one == suffix) {
        let nano = scaled(number, 1024_i128.checked_pow(power as u32 + 1)?)?;
        // small or broken ones are written as plain numbers
        if nano % NANO != 0 || nano.abs() < 1024 * NANO {
            return Some(decimal(nano));
        }
        return Some(binary(nano / NANO));
    }
    let unit = match DECIMAL.iter().position(|one| *one == suffix) {
        Some(power) => 1000_i128.checked_pow(power as u32)?,
        None => return exponent(text, suffix),
    };
    Some(decimal(scaled(number, unit)? / NANO))
}

/// `1e3` keeps its form.
fn exponent(text: &str, suffix: &str) -> Option<String> {
    suffix.trim_start_matches(['e', 'E']).parse::<i32>().ok().map(|_| text.to_owned())
}

/// A decimal number times `unit`, in nano.
fn scaled(number: &str, unit: i128) -> Option<i128> {
    let (sign, digits) = match number.strip_prefix('-') {
        Some(digits) => (-1, digits),
        None => (1, number.strip_prefix('+').unwrap_or(number)),
    };
    let (whole, fraction) = digits.split_once('.').unwrap_or((digits, ""));
    if whole.is_empty() && fraction.is_empty() || fraction.len() > 9 {
        return None;
    }
    let whole: i128 = if whole.is_empty() { 0 } else { whole.parse().ok()? };
    let places = 10_i128.pow(9 - fraction.len() as u32);
    let fraction: i128 = if fraction.is_empty() { 0 } else { fraction.parse().ok()? };
    let nano = whole.checked_mul(NANO)?.checked_add(fraction.checked_mul(places)?)?;
    nano.checked_mul(unit)?.checked_mul(sign)
}

fn decimal(mut nano: i128) -> String {
    if nano == 0 {
        return "0".to_owned();
    }
    let mut power = 0;
    while nano % 1000 == 0 && power + 1 < DECIMAL.len() {
        nano /= 1000;
        power += 1;
    }
    format!("{nano}{}", DECIMAL[power])
}

fn binary(mut number: i128) -> String {
    let mut power = 0;
    while number % 1024 == 0 && power + 1 < BINARY.len() {
        number /= 1024;
        power += 1;
    }
    format!("{number}{}", BINARY[power])
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(text: &str, expected: &str) {
        assert_eq!(canonical(text).as_deref(), Some(expected), "{text}");
    }

    #[test]
    fn canonical_forms() {
        check("1000m", "1");
        check("1500m", "1500m");
        check("0.5", "500m");
        check("2", "2");
        check("1024Mi", "1Gi");
        check("1000Ki", "1000Ki");
        check("0.5Gi", "512Mi");
        check("128Mi", "128Mi");
        check("1000M", "1G");
        check("0", "0");
        check("512", "512");
        check("1e3", "1e3");
        assert_eq!(canonical("much"), None);
    }
}

//! Small formats inside texts.

use std::time::Duration;

/// `90s`, `5m`, `1h30m`; units h, m, s, each once, in this order, and more than nothing in all.
pub fn parse_duration(text: &str) -> Option<Duration> {
    let mut seconds = 0_u64;
    let mut rest = text;
    for (unit, factor) in [('h', 3600), ('m', 60), ('s', 1)] {
        let Some((number, after)) = rest.split_once(unit) else { continue };
        if number.is_empty() || !number.bytes().all(|byte| byte.is_ascii_digit()) {
            return None;
        }
        seconds = number.parse::<u64>().ok()?.checked_mul(factor)?.checked_add(seconds)?;
        rest = after;
    }
    (rest.is_empty() && seconds > 0).then(|| Duration::from_secs(seconds))
}

/// Whether a text is a Kubernetes quantity: `500m`, `1.5Gi`, `2`, `1e3`.
/// Source: the grammar of `resource.Quantity` in the API reference.
pub fn is_quantity(text: &str) -> bool {
    let unsigned = text.strip_prefix(['+', '-']).unwrap_or(text);
    let end =
        unsigned.find(|letter: char| !letter.is_ascii_digit() && letter != '.').unwrap_or(unsigned.len());
    let (number, suffix) = unsigned.split_at(end);
    let digits = number.bytes().filter(u8::is_ascii_digit).count();
    if digits == 0 || number.len() - digits > 1 {
        return false;
    }
    let exponent = || {
        let digits = suffix.strip_prefix(['e', 'E'])?;
        let digits = digits.strip_prefix(['+', '-']).unwrap_or(digits);
        Some(!digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit()))
    };
    matches!(
        suffix,
        "" | "n" | "u" | "m" | "k" | "M" | "G" | "T" | "P" | "E" | "Ki" | "Mi" | "Gi" | "Ti" | "Pi" | "Ei"
    ) || exponent() == Some(true)
}

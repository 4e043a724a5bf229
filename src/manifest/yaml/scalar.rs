//! Resolves plain scalars by the rules of kubectl's Go library (go.yaml.in/yaml/v2 2.4 below sigs.k8s.io/yaml 1.6).
//!
//! YAML 1.1 in the main: `yes`, `on`, `y` and `n` are booleans, `0644` is octal, `1_000` is a thousand.
//! Not of YAML 1.1: `0o644` is octal too, numbers in base 60 are text, dates stay text.

use serde_json::Number;

use super::YamlNodeKind;

/// A value without a JSON form: not a number, or infinite.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NotFinite;

/// Resolves a plain scalar without a tag.
pub fn resolve(text: &str) -> Result<YamlNodeKind, NotFinite> {
    match text {
        "" | "~" | "null" | "Null" | "NULL" => return Ok(YamlNodeKind::Null),
        "y" | "Y" | "yes" | "Yes" | "YES" | "true" | "True" | "TRUE" | "on" | "On" | "ON" => {
            return Ok(YamlNodeKind::Bool(true, text.into()));
        }
        "n" | "N" | "no" | "No" | "NO" | "false" | "False" | "FALSE" | "off" | "Off" | "OFF" => {
            return Ok(YamlNodeKind::Bool(false, text.into()));
        }
        ".nan" | ".NaN" | ".NAN" | ".inf" | ".Inf" | ".INF" | "+.inf" | "+.Inf" | "+.INF" | "-.inf"
        | "-.Inf" | "-.INF" => return Err(NotFinite),
        _ => {}
    }
    Ok(number(text).unwrap_or_else(|| YamlNodeKind::String(text.to_owned())))
}

fn number(text: &str) -> Option<YamlNodeKind> {
    match text.as_bytes().first()? {
        // After a leading point, an underscore must stand between digits.
        b'.' => float(&without_underscores(text)?, text),
        b'0'..=b'9' | b'+' | b'-' => {
            let plain: String = text.chars().filter(|letter| *letter != '_').collect();
            integer(&plain).map(|value| YamlNodeKind::Int(value, text.into())).or_else(|| float(&plain, text))
        }
        _ => None,
    }
}

/// As Go's `ParseInt` and `ParseUint` read base 0: a sign, then a prefix or a leading zero for the base.
fn integer(text: &str) -> Option<Number> {
    let (negative, signed, digits) = match text.as_bytes().first()? {
        b'-' => (true, true, &text[1..]),
        b'+' => (false, true, &text[1..]),
        _ => (false, false, text),
    };
    let (base, digits) = match digits.as_bytes() {
        [b'0', b'x' | b'X', ..] => (16, &digits[2..]),
        [b'0', b'b' | b'B', ..] => (2, &digits[2..]),
        [b'0', b'o' | b'O', ..] => (8, &digits[2..]),
        [b'0', _, ..] => (8, &digits[1..]),
        _ => (10, digits),
    };
    // `from_str_radix` takes a sign of its own, Go does not take a second one.
    if !digits.chars().all(|digit| digit.is_digit(base)) {
        return None;
    }
    let value = u64::from_str_radix(digits, base).ok()?;
    if negative {
        return 0_i64.checked_sub_unsigned(value).map(Number::from);
    }
    // Above i64, only a number without a sign is read.
    (!signed || i64::try_from(value).is_ok()).then(|| Number::from(value))
}

/// `None` when one of them does not stand between two digits.
fn without_underscores(text: &str) -> Option<String> {
    let bytes = text.as_bytes();
    let is_digit = |index: usize| bytes.get(index).is_some_and(u8::is_ascii_digit);
    let between = |index: usize| index > 0 && is_digit(index - 1) && is_digit(index + 1);
    let fit = bytes.iter().enumerate().all(|(index, byte)| *byte != b'_' || between(index));
    fit.then(|| text.replace('_', ""))
}

/// `[-+]? (.digits | digits [. digits*]) [eE [-+]? digits]`; too large is not a number.
fn float(plain: &str, text: &str) -> Option<YamlNodeKind> {
    let unsigned = plain.strip_prefix(['-', '+']).unwrap_or(plain);
    let (mantissa, exponent) = match unsigned.split_once(['e', 'E']) {
        Some((mantissa, exponent)) => (mantissa, Some(exponent)),
        None => (unsigned, None),
    };
    let is_digits = |part: &str| !part.is_empty() && part.bytes().all(|digit| digit.is_ascii_digit());
    let mantissa_fits = match mantissa.split_once('.') {
        Some(("", fraction)) => is_digits(fraction),
        Some((whole, fraction)) => is_digits(whole) && (fraction.is_empty() || is_digits(fraction)),
        None => is_digits(mantissa),
    };
    let exponent_fits =
        exponent.is_none_or(|exponent| is_digits(exponent.strip_prefix(['-', '+']).unwrap_or(exponent)));
    let value: f64 = (mantissa_fits && exponent_fits).then(|| plain.parse().ok())??;
    value.is_finite().then(|| YamlNodeKind::Float(value, text.into()))
}

/// The text that kubectl makes of a scalar key; `None` for null, which cannot be a key.
pub fn key_text(kind: YamlNodeKind) -> Option<String> {
    match kind {
        YamlNodeKind::String(text) => Some(text),
        YamlNodeKind::Bool(value, _) => Some(value.to_string()),
        YamlNodeKind::Int(value, _) => Some(value.to_string()),
        YamlNodeKind::Float(value, _) => Some(float_key(value)),
        YamlNodeKind::Null | YamlNodeKind::Seq(_) | YamlNodeKind::Map(_) => None,
    }
}

/// Go's shortest `%g` of the value as f32: scientific for exponents below -4 and from 6 on.
fn float_key(value: f64) -> String {
    #[expect(clippy::cast_possible_truncation, reason = "kubectl writes keys with this precision")]
    let narrow = value as f32;
    if narrow.is_infinite() {
        return if narrow > 0.0 { ".inf" } else { "-.inf" }.to_owned();
    }
    let scientific = format!("{narrow:e}");
    let Some((mantissa, exponent)) = scientific.split_once('e') else { return scientific };
    let Ok(exponent) = exponent.parse::<i32>() else { return scientific };
    if (-4..6).contains(&exponent) {
        return narrow.to_string();
    }
    let sign = if exponent < 0 { '-' } else { '+' };
    format!("{mantissa}e{sign}{:02}", exponent.abs())
}

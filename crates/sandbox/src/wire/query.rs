//! Query parameters.

use serde_json::json;

use crate::api_error::{ApiError, FieldError};
use crate::ssa::go_format;

/// The parameters in the order they were sent.
#[derive(Debug, Clone, Default)]
pub(crate) struct QueryParameters {
    parameters: Vec<(String, String)>,
}

impl QueryParameters {
    /// Parameters that are badly encoded are as if they were not there.
    pub(crate) fn parse(text: &str) -> Self {
        let parameters = text
            .split('&')
            .filter(|part| !part.is_empty() && !part.contains(';'))
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .filter_map(|(name, value)| {
                Some((decode(&name.replace('+', " "))?, decode(&value.replace('+', " "))?))
            })
            .collect();
        Self { parameters }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.get(name).unwrap_or("")
    }

    /// Present, and neither `0` nor `false`.
    pub(crate) fn flag(&self, name: &str) -> bool {
        self.get(name).is_some_and(|text| text != "0" && !text.eq_ignore_ascii_case("false"))
    }

    fn all<'q>(&'q self, name: &'q str) -> impl Iterator<Item = &'q str> {
        self.parameters.iter().filter(move |(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// The text of a parameter, when the client sent it.
    pub(crate) fn get(&self, name: &str) -> Option<&str> {
        self.parameters.iter().find(|(one, _)| one == name).map(|(_, value)| value.as_str())
    }

    /// A number that may be negative; what is none is refused with Go's words.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        let Some(text) = self.get(name) else { return Ok(None) };
        text.parse().map(Some).map_err(|_| {
            ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {}", why_no_number(text)))
        })
    }

    /// The `resourceVersion`, zero when none was sent.
    pub(crate) fn revision(&self) -> Result<u64, String> {
        match self.text("resourceVersion") {
            "" => Ok(0),
            text => parse_unsigned(text).map_err(|why| format!("Invalid value: {text:?}: {why}")),
        }
    }

    /// Validates `timeout`, which has no further effect.
    pub(crate) fn check_timeout(&self) -> Result<(), ApiError> {
        let text = self.text("timeout");
        why_no_duration(text).map_or(Ok(()), |why| {
            Err(ApiError::bad_request(format!("invalid timeout specified in the request URL - time: {why}")))
        })
    }

    /// `dryRun=All`; anything else is not a dry run but a mistake.
    pub(crate) fn dry_run(&self, options: &str) -> Result<bool, ApiError> {
        let wanted: Vec<&str> = self.all("dryRun").collect();
        match unsupported_dry_run(&wanted) {
            None => Ok(!wanted.is_empty()),
            Some(mistake) => Err(ApiError::invalid_options(options, &[mistake])),
        }
    }
}

/// The error of wrong `dryRun` values.
pub(crate) fn unsupported_dry_run(wanted: &[&str]) -> Option<FieldError> {
    wanted.iter().any(|one| *one != "All").then(|| FieldError {
        field: "dryRun".to_owned(),
        reason: "FieldValueNotSupported",
        message: format!("Unsupported value: {}: supported values: \"All\"", json!(wanted)),
    })
}

/// A number in the words of the server when it is none.
pub(crate) fn parse_unsigned(text: &str) -> Result<u64, String> {
    // a sign is no digit, also where Rust takes it
    let (number, why) = match text.starts_with(['+', '-']) {
        true => (None, "invalid syntax"),
        false => (text.parse().ok(), why_no_number(text)),
    };
    number.ok_or_else(|| format!("strconv.ParseUint: parsing {}: {why}", go_format::quoted(text)))
}

fn why_no_number(text: &str) -> &'static str {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && digits.len() > 18 { "value out of range" } else { "invalid syntax" }
}

/// The error of a duration such as `1m30s`.
fn why_no_duration(text: &str) -> Option<String> {
    let mut rest = text.strip_prefix(['-', '+']).unwrap_or(text);
    if text.is_empty() || rest == "0" {
        return None;
    }
    while !rest.is_empty() {
        let unit = rest.trim_start_matches(|letter: char| letter.is_ascii_digit() || letter == '.');
        let number = &rest[..rest.len() - unit.len()];
        if !number.contains(|letter: char| letter.is_ascii_digit()) || number.matches('.').count() > 1 {
            return Some(format!("invalid duration {text:?}"));
        }
        let end = unit.find(|letter: char| letter.is_ascii_digit() || letter == '.').unwrap_or(unit.len());
        match &unit[..end] {
            "" => return Some(format!("missing unit in duration {text:?}")),
            "ns" | "us" | "µs" | "μs" | "ms" | "s" | "m" | "h" => rest = &unit[end..],
            other => return Some(format!("unknown unit {other:?} in duration {text:?}")),
        }
    }
    if text.len() == 1 { Some(format!("invalid duration {text:?}")) } else { None }
}

/// Percent-decoding; `None` for what is badly encoded.
pub(crate) fn decode(text: &str) -> Option<String> {
    let mut out = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        if byte != b'%' {
            out.push(byte);
            continue;
        }
        let (high, low) = (bytes.next()?, bytes.next()?);
        let digit = |byte: u8| char::from(byte).to_digit(16);
        out.push(u8::try_from(digit(high)? * 16 + digit(low)?).ok()?);
    }
    Some(String::from_utf8_lossy(&out).into_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check_unsigned(text: &str, expected: Result<u64, &str>) {
        let expected = expected.map_err(|why| format!("strconv.ParseUint: parsing {text:?}: {why}"));
        assert_eq!(parse_unsigned(text), expected);
    }

    #[test]
    fn revisions_are_read_as_go_reads_them() {
        check_unsigned("007", Ok(7));
        check_unsigned("+7", Err("invalid syntax"));
        check_unsigned("-99999999999999999999", Err("invalid syntax"));
        check_unsigned("99999999999999999999", Err("value out of range"));
        check_unsigned("7x", Err("invalid syntax"));
    }
}

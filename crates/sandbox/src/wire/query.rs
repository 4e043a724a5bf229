//! Query parameters.

use std::collections::HashMap;

use crate::status::{ApiError, FieldError};

#[derive(Debug, Clone, Default)]
pub(crate) struct Query {
    parameters: HashMap<String, String>,
}

impl Query {
    pub(crate) fn parse(text: &str) -> Self {
        let parameters = text
            .split('&')
            .filter(|part| !part.is_empty())
            .map(|part| part.split_once('=').unwrap_or((part, "")))
            .map(|(name, value)| (decode(name), decode(value)))
            .collect();
        Self { parameters }
    }

    pub(crate) fn text(&self, name: &str) -> &str {
        self.parameters.get(name).map_or("", String::as_str)
    }

    pub(crate) fn flag(&self, name: &str) -> bool {
        matches!(self.text(name), "true" | "1")
    }

    /// The text of a parameter, when the client sent it.
    pub(crate) fn given(&self, name: &str) -> Option<&str> {
        self.parameters.get(name).map(String::as_str)
    }

    /// A number that may be negative; what is none is refused with Go's words.
    pub(crate) fn integer(&self, name: &str) -> Result<Option<i64>, ApiError> {
        match self.text(name) {
            "" => Ok(None),
            text => text.parse().map(Some).map_err(|_| {
                ApiError::bad_request(format!("strconv.ParseInt: parsing {text:?}: {}", why_no_number(text)))
            }),
        }
    }

    /// The `resourceVersion`, zero when none was sent; the error says what is wrong with it.
    pub(crate) fn revision(&self) -> Result<u64, String> {
        match self.text("resourceVersion") {
            "" => Ok(0),
            text => text.parse().map_err(|_| {
                let why = why_no_number(text);
                format!("Invalid value: {text:?}: strconv.ParseUint: parsing {text:?}: {why}")
            }),
        }
    }

    pub(crate) fn number(&self, name: &str) -> Result<Option<u64>, ApiError> {
        match self.text(name) {
            "" => Ok(None),
            text => text
                .parse()
                .map(Some)
                .map_err(|_| ApiError::bad_request(format!("invalid value {text:?} of {name}"))),
        }
    }

    /// `dryRun=All`; anything else is not a dry run but a mistake.
    pub(crate) fn dry_run(&self, options: &str) -> Result<bool, ApiError> {
        match self.text("dryRun") {
            "" => Ok(false),
            "All" => Ok(true),
            other => {
                let mistake = FieldError {
                    field: "dryRun".to_owned(),
                    reason: "FieldValueNotSupported",
                    message: format!("Unsupported value: [{other:?}]: supported values: \"All\""),
                };
                Err(ApiError::invalid_options(options, &[mistake]))
            }
        }
    }
}

fn why_no_number(text: &str) -> &'static str {
    let digits = text.strip_prefix(['-', '+']).unwrap_or(text);
    let is_number = !digits.is_empty() && digits.bytes().all(|byte| byte.is_ascii_digit());
    if is_number && digits.len() > 18 { "value out of range" } else { "invalid syntax" }
}

/// Percent-decoding, with `+` as a space.
pub(crate) fn decode(text: &str) -> String {
    let bytes = text.as_bytes();
    let mut out = Vec::with_capacity(bytes.len());
    let mut at = 0;
    while at < bytes.len() {
        let hex = |at: usize| bytes.get(at).and_then(|byte| char::from(*byte).to_digit(16));
        match bytes[at] {
            b'+' => out.push(b' '),
            b'%' => match (hex(at + 1), hex(at + 2)) {
                (Some(high), Some(low)) => {
                    out.push((high * 16 + low) as u8);
                    at += 2;
                }
                _ => out.push(b'%'),
            },
            byte => out.push(byte),
        }
        at += 1;
    }
    String::from_utf8_lossy(&out).into_owned()
}

//! The labels of requests to the forge.

use http::StatusCode;
use prometheus_client::encoding::EncodeLabelSet;

use crate::forge::ForgeOperation;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
pub(super) struct ForgeRequestLabels {
    op: &'static str,
    code: String,
}

impl ForgeRequestLabels {
    pub(super) fn of(operation: ForgeOperation, code: Option<StatusCode>) -> Self {
        Self { op: operation.as_str(), code: code_label(code) }
    }
}

/// A registered status code; `other` for unregistered ones, `none` without an answer.
fn code_label(code: Option<StatusCode>) -> String {
    match code {
        Some(code) if code.canonical_reason().is_some() => code.as_str().to_owned(),
        Some(_) => "other".to_owned(),
        None => "none".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unregistered_codes_share_one_label() {
        let check = |code: u16, expected: &str| {
            let code = StatusCode::from_u16(code).expect("a status code");
            assert_eq!(code_label(Some(code)), expected);
        };
        check(201, "201");
        check(429, "429");
        check(299, "other");
        check(999, "other");
        assert_eq!(code_label(None), "none");
    }
}

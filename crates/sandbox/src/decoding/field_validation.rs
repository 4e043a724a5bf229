//! `fieldValidation`, and warnings.

use std::sync::Arc;

use parking_lot::Mutex;

use crate::api_error::{ApiError, FieldError};

/// The handling of unknown and duplicate fields.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub(crate) enum FieldValidation {
    Ignore,
    #[default]
    Warn,
    Strict,
}

impl FieldValidation {
    /// `options` is the kind of the request's options.
    pub(crate) fn parse(text: &str, options: &str) -> Result<Self, ApiError> {
        match text {
            "" | "Warn" => Ok(Self::Warn),
            "Ignore" => Ok(Self::Ignore),
            "Strict" => Ok(Self::Strict),
            other => {
                let mistake = FieldError {
                    field: "fieldValidation".to_owned(),
                    reason: "FieldValueNotSupported",
                    message: format!(
                        "Unsupported value: {other:?}: supported values: \"\", \"Ignore\", \"Strict\", \"Warn\""
                    ),
                };
                Err(ApiError::invalid_options(options, &[mistake]))
            }
        }
    }

    /// Warns of complaints, or answers the message that refuses them.
    pub(super) fn apply(self, complaints: Vec<String>, warnings: &ResponseWarnings) -> Result<(), String> {
        match self {
            Self::Ignore => Ok(()),
            Self::Warn => {
                complaints.into_iter().for_each(|complaint| warnings.add(complaint));
                Ok(())
            }
            Self::Strict if complaints.is_empty() => Ok(()),
            Self::Strict => Err(format!("strict decoding error: {}", complaints.join(", "))),
        }
    }
}

/// The warnings of a response. Clones share them.
#[derive(Debug, Clone, Default)]
pub(crate) struct ResponseWarnings(Arc<Mutex<Vec<String>>>);

impl ResponseWarnings {
    /// Each warning is kept once.
    pub(crate) fn add(&self, warning: impl Into<String>) {
        let warning = warning.into();
        let mut warnings = self.0.lock();
        if !warnings.contains(&warning) {
            warnings.push(warning);
        }
    }

    pub(crate) fn all(&self) -> Vec<String> {
        self.0.lock().clone()
    }
}

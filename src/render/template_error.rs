//! Template errors as plain data, which a worker sends to the main process.

use std::error::Error as _;
use std::ops::Range;

use minijinja::{Error, ErrorKind};
use serde::{Deserialize, Serialize};

use super::output_limits;

#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct TemplateError {
    pub fault: TemplateFault,
    pub detail: String,
    pub file: Option<String>,
    pub line: Option<u32>,
    /// The range that the engine marks, in bytes of the text.
    pub range: Option<Range<usize>>,
    /// The text of the file.
    pub text: Option<String>,
}

/// Faults with a message of their own.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub enum TemplateFault {
    Syntax,
    Undefined,
    Steps,
    Size,
    NotFound,
    /// The message of the engine.
    Other(String),
}

impl From<&Error> for TemplateError {
    fn from(error: &Error) -> Self {
        let error = innermost(error);
        let fault = match error.kind() {
            ErrorKind::SyntaxError => TemplateFault::Syntax,
            ErrorKind::UndefinedError => TemplateFault::Undefined,
            ErrorKind::OutOfFuel => TemplateFault::Steps,
            ErrorKind::TemplateNotFound => TemplateFault::NotFound,
            _ if output_limits::is_too_long(error) => TemplateFault::Size,
            kind => TemplateFault::Other(kind.to_string()),
        };
        Self {
            fault,
            detail: shortened(error.detail().unwrap_or_default()),
            file: error.name().map(str::to_owned),
            line: error.line().and_then(|line| u32::try_from(line).ok()),
            range: error.range(),
            text: error.template_source().map(str::to_owned),
        }
    }
}

impl TemplateError {
    pub fn without_text(self) -> Self {
        Self { range: None, text: None, ..self }
    }
}

/// Characters of an engine message, which may repeat a value.
const LONGEST_DETAIL: usize = 1000;

pub fn shortened(text: &str) -> String {
    match text.char_indices().nth(LONGEST_DETAIL) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// The engine wraps an error in each include or block; the innermost is the cause.
fn innermost(error: &Error) -> &Error {
    let mut innermost = error;
    while let Some(cause) = innermost.source().and_then(|cause| cause.downcast_ref::<Error>()) {
        innermost = cause;
    }
    innermost
}

//! Faults, which an expression has in place of a value.

use kube_cel::cel::ExecutionError;

/// Why an expression has no value.
#[derive(Clone, Debug, PartialEq)]
pub(super) enum RuleFault {
    /// The server's message: `no such key: x`.
    Message(String),
    /// A function or operator does not take such values.
    NoOverload,
    /// It costs more than it may.
    Cost,
    /// A server could evaluate it.
    Unsupported(String),
}

impl RuleFault {
    /// In the words of a server.
    pub(super) fn of(error: &ExecutionError) -> Self {
        match error {
            ExecutionError::NoSuchKey(key) => Self::Message(format!("no such key: {key}")),
            ExecutionError::FunctionError { message, .. } => Self::Message(message.clone()),
            ExecutionError::DivisionByZero(_) => Self::Message("division by zero".to_owned()),
            ExecutionError::RemainderByZero(_) => Self::Message("modulus by zero".to_owned()),
            ExecutionError::Overflow(..) => Self::Message("integer overflow".to_owned()),
            ExecutionError::UndeclaredReference(name) => {
                Self::Unsupported(format!("there is no function `{name}`"))
            }
            ExecutionError::InvalidArgumentCount { .. } | ExecutionError::MissingArgumentOrTarget => {
                Self::Unsupported("a function takes another number of arguments".to_owned())
            }
            _ => Self::NoOverload,
        }
    }

    pub(super) fn no_such_key(key: &str) -> Self {
        Self::Message(format!("no such key: {key}"))
    }
}

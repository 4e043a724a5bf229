//! Evaluates CEL, the language of Kubernetes' admission policies.
//!
//! [`CelProgram::of`] parses a text. It refuses syntax errors, unknown variables and functions, and texts that are too long or
//! too deep. [`CelProgram::evaluate`] evaluates it over borrowed JSON values, so an object costs nothing before an expression reads
//! it. Each node is a step of a [`CelMeter`], and so is each chunk of a text or list that a function reads. All built values are
//! counted in bytes. So every evaluation ends, for any expression and object.
//!
//! The grammar and the functions of Kubernetes' libraries come from `kube_cel`. Its evaluator is not used here: it copies a
//! value at each `.`, has no limits, and differs from the API server (a field of a text is `false`, an optional field of a
//! missing value is an error). Health rules still use it, with bounds of their own, and share the parser ([`parse_known`]).
//!
//! This module reads no file, clock or cluster, and never panics.

mod evaluate;
mod functions;
mod library;
mod meter;
mod node;
mod optional;
mod program;
mod regex_cost;
mod subexpressions;
mod syntax;
#[cfg(test)]
mod tests;
mod text_format;
mod time_values;
mod two_variable_macros;
mod url;
mod value;

pub use evaluate::EvaluationScope;
pub use library::with_functions;
pub use meter::{CelMeter, EvaluationFailure};
pub use program::{CelProgram, ExpressionNames};
pub use regex_cost::RegexCost;
pub use subexpressions::{children, qualified_name};
pub use syntax::{ExpressionMistake, approximate_memory, parse_known};
pub use value::{CelValue, to_library};

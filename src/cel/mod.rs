//! Evaluates CEL, the language of Kubernetes' admission policies.
//!
//! [`Program::of`] parses a text. It refuses syntax errors, unknown variables and functions, and texts that are too long or
//! too deep. [`Program::value`] evaluates it over borrowed JSON values, so an object costs nothing before an expression reads
//! it. Each node is a step of a [`Meter`], and so is each chunk of a text or list that a function reads. All built values are
//! counted in bytes. So every evaluation ends, for any expression and object.
//!
//! The grammar and the functions of Kubernetes' libraries come from `kube_cel`. Its evaluator is not used here: it copies a
//! value at each `.`, has no limits, and differs from the API server (a field of a text is `false`, an optional field of a
//! missing value is an error). Health rules still use it, with bounds of their own, and share the parser ([`read`]).
//!
//! This module reads no file, clock or cluster, and never panics.

mod calls;
mod clock;
mod evaluate;
mod functions;
mod library;
mod meter;
mod optional;
mod pairs;
mod pattern;
mod syntax;
#[cfg(test)]
mod tests;
mod tree;
mod url;
mod value;
mod written;

pub use calls::{inside, qualified};
pub use evaluate::Scope;
pub use library::with_functions;
pub use meter::{Failure, Meter};
pub use pattern::Pattern;
pub use syntax::{Mistake, read, weight};
pub use tree::{Names, Program};
pub use value::{Value, to_library};

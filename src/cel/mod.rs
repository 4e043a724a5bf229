//! Expressions in CEL, the language of Kubernetes' admission policies.
//!
//! [`Program::of`] reads a text and refuses what is no expression, what names a variable or function that does not exist, and
//! what is too long or too deep. [`Program::value`] evaluates it over JSON values, which are borrowed and never copied: objects
//! cost nothing before an expression looks at them. Each node of the expression is a step of a [`Meter`], and so is each part of a
//! text or list that a function goes through; all that is built is counted in bytes. So every evaluation ends, whatever
//! the expression and the object are.
//!
//! The grammar and the functions of Kubernetes' libraries are those of `kube_cel`. Its evaluator is not used here: it copies a
//! value at each `.`, has no limits, and differs from the API server (a field of a text is `false`, an optional field of what is
//! missing is an error). Health rules still use it, with bounds of their own; they share the reading of texts ([`read`]).
//!
//! Never reads a file, a clock or a cluster, never panics.

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

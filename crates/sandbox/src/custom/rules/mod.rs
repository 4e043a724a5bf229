//! Validation rules of CustomResourceDefinitions in CEL (`x-kubernetes-validations`).
//!
//! A definition is compiled once ([`Node::of`]). The tree holds only the parts of the schema that have rules, so
//! other objects cost nothing. A write evaluates each rule with its value as `self` and, for transition rules, the
//! old value as `oldSelf` ([`check`]).
//!
//! Grammar and function libraries come from the crate `kube_cel`. Operators, macros and field access are implemented
//! here ([`evaluate`]): the crate's evaluator counts no cost, copies every value it passes, and knows no schema. The
//! cost limit of an evaluation is the server's ([`meter`]). Evaluator, operators, functions and macros call each
//! other recursively and are one unit.
//!
//! A server type-checks expressions when the definition is written; here a wrong type fails at evaluation. A rule
//! that cannot be evaluated here is accepted, with one log line for each definition and rule ([`log`]).

mod check;
mod evaluate;
mod functions;
mod library;
mod log;
mod macros;
mod meter;
mod names;
mod operators;
mod program;
mod ratchet;
mod syntax;
#[cfg(test)]
mod tests;
mod tree;
mod value;

pub(super) use check::check;
pub(super) use program::uses_old_value;
pub(crate) use tree::Node;
pub(super) use tree::field_path;

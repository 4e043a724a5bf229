//! Validation rules of CustomResourceDefinitions in CEL (`x-kubernetes-validations`).
//!
//! A definition is compiled once ([`RuleNode::of`]). The tree holds only the parts of the schema that have rules, so
//! other objects cost nothing. A write evaluates each rule with its value as `self` and, for transition rules, the
//! old value as `oldSelf` ([`check`]).
//!
//! Grammar and function libraries come from the crate `kube_cel`. Operators, macros and field access are implemented
//! here ([`evaluate`]): the crate's evaluator counts no cost, copies every value it passes, and knows no schema. The
//! cost limit of an evaluation is the server's ([`cost_meter`]). `evaluate` and `macros` are one unit: a macro evaluates
//! its parts, which may hold macros.
//!
//! A server type-checks expressions when the definition is written; here a wrong type fails at evaluation. A rule
//! that cannot be evaluated here is accepted, with one log line for each definition and rule ([`log`]).

mod check;
mod cost_meter;
mod crate_call;
mod evaluate;
mod fault;
mod functions;
mod library;
mod log;
mod macros;
mod names;
mod operators;
mod program;
mod ratchet;
mod rule_tree;
mod syntax;
#[cfg(test)]
mod tests;
mod value;

pub(super) use check::check;
pub(super) use program::uses_old_value;
pub(crate) use rule_tree::RuleNode;
pub(super) use rule_tree::field_path;

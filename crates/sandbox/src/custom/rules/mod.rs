//! Rules of definitions in CEL (`x-kubernetes-validations`).
//!
//! A definition is compiled once ([`Node::of`]): the tree has only the parts of the schema that have rules, so objects
//! of other definitions cost nothing. A write evaluates the rules with the value at their level as `self` and, for rules
//! about changes, the old value as `oldSelf` ([`check`]).
//!
//! The grammar and the libraries of functions are those of the crate `kube_cel`; how operators, macros and fields work
//! is written here ([`evaluate`]), because its own evaluator keeps no account of the cost, copies each value that an
//! expression passes through, and knows no schema. An evaluation may cost what a server allows ([`meter`]).
//!
//! A server checks the types of an expression when the definition is written; here a wrong type fails at evaluation.
//! A rule that cannot be evaluated here is accepted, with one line in the log for each definition and rule ([`log`]).

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

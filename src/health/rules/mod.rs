//! Health rules of a config repository, for kinds that the shipped rules do not know or judge differently.
//!
//! A rule is for one kind and has one of two forms. **Expressions** in CEL have the names of Flux: `inProgress`,
//! `failed`, `current`. The first true one decides; none means InProgress. **Scripts** in Lua run as in Argo CD: the
//! global `obj` is the object, the result a table with `status` and `message`.
//!
//! A rule of the repository overrides the shipped one, and a rule for one kind overrides one with `_` in its name. A
//! terminating object is Terminating in any case. A failing rule makes its object Unknown with the reason, never
//! Current, and affects no other object.
//!
//! Rules see one object, scripts also the time ([`clock`]): no file, network or other object. Their work and memory
//! are bounded ([`cost`], [`interpreter`]).

mod bounded_functions;
mod clock;
mod cost;
mod expressions;
mod health_rules;
mod interpreter;
mod meter;
mod patterns;
mod rule_source;
mod script;
#[cfg(test)]
mod tests;

pub use health_rules::{HealthRules, RuleDigest};
pub use rule_source::{Expressions, RuleBody, RuleMistake, RulePart, RuleSource};

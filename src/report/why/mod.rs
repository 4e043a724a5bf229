//! Explains the state of an app for `tutti why`: a chain of links from Git to its pods, and every rule, window and gate that
//! holds it or would hold it. The first link that is not well is the cause; later links were not reached.
//!
//! Pure functions of what is known at one moment ([`WhyContext`]). They visit only the targets of the app.

mod chain;
mod cluster_links;
mod context;
mod explanation;
mod fold;
mod gates;
mod holds;
mod links;
mod rule_report;
mod rules;
mod subject;
#[cfg(test)]
mod tests;
mod writers;

pub use chain::{CauseChain, ChainCluster, ChainFinding, ChainLink, ChainLinkState};
pub use context::WhyContext;
pub use explanation::{AppExplanation, explain_app};
pub use rule_report::{RuleEffect, RuleKind, RuleReport};

//! Charts, rendered by the real renderer: the same objects as `helm template`, and limits that hold.
//!
//! These tests need the programs of `tools/helm-render` and follow the rule of the live tier: loud when those are not
//! built, mandatory with `TUTTI_LIVE=1`.

mod apps;
pub(crate) mod by_hand;
mod example;
mod hostile;
mod late;
mod placed;
mod release;
mod same;
mod sources;
pub(crate) mod support;

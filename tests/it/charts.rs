//! Charts rendered by the real renderer: the same objects as `helm template`, and enforced limits.
//!
//! These tests need the programs of `tools/helm-render`. As in the live tier, missing programs are printed, and
//! are a failure with `TUTTI_LIVE=1`.

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

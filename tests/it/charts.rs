//! Charts rendered by the real renderer: the same objects as `helm template`, and enforced limits.
//!
//! These tests need the programs of `tools/helm-render`. As in the live tier, missing programs are printed, and
//! are a failure with `TUTTI_LIVE=1`.

mod apps;
mod example;
mod helm_parity;
mod hostile;
mod late;
mod placement;
mod release;
mod sources;
pub(crate) mod support;
pub(crate) mod written_values;

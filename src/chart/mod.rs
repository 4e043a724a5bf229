//! Helm charts, rendered by Helm's own engine.
//!
//! Needs a chart and values; gives objects. A chart is untrusted code: [`renderer`] runs it in child processes
//! (`tools/helm-render`, found by [`program`]) with a deadline and a limit of memory, without environment, files or
//! network; as many as there are cores, each for one render at a time, so that a chart that hangs holds up no other.
//! Where that program is not, `helm template` does the same ([`fallback`]).
//!
//! - [`archive`] and [`tar`] unpack charts within limits;
//! - [`protocol`] is what is said to a child ([`mod@child`]), [`output`] reads what charts make, [`words`] what Helm
//!   says of a failure;
//! - [`schema`] has values checked in a worker, where references lead nowhere;
//! - [`fetch`] asks chart repositories ([`index`]) and registries, of which [`site`] says who may be asked;
//!   [`cache`] keeps what came on the disk, [`shelf`] in memory; [`room`] bounds what all of them take together;
//! - [`lint`] finds what is odd about a chart without being a mistake;
//! - [`service`] puts it together, and renders no request twice as long as its result has room among the [`results`].
//!
//! Never applies anything, never asks a cluster, never believes a chart.

pub mod archive;
mod cache;
mod child;
mod fallback;
mod fetch;
mod index;
mod lint;
mod output;
mod program;
mod protocol;
mod renderer;
mod results;
mod room;
mod schema;
mod service;
mod shelf;
mod site;
mod tar;
mod words;

pub use lint::{Recorder, Remark};
pub use program::{Found, PROGRAM, VARIABLE, find};
pub use renderer::{Limits, Renderer};
pub use schema::check_values;
pub use service::Service;
pub use site::{PublicNames, Sites, is_public};

const MIB: usize = 1024 * 1024;
/// What helps where a chart server is no good.
const PIN: &str =
    "keep the chart in the config repository: unpack it to charts/NAME, and name it charts/NAME";

/// A bound, for messages.
fn sized(bytes: usize) -> String {
    if bytes < MIB { format!("{} KiB", bytes / 1024) } else { format!("{} MiB", bytes / MIB) }
}

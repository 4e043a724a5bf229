//! Fetches Helm charts and renders them with Helm's own engine.
//!
//! Input is a chart with values; output is objects. A chart is untrusted code. [`renderer`] runs it in child processes
//! (`tools/helm-render`, found by [`program`]) with a deadline and a memory limit, without environment, files or network.
//! There are as many children as cores, each with one render at a time, so that a hanging chart blocks no other. Without that
//! program, `helm template` does the same ([`fallback`]).
//!
//! - [`archive`] and [`tar`] unpack charts within limits;
//! - [`protocol`] encodes messages to a child ([`mod@child`]), [`output`] parses what charts render, [`words`] parses Helm's
//!   error messages;
//! - [`schema`] checks values in a worker, without external references;
//! - [`fetch`] reads chart repositories ([`index`]) and registries; [`site`] decides which hosts are allowed; [`cache`] keeps
//!   charts on disk, [`shelf`] in memory; [`room`] bounds all downloads together;
//! - [`lint`] finds suspicious charts;
//! - [`service`] combines these, and renders no request twice while its result is among the [`results`].
//!
//! This module never applies anything and never reads a cluster.

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
/// The help for failures of a chart server.
const PIN: &str =
    "keep the chart in the config repository: unpack it to charts/NAME, and name it charts/NAME";

fn sized(bytes: usize) -> String {
    if bytes < MIB { format!("{} KiB", bytes / 1024) } else { format!("{} MiB", bytes / MIB) }
}

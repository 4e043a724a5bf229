//! Fetches Helm charts and renders them with Helm's own engine.
//!
//! Input is a chart with values; output is objects. A chart is untrusted code. [`renderer`] runs it in child processes
//! (`tools/helm-render`, found by [`program`]) within [`render_limits`], without environment, files or network.
//! There are as many children as cores, each with one render at a time, so that a hanging chart blocks no other. Without that
//! program, `helm template` does the same ([`helm_template`]).
//!
//! - [`archive`] and [`tar`] unpack charts within limits;
//! - [`protocol`] encodes messages to a child ([`mod@child`]), [`output`] parses what charts render, [`helm_messages`] parses Helm's
//!   error messages;
//! - [`values_schema`] checks values in a worker, without external references;
//! - [`fetch`] reads chart repositories ([`index`]) and registries; [`chart_hosts`] decides which hosts are allowed; [`cache`] keeps
//!   charts on disk, [`chart_memory`] in memory; [`download_limits`] bounds all downloads together;
//! - [`lint`] finds suspicious charts;
//! - [`service`] combines these, and renders no request twice while its result is among the [`render_results`].
//!
//! This module never applies anything and never reads a cluster.

pub mod archive;
mod cache;
mod chart_hosts;
mod chart_memory;
mod child;
mod download_limits;
mod fetch;
mod helm_messages;
mod helm_template;
mod index;
mod lint;
mod output;
mod program;
mod protocol;
mod render_limits;
mod render_results;
mod renderer;
mod service;
mod tar;
mod values_schema;

pub use chart_hosts::{ChartHosts, PublicAddressResolver, is_public};
pub use lint::{ChartLint, RequestRecorder};
pub use program::{RENDERER_PROGRAM, RENDERER_VARIABLE, RendererProgram, find};
pub use render_limits::ChartRenderLimits;
pub use renderer::ChartRenderer;
pub use service::ChartService;
pub use values_schema::check_values;

const MIB: usize = 1024 * 1024;
/// The help for failures of a chart server.
const KEEP_IN_REPOSITORY: &str =
    "keep the chart in the config repository: unpack it to charts/NAME, and name it charts/NAME";

fn shown_size(bytes: usize) -> String {
    if bytes < MIB { format!("{} KiB", bytes / 1024) } else { format!("{} MiB", bytes / MIB) }
}

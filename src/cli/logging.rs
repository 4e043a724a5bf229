//! Sets up log lines on standard error, and traces.

use std::io::IsTerminal as _;

use tracing_subscriber::layer::SubscriberExt as _;
use tracing_subscriber::util::SubscriberInitExt as _;
use tracing_subscriber::{EnvFilter, Layer as _};

use super::output::write_errors_as_json;
use crate::telemetry;

/// The exporter, to be flushed at the end.
#[derive(Debug, Default)]
pub struct Traces {
    #[cfg(feature = "otlp")]
    exporter: Option<telemetry::Exporter>,
}

impl Traces {
    /// Sends the remaining spans.
    pub fn end(self) {
        #[cfg(feature = "otlp")]
        self.exporter.into_iter().for_each(telemetry::Exporter::end);
    }
}

/// `RUST_LOG` wins; else warnings, and more of tutti with `-v` and `-vv`. `traces`: whether the command exports traces.
pub fn start(verbose: u8, json: bool, traces: bool) -> Traces {
    let level = match verbose {
        // The client quotes unreadable responses, Secrets too.
        0 => "warn,kube_client=error",
        1 => "warn,tutti=info,kube_client=error",
        _ => "info,tutti=debug,kube_client=error",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let lines = tracing_subscriber::fmt::layer()
        .with_writer(std::io::stderr)
        .with_target(false)
        // A report of a failed write would fail too, and panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    let lines = if json {
        write_errors_as_json();
        lines.json().with_filter(filter).boxed()
    } else {
        lines.with_filter(filter).boxed()
    };
    let asked = traces.then(|| telemetry::enabling_variable(|name| std::env::var(name).ok())).flatten();
    finish(tracing_subscriber::registry().with(lines), asked)
}

type Lines = tracing_subscriber::layer::Layered<
    Box<dyn tracing_subscriber::Layer<tracing_subscriber::Registry> + Send + Sync>,
    tracing_subscriber::Registry,
>;

#[cfg(feature = "otlp")]
fn finish(lines: Lines, asked: Option<&'static str>) -> Traces {
    let exporter = asked.map(|_| telemetry::Exporter::new(None)).transpose();
    lines.with(exporter.as_ref().ok().and_then(Option::as_ref).map(telemetry::Exporter::layer)).init();
    match exporter {
        Ok(exporter) => Traces { exporter },
        Err(error) => {
            tracing::warn!(%error, "no traces are sent");
            Traces::default()
        }
    }
}

#[cfg(not(feature = "otlp"))]
fn finish(lines: Lines, asked: Option<&'static str>) -> Traces {
    lines.init();
    if let Some(variable) = asked {
        tracing::warn!(variable, "no traces are sent: this program was built without the feature `otlp`");
    }
    Traces::default()
}

//! Log lines on standard error.

use std::io::IsTerminal as _;

use tracing_subscriber::EnvFilter;

use super::output::write_errors_as_json;

/// `RUST_LOG` wins; without it warnings, and with `-v` and `-vv` more of our own.
pub fn start(verbose: u8, json: bool) {
    let level = match verbose {
        // The client would quote answers that it cannot read, Secrets too.
        0 => "warn,kube_client=error",
        1 => "warn,tutti=info,kube_client=error",
        _ => "info,tutti=debug,kube_client=error",
    };
    let filter = EnvFilter::try_from_default_env().unwrap_or_else(|_| EnvFilter::new(level));
    let builder = tracing_subscriber::fmt()
        .with_env_filter(filter)
        .with_writer(std::io::stderr)
        .with_target(false)
        // A line that cannot be written is lost; to say so would go the same way, and panic.
        .log_internal_errors(false)
        .with_ansi(std::io::stderr().is_terminal() && std::env::var_os("NO_COLOR").is_none());
    if json {
        write_errors_as_json();
        builder.json().init();
    } else {
        builder.init();
    }
}

//! Charts of a folder, rendered by `helm-render` and by `helm template`: differences, and how long each takes.
//!
//! `cargo xtask charts DIR` runs it; `cargo bench --bench charts -- helm DIR` says how long an optimised tutti takes.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "a command for developers prints"
)]

#[path = "../benches/render/helm.rs"]
mod helm;

use std::path::PathBuf;
use std::process::ExitCode;

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(render), Some(command)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: charts DIR HELM-RENDER HELM");
        return ExitCode::FAILURE;
    };
    let mut summary = helm::ChartSummary::default();
    helm::compare(&folder, &render, &command, &mut summary);
    let different = summary.different;
    summary.print();
    if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
}

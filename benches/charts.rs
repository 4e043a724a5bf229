//! How fast charts and overlays are beside the programs that others use: `cargo bench --bench charts -- helm [DIR…]`,
//! `cargo bench --bench charts -- kustomize [OVERLAYS]`.
#![allow(
    clippy::expect_used,
    clippy::panic,
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "a benchmark prints, and fails by panicking"
)]

#[path = "render/helm.rs"]
mod helm;
#[path = "render/kustomize.rs"]
mod kustomize;

use std::path::{Path, PathBuf};

fn main() {
    let mut arguments = std::env::args().skip(1).filter(|argument| !argument.starts_with("--"));
    match arguments.next().as_deref() {
        Some("helm") => of_helm(arguments.map(PathBuf::from).collect()),
        Some("kustomize") => of_kustomize(arguments.next()),
        _ => eprintln!("usage: cargo bench --bench charts -- helm [DIR…] | kustomize [OVERLAYS]"),
    }
}

fn of_kustomize(overlays: Option<String>) {
    let kustomize = live::KustomizePrograms::ensure(&|line| eprintln!("{line}")).expect("kustomize");
    kustomize::run(&kustomize, overlays.and_then(|number| number.parse().ok()).unwrap_or(200));
}

/// Without folders: the charts of the tests and of the example.
fn of_helm(mut folders: Vec<PathBuf>) {
    let say = |line: &str| eprintln!("{line}");
    let render = live::HelmPrograms::ensure_render(&say).expect("helm-render");
    let command = live::HelmPrograms::ensure_command(&say).expect("helm");
    if folders.is_empty() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR"));
        folders =
            ["tests/fixtures/charts", "examples/helm-repo/charts"].map(|folder| root.join(folder)).to_vec();
    }
    let mut summary = helm::ChartSummary::default();
    for folder in folders {
        helm::compare(&folder, &render, &command, &mut summary);
    }
    assert_eq!(summary.different, 0, "there are differences");
    summary.print();
}

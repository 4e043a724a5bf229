//! `cargo xtask helm-render`: builds the renderer of charts into the cache, where `tutti` looks for it.

use clap::Args;

#[derive(Args)]
pub struct HelmRenderOptions {
    /// Also build `helm` of the same version, for comparison in the tests
    #[arg(long)]
    with_helm: bool,
}

pub fn run(options: &HelmRenderOptions) -> anyhow::Result<()> {
    let progress = |line: &str| eprintln!("{line}");
    println!("{}", live::HelmPrograms::ensure_render(&progress)?.display());
    if options.with_helm {
        println!("{}", live::HelmPrograms::ensure_command(&progress)?.display());
    }
    Ok(())
}

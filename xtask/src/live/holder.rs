//! The holder process: owns all other processes until SIGTERM and stops them however it ends.

use std::process;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::process::ProcessIdentity;
use super::tier_state::{self, RunningCluster, RunningGitea, TierState};
use super::up::UpOptions;

#[tokio::main]
pub async fn run(options: &UpOptions) -> anyhow::Result<()> {
    // From the start, so that a signal during the start stops it in order; and a closed terminal is no reason to end.
    let mut stop = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _hang_up = signal(SignalKind::hangup())?;

    let programs =
        live::TierPrograms::find()?.context("failed to find the programs: run `cargo xtask live build`")?;
    let setup = options.setup();
    let tier = tokio::select! {
        tier = live::LiveEnvironment::start(&programs, &setup) => tier?,
        _ = stop.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    tier_state::write(&describe(&tier)?)?;
    tokio::select! {
        _ = stop.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(tier);
    tier_state::remove()
}

fn describe(tier: &live::LiveEnvironment) -> anyhow::Result<TierState> {
    let clusters = tier.clusters().iter().map(|cluster| RunningCluster {
        name: cluster.name().to_owned(),
        server: cluster.server().to_owned(),
        kubeconfig: cluster.kubeconfig().to_owned(),
    });
    let gitea = tier.gitea().map(|gitea| RunningGitea {
        url: gitea.url().to_owned(),
        user: gitea.user().to_owned(),
        token: gitea.token().to_owned(),
    });
    Ok(TierState {
        holder: ProcessIdentity::of(process::id())?,
        processes: tier.process_ids().into_iter().map(ProcessIdentity::of).collect::<anyhow::Result<_>>()?,
        folder: tier.folder().to_owned(),
        versions: tier.versions(),
        clusters: clusters.collect(),
        gitea,
    })
}

//! The holder process: owns all other processes until SIGTERM and stops them however it ends.

use std::process;

use anyhow::Context;
use tokio::signal::unix::{SignalKind, signal};

use super::process::Identity;
use super::state::{self, Cluster, Gitea, State};
use super::up::Options;

#[tokio::main]
pub async fn run(options: &Options) -> anyhow::Result<()> {
    // From the start, so that a signal during the start stops it in order; and a closed terminal is no reason to end.
    let mut stop = signal(SignalKind::terminate())?;
    let mut interrupt = signal(SignalKind::interrupt())?;
    let _hang_up = signal(SignalKind::hangup())?;

    let programs =
        live::Programs::find()?.context("failed to find the programs: run `cargo xtask live build`")?;
    let setup = options.setup();
    let tier = tokio::select! {
        tier = live::Live::start(&programs, &setup) => tier?,
        _ = stop.recv() => return Ok(()),
        _ = interrupt.recv() => return Ok(()),
    };
    state::write(&describe(&tier)?)?;
    tokio::select! {
        _ = stop.recv() => {}
        _ = interrupt.recv() => {}
    }
    drop(tier);
    state::remove()
}

fn describe(tier: &live::Live) -> anyhow::Result<State> {
    let clusters = tier.clusters().iter().map(|cluster| Cluster {
        name: cluster.name().to_owned(),
        server: cluster.server().to_owned(),
        kubeconfig: cluster.kubeconfig().to_owned(),
    });
    let gitea = tier.gitea().map(|gitea| Gitea {
        url: gitea.url().to_owned(),
        user: gitea.user().to_owned(),
        token: gitea.token().to_owned(),
    });
    Ok(State {
        holder: Identity::of(process::id())?,
        processes: tier.process_ids().into_iter().map(Identity::of).collect::<anyhow::Result<_>>()?,
        folder: tier.folder().to_owned(),
        versions: tier.versions(),
        clusters: clusters.collect(),
        gitea,
    })
}

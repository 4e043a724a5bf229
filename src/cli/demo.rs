//! `tutti demo`: runs the example repository on four embedded clusters.

use std::net::{Ipv4Addr, SocketAddr};
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context as _;
use clap::Args;
use console::style;
use include_dir::{Dir, include_dir};
use sandbox::SandboxListener;

use super::connections::ClusterConnections;
use super::exit::{self, Exit};
use super::output::{say, tell};
use super::session::{self, RepositoryUnreadable, RunOptions, Session};
use super::timeout::timeout;
use super::{diagnostics, get, progress};
use crate::controller::{RunEnding, RunUntil};
use crate::source;

static EXAMPLE: Dir<'static> = include_dir!("$CARGO_MANIFEST_DIR/examples/repo");

/// Suggested commands, with their effect.
const DEMO_STEPS: &[(&str, &[&str])] = &[
    (
        "a release: the ring test takes it, 15 s later prod",
        &["sed -i s/:1.4.2/:1.4.3/ apps/shop-web/app.yaml", "git commit -am 'Release 1.4.3'"],
    ),
    (
        "an image that does not exist: it stops in test, and prod keeps 1.4.3",
        &[
            "sed -i s/:1.4.3/:broken-1/ apps/shop-web/app.yaml",
            "git commit -am 'An image that does not exist'",
            "tutti rollout get shop-web --kubeconfigs ..",
            "git revert --no-edit HEAD",
        ],
    ),
    (
        "a canary: one podSet takes v5, and the others wait for confirmation",
        &[
            "sed -i 's/v[34]$/v5/' apps/bbcc/app.yaml",
            "git commit -am 'bbcc v5'",
            "tutti get ad --all --kubeconfigs ..",
            "tutti approve rollout bbcc --through green --kubeconfigs .. --commit",
            "tutti rollout watch bbcc --kubeconfigs ..",
        ],
    ),
];

#[derive(Args, Debug)]
pub struct DemoArgs {
    /// Exit when nothing is left to do or to wait for
    #[arg(long)]
    once: bool,
    /// With --once: maximum time to wait, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "2m", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Empty folder for the repository and the kubeconfigs, which is kept; default: a temporary folder
    #[arg(long, value_name = "DIR")]
    folder: Option<PathBuf>,
}

pub async fn run(args: DemoArgs) -> anyhow::Result<Exit> {
    let temporary = tempfile::Builder::new().prefix("tutti-demo-").tempdir()?;
    let folder = args.folder.clone().unwrap_or_else(|| temporary.path().to_owned());
    let repository = create_repository(&folder)?;
    let ways = ClusterConnections::all_sandbox();
    let process = session::default_process(repository.display().to_string(), ways.clone());
    let until = if args.once { RunUntil::Settled { timeout: args.timeout } } else { RunUntil::Stopped };

    tell!("{} {}", style("config repository").bold().for_stderr(), repository.display());
    let session = Session::start(
        &process,
        RunOptions { until, mode: None, foresee: false, serve: None, worktree: false },
    )
    .await?;
    let shown = tokio::spawn(progress::print_progress(session.overview.clone()));
    let invitation = (!args.once).then(|| {
        let overview = session.overview.clone();
        tokio::spawn(show_next_steps(
            overview,
            ways.clone(),
            folder.clone(),
            repository.clone(),
            args.folder.is_some(),
        ))
    });
    let (ending, overview) = session.finish().await?;
    shown.abort();
    if let Some(invitation) = invitation {
        invitation.abort();
    }
    if let RunEnding::Unreadable(error) = ending {
        return Err(RepositoryUnreadable(error).into());
    }
    diagnostics::print(&overview.diagnostics);
    get::write_matrix(&overview, false);
    let exit = exit::of_run(&ending, &overview);
    Ok(if !args.once && matches!(ending, RunEnding::Stopped) { Exit::Ok } else { exit })
}

/// Copies the example into a new repository with one commit.
fn create_repository(folder: &Path) -> anyhow::Result<PathBuf> {
    let repository = folder.join("repo");
    if folder.is_dir() && std::fs::read_dir(folder)?.next().is_some() {
        anyhow::bail!("{} is not empty: name a new folder", folder.display());
    }
    std::fs::create_dir_all(&repository)
        .with_context(|| format!("failed to create {}", repository.display()))?;
    EXAMPLE.extract(&repository).with_context(|| format!("failed to fill {}", repository.display()))?;
    source::create(&repository, "The example repository")?;
    Ok(repository)
}

/// After the first healthy state: prints how to look at the clusters, and what to try.
async fn show_next_steps(
    mut overview: tokio::sync::watch::Receiver<std::sync::Arc<crate::report::Overview>>,
    ways: ClusterConnections,
    folder: PathBuf,
    repository: PathBuf,
    kept: bool,
) -> anyhow::Result<()> {
    let healthy = overview
        .wait_for(|now| !now.targets.is_empty() && now.targets.iter().all(|target| target.phase.is_done()))
        .await?
        .clone();
    let mut listeners: Vec<SandboxListener> = Vec::new();
    let mut lines = Vec::new();
    for cluster in &healthy.clusters {
        let name = cluster.name.as_str();
        let listener = ways.sandbox(name).listen(SocketAddr::from((Ipv4Addr::LOCALHOST, 0))).await?;
        let path = folder.join(format!("{name}.kubeconfig"));
        std::fs::write(&path, listener.kubeconfig())?;
        lines.push(format!("  kubectl --kubeconfig {} get deployments,pods -A", path.display()));
        listeners.push(listener);
    }
    get::write_matrix(&healthy, false);
    // The commands run in another folder.
    let own = std::env::current_exe().map_or_else(|_| "tutti".to_owned(), |path| path.display().to_string());
    let (at, repo) = (folder.display(), repository.display());
    lines.push(format!("  {own} get targets --repo {repo} --kubeconfigs {at}"));
    lines.push(format!("  {own} rollout get --repo {repo} --kubeconfigs {at}"));
    say!("\n{}\n{}", style("look").bold(), lines.join("\n"));
    say!("\n{}", style("try").bold());
    say!("  cd {repo}");
    for (title, commands) in DEMO_STEPS {
        say!("  # {title}");
        for command in *commands {
            say!("  {}", command.replace("tutti ", &format!("{own} ")));
        }
    }
    say!("\nCtrl-C ends it{}.", if kept { "; the folder stays" } else { " and removes everything" });
    // The listeners serve kubectl until the demo ends.
    std::future::pending::<()>().await;
    drop(listeners);
    Ok(())
}

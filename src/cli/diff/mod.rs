//! `tutti diff`: what an apply would change in the objects of the clusters, as the clusters themselves say.

mod external;
mod fold;

use std::time::Duration;

use clap::Args;

use super::exit::{self, Exit};
use super::output::{self, Format, say};
use super::process::ProcessArgs;
use super::{diagnostics, get, plan, session};
use crate::plan::Action;
use crate::report::words::count;
use crate::report::{DeletionReport, Overview, TargetReport};
use fold::{Folded, fold};

/// Takes the place of the shown text, as for `kubectl diff`: it is called with two folders.
const EXTERNAL: &str = "KUBECTL_EXTERNAL_DIFF";

#[derive(Args, Debug)]
pub struct DiffArgs {
    /// Only this app: NAMESPACE/NAME or its name
    app: Option<String>,
    #[command(flatten)]
    process: ProcessArgs,
    /// Compare the folder as it stands on disk, before a commit
    #[arg(long)]
    worktree: bool,
    /// End with 1 when there is a difference
    #[arg(long)]
    exit_code: bool,
    /// Lines of an object shown around each change
    #[arg(long, default_value_t = 3, value_name = "LINES")]
    context: usize,
    /// The longest to wait for clusters, in seconds
    #[arg(long, default_value_t = 60, value_name = "SECONDS")]
    timeout: u64,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub async fn run(args: DiffArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some("."))?;
    let timeout = Duration::from_secs(args.timeout);
    let (ending, overview) = session::look_for(&process, timeout, args.worktree, true).await?;
    diagnostics::print(&overview.diagnostics);
    let plan::Chosen { targets, deletions, .. } = plan::chosen(&overview, args.app.as_deref())?;
    let folded = fold(&targets);
    let shown = match (args.output, std::env::var(EXTERNAL).ok().filter(|command| !command.trim().is_empty()))
    {
        (Format::Table, Some(command)) => external::run(&command, &folded),
        (Format::Table, None) => {
            folded.iter().for_each(|one| write(one, args.context));
            Ok(())
        }
        (format, _) => output::write_value(
            format,
            &serde_json::json!({
                "revision": overview.revision, "differences": folded, "deletions": deletions, "clusters": overview.clusters,
            }),
        ),
    };
    shown?;
    if args.output == Format::Table {
        conclude(&overview, &targets, &folded, &deletions);
    }
    let differs = !folded.is_empty() || !deletions.is_empty();
    let is_refused = folded.iter().any(|one| one.refused.is_some());
    Ok(match exit::of_run(&ending, &overview) {
        Exit::Ok | Exit::Differences if is_refused => Exit::Failed,
        Exit::Ok | Exit::Differences if args.exit_code && differs => Exit::Differences,
        Exit::Differences => Exit::Ok,
        exit => exit,
    })
}

fn write(one: &Folded, context: usize) {
    let sign = if one.action == Action::Create { '+' } else { '~' };
    say!("{sign} {}  {}  on {}: {}", one.app, one.object, one.clusters(), one.reason);
    if let Some(refused) = &one.refused {
        say!("  ! {refused}\n");
        return;
    }
    let text = one.unified(context);
    output::write_text(format_args!("{text}{}", if text.ends_with('\n') { "\n" } else { "\n\n" }));
}

fn conclude(
    overview: &Overview,
    targets: &[&TargetReport],
    folded: &[Folded],
    deletions: &[&DeletionReport],
) {
    for deletion in deletions {
        let action = if deletion.waits { "waits" } else { "goes" };
        say!(
            "- {}  {}  on {}: {action}, {}",
            deletion.app,
            deletion.object,
            deletion.cluster,
            deletion.reason
        );
    }
    for target in targets.iter().filter(|target| target.plan.is_none()) {
        say!("! {} on {}: not compared, {}", target.app, target.cluster, target.detail);
    }
    let objects: usize = folded.iter().map(|one| one.on.len()).sum();
    let mut parts = Vec::new();
    if objects > 0 {
        parts.push(format!("{} in {}", count(folded.len(), "difference"), count(objects, "object")));
    }
    if !deletions.is_empty() {
        parts.push(count(deletions.len(), "delete"));
    }
    say!("{}", if parts.is_empty() { "no difference".to_owned() } else { parts.join(", ") });
    get::write_approvals(overview);
}

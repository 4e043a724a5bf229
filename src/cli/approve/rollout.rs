//! `tutti approve rollout APP`: a person lets the next waves open.

use anyhow::bail;
use clap::Args;

use super::super::chosen::rollout_named;
use super::super::exit::{self, Exit};
use super::super::files;
use super::super::output::{say, tell};
use super::super::rollout::shown;
use super::{FileArgs, commit};
use crate::manifest;
use crate::manifest::read::nearest;
use crate::model::{RolloutAction, RolloutApproval, RolloutApprovalPlaces};
use crate::report::RolloutReport;

#[derive(Args, Debug)]
pub struct RolloutArgs {
    /// NAMESPACE/NAME or its name
    app: String,
    /// The last wave that may open; by default up to the next one that asks
    #[arg(long, value_name = "WAVE", conflicts_with = "retry")]
    through: Option<String>,
    /// Start a version again that failed and was taken back
    #[arg(long)]
    retry: bool,
    #[command(flatten)]
    file: FileArgs,
}

pub async fn run(args: RolloutArgs) -> anyhow::Result<Exit> {
    let Some((root, overview)) = args.file.look().await? else { return Ok(Exit::Interrupted) };
    let rollout = rollout_named(&overview, &args.app)?;
    for name in &rollout.approvals_unused {
        tell!(
            "note: approval {name} is for another version of {} than {}",
            rollout.app,
            rollout.digest.short()
        );
    }
    let left_out = shown::left_out(rollout);
    let away = exit::offline(&overview, |cluster| left_out.contains(&cluster.name));
    if let Some(away) = away {
        // What runs there decides whether anything waits.
        if !rollout.is_open {
            tell!("error: cannot say what {} waits for: {away}", rollout.app);
            return Ok(Exit::Unreachable);
        }
        tell!("note: {away}");
    }
    let approval = match args.retry {
        true => retry(rollout)?,
        false => opening(rollout, args.through.as_deref())?,
    };
    let path = root.join("approvals").join(format!("{}.yaml", approval.name));
    // The commit makes it another file than the one that approved this version before.
    let head = overview.revision.as_ref().map_or("", |revision| revision.short());
    let text = format!("# Asked for at commit {head}.\n{}", manifest::rollout_approval_to_yaml(&approval));
    files::write(&path, &text)?;
    let what = match &approval.action {
        RolloutAction::Open { through } => format!("wave {through} of {}", rollout.app),
        RolloutAction::Retry => format!("another try of {}", rollout.app),
    };
    say!("{}: approves {what}, version {}", path.display(), approval.digest.short());
    if args.file.commit {
        commit(&root, &path, &format!("Approve {what}"))?;
        say!("committed; push it to go on");
    } else {
        say!("commit and push it to go on");
    }
    Ok(Exit::Ok)
}

fn retry(rollout: &RolloutReport) -> anyhow::Result<RolloutApproval> {
    if !rollout.is_refused() {
        bail!("no version of {} was taken back: there is nothing to try again", rollout.app);
    }
    Ok(approval(rollout, "retry", RolloutAction::Retry))
}

fn opening(rollout: &RolloutReport, through: Option<&str>) -> anyhow::Result<RolloutApproval> {
    let app = &rollout.app;
    let asked = rollout.confirmation.as_ref();
    let position = |name: &str| rollout.waves.iter().position(|wave| wave.name == name);
    if let Some(wanted) = through
        && position(wanted).is_none()
    {
        let known: Vec<&str> = rollout.waves.iter().map(|wave| wave.name.as_str()).collect();
        let near = nearest(wanted, &known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        bail!("{app} has no wave {wanted}, but {}{near}", known.join(", "));
    }
    if !rollout.is_open {
        bail!("{app} waits for nothing: every unit has this version");
    }
    let through = match (through, asked) {
        (Some(through), Some(asked)) if position(through) < position(&asked.through) => {
            bail!("wave {through} of {app} asks for nothing; wave {} waits for confirmation", asked.through)
        }
        (Some(through), _) => through,
        (None, Some(asked)) => asked.through.as_str(),
        (None, None) => bail!(
            "{app} does not wait for confirmation: {}; --through WAVE confirms a wave before it asks",
            rollout.awaited()
        ),
    };
    Ok(approval(rollout, through, RolloutAction::Open { through: through.to_owned() }))
}

/// Its name says what it is for: the next version's takes its place.
fn approval(rollout: &RolloutReport, purpose: &str, action: RolloutAction) -> RolloutApproval {
    let (app, asked) = (&rollout.app, rollout.confirmation.as_ref());
    RolloutApproval {
        name: format!("{}-{}-{purpose}", app.namespace, app.name),
        app: app.clone(),
        digest: asked.map_or(rollout.digest, |asked| asked.digest),
        action,
        location: None,
        places: RolloutApprovalPlaces::default(),
    }
}

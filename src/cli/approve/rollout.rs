//! `tutti approve rollout APP`: a person lets the next waves open.

use std::collections::BTreeSet;

use anyhow::bail;
use clap::Args;

use super::super::chosen::rollout_named;
use super::super::exit::{self, Exit};
use super::super::files;
use super::super::output::{say, tell};
use super::super::rollout::shown;
use super::{FileArgs, commit};
use crate::controller::Until;
use crate::manifest::read::nearest;
use crate::model::{Revision, RolloutAction, RolloutApproval};
use crate::promotion;
use crate::report::RolloutReport;

#[derive(Args, Debug)]
pub struct RolloutArgs {
    /// NAMESPACE/NAME or its name
    app: String,
    /// The last wave that may open; by default up to the next one that asks
    #[arg(long, value_name = "WAVE", conflicts_with = "retry")]
    through: Option<String>,
    /// Start a version again that failed and was reverted
    #[arg(long)]
    retry: bool,
    /// Let this version pass a window that is shut
    #[arg(long = "override", value_name = "WINDOW", conflicts_with_all = ["retry", "through"])]
    window: Option<String>,
    #[command(flatten)]
    file: FileArgs,
}

pub async fn run(args: RolloutArgs) -> anyhow::Result<Exit> {
    let Some((root, overview)) = args.file.look(|timeout| Until::Explained { timeout }).await? else {
        return Ok(Exit::Interrupted);
    };
    let rollout = rollout_named(&overview, &args.app)?;
    rollout.approvals_in_vain().iter().for_each(|line| tell!("note: {line}"));
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
    let approval = match &args.window {
        _ if args.retry => retry(rollout)?,
        Some(window) => overriding(rollout, window)?,
        None => opening(rollout, args.through.as_deref())?,
    };
    let head = overview.revision.clone().unwrap_or_else(|| Revision::from(""));
    let (file, text) = promotion::approval_file(&approval, &head);
    files::write(&root, &file, &text)?;
    let path = root.join(file);
    let what = match &approval.action {
        RolloutAction::Open { through } => format!("wave {through} of {}", rollout.app),
        RolloutAction::Retry => format!("another try of {}", rollout.app),
        RolloutAction::Override { window } => format!("{} in spite of window {window}", rollout.app),
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

/// Whether this is the beginning of a digest that its Approvals name.
pub fn has_digest(rollout: &RolloutReport, beginning: &str) -> bool {
    let asked = rollout.confirmation.as_ref().map(|asked| asked.digest);
    let mut known = asked.into_iter().chain(rollout.all_refused()).chain([rollout.digest]);
    known.any(|digest| digest.to_string().starts_with(beginning))
}

/// What to type for a rollout.
pub fn instead(rollout: &RolloutReport) -> String {
    match rollout.next_step() {
        Some(step) => step.to_string(),
        None if rollout.is_open => format!("{} waits for no person: {}", rollout.app, rollout.awaited()),
        None => format!("{} waits for nothing", rollout.app),
    }
}

fn retry(rollout: &RolloutReport) -> anyhow::Result<RolloutApproval> {
    // What an analysis has found is measured again.
    let Some(digest) = rollout.refused().or_else(|| rollout.measured().map(|(_, digest)| digest)) else {
        bail!("no version of {} was reverted: there is nothing to try again", rollout.app);
    };
    Ok(promotion::approval(&rollout.app, digest, RolloutAction::Retry))
}

fn overriding(rollout: &RolloutReport, window: &str) -> anyhow::Result<RolloutApproval> {
    let shut = || rollout.shut_windows();
    let Some(hold) = shut().find(|hold| hold.window == window) else {
        let names: BTreeSet<&str> = shut().map(|hold| hold.window).collect();
        match Vec::from_iter(names)[..] {
            [] => bail!("no window holds {}: {}", rollout.app, instead(rollout)),
            ref names => bail!("window {window} does not hold {}, but {}", rollout.app, names.join(", ")),
        }
    };
    let action = RolloutAction::Override { window: window.to_owned() };
    Ok(promotion::approval(&rollout.app, hold.digest, action))
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
    if let (None, Some(digest)) = (asked, rollout.refused()) {
        let digest = digest.short();
        bail!(
            "version {digest} of {app} was reverted, no confirmation opens a wave: --retry starts it again"
        );
    }
    if !rollout.is_open {
        bail!("{app} waits for nothing: every unit has this version");
    }
    let through = match (through, asked) {
        (Some(through), Some(asked)) if position(through) < position(&asked.through) => {
            bail!("wave {through} of {app} asks for nothing; wave {} waits for confirmation", asked.through)
        }
        (Some(through), None) if position(through) == Some(0) => {
            bail!("wave {through} of {app} is the first: it opens without confirmation")
        }
        (Some(through), _) => through,
        (None, Some(asked)) => asked.through.as_str(),
        // Only the process that runs knows what it measured.
        (None, None) if rollout.measured().is_some() => rollout.measured().map_or("", |(through, _)| through),
        (None, None) => bail!(
            "{app} does not wait for confirmation: {}; --through WAVE confirms a wave before it asks",
            rollout.awaited()
        ),
    };
    Ok(approval(rollout, RolloutAction::Open { through: through.to_owned() }))
}

fn approval(rollout: &RolloutReport, action: RolloutAction) -> RolloutApproval {
    let asked = rollout.confirmation.as_ref().map(|asked| asked.digest);
    let asked = asked.or_else(|| rollout.measured().map(|(_, digest)| digest));
    promotion::approval(&rollout.app, asked.unwrap_or(rollout.digest), action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppId, Digest};
    use crate::report::UnitReport;
    use crate::rollout::{Hold, UnitId, WaveReport, WaveState};

    fn rollout(app: AppId, hold: Hold) -> RolloutReport {
        let unit = UnitReport { hold: Some(hold), ..UnitReport::of_test(UnitId::new("c1", ""), "test") };
        let wave = |name| WaveReport::of_test(name, WaveState::Shut, 0, 1);
        RolloutReport::of_test(app, vec![wave("test"), wave("retry")], vec![unit])
    }

    fn limit() -> Hold {
        Hold::Concurrency { wave: "test".to_owned(), limit: 1 }
    }

    #[test]
    fn confirmation_that_changes_nothing_is_refused() {
        let app = AppId::new("shop", "pay");
        let back = rollout(app.clone(), Hold::Reverted { digest: Digest::of(b"v2") });
        let check = |rollout: &RolloutReport, through: Option<&str>, expected: &str| {
            let error = opening(rollout, through).expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&back, Some("retry"), "was reverted, no confirmation opens a wave: --retry starts it again");
        check(&back, None, "--retry starts it again");
        let open = rollout(app, limit());
        check(&open, Some("test"), "wave test of shop/pay is the first: it opens without confirmation");
        assert!(opening(&open, Some("retry")).is_ok());
    }

    #[test]
    fn no_two_approvals_share_a_file() {
        let of = |namespace: &str, name: &str| {
            let rollout = rollout(AppId::new(namespace, name), limit());
            let open = RolloutAction::Open { through: "retry".to_owned() };
            let retry = promotion::approval(&rollout.app, rollout.digest, RolloutAction::Retry);
            [approval(&rollout, open).name, retry.name]
        };
        let mut names = [of("shop", "a-b"), of("shop-a", "b"), of("shop", "a.b")].concat();
        assert_eq!(names[0], "shop.a-b.retry");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 6);
    }
}

//! `tutti approve rollout APP`: writes the approval that opens waves, retries a version, or overrides a window.

use std::collections::BTreeSet;

use anyhow::bail;
use clap::Args;

use super::super::app_selection::rollout_named;
use super::super::checkout::{ApprovalFileArgs, commit};
use super::super::exit::{self, Exit};
use super::super::files;
use super::super::output::{say, tell};
use super::super::rollout::view;
use crate::controller::RunUntil;
use crate::manifest::read::nearest;
use crate::model::{Revision, RolloutAction, RolloutApproval, UnmetApprovalRule};
use crate::promotion;
use crate::report::RolloutReport;
use crate::rollout::RolloutHold;

#[derive(Args, Debug)]
pub struct ApproveRolloutArgs {
    /// App, as NAMESPACE/NAME or as NAME if it is unique
    app: String,
    /// Last wave that may open; default: the last one before the next confirmation, analysis or status
    #[arg(long, value_name = "WAVE", conflicts_with = "retry")]
    through: Option<String>,
    /// Retry the version that failed and was reverted, or measure a failed analysis again
    #[arg(long)]
    retry: bool,
    /// Window to override: the current version may roll out although the window is shut
    #[arg(long = "override", value_name = "WINDOW", conflicts_with_all = ["retry", "through"])]
    window: Option<String>,
    #[command(flatten)]
    file: ApprovalFileArgs,
}

pub async fn run(args: ApproveRolloutArgs) -> anyhow::Result<Exit> {
    let Some((root, overview)) = args.file.observe(|timeout| RunUntil::Explained { timeout }).await? else {
        return Ok(Exit::Interrupted);
    };
    let rollout = rollout_named(&overview, &args.app)?;
    rollout.mismatched_approvals().iter().for_each(|line| tell!("note: {line}"));
    let left_out = view::left_out_clusters(rollout);
    let away = exit::offline_clusters(&overview, |cluster| left_out.contains(&cluster.name));
    if let Some(away) = away {
        // The state of that cluster decides whether anything waits.
        if !rollout.is_open {
            tell!("error: the gates of {} are not known: {away}", rollout.app);
            return Ok(Exit::Unreachable);
        }
        tell!("note: {away}");
    }
    let approval = match &args.window {
        _ if args.retry => retry_approval(rollout)?,
        Some(window) => override_approval(rollout, window)?,
        None => opening_approval(rollout, args.through.as_deref())?,
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
    }
    say!("{}", next_step_text(args.file.commit, &approving_rules(rollout, &approval)));
    Ok(Exit::Ok)
}

/// The approval rules that this approval serves.
fn approving_rules(rollout: &RolloutReport, approval: &RolloutApproval) -> Vec<UnmetApprovalRule> {
    match &approval.action {
        RolloutAction::Open { through } => rollout.required_approvals(through),
        RolloutAction::Retry | RolloutAction::Override { .. } => Vec::new(),
    }
}

/// The next step after the file is written. Approval rules count reviews of its pull request.
fn next_step_text(is_committed: bool, rules: &[UnmetApprovalRule]) -> String {
    let (begin, push) = match is_committed {
        true => ("committed; ", "push it"),
        false => ("", "commit and push it"),
    };
    match rules.first() {
        None => format!("{begin}{push} to continue"),
        Some(rule) if rule.count.is_none() => format!("{begin}{rule}"),
        Some(rule) => {
            let needs = format!("its pull request needs {}, rule {}", rule.requirement(), rule.rule);
            format!("{begin}{push} to a branch: {needs}")
        }
    }
}

/// Whether this is a prefix of a digest that the rollout's approvals name.
pub fn has_digest(rollout: &RolloutReport, beginning: &str) -> bool {
    let asked = rollout.confirmation.as_ref().map(|asked| asked.digest);
    let mut known = asked.into_iter().chain(rollout.reverted_digests()).chain([rollout.digest]);
    known.any(|digest| digest.to_string().starts_with(beginning))
}

/// The command that the rollout waits for.
pub fn next_step_of(rollout: &RolloutReport) -> String {
    match rollout.next_step() {
        Some(step) => step.to_string(),
        None if rollout.is_open => {
            format!("{} waits for no person: {}", rollout.app, rollout.pending_summary())
        }
        None => format!("{} waits for nothing", rollout.app),
    }
}

fn retry_approval(rollout: &RolloutReport) -> anyhow::Result<RolloutApproval> {
    // A retry measures a failed analysis again.
    let Some(digest) =
        rollout.reverted_digest().or_else(|| rollout.wave_awaiting_measurement().map(|(_, digest)| digest))
    else {
        bail!("no version of {} was reverted: there is nothing to try again", rollout.app);
    };
    Ok(promotion::rollout_approval(&rollout.app, digest, RolloutAction::Retry))
}

fn override_approval(rollout: &RolloutReport, window: &str) -> anyhow::Result<RolloutApproval> {
    let shut = || rollout.closed_windows();
    let Some(hold) = shut().find(|hold| hold.window == window) else {
        let names: BTreeSet<&str> = shut().map(|hold| hold.window).collect();
        match Vec::from_iter(names)[..] {
            [] => bail!("no window holds {}: {}", rollout.app, next_step_of(rollout)),
            ref names => bail!("window {window} does not hold {}, but {}", rollout.app, names.join(", ")),
        }
    };
    let action = RolloutAction::Override { window: window.to_owned() };
    Ok(promotion::rollout_approval(&rollout.app, hold.digest, action))
}

fn opening_approval(rollout: &RolloutReport, through: Option<&str>) -> anyhow::Result<RolloutApproval> {
    let app = &rollout.app;
    let asked = rollout.confirmation.as_ref();
    // Its approvals are not read yet.
    let reading =
        rollout.holds().find(|hold| matches!(hold.gate(), RolloutHold::Approval { .. }) && hold.is_reading());
    let position = |name: &str| rollout.waves.iter().position(|wave| wave.name == name);
    if let Some(wanted) = through
        && position(wanted).is_none()
    {
        let known: Vec<&str> = rollout.waves.iter().map(|wave| wave.name.as_str()).collect();
        let near = nearest(wanted, &known).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
        bail!("{app} has no wave {wanted}, but {}{near}", known.join(", "));
    }
    if let (None, Some(digest)) = (asked, rollout.reverted_digest()) {
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
            let waits_for = required_agreement(&rollout.required_approvals(&asked.through));
            bail!(
                "wave {through} of {app} needs no confirmation; wave {} waits for {waits_for}",
                asked.through
            )
        }
        (Some(through), None) if position(through) == Some(0) && reading.is_none() => {
            bail!("wave {through} of {app} is the first: it opens without confirmation")
        }
        (Some(through), _) => through,
        (None, Some(asked)) => asked.through.as_str(),
        // Only the running process knows its measurements.
        (None, None) if rollout.wave_awaiting_measurement().is_some() => {
            rollout.wave_awaiting_measurement().map_or("", |(through, _)| through)
        }
        (None, None) if reading.is_some() => bail!(
            "an Approval of {app} exists already: {}; --through WAVE writes another one",
            reading.map(ToString::to_string).unwrap_or_default()
        ),
        (None, None) => bail!(
            "{app} does not wait for confirmation: {}; --through WAVE confirms a wave in advance",
            rollout.pending_summary()
        ),
    };
    Ok(approval(rollout, RolloutAction::Open { through: through.to_owned() }))
}

fn required_agreement(rules: &[UnmetApprovalRule]) -> String {
    match rules {
        [] => "confirmation".to_owned(),
        [first, ..] => format!("{}, rule {}", first.requirement(), first.rule),
    }
}

fn approval(rollout: &RolloutReport, action: RolloutAction) -> RolloutApproval {
    let asked = rollout.confirmation.as_ref().map(|asked| asked.digest);
    let asked = asked.or_else(|| rollout.wave_awaiting_measurement().map(|(_, digest)| digest));
    promotion::rollout_approval(&rollout.app, asked.unwrap_or(rollout.digest), action)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppId, ApprovalShortfall, Digest};
    use crate::report::UnitReport;
    use crate::rollout::{Confirmation, UnitId, WaveReport, WaveState};

    fn rollout(app: AppId, hold: RolloutHold) -> RolloutReport {
        let unit = UnitReport { hold: Some(hold), ..UnitReport::of_test(UnitId::new("c1", ""), "test") };
        let wave = |name| WaveReport::of_test(name, WaveState::Shut, 0, 1);
        RolloutReport::of_test(app, vec![wave("test"), wave("retry")], vec![unit])
    }

    fn limit() -> RolloutHold {
        RolloutHold::Concurrency { wave: "test".to_owned(), limit: 1 }
    }

    #[test]
    fn confirmation_that_changes_nothing_is_refused() {
        let app = AppId::new("shop", "pay");
        let back = rollout(app.clone(), RolloutHold::Reverted { digest: Digest::of(b"v2") });
        let check = |rollout: &RolloutReport, through: Option<&str>, expected: &str| {
            let error = opening_approval(rollout, through).expect_err("it is refused").to_string();
            assert!(error.contains(expected), "{error}");
        };
        check(&back, Some("retry"), "was reverted, no confirmation opens a wave: --retry starts it again");
        check(&back, None, "--retry starts it again");
        let open = rollout(app, limit());
        check(&open, Some("test"), "wave test of shop/pay is the first: it opens without confirmation");
        assert!(opening_approval(&open, Some("retry")).is_ok());
    }

    fn ruled(lack: ApprovalShortfall) -> RolloutReport {
        let (rule, approvers) = ("production".to_owned(), vec!["managers".to_owned()]);
        let asks = vec![UnmetApprovalRule { rule, count: Some(2), approvers, reason: None, lack }];
        let hold = RolloutHold::Approval { asks, through: "retry".to_owned(), digest: Digest::of(b"v2") };
        let confirmation: Option<Confirmation> = hold.confirmation();
        RolloutReport { confirmation, ..rollout(AppId::new("shop", "pay"), hold) }
    }

    #[test]
    fn approval_rule_is_named() {
        let check = |lack: ApprovalShortfall, through: Option<&str>, expected: &str| {
            let said = match opening_approval(&ruled(lack.clone()), through) {
                Ok(approval) => next_step_text(false, &approving_rules(&ruled(lack), &approval)),
                Err(error) => error.to_string(),
            };
            assert_eq!(said, expected);
        };
        let needs =
            "commit and push it to a branch: its pull request needs 2 approvals of managers, rule production";
        check(ApprovalShortfall::None, None, needs);
        check(ApprovalShortfall::TooFew(vec!["ann".to_owned()]), Some("retry"), needs);
        check(
            ApprovalShortfall::None,
            Some("test"),
            "wave test of shop/pay needs no confirmation; wave retry waits for 2 approvals of managers, rule \
             production",
        );
        let there = "an Approval of shop/pay exists already: rule production requires 2 approvals of \
                     managers: its reviews are not read yet";
        let another = "--through WAVE writes another one";
        check(ApprovalShortfall::NotReadYet(None), None, &format!("{there}; {another}"));
        let away = ApprovalShortfall::NotReadYet(Some("503".into()));
        check(away.clone(), None, &format!("{there}: 503; {another}"));
        check(away, Some("retry"), needs);
        assert_eq!(next_step_text(false, &[]), "commit and push it to continue");
        assert_eq!(next_step_text(true, &[]), "committed; push it to continue");
    }

    #[test]
    fn no_two_approvals_share_a_file() {
        let of = |namespace: &str, name: &str| {
            let rollout = rollout(AppId::new(namespace, name), limit());
            let open = RolloutAction::Open { through: "retry".to_owned() };
            let retry = promotion::rollout_approval(&rollout.app, rollout.digest, RolloutAction::Retry);
            [approval(&rollout, open).name, retry.name]
        };
        let mut names = [of("shop", "a-b"), of("shop-a", "b"), of("shop", "a.b")].concat();
        assert_eq!(names[0], "shop.a-b.retry");
        names.sort();
        names.dedup();
        assert_eq!(names.len(), 6);
    }
}

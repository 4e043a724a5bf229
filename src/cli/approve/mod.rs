//! `tutti approve`: writes the approval for deletes that wait, or for a rollout.

mod rollout;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::checkout::{ApprovalFileArgs, commit};
use super::exit::Exit;
use super::files;
use super::output::say;
use crate::controller::RunUntil;
use crate::manifest;
use crate::model::{Approval, Revision};
use crate::promotion;
use crate::report::RolloutReport;
use crate::report::status_text::count_noun;

#[derive(Args, Debug)]
#[command(args_conflicts_with_subcommands = true, subcommand_negates_reqs = true)]
pub struct ApproveArgs {
    #[command(subcommand)]
    what: Option<ApproveCommand>,
    /// Digest of the deletes, as shown by `tutti plan`, the commit status or `tutti get`; the first 4 digits suffice
    /// if unique
    #[arg(value_parser = beginning, required = true)]
    digest: Option<String>,
    #[command(flatten)]
    file: ApprovalFileArgs,
}

#[derive(Debug, Subcommand)]
enum ApproveCommand {
    /// Write the approval that opens the next waves of an app, retries a reverted version or overrides a window
    Rollout(Box<rollout::ApproveRolloutArgs>),
}

pub async fn run(args: ApproveArgs) -> anyhow::Result<Exit> {
    if let Some(ApproveCommand::Rollout(args)) = args.what {
        return rollout::run(*args).await;
    }
    let digest = args.digest.unwrap_or_default();
    let Some((root, overview)) = args.file.observe(|timeout| RunUntil::Planned { timeout }).await? else {
        return Ok(Exit::Interrupted);
    };
    let fits = |approval: &&Approval| approval.digest().to_string().starts_with(&digest);
    let approvals = || overview.approvals_wanted.iter().chain(&overview.approvals_early);
    let fitting: Vec<&Approval> = approvals().filter(fits).collect();
    let approval = match fitting.as_slice() {
        [approval] => *approval,
        [] => {
            let is_its = |rollout: &&RolloutReport| rollout::has_digest(rollout, &digest);
            if let Some(rollout) = overview.rollouts.iter().find(is_its) {
                bail!(
                    "{digest} is the version of a rollout, not of deletes; {}",
                    rollout::next_step_of(rollout)
                );
            }
            let known: Vec<String> = overview
                .approvals_wanted
                .iter()
                .map(|it| format!("{} ({})", it.digest().short(), it.app))
                .collect();
            let known = if known.is_empty() {
                "nothing waits".to_owned()
            } else {
                format!("waiting: {}", known.join(", "))
            };
            bail!("no deletes wait for an approval {digest}; {known}");
        }
        _ => bail!("{digest} is the beginning of several digests: give more digits"),
    };
    let (path, text) = approval_file(approval, overview.revision.as_ref());
    files::write(&root, &path, &text)?;
    let path = root.join(path);
    say!("{}: approves {} of {}", path.display(), count_noun(approval.objects.len(), "delete"), approval.app);
    if args.file.commit {
        let message = format!("Approve {} of {}", count_noun(approval.objects.len(), "delete"), approval.app);
        commit(&root, &path, &message)?;
        say!("committed; push it to start the deletes");
    } else {
        say!("commit and push it to start the deletes");
    }
    Ok(Exit::Ok)
}

/// At least four digits: the empty text would match all digests.
fn beginning(text: &str) -> Result<String, String> {
    let is_hexadecimal = text.bytes().all(|byte| byte.is_ascii_hexdigit());
    match is_hexadecimal && text.len() >= 4 {
        true => Ok(text.to_ascii_lowercase()),
        false => Err("a digest is hexadecimal, and at least 4 of its digits are needed".to_owned()),
    }
}

/// `approvals/<name>.yaml` and its text. The name carries the digest, so that an older approval of the app is not overwritten.
fn approval_file(approval: &Approval, head: Option<&Revision>) -> (String, String) {
    let name = format!("{}-{}", approval.name, approval.digest().short());
    let path = format!("approvals/{name}.yaml");
    let text = manifest::approval_to_yaml(&Approval { name, ..approval.clone() });
    (path, head.map_or_else(|| text.clone(), |head| promotion::stamp_request_commit(head, &text)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppId, ApprovedAction, ApprovedObject, Digest, ObjectId};

    /// An approval merged with too few reviews is asked for again: its file must differ.
    #[test]
    fn approval_at_another_head_differs() {
        let object = |uid: &str| ApprovedObject {
            cluster: "c1".into(),
            id: ObjectId::new("", "ConfigMap", Some("default"), "two"),
            uid: uid.to_owned(),
        };
        let approval = |uid: &str| Approval {
            name: "delete-default-maps".to_owned(),
            app: AppId::new("default", "maps"),
            action: ApprovedAction::Delete,
            rendered: Digest::of(b"v2"),
            objects: vec![object(uid)],
            location: None,
            is_alone: true,
        };
        let at = |uid: &str, head: &str| approval_file(&approval(uid), Some(&Revision::from(head)));
        let (first, again) = (at("1", "0123456789"), at("1", "9876543210"));
        assert_eq!(first.0, again.0);
        assert!(first.1.starts_with("# Asked for at commit 0123456.\n"), "{}", first.1);
        assert_ne!(first.1, again.1);
        // Another object of the same name gets another file.
        assert_ne!(first.0, at("2", "0123456789").0);
    }
}

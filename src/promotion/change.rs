//! The change of a pull request of this instance, and its title and branch.

use crate::manifest;
use crate::manifest::yaml;
use crate::model::{AppId, Digest, Revision, RolloutAction, RolloutApproval, RolloutApprovalLocations};

use super::description_block::{DescriptionBlock, PullRequestApp};
use super::edit;
use super::pin::{PinChange, version_change};

/// The purpose of a pull request of this instance.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ProposedChange {
    /// A ring gets the versions of the ring before.
    Promote {
        /// The namespace and the group of the apps. An app without a group is a group of its own name.
        group: AppId,
        ring: String,
        before: String,
        pins: Vec<PinChange>,
        /// A person requested it with `tutti promote`: it is not updated.
        is_requested: bool,
    },
    /// A wave of a commit opens: the Approvals of all apps that wait there.
    Approve { commit: Revision, wave: String, approvals: Vec<RolloutApproval> },
    /// A commit that failed and was reverted in the clusters is reverted in Git. Without pins the whole commit is reverted.
    Revert { commit: Revision, apps: Vec<AppId>, pins: Vec<PinChange> },
}

/// The prefix of an instance's branches: the prefix of its statuses, which distinguishes instances at one repository. It may
/// contain characters that a branch name must not have.
pub fn branch_prefix(prefix: &str) -> String {
    let plain =
        |letter: char| if letter.is_ascii_alphanumeric() || "_-".contains(letter) { letter } else { '-' };
    let parts = prefix.split('/').filter(|part| !part.is_empty());
    parts.map(|part| part.chars().map(plain).collect::<String>()).collect::<Vec<_>>().join("/")
}

/// Whether this is a branch name of this module. `prefix`: of the statuses.
pub fn is_own_branch(prefix: &str, branch: &str) -> bool {
    matches!(branch_kind(prefix, branch), Some("promote" | "approve" | "revert"))
}

pub fn is_approval_branch(prefix: &str, branch: &str) -> bool {
    branch_kind(prefix, branch) == Some("approve")
}

fn branch_kind<'b>(prefix: &str, branch: &'b str) -> Option<&'b str> {
    let below = branch.strip_prefix(&branch_prefix(prefix)).and_then(|rest| rest.strip_prefix('/'));
    below.and_then(|below| below.split_once('/')).map(|(kind, _)| kind)
}

impl ProposedChange {
    /// `prefix`: of the statuses.
    pub fn branch(&self, prefix: &str) -> String {
        let begin = branch_prefix(prefix);
        match self {
            Self::Promote { group, ring, .. } => promotion_branch(prefix, group, ring),
            Self::Approve { commit, wave, .. } => format!("{begin}/approve/{}/{wave}", commit.short()),
            Self::Revert { commit, .. } => format!("{begin}/revert/{}", commit.short()),
        }
    }

    pub fn title(&self) -> String {
        match self {
            Self::Promote { group, ring, pins, .. } => match pins.as_slice() {
                [pin] => format!("promote({}): {} on {ring}", pin.app.name, version_change(pin)),
                pins => format!("promote({}): {} apps on {ring}", group.name, pins.len()),
            },
            Self::Approve { commit, wave, approvals } => match approvals.as_slice() {
                [one] => format!("approve({}): wave {wave} of {}", one.app.name, commit.short()),
                all => format!("approve: wave {wave} of {} for {} apps", commit.short(), all.len()),
            },
            Self::Revert { commit, apps, pins } => match (apps.as_slice(), pins.as_slice()) {
                (_, [pin]) => format!("revert({}): {}", pin.app.name, version_change(pin)),
                ([app], _) => format!("revert({}): {}", app.name, commit.short()),
                (apps, _) => format!("revert: {} for {} apps", commit.short(), apps.len()),
            },
        }
    }

    /// The part that programs read back.
    pub fn block(&self) -> DescriptionBlock {
        let of_pin = |pin: &PinChange| PullRequestApp {
            app: pin.app.clone(),
            from: pin.from.clone(),
            to: pin.to.clone(),
        };
        let (kind, ring, commit, items) = match self {
            Self::Promote { ring, pins, .. } => {
                ("promotion", Some(ring), None, pins.iter().map(of_pin).collect())
            }
            Self::Approve { commit, wave, approvals } => {
                let of = |it: &RolloutApproval| PullRequestApp {
                    app: it.app.clone(),
                    from: None,
                    to: it.digest.to_string(),
                };
                ("approval", Some(wave), Some(commit), approvals.iter().map(of).collect())
            }
            Self::Revert { commit, apps, pins } => {
                let whole = apps.iter().filter(|app| pins.iter().all(|pin| pin.app != **app));
                let whole =
                    whole.map(|app| PullRequestApp { app: app.clone(), from: None, to: String::new() });
                ("revert", None, Some(commit), pins.iter().map(of_pin).chain(whole).collect())
            }
        };
        let mut items: Vec<PullRequestApp> = items;
        items.sort();
        DescriptionBlock {
            kind: kind.to_owned(),
            ring: ring.cloned(),
            commit: commit.map(ToString::to_string),
            items,
            is_requested: matches!(self, Self::Promote { is_requested: true, .. }),
            is_withdrawn: false,
        }
    }

    /// The files that it writes, each with its whole new text. `read` returns the text of a file at the commit where the branch
    /// starts. A revert of a whole commit has none, because Git does it.
    pub fn files(
        &self,
        head: &Revision,
        read: &dyn Fn(&str) -> Option<String>,
    ) -> Result<Vec<(String, String)>, String> {
        match self {
            Self::Promote { pins, .. } | Self::Revert { pins, .. } => {
                pins.iter().map(|pin| Ok((pin.file.clone(), pin_file_text(pin, read)?))).collect()
            }
            Self::Approve { approvals, .. } => {
                Ok(approvals.iter().map(|it| approval_file(it, head)).collect())
            }
        }
    }
}

/// `tutti/promote/shop.pay/prod`. A namespace has no dot, so two groups never share a branch.
pub fn promotion_branch(prefix: &str, group: &AppId, ring: &str) -> String {
    format!("{}/promote/{}.{}/{ring}", branch_prefix(prefix), group.namespace, group.name)
}

fn pin_file_text(pin: &PinChange, read: &dyn Fn(&str) -> Option<String>) -> Result<String, String> {
    match read(&pin.file) {
        Some(text) => edit::set_scalar(&text, "version", &pin.to).map_err(|error| error.in_file(&pin.file)),
        None => {
            let version = yaml::edit::requote("v", "v", &pin.to).unwrap_or_default();
            Ok(format!("version: {version}\n"))
        }
    }
}

/// An Approval of a rollout. Its name is its purpose, so the Approval of the next version replaces it.
pub fn rollout_approval(app: &AppId, digest: Digest, action: RolloutAction) -> RolloutApproval {
    let purpose = match &action {
        RolloutAction::Open { through } => through.clone(),
        RolloutAction::Retry => format!("retry-{}", digest.short()),
        RolloutAction::Override { window } => format!("override-{window}"),
    };
    // Namespaces and waves have no dot, so the name is unique.
    let name = format!("{}.{}.{purpose}", app.namespace, app.name);
    let places = RolloutApprovalLocations::default();
    RolloutApproval { name, app: app.clone(), digest, action, location: None, is_alone: true, places }
}

/// Its path and its text. The text contains the commit of the request, so that the file differs from one that approved this
/// version before.
pub fn approval_file(approval: &RolloutApproval, head: &Revision) -> (String, String) {
    let text = manifest::rollout_approval_to_yaml(approval);
    (format!("approvals/{}.yaml", approval.name), stamp_request_commit(head, &text))
}

/// The text of an Approval that is requested at another commit. If the earlier file lacked approvals, a new pull request brings
/// this one.
pub fn stamp_request_commit(head: &Revision, text: &str) -> String {
    format!("# Asked for at commit {}.\n{text}", head.short())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn branches_of_instance_begin_with_prefix() {
        let check = |prefix: &str, branch: &str, expected: bool| {
            assert_eq!(is_own_branch(prefix, branch), expected, "{prefix}: {branch}");
        };
        check("tutti", "tutti/promote/shop.pay/prod", true);
        check("tutti", "tutti/approve/0123456/canary", true);
        check("tutti", "tutti/revert/0123456", true);
        check("tutti", "tutti/trigger/ci/shop.pay", false);
        check("tutti", "tutti/promote", false);
        check("tutti", "staging/promote/shop.pay/prod", false);
        check("tutti", "tutti-b/promote/shop.pay/prod", false);
        check("team/b", "team/b/promote/shop.pay/prod", true);
        check("team", "team/b/promote/shop.pay/prod", false);
        check("/ci:a..b//c.lock", "ci-a--b/c-lock/promote/shop.pay/prod", true);
        assert_eq!(promotion_branch("b", &AppId::new("shop", "pay"), "prod"), "b/promote/shop.pay/prod");
    }
}

//! Decides which pull request is checked next.

use std::collections::BTreeMap;
use std::time::Duration;

use tokio::time::Instant;

use crate::forge::Pull;
use crate::model::Revision;

/// After the base moved, its rollout goes first; several pushes cause one check.
const BASE_SETTLE_TIME: Duration = Duration::from_secs(10);

/// An open pull request into the deployed branch.
#[derive(Clone, Debug)]
pub struct OpenPull {
    pub pull: Pull,
    pub checked: Option<CheckedHead>,
    /// Earliest retry after a failed read, and the number of failures.
    pub retry_at: Option<Instant>,
    pub attempts: u32,
    /// It had conflicts with the last compared base.
    pub has_conflicts: bool,
}

impl OpenPull {
    pub fn new(pull: Pull) -> Self {
        Self { pull, checked: None, retry_at: None, attempts: 0, has_conflicts: false }
    }

    pub fn update(&mut self, pull: Pull) {
        if pull.head.revision != self.pull.head.revision {
            (self.retry_at, self.attempts) = (None, 0);
        }
        self.pull = pull;
    }
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CheckedHead {
    pub head: Revision,
    pub base: Revision,
    pub may_render: bool,
}

/// The tip of the deployed branch.
#[derive(Clone, Debug)]
pub struct DeployedTip {
    pub revision: Revision,
    /// Since when, or the time of the last webhook about it.
    pub since: Instant,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NextCheck {
    Check(u64),
    /// Checked before, with another base.
    Recheck(u64),
    WaitUntil(Instant),
    Nothing,
}

/// New heads before a moved base, then the lowest number. Bounded by the open pull requests.
pub fn next_check(
    open: &BTreeMap<u64, OpenPull>,
    base: &DeployedTip,
    prefix: &str,
    now: Instant,
) -> NextCheck {
    let due = |number: &u64, it: &OpenPull| {
        let CheckedHead { head, base: compared, may_render } = match &it.checked {
            None => return Some((it.retry_at.unwrap_or(now).max(now), 0, *number)),
            Some(checked) => checked,
        };
        let is_new = *head != it.pull.head.revision || *may_render != is_render_allowed(&it.pull, prefix);
        let at = match is_new {
            true => now,
            false if *compared != base.revision => base.since + BASE_SETTLE_TIME,
            false => return None,
        };
        Some((it.retry_at.map_or(at, |not_before| not_before.max(at)).max(now), u8::from(!is_new), *number))
    };
    match open.iter().filter_map(|(number, it)| due(number, it)).min() {
        None => NextCheck::Nothing,
        Some((at, 0, number)) if at <= now => NextCheck::Check(number),
        Some((at, _, number)) if at <= now => NextCheck::Recheck(number),
        Some((at, ..)) => NextCheck::WaitUntil(at),
    }
}

/// The label that lets a fork be rendered.
pub fn render_label(prefix: &str) -> String {
    format!("{prefix}/ok-to-plan")
}

/// Forks are rendered only with the label. Only users with write access can set labels.
pub fn is_render_allowed(pull: &Pull, prefix: &str) -> bool {
    !pull.head.is_fork || pull.labels.contains(&render_label(prefix))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::{PullSide, PullState};

    fn pull(number: u64, head: &str, is_fork: bool, labels: &[&str]) -> Pull {
        let branch = |revision: &str, is_fork| PullSide {
            reference: "main".to_owned(),
            revision: Revision::from(revision),
            repository: Some("platform/config".to_owned()),
            is_fork,
        };
        Pull {
            number,
            title: String::new(),
            body: String::new(),
            state: PullState::Open,
            is_draft: false,
            author: "li".to_owned(),
            head: branch(head, is_fork),
            base: branch("b1", false),
            labels: labels.iter().map(|label| (*label).to_owned()).collect(),
            url: String::new(),
            merged_by: None,
            merge_commit: None,
            updated_at: jiff::Timestamp::UNIX_EPOCH,
        }
    }

    #[tokio::test(start_paused = true)]
    async fn new_heads_come_before_a_moved_base() {
        let start = Instant::now();
        let at = |seconds| start + Duration::from_secs(seconds);
        let base = DeployedTip { revision: Revision::from("b2"), since: at(100) };
        let known = |head: &str, compared: &str, may_render: bool| {
            Some(CheckedHead { head: Revision::from(head), base: Revision::from(compared), may_render })
        };
        let check =
            |pulls: &[(Pull, Option<CheckedHead>, Option<u64>)], seconds: u64, expected: NextCheck| {
                let one = |(pull, checked, not_before): &(Pull, Option<CheckedHead>, Option<u64>)| {
                    let (pull, checked) = (pull.clone(), checked.clone());
                    (pull.number, OpenPull { checked, retry_at: not_before.map(at), ..OpenPull::new(pull) })
                };
                let open = pulls.iter().map(one).collect();
                assert_eq!(next_check(&open, &base, "tutti", at(seconds)), expected, "{pulls:?}");
            };
        check(&[], 100, NextCheck::Nothing);
        check(&[(pull(1, "h1", false, &[]), known("h1", "b2", true), None)], 100, NextCheck::Nothing);
        check(&[(pull(1, "h1", false, &[]), None, None)], 100, NextCheck::Check(1));
        check(&[(pull(1, "h1", false, &[]), None, Some(130))], 100, NextCheck::WaitUntil(at(130)));
        let moved = (pull(1, "h1", false, &[]), known("h1", "b1", true), None);
        check(std::slice::from_ref(&moved), 101, NextCheck::WaitUntil(at(110)));
        check(std::slice::from_ref(&moved), 110, NextCheck::Recheck(1));
        check(&[moved.clone(), (pull(2, "h2", false, &[]), None, None)], 110, NextCheck::Check(2));
        check(&[moved, (pull(2, "h2", false, &[]), known("h1", "b2", true), None)], 101, NextCheck::Check(2));
        check(&[(pull(3, "h1", true, &[]), known("h1", "b2", false), None)], 101, NextCheck::Nothing);
        let labelled = pull(3, "h1", true, &["bug", "tutti/ok-to-plan"]);
        assert!(!is_render_allowed(&labelled, "staging"));
        check(&[(labelled.clone(), known("h1", "b2", false), None)], 101, NextCheck::Check(3));
        check(&[(labelled, known("h1", "b2", true), None)], 101, NextCheck::Nothing);
    }
}

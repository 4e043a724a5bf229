//! Measures the time from a commit until its targets are healthy.
//!
//! The time begins when this process sees the commit on the branch. The commit's own time comes from the author's clock and
//! may be hours before the push. Commits that exist at the start are not measured.

use std::collections::{BTreeMap, VecDeque};
use std::time::Duration;

use tokio::time::Instant;

use crate::model::Revision;
use crate::report::Overview;

/// More than the number of tracked commits.
const MAX_COMMITS: usize = 64;

/// Commits in progress, the oldest first.
#[derive(Debug, Default)]
pub(super) struct CommitTimers(VecDeque<(Revision, Instant)>);

/// The state of a commit in an overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum CommitProgress {
    /// Not read or rendered yet, or not all targets are healthy.
    Pending,
    Converged,
    /// It changes nothing, or newer commits changed everything of it.
    Irrelevant,
}

impl CommitTimers {
    pub(super) fn start(&mut self, commit: &Revision, at: Instant) {
        // If the branch returns to a commit, its time begins anew.
        self.0.retain(|(known, _)| known != commit);
        self.0.push_back((commit.clone(), at));
        if self.0.len() > MAX_COMMITS {
            self.0.pop_front();
        }
    }

    /// The durations of commits that are healthy now. They are not measured further: a later problem does not belong to the
    /// commit.
    pub(super) fn take_converged(&mut self, overview: &Overview, now: Instant) -> Vec<Duration> {
        let mut took = Vec::new();
        let standings = commit_progress(overview, self.0.iter().map(|(commit, _)| commit));
        let mut standings = standings.into_iter();
        self.0.retain(|(_, seen)| match standings.next() {
            Some(CommitProgress::Converged) => {
                took.push(now.duration_since(*seen));
                false
            }
            Some(CommitProgress::Irrelevant) => false,
            Some(CommitProgress::Pending) | None => true,
        });
        took
    }
}

fn commit_progress<'a>(
    overview: &Overview,
    commits: impl Iterator<Item = &'a Revision>,
) -> Vec<CommitProgress> {
    let commits: Vec<&Revision> = commits.collect();
    if commits.is_empty() {
        return Vec::new();
    }
    let places: BTreeMap<&Revision, usize> = commits.iter().enumerate().map(|(at, it)| (*it, at)).collect();
    let (mut changes, mut is_open) = (vec![false; commits.len()], vec![false; commits.len()]);
    let mut note = |commit: &Revision, open: bool| {
        if let Some(&at) = places.get(commit) {
            changes[at] = true;
            is_open[at] |= open;
        }
    };
    for target in &overview.targets {
        note(&target.revision, !target.phase.is_done());
    }
    overview.deletions.iter().for_each(|deletion| note(&deletion.revision, true));
    overview.errors_by_commit.iter().for_each(|(commit, _)| note(commit, true));
    overview.deleted_counts.keys().for_each(|(commit, _)| note(commit, false));
    // Deletes are only known once everything was read.
    let is_known = overview.is_complete();
    let standing =
        |at: usize| match overview.tracked_commits.contains(commits[at]) && is_known && !is_open[at] {
            false => CommitProgress::Pending,
            true if changes[at] => CommitProgress::Converged,
            true => CommitProgress::Irrelevant,
        };
    (0..commits.len()).map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppId, ClusterName, Diagnostic, DiagnosticScope};
    use crate::report::{TargetPhase, TargetReport};

    fn overview(targets: &[(&str, TargetPhase)]) -> Overview {
        let target = |(commit, phase): &(&str, TargetPhase)| TargetReport {
            revision: Revision::from(*commit),
            ..TargetReport::of_test(AppId::new("shop", "pay"), "bj1", *phase)
        };
        Overview {
            revision: Some(Revision::from("two")),
            is_rendered: true,
            tracked_commits: vec![Revision::from("two"), Revision::from("one")],
            targets: targets.iter().map(target).collect(),
            ..Overview::default()
        }
    }

    #[test]
    fn commit_state_follows_its_targets() {
        let check = |what: &str, overview: &Overview, expected: CommitProgress| {
            let two = Revision::from("two");
            assert_eq!(commit_progress(overview, [&two].into_iter()), [expected], "{what}");
        };
        let well = || overview(&[("two", TargetPhase::Running), ("one", TargetPhase::Degraded)]);
        check("its target is well", &well(), CommitProgress::Converged);
        let open = overview(&[("two", TargetPhase::Running), ("two", TargetPhase::Progressing)]);
        check("one of two is well", &open, CommitProgress::Pending);
        check("the target failed", &overview(&[("two", TargetPhase::Degraded)]), CommitProgress::Pending);
        check(
            "another commit took over",
            &overview(&[("one", TargetPhase::Running)]),
            CommitProgress::Irrelevant,
        );
        check("not rendered", &Overview { is_rendered: false, ..well() }, CommitProgress::Pending);
        check(
            "not read",
            &Overview { tracked_commits: vec![Revision::from("one")], ..well() },
            CommitProgress::Pending,
        );
        let mistake = Diagnostic::error("E1001", "an error", DiagnosticScope::Instance);
        let blamed = vec![(Revision::from("two"), mistake)];
        check(
            "it brought an error",
            &Overview { errors_by_commit: blamed, ..well() },
            CommitProgress::Pending,
        );
        let deleted = [((Revision::from("two"), ClusterName::from("bj1")), 1)].into();
        check(
            "it only deletes",
            &Overview { deleted_counts: deleted, ..overview(&[]) },
            CommitProgress::Converged,
        );
    }

    #[test]
    fn commit_is_measured_once() {
        let (mut commits, begin) = (CommitTimers::default(), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        commits.start(&Revision::from("two"), begin);
        let progressing = overview(&[("two", TargetPhase::Progressing)]);
        let well = overview(&[("two", TargetPhase::Running)]);
        assert!(commits.take_converged(&progressing, after(1)).is_empty());
        assert_eq!(commits.take_converged(&well, after(5)), [Duration::from_secs(5)]);
        assert!(commits.take_converged(&well, after(6)).is_empty());
    }

    #[test]
    fn commits_before_the_start_are_not_measured() {
        let mut commits = CommitTimers::default();
        assert!(
            commits.take_converged(&overview(&[("two", TargetPhase::Running)]), Instant::now()).is_empty()
        );
    }

    #[test]
    fn unfinished_commits_are_bounded() {
        let (mut commits, now) = (CommitTimers::default(), Instant::now());
        for number in 0..1000 {
            commits.start(&Revision::from(number.to_string().as_str()), now);
        }
        assert_eq!(commits.0.len(), MAX_COMMITS);
        assert_eq!(commits.0.back().map(|(commit, _)| commit.as_str()), Some("999"));
    }
}

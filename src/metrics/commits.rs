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
const MOST: usize = 64;

/// Commits in progress, the oldest first.
#[derive(Debug, Default)]
pub(super) struct Commits(VecDeque<(Revision, Instant)>);

/// The state of a commit in an overview.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// Not read or rendered yet, or not all targets are healthy.
    Open,
    Converged,
    /// It changes nothing, or newer commits changed everything of it.
    Nothing,
}

impl Commits {
    pub(super) fn see(&mut self, commit: &Revision, at: Instant) {
        // If the branch returns to a commit, its time begins anew.
        self.0.retain(|(known, _)| known != commit);
        self.0.push_back((commit.clone(), at));
        if self.0.len() > MOST {
            self.0.pop_front();
        }
    }

    /// The durations of commits that are healthy now. They are not measured further: a later problem does not belong to the
    /// commit.
    pub(super) fn converged(&mut self, overview: &Overview, now: Instant) -> Vec<Duration> {
        let mut took = Vec::new();
        let standings = standings(overview, self.0.iter().map(|(commit, _)| commit));
        let mut standings = standings.into_iter();
        self.0.retain(|(_, seen)| match standings.next() {
            Some(Standing::Converged) => {
                took.push(now.duration_since(*seen));
                false
            }
            Some(Standing::Nothing) => false,
            Some(Standing::Open) | None => true,
        });
        took
    }
}

fn standings<'a>(overview: &Overview, commits: impl Iterator<Item = &'a Revision>) -> Vec<Standing> {
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
    overview.blamed.iter().for_each(|(commit, _)| note(commit, true));
    overview.deleted.keys().for_each(|(commit, _)| note(commit, false));
    // Deletes are only known once everything was read.
    let is_known = overview.is_known();
    let standing = |at: usize| match overview.told.contains(commits[at]) && is_known && !is_open[at] {
        false => Standing::Open,
        true if changes[at] => Standing::Converged,
        true => Standing::Nothing,
    };
    (0..commits.len()).map(standing).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{AppId, ClusterName, Diagnostic, Scope};
    use crate::report::{Phase, TargetReport};

    fn overview(targets: &[(&str, Phase)]) -> Overview {
        let target = |(commit, phase): &(&str, Phase)| TargetReport {
            revision: Revision::from(*commit),
            ..TargetReport::of_test(AppId::new("shop", "pay"), "bj1", *phase)
        };
        Overview {
            revision: Some(Revision::from("two")),
            is_rendered: true,
            told: vec![Revision::from("two"), Revision::from("one")],
            targets: targets.iter().map(target).collect(),
            ..Overview::default()
        }
    }

    #[test]
    fn commit_state_follows_its_targets() {
        let check = |what: &str, overview: &Overview, expected: Standing| {
            let two = Revision::from("two");
            assert_eq!(standings(overview, [&two].into_iter()), [expected], "{what}");
        };
        let well = || overview(&[("two", Phase::Running), ("one", Phase::Degraded)]);
        check("its target is well", &well(), Standing::Converged);
        let open = overview(&[("two", Phase::Running), ("two", Phase::Progressing)]);
        check("one of two is well", &open, Standing::Open);
        check("the target failed", &overview(&[("two", Phase::Degraded)]), Standing::Open);
        check("another commit took over", &overview(&[("one", Phase::Running)]), Standing::Nothing);
        check("not rendered", &Overview { is_rendered: false, ..well() }, Standing::Open);
        check("not read", &Overview { told: vec![Revision::from("one")], ..well() }, Standing::Open);
        let mistake = Diagnostic::error("E1001", "a mistake", Scope::Instance);
        let blamed = vec![(Revision::from("two"), mistake)];
        check("it brought a mistake", &Overview { blamed, ..well() }, Standing::Open);
        let deleted = [((Revision::from("two"), ClusterName::from("bj1")), 1)].into();
        check("it only deletes", &Overview { deleted, ..overview(&[]) }, Standing::Converged);
    }

    #[test]
    fn commit_is_measured_once() {
        let (mut commits, begin) = (Commits::default(), Instant::now());
        let after = |seconds| begin + Duration::from_secs(seconds);
        commits.see(&Revision::from("two"), begin);
        let progressing = overview(&[("two", Phase::Progressing)]);
        let well = overview(&[("two", Phase::Running)]);
        assert!(commits.converged(&progressing, after(1)).is_empty());
        assert_eq!(commits.converged(&well, after(5)), [Duration::from_secs(5)]);
        assert!(commits.converged(&well, after(6)).is_empty());
    }

    #[test]
    fn commits_before_the_start_are_not_measured() {
        let mut commits = Commits::default();
        assert!(commits.converged(&overview(&[("two", Phase::Running)]), Instant::now()).is_empty());
    }

    #[test]
    fn unfinished_commits_are_bounded() {
        let (mut commits, now) = (Commits::default(), Instant::now());
        for number in 0..1000 {
            commits.see(&Revision::from(number.to_string().as_str()), now);
        }
        assert_eq!(commits.0.len(), MOST);
        assert_eq!(commits.0.back().map(|(commit, _)| commit.as_str()), Some("999"));
    }
}

//! State of a commit or an app for pipelines: pure functions of the overview. `api::v1` returns them.

use serde::Serialize;

use super::{Overview, TargetPhase, TargetReport, statuses};
use crate::forge;
use crate::model::{AppId, ClusterName, PodCount, Revision, short_line};

/// Targets in one report.
const MAX_UNHEALTHY_TARGETS: usize = 20;
const MOST_CLUSTERS: usize = 1000;
/// In characters.
const LONGEST_DETAIL: usize = 300;
/// The fewest digits that name a commit.
const MIN_COMMIT_DIGITS: usize = 7;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum OverallState {
    Success,
    Pending,
    /// Newer commits changed everything that it had changed.
    Superseded,
    Error,
    Failure,
}

impl OverallState {
    /// Nothing is left to wait for.
    pub fn is_final(self) -> bool {
        self != Self::Pending
    }

    fn of(state: forge::CommitStatusState) -> Self {
        match state {
            forge::CommitStatusState::Success => Self::Success,
            forge::CommitStatusState::Pending => Self::Pending,
            forge::CommitStatusState::Failure => Self::Failure,
            forge::CommitStatusState::Error => Self::Error,
            forge::CommitStatusState::Skipped => Self::Superseded,
        }
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct CommitReport {
    pub commit: Revision,
    /// The newest commit that was read.
    pub head: Revision,
    pub state: OverallState,
    pub text: String,
    /// The changes of the commit are computed.
    pub planned: bool,
    pub rings: Vec<RingReport>,
}

/// The commit in one ring, as its commit status shows it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct RingReport {
    /// `null`: the clusters in no ring.
    pub ring: Option<String>,
    pub context: String,
    pub state: OverallState,
    pub text: String,
    /// The worst first.
    pub unwell: Vec<TargetState>,
    /// How many more targets are unhealthy.
    pub more: usize,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TargetState {
    pub app: AppId,
    pub cluster: ClusterName,
    pub ring: Option<String>,
    /// The last commit that changed it.
    pub revision: Revision,
    pub version: String,
    pub phase: TargetPhase,
    pub detail: String,
    pub pods: PodCount,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct AppReport {
    pub app: AppId,
    /// The last commit that was read.
    pub commit: Revision,
    pub state: OverallState,
    pub healthy: bool,
    pub text: String,
    pub planned: bool,
    pub clusters: Vec<TargetState>,
    pub more: usize,
}

impl TargetState {
    fn of(target: &TargetReport) -> Self {
        Self {
            app: target.app.clone(),
            cluster: target.cluster.clone(),
            ring: target.ring.clone(),
            revision: target.revision.clone(),
            version: target.version.clone(),
            phase: target.phase,
            detail: short_line(&target.detail, LONGEST_DETAIL),
            pods: target.pods,
        }
    }
}

/// `None`: the commit is unknown, perhaps not yet. `sha`: its first digits, at least seven.
pub fn commit_report(overview: &Overview, sha: &str) -> Option<CommitReport> {
    let head = overview.revision.as_ref()?;
    let of_targets = overview.targets.iter().map(|target| &target.revision);
    let mut known =
        [head].into_iter().chain(&overview.recent_commits).chain(&overview.tracked_commits).chain(of_targets);
    let is_meant = |revision: &&Revision| {
        revision.as_str().get(..sha.len()).is_some_and(|start| start.eq_ignore_ascii_case(sha))
    };
    let commit = (sha.len() >= MIN_COMMIT_DIGITS).then(|| known.find(is_meant)).flatten()?;
    let is_head = commit == head;
    let rings: Vec<RingReport> = statuses::commit_statuses(overview, commit)
        .into_iter()
        .map(|(ring, status)| {
            let of_it = |target: &&TargetReport| target.revision == *commit && target.ring.as_deref() == ring;
            let (unwell, more) =
                first_states(unhealthy_targets(overview.targets.iter().filter(of_it)), MAX_UNHEALTHY_TARGETS);
            RingReport {
                ring: ring.map(ToOwned::to_owned),
                context: status.context,
                state: OverallState::of(status.state),
                text: status.description,
                unwell,
                more,
            }
        })
        .collect();
    let worst = rings.iter().rev().max_by_key(|ring| ring.state);
    let (state, text) = match worst {
        // The overview still holds the targets of the previous revision.
        _ if is_head && !overview.is_rendered => (OverallState::Pending, super::status_text::rendering()),
        Some(RingReport { state, text, ring: Some(ring), .. }) if rings.len() > 1 => {
            (*state, format!("{ring}: {text}"))
        }
        Some(RingReport { state, text, .. }) => (*state, text.clone()),
        None => (OverallState::Superseded, super::status_text::superseded(head)),
    };
    let planned = !is_head || overview.is_complete();
    Some(CommitReport { commit: commit.clone(), head: head.clone(), state, text, planned, rings })
}

/// The targets that are not done, the worst first.
fn unhealthy_targets<'a>(targets: impl Iterator<Item = &'a TargetReport>) -> Vec<&'a TargetReport> {
    let mut found: Vec<&TargetReport> = targets.filter(|target| !target.phase.is_done()).collect();
    found.sort_by_key(|target| std::cmp::Reverse(target.phase));
    found
}

fn first_states(targets: Vec<&TargetReport>, most: usize) -> (Vec<TargetState>, usize) {
    let more = targets.len().saturating_sub(most);
    (targets.into_iter().take(most).map(TargetState::of).collect(), more)
}

/// Limits the report to a version or a ring; the default is the whole app.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct AppReportFilter {
    /// The app is not done before it runs this version.
    pub version: Option<String>,
    pub ring: Option<String>,
}

/// `None`: the app has no target, perhaps not yet.
pub fn app_report(overview: &Overview, app: &AppId, question: &AppReportFilter) -> Option<AppReport> {
    let commit = overview.revision.clone()?;
    let is_asked = |target: &&TargetReport| {
        target.app == *app && question.ring.as_ref().is_none_or(|ring| target.ring.as_ref() == Some(ring))
    };
    let targets: Vec<&TargetReport> = overview.targets.iter().filter(is_asked).collect();
    if targets.is_empty() {
        return None;
    }
    // A healthy target with an earlier version says nothing about this version.
    let has_version =
        |target: &TargetReport| question.version.as_ref().is_none_or(|it| target.version == *it);
    let is_done = |target: &TargetReport| {
        target.phase.is_done() && target.phase != TargetPhase::Paused && has_version(target)
    };
    let done = targets.iter().filter(|target| is_done(target)).count();
    let failed = targets.iter().filter(|target| target.phase.is_failure() && has_version(target));
    let failed = failed.rev().max_by_key(|target| target.phase);
    let counts = format!("{done}/{} healthy", targets.len());
    let (state, text) = match failed {
        _ if !overview.is_rendered => (OverallState::Pending, super::status_text::rendering()),
        Some(target) => (OverallState::Failure, format!("{}, {counts}", target_text(target))),
        None if done == targets.len() => (OverallState::Success, counts),
        None => {
            let waits =
                targets.iter().filter(|target| !is_done(target)).rev().max_by_key(|target| target.phase);
            let of = waits.map(|target| match (&question.version, has_version(target)) {
                (Some(version), false) => {
                    let now = if target.version.is_empty() { "no version" } else { &target.version };
                    format!("{}: {now}, {version} is awaited", target.cluster)
                }
                _ => target_text(target),
            });
            (OverallState::Pending, format!("{}, {counts}", of.unwrap_or_default()))
        }
    };
    let (clusters, more) = first_states(targets, MOST_CLUSTERS);
    Some(AppReport {
        app: app.clone(),
        commit,
        state,
        healthy: state == OverallState::Success,
        text,
        planned: overview.is_complete(),
        clusters,
        more,
    })
}

fn target_text(target: &TargetReport) -> String {
    let (cluster, phase) = (&target.cluster, target.phase.as_str());
    match short_line(&target.detail, LONGEST_DETAIL) {
        detail if detail.is_empty() => format!("{cluster}: {phase}"),
        detail => format!("{cluster}: {phase}, {detail}"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: &str = "aaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaaa";
    const B: &str = "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb";
    const C: &str = "cccccccccccccccccccccccccccccccccccccccc";

    fn target(name: &str, cluster: &str, revision: &str, phase: TargetPhase, version: &str) -> TargetReport {
        TargetReport {
            revision: Revision::from(revision),
            ring: Some(if cluster.starts_with("bj") { "test" } else { "prod" }.to_owned()),
            version: version.to_owned(),
            detail: if phase.is_done() { String::new() } else { "1/2 pods".to_owned() },
            ..TargetReport::of_test(AppId::new("shop", name), cluster, phase)
        }
    }

    fn overview(targets: Vec<TargetReport>) -> Overview {
        Overview {
            revision: Some(Revision::from(B)),
            is_rendered: true,
            status_prefix: "tutti".to_owned(),
            rings: vec!["test".to_owned(), "prod".to_owned()],
            recent_commits: vec![Revision::from(B), Revision::from(A), Revision::from(C)],
            targets,
            ..Overview::default()
        }
    }

    #[test]
    fn commit_state_follows_its_statuses() {
        let now = overview(vec![
            target("pay", "bj1", B, TargetPhase::Running, "2"),
            target("pay", "sh1", B, TargetPhase::Progressing, "2"),
            target("pay", "sh2", B, TargetPhase::Degraded, "2"),
            target("web", "sh1", A, TargetPhase::Running, "1"),
        ]);
        let check = |sha: &str, state: OverallState, text: &str, rings: &[(&str, OverallState)]| {
            let found = commit_report(&now, sha).expect(sha);
            assert_eq!(found.state, state, "{found:?}");
            assert!(found.text.contains(text), "{found:?}");
            let of_rings: Vec<_> =
                found.rings.iter().map(|it| (it.ring.as_deref().unwrap_or(""), it.state)).collect();
            assert_eq!(of_rings, rings);
            found
        };
        let found = check(
            B,
            OverallState::Failure,
            "prod: ",
            &[("test", OverallState::Success), ("prod", OverallState::Failure)],
        );
        let unwell: Vec<_> = found.rings[1].unwell.iter().map(|it| (it.cluster.as_str(), it.phase)).collect();
        assert_eq!(unwell, [("sh2", TargetPhase::Degraded), ("sh1", TargetPhase::Progressing)]);
        check(&A[..7], OverallState::Success, "", &[("prod", OverallState::Success)]);
        check(&C.to_uppercase(), OverallState::Superseded, "superseded by bbbbbbb", &[]);
        for unknown in ["ddddddd", "aaaaaa", "", "bbbbbbbé", "bbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbbb"] {
            assert_eq!(commit_report(&now, unknown), None, "{unknown}");
        }
        assert_eq!(commit_report(&Overview::default(), B), None);
        let unrendered = Overview { is_rendered: false, ..now };
        let found = commit_report(&unrendered, B).unwrap();
        assert_eq!((found.state, found.planned), (OverallState::Pending, false));
    }

    #[test]
    fn long_lists_are_cut() {
        let many = (0..50)
            .map(|number| target(&format!("a{number}"), "bj1", B, TargetPhase::Waiting, "1"))
            .collect();
        let found = commit_report(&overview(many), B).unwrap();
        assert_eq!((found.rings[0].unwell.len(), found.rings[0].more), (20, 30));
    }

    #[test]
    fn app_is_done_with_the_requested_version() {
        let now = overview(vec![
            target("pay", "bj1", B, TargetPhase::Running, "2"),
            target("pay", "sh1", A, TargetPhase::Running, "1"),
            target("bad", "bj1", B, TargetPhase::Degraded, "2"),
            target("bad", "sh1", B, TargetPhase::Paused, "1"),
        ]);
        let check =
            |app: &str, version: Option<&str>, ring: Option<&str>, state: OverallState, text: &str| {
                let question =
                    AppReportFilter { version: version.map(Into::into), ring: ring.map(Into::into) };
                let found = app_report(&now, &AppId::new("shop", app), &question).expect(app);
                assert_eq!((found.state, found.text.as_str()), (state, text));
                assert_eq!(found.healthy, state == OverallState::Success);
            };
        check("pay", None, None, OverallState::Success, "2/2 healthy");
        check("pay", Some("2"), Some("test"), OverallState::Success, "1/1 healthy");
        check("pay", Some("2"), None, OverallState::Pending, "sh1: 1, 2 is awaited, 1/2 healthy");
        check("bad", None, None, OverallState::Failure, "bj1: Degraded, 1/2 pods, 0/2 healthy");
        check("bad", Some("1"), None, OverallState::Pending, "bj1: 2, 1 is awaited, 0/2 healthy");
        check("bad", None, Some("prod"), OverallState::Pending, "sh1: Paused, 0/1 healthy");
        assert_eq!(app_report(&now, &AppId::new("shop", "none"), &AppReportFilter::default()), None);
        let question = AppReportFilter { ring: Some("none".to_owned()), version: None };
        assert_eq!(app_report(&now, &AppId::new("shop", "pay"), &question), None);
    }
}

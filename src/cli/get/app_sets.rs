//! `tutti get as` and `tutti get ad`: AppSets over all clusters, or on each, with the columns of the system that the kind comes
//! from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::super::diagnostics;
use super::super::exit::{self, Exit};
use super::super::output::{self, OutputFormat, age, say, table};
use super::super::process::ProcessSettings;
use super::super::session::{self, RepositoryUnreadable, RunOptions, Session};
use super::approvals::write_approvals;
use super::pod_numbers::PodNumbers;
use crate::controller::{RunEnding, RunUntil};
use crate::model::{AppId, ClusterName, Diagnostic, PodCount};
use crate::report::{NextStep, Overview, PodSetReport, RolloutReport, TargetPhase, TargetReport, UnitReport};
use crate::rollout::RolloutHold;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum AppSetScope {
    /// One line an AppSet.
    Fleet,
    /// One line for each AppSet on each cluster.
    Clusters,
}

#[derive(Clone, Copy, Debug)]
pub struct AppSetView {
    pub scope: AppSetScope,
    /// Also the podSets.
    pub all: bool,
    pub format: OutputFormat,
}

/// STATUS of an AppSet; the order gives the worst one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum AppSetStatus {
    Running,
    /// It has its version, but not all pods.
    Scaling,
    /// A version change is running.
    Updating,
    /// Its first version starts.
    Installing,
    WaitingConfirm,
    Paused,
    Deleting,
    /// Its cluster does not answer, or tutti does not manage it.
    Unknown,
    Degraded,
}

impl AppSetStatus {
    fn as_str(self) -> &'static str {
        match self {
            Self::Running => "Running",
            Self::Scaling => "Scaling",
            Self::Updating => "Updating",
            Self::Installing => "Installing",
            Self::WaitingConfirm => "WaitingConfirm",
            Self::Paused => "Paused",
            Self::Deleting => "Deleting",
            Self::Unknown => "Unknown",
            Self::Degraded => "Degraded",
        }
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AppSetLine {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterName>,
    namespace: String,
    name: String,
    #[serde(flatten)]
    numbers: PodNumbers,
    status: AppSetStatus,
    created: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pod_sets: Vec<AppSetLine>,
}

pub async fn show_once(
    process: &ProcessSettings,
    shown: AppSetView,
    timeout: Duration,
) -> anyhow::Result<Exit> {
    let (ending, overview) = session::observe(process, RunUntil::Explained { timeout }, false).await?;
    diagnostics::print(&overview.diagnostics);
    match shown.format {
        OutputFormat::Table => {
            write(&overview, shown);
            write_approvals(&overview);
        }
        format => output::write_value(format, &app_set_lines(&overview, shown.scope))?,
    }
    Ok(exit::of_run(&ending, &overview))
}

/// Prints the state at each change, until a signal.
pub async fn watch(process: &ProcessSettings, shown: AppSetView) -> anyhow::Result<Exit> {
    let session = Session::start(process, RunOptions::observe_only(RunUntil::Stopped)).await?;
    let mut seen = session.overview.clone();
    let showing = tokio::spawn(async move {
        let mut before = PrintedAppSets::default();
        while seen.changed().await.is_ok() {
            let now = Arc::clone(&seen.borrow_and_update());
            // Until the running versions are known, each unit would show its new version.
            let is_unread = || {
                now.rollouts.iter().flat_map(RolloutReport::holds).any(|hold| *hold == RolloutHold::Unread)
            };
            if !now.is_complete() || is_unread() {
                continue;
            }
            if now.diagnostics != before.mistakes {
                diagnostics::print(&now.diagnostics);
            }
            // Without ages, which always change.
            let lines = app_set_lines(&now, shown.scope);
            let seen = PrintedAppSets {
                lines: serde_json::to_string(&lines).unwrap_or_default(),
                steps: now.rollouts.iter().filter_map(RolloutReport::next_step).collect(),
                mistakes: now.diagnostics.clone(),
            };
            let is_other = (&seen.lines, &seen.steps) != (&before.lines, &before.steps);
            match shown.format {
                OutputFormat::Table if is_other => {
                    if !before.lines.is_empty() {
                        say!("");
                    }
                    write(&now, shown);
                    write_approvals(&now);
                }
                OutputFormat::Table => {}
                format if seen.lines != before.lines => output::write_value(format, &lines)?,
                _ => {}
            }
            before = seen;
        }
        anyhow::Ok(())
    });
    let (ending, _) = session.finish().await?;
    showing.await??;
    match ending {
        RunEnding::Unreadable(error) => Err(RepositoryUnreadable(error).into()),
        _ => Ok(Exit::Interrupted),
    }
}

#[derive(Default)]
struct PrintedAppSets {
    lines: String,
    steps: Vec<NextStep>,
    mistakes: Vec<Diagnostic>,
}

fn write(overview: &Overview, shown: AppSetView) {
    let now = jiff::Timestamp::now();
    let columns = ["NAMESPACE", "NAME", "DESIRED", "AVAILABLE", "UNAVAILABLE", "VERSION", "STATUS", "AGE"];
    let of_cluster = (shown.scope == AppSetScope::Clusters).then_some("CLUSTER");
    let mut rows = table(&of_cluster.into_iter().chain(columns).collect::<Vec<_>>());
    for line in app_set_lines(overview, shown.scope) {
        let row = |line: &AppSetLine, indent: usize| -> Vec<String> {
            let cluster = line.cluster.iter().map(ToString::to_string);
            cluster.filter(|_| of_cluster.is_some()).chain(line.cells(indent, now)).collect()
        };
        rows.add_row(row(&line, 0));
        rows.add_rows(line.pod_sets.iter().filter(|_| shown.all).map(|pod_set| row(pod_set, 2)));
    }
    output::write_table(&output::fit_terminal(rows));
}

impl AppSetLine {
    fn cells(&self, indent: usize, now: jiff::Timestamp) -> [String; 8] {
        let [desired, available, unavailable, version] = self.numbers.cells();
        [
            self.namespace.clone(),
            format!("{}{}", output::NON_BREAKING_SPACE.repeat(indent), self.name),
            desired,
            available,
            unavailable,
            version,
            self.status.as_str().to_owned(),
            age(self.created.as_deref(), now),
        ]
    }
}

/// One line per AppSet, or per AppSet and cluster.
fn app_set_lines(overview: &Overview, scope: AppSetScope) -> Vec<AppSetLine> {
    let mut grouped: BTreeMap<&AppId, Vec<&TargetReport>> = BTreeMap::new();
    for target in overview.targets.iter().filter(|target| target.kind == "AppSet") {
        grouped.entry(&target.app).or_default().push(target);
    }
    let mut lines = Vec::new();
    for (app, targets) in grouped {
        let rollout = overview.rollouts.iter().find(|rollout| rollout.app == *app);
        let mut of_app: Vec<AppSetLine> = targets.iter().map(|target| target_line(target, rollout)).collect();
        of_app.extend(deleting_lines(overview, app, &targets));
        match scope {
            AppSetScope::Clusters => lines.append(&mut of_app),
            AppSetScope::Fleet => lines.push(sum_line(app, of_app)),
        }
    }
    lines
}

/// Lines of clusters that the AppSet is deleted from.
fn deleting_lines(overview: &Overview, app: &AppId, targets: &[&TargetReport]) -> Vec<AppSetLine> {
    let is_there = |cluster: &ClusterName| targets.iter().any(|target| target.cluster == *cluster);
    let clusters: BTreeSet<&ClusterName> =
        overview.deletions.iter().filter(|it| it.app == *app).map(|it| &it.cluster).collect();
    let line = |cluster: &ClusterName| AppSetLine {
        cluster: Some(cluster.clone()),
        created: None,
        ..AppSetLine::new(app, &app.name, PodNumbers::default(), AppSetStatus::Deleting)
    };
    clusters.into_iter().filter(|cluster| !is_there(cluster)).map(line).collect()
}

fn sum_line(app: &AppId, lines: Vec<AppSetLine>) -> AppSetLine {
    let numbers = PodNumbers::sum(&lines.iter().map(|line| &line.numbers).collect::<Vec<_>>());
    let status = lines.iter().map(|line| line.status).max().unwrap_or(AppSetStatus::Unknown);
    let created = lines.iter().filter_map(|line| line.created.clone()).min();
    let pod_sets = lines.into_iter().flat_map(|line| line.pod_sets).collect();
    AppSetLine { created, pod_sets, ..AppSetLine::new(app, &app.name, numbers, status) }
}

fn target_line(target: &TargetReport, rollout: Option<&RolloutReport>) -> AppSetLine {
    let of_cluster = |rollout: &&RolloutReport| -> Vec<UnitReport> {
        rollout.units.iter().filter(|unit| unit.unit.cluster == target.cluster).cloned().collect()
    };
    let units: Vec<UnitReport> = rollout.iter().flat_map(of_cluster).collect();
    let all: Vec<&UnitReport> = units.iter().collect();
    let pod_set = |pod_set: &PodSetReport| {
        let own: Vec<&UnitReport> = units.iter().filter(|unit| *unit.unit.pod_set == *pod_set.name).collect();
        let status = pod_set_status(target, pod_set.pods, &own, rollout);
        AppSetLine {
            cluster: Some(target.cluster.clone()),
            created: target.created.clone(),
            ..AppSetLine::new(&target.app, &pod_set.name, PodNumbers::of_pod_set(target, pod_set), status)
        }
    };
    AppSetLine {
        cluster: Some(target.cluster.clone()),
        created: target.created.clone(),
        pod_sets: target.pod_sets.iter().map(pod_set).collect(),
        ..AppSetLine::new(
            &target.app,
            &target.app.name,
            PodNumbers::of(target),
            target_status(target, &all, rollout),
        )
    }
}

impl AppSetLine {
    fn new(app: &AppId, name: &str, numbers: PodNumbers, status: AppSetStatus) -> Self {
        Self {
            cluster: None,
            namespace: app.namespace.to_string(),
            name: name.to_owned(),
            numbers,
            status,
            created: None,
            pod_sets: Vec::new(),
        }
    }
}

/// STATUS of an AppSet on a cluster. `units`: its units there, if it has waves.
fn target_status(
    target: &TargetReport,
    units: &[&UnitReport],
    rollout: Option<&RolloutReport>,
) -> AppSetStatus {
    match target.phase {
        TargetPhase::Running => AppSetStatus::Running,
        TargetPhase::Paused => AppSetStatus::Paused,
        TargetPhase::Unreachable | TargetPhase::Unmanaged | TargetPhase::KeptOut => AppSetStatus::Unknown,
        TargetPhase::Degraded | TargetPhase::Refused | TargetPhase::Invalid => AppSetStatus::Degraded,
        TargetPhase::OutOfSync | TargetPhase::Progressing | TargetPhase::Pending | TargetPhase::Waiting => {
            let held = units.iter().filter_map(|unit| held_status(unit.hold.as_ref()?, rollout)).max();
            held.unwrap_or_else(|| changing_status(target, units, rollout))
        }
    }
}

fn pod_set_status(
    target: &TargetReport,
    pods: PodCount,
    unit: &[&UnitReport],
    rollout: Option<&RolloutReport>,
) -> AppSetStatus {
    match unit {
        [unit] if unit.is_done => AppSetStatus::Running,
        [unit] if unit.failure.is_some() => AppSetStatus::Degraded,
        [] if target.phase.is_failure() && pods.desired > 0 && pods.available == pods.desired => {
            AppSetStatus::Running
        }
        _ => target_status(target, unit, rollout),
    }
}

/// Status of a held unit; `None`: it only needs time.
fn held_status(hold: &RolloutHold, rollout: Option<&RolloutReport>) -> Option<AppSetStatus> {
    let is_asked = rollout.is_some_and(|rollout| rollout.confirmation.is_some());
    if hold.confirmation().is_some() {
        return Some(AppSetStatus::WaitingConfirm);
    }
    match hold.gate() {
        RolloutHold::Analysis { .. } if hold.is_failure() => Some(AppSetStatus::Degraded),
        // The wave before it waits for a person.
        RolloutHold::Wave { .. } if is_asked => Some(AppSetStatus::WaitingConfirm),
        RolloutHold::Paused => Some(AppSetStatus::Paused),
        RolloutHold::Stopped { .. }
        | RolloutHold::Reverted { .. }
        | RolloutHold::RevertFailed { .. }
        | RolloutHold::NotRendered { .. } => Some(AppSetStatus::Degraded),
        RolloutHold::LeftOut { .. }
        | RolloutHold::Unread
        | RolloutHold::ClusterUnread { .. }
        | RolloutHold::Frozen { .. } => Some(AppSetStatus::Unknown),
        RolloutHold::Confirmation { .. }
        | RolloutHold::Approval { .. }
        | RolloutHold::Pin { .. }
        | RolloutHold::Wave { .. }
        | RolloutHold::WaveLeftOut { .. }
        | RolloutHold::Soak { .. }
        | RolloutHold::Concurrency { .. }
        | RolloutHold::Analysis { .. }
        | RolloutHold::Status { .. }
        | RolloutHold::Window { .. }
        | RolloutHold::After { .. } => None,
    }
}

/// Status of a change without a person and without a failure.
fn changing_status(
    target: &TargetReport,
    units: &[&UnitReport],
    rollout: Option<&RolloutReport>,
) -> AppSetStatus {
    let is_at_head = units.iter().all(|unit| unit.is_at_head);
    let is_first = units.iter().all(|unit| unit.previous.is_none() && unit.hold.is_none());
    let is_open = rollout.is_none_or(|rollout| rollout.is_open);
    if target.created.is_none() {
        AppSetStatus::Installing
    } else if is_at_head && !is_open {
        AppSetStatus::Scaling
    } else if is_first && (target.pods.available == 0 || !units.is_empty() && is_at_head) {
        AppSetStatus::Installing
    } else {
        AppSetStatus::Updating
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, Revision};
    use crate::rollout::{Confirmation, UnitId};

    /// Every one, so that the table cannot lack one.
    const STATUSES: [AppSetStatus; 9] = [
        AppSetStatus::Running,
        AppSetStatus::Scaling,
        AppSetStatus::Updating,
        AppSetStatus::Installing,
        AppSetStatus::WaitingConfirm,
        AppSetStatus::Paused,
        AppSetStatus::Deleting,
        AppSetStatus::Unknown,
        AppSetStatus::Degraded,
    ];

    #[test]
    fn rollout_md_lists_every_status() {
        assert_eq!(STATUSES.len(), AppSetStatus::Degraded as usize + 1);
        let page = include_str!("../../../docs/reference/rollout.md");
        let table = page.split("| STATUS of an AppSet | |").nth(1).expect("the table");
        let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| ")?.split(" |").next());
        let mut listed: Vec<&str> = rows.flat_map(|cell| cell.split(", ")).collect();
        let mut known = STATUSES.map(AppSetStatus::as_str);
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    fn target(phase: TargetPhase, created: Option<&str>, available: u32) -> TargetReport {
        TargetReport {
            kind: "AppSet",
            pods: PodCount { desired: 2, available },
            version: "v1".to_owned(),
            created: created.map(ToOwned::to_owned),
            ..TargetReport::of_test(AppId::new("shop", "pay"), "bj4", phase)
        }
    }

    fn unit(is_at_head: bool, has_previous: bool, hold: Option<RolloutHold>) -> UnitReport {
        UnitReport {
            is_at_head,
            previous: has_previous.then(|| Revision::from("abc")),
            hold,
            ..UnitReport::of_test(UnitId::new("bj4", "pay-blue"), "blue")
        }
    }

    fn rollout(is_open: bool, is_asked: bool) -> RolloutReport {
        let digest = Digest::of(b"v2");
        let asked = Confirmation { after: "first".to_owned(), through: "blue".to_owned(), digest };
        RolloutReport {
            is_open,
            confirmation: is_asked.then_some(asked),
            ..RolloutReport::of_test(AppId::new("shop", "pay"), Vec::new(), Vec::new())
        }
    }

    fn wave() -> RolloutHold {
        let unit = UnitId::new("bj4", "pay-canary");
        RolloutHold::Wave { wave: "canary".to_owned(), done: 0, of: 1, unit, because: "no image".into() }
    }

    #[test]
    fn status_says_what_an_app_set_does() {
        const THEN: Option<&str> = Some("2026-11-21T12:00:00Z");
        let check = |phase: TargetPhase,
                     created,
                     available,
                     unit: Option<UnitReport>,
                     of: RolloutReport,
                     expected: AppSetStatus| {
            let units: Vec<&UnitReport> = unit.iter().collect();
            let found = target_status(&target(phase, created, available), &units, Some(&of));
            assert_eq!(found, expected, "{phase:?} {unit:?}");
        };
        let (open, closed, asked) =
            (|| rollout(true, false), || rollout(false, false), || rollout(true, true));
        check(TargetPhase::Running, THEN, 2, None, closed(), AppSetStatus::Running);
        check(TargetPhase::Paused, THEN, 2, None, closed(), AppSetStatus::Paused);
        check(TargetPhase::Unreachable, THEN, 2, None, open(), AppSetStatus::Unknown);
        check(TargetPhase::Degraded, THEN, 1, Some(unit(true, true, None)), open(), AppSetStatus::Degraded);
        check(
            TargetPhase::Pending,
            None,
            0,
            Some(unit(false, false, None)),
            open(),
            AppSetStatus::Installing,
        );
        check(
            TargetPhase::Progressing,
            THEN,
            1,
            Some(unit(true, false, None)),
            open(),
            AppSetStatus::Installing,
        );
        check(
            TargetPhase::Progressing,
            THEN,
            1,
            Some(unit(true, true, None)),
            open(),
            AppSetStatus::Updating,
        );
        check(
            TargetPhase::Progressing,
            THEN,
            1,
            Some(unit(true, true, None)),
            closed(),
            AppSetStatus::Scaling,
        );
        check(
            TargetPhase::Waiting,
            THEN,
            2,
            Some(unit(false, false, Some(wave()))),
            open(),
            AppSetStatus::Updating,
        );
        check(
            TargetPhase::Waiting,
            THEN,
            2,
            Some(unit(false, false, Some(wave()))),
            asked(),
            AppSetStatus::WaitingConfirm,
        );
        let frozen = RolloutHold::Frozen { because: "gone".into(), waits: Some(Box::new(wave())) };
        check(
            TargetPhase::Waiting,
            THEN,
            2,
            Some(unit(false, true, Some(frozen))),
            asked(),
            AppSetStatus::WaitingConfirm,
        );
        let back = RolloutHold::Reverted { digest: Digest::of(b"v2") };
        check(
            TargetPhase::Waiting,
            THEN,
            2,
            Some(unit(false, true, Some(back))),
            open(),
            AppSetStatus::Degraded,
        );
        check(
            TargetPhase::Waiting,
            THEN,
            2,
            Some(unit(false, true, Some(RolloutHold::Paused))),
            open(),
            AppSetStatus::Paused,
        );
    }

    #[test]
    fn worst_cluster_decides_over_all() {
        let app = AppId::new("shop", "pay");
        let numbers = |version| PodNumbers::new(PodCount { desired: 2, available: 1 }, version);
        let line = |version, status| AppSetLine::new(&app, "pay", numbers(version), status);
        let all = sum_line(
            &app,
            vec![line("v3", AppSetStatus::Running), line("v4/v3", AppSetStatus::WaitingConfirm)],
        );
        assert_eq!(
            (all.numbers.cells(), all.status),
            (["4", "2", "2", "v3/v4"].map(str::to_owned), AppSetStatus::WaitingConfirm)
        );
    }
}

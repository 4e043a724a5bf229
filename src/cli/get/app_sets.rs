//! `tutti get as` and `tutti get ad`: AppSets over all clusters, or on each, with the columns of the system that the kind comes from.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use serde::Serialize;

use super::super::diagnostics;
use super::super::exit::{self, Exit};
use super::super::output::{self, Format, age, say, table};
use super::super::process::Process;
use super::super::session::{self, Session, Unreadable, Wish};
use super::numbers::Numbers;
use super::write_approvals;
use crate::controller::{Ending, Until};
use crate::model::{AppId, ClusterName, Diagnostic, PodCount};
use crate::report::{NextStep, Overview, Phase, PodSetReport, RolloutReport, TargetReport, UnitReport};
use crate::rollout::Hold;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// One line an AppSet.
    Fleet,
    /// One line for each AppSet on each cluster.
    Clusters,
}

/// What of AppSets is shown, and how.
#[derive(Clone, Copy, Debug)]
pub struct Shown {
    pub scope: Scope,
    /// Also the podSets.
    pub all: bool,
    pub format: Format,
}

/// The STATUS of an AppSet. Ordered for the worst-of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
enum Status {
    Running,
    /// It has its version, and not all its pods.
    Scaling,
    /// It takes another version.
    Updating,
    /// Its first version comes up.
    Installing,
    WaitingConfirm,
    Paused,
    Deleting,
    /// Its cluster does not answer, or tutti leaves it alone.
    Unknown,
    Degraded,
}

impl Status {
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
struct Line {
    #[serde(skip_serializing_if = "Option::is_none")]
    cluster: Option<ClusterName>,
    namespace: String,
    name: String,
    #[serde(flatten)]
    numbers: Numbers,
    status: Status,
    created: Option<String>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pod_sets: Vec<Line>,
}

/// Shows them as they are now.
pub async fn once(process: &Process, shown: Shown, timeout: Duration) -> anyhow::Result<Exit> {
    let (ending, overview) = session::look(process, Until::Explained { timeout }, false).await?;
    diagnostics::print(&overview.diagnostics);
    match shown.format {
        Format::Table => {
            write(&overview, shown);
            write_approvals(&overview);
        }
        format => output::write_value(format, &lines(&overview, shown.scope))?,
    }
    Ok(exit::of_run(&ending, &overview))
}

/// Shows them again on every change, until a signal.
pub async fn watch(process: &Process, shown: Shown) -> anyhow::Result<Exit> {
    let session = Session::start(process, Wish::look(Until::Stopped)).await?;
    let mut seen = session.overview.clone();
    let showing = tokio::spawn(async move {
        let mut before = Seen::default();
        while seen.changed().await.is_ok() {
            let now = Arc::clone(&seen.borrow_and_update());
            // Before it is known what runs where, each unit would be shown at its new version.
            let is_unread =
                || now.rollouts.iter().flat_map(RolloutReport::holds).any(|hold| *hold == Hold::Unread);
            if !now.is_known() || is_unread() {
                continue;
            }
            if now.diagnostics != before.mistakes {
                diagnostics::print(&now.diagnostics);
            }
            // Ages change all the time.
            let lines = lines(&now, shown.scope);
            let seen = Seen {
                lines: serde_json::to_string(&lines).unwrap_or_default(),
                steps: now.rollouts.iter().filter_map(RolloutReport::next_step).collect(),
                mistakes: now.diagnostics.clone(),
            };
            let is_other = (&seen.lines, &seen.steps) != (&before.lines, &before.steps);
            match shown.format {
                Format::Table if is_other => {
                    if !before.lines.is_empty() {
                        say!("");
                    }
                    write(&now, shown);
                    write_approvals(&now);
                }
                Format::Table => {}
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
        Ending::Unreadable(error) => Err(Unreadable(error).into()),
        // Only a signal ends it.
        _ => Ok(Exit::Interrupted),
    }
}

/// What was written last.
#[derive(Default)]
struct Seen {
    lines: String,
    steps: Vec<NextStep>,
    mistakes: Vec<Diagnostic>,
}

fn write(overview: &Overview, shown: Shown) {
    let now = jiff::Timestamp::now();
    let columns = ["NAMESPACE", "NAME", "DESIRED", "AVAILABLE", "UNAVAILABLE", "VERSION", "STATUS", "AGE"];
    let of_cluster = (shown.scope == Scope::Clusters).then_some("CLUSTER");
    let mut rows = table(&of_cluster.into_iter().chain(columns).collect::<Vec<_>>());
    for line in lines(overview, shown.scope) {
        let row = |line: &Line, indent: usize| -> Vec<String> {
            let cluster = line.cluster.iter().map(ToString::to_string);
            cluster.filter(|_| of_cluster.is_some()).chain(line.cells(indent, now)).collect()
        };
        rows.add_row(row(&line, 0));
        rows.add_rows(line.pod_sets.iter().filter(|_| shown.all).map(|pod_set| row(pod_set, 2)));
    }
    output::write_table(&output::fitted(rows));
}

impl Line {
    fn cells(&self, indent: usize, now: jiff::Timestamp) -> [String; 8] {
        let [desired, available, unavailable, version] = self.numbers.cells();
        [
            self.namespace.clone(),
            format!("{}{}", output::FIXED.repeat(indent), self.name),
            desired,
            available,
            unavailable,
            version,
            self.status.as_str().to_owned(),
            age(self.created.as_deref(), now),
        ]
    }
}

/// The AppSets, each over all clusters or on each.
fn lines(overview: &Overview, scope: Scope) -> Vec<Line> {
    let mut grouped: BTreeMap<&AppId, Vec<&TargetReport>> = BTreeMap::new();
    for target in overview.targets.iter().filter(|target| target.kind == "AppSet") {
        grouped.entry(&target.app).or_default().push(target);
    }
    let mut lines = Vec::new();
    for (app, targets) in grouped {
        let rollout = overview.rollouts.iter().find(|rollout| rollout.app == *app);
        let mut of_app: Vec<Line> = targets.iter().map(|target| line(target, rollout)).collect();
        of_app.extend(leaving(overview, app, &targets));
        match scope {
            Scope::Clusters => lines.append(&mut of_app),
            Scope::Fleet => lines.push(over_all(app, of_app)),
        }
    }
    lines
}

/// Clusters that the AppSet is deleted from.
fn leaving(overview: &Overview, app: &AppId, targets: &[&TargetReport]) -> Vec<Line> {
    let is_there = |cluster: &ClusterName| targets.iter().any(|target| target.cluster == *cluster);
    let clusters: BTreeSet<&ClusterName> =
        overview.deletions.iter().filter(|it| it.app == *app).map(|it| &it.cluster).collect();
    let line = |cluster: &ClusterName| Line {
        cluster: Some(cluster.clone()),
        created: None,
        ..Line::new(app, &app.name, Numbers::default(), Status::Deleting)
    };
    clusters.into_iter().filter(|cluster| !is_there(cluster)).map(line).collect()
}

fn over_all(app: &AppId, lines: Vec<Line>) -> Line {
    let numbers = Numbers::sum(&lines.iter().map(|line| &line.numbers).collect::<Vec<_>>());
    let status = lines.iter().map(|line| line.status).max().unwrap_or(Status::Unknown);
    let created = lines.iter().filter_map(|line| line.created.clone()).min();
    let pod_sets = lines.into_iter().flat_map(|line| line.pod_sets).collect();
    Line { created, pod_sets, ..Line::new(app, &app.name, numbers, status) }
}

fn line(target: &TargetReport, rollout: Option<&RolloutReport>) -> Line {
    let of_cluster = |rollout: &&RolloutReport| -> Vec<UnitReport> {
        rollout.units.iter().filter(|unit| unit.unit.cluster == target.cluster).cloned().collect()
    };
    let units: Vec<UnitReport> = rollout.iter().flat_map(of_cluster).collect();
    let all: Vec<&UnitReport> = units.iter().collect();
    let pod_set = |pod_set: &PodSetReport| {
        let own: Vec<&UnitReport> = units.iter().filter(|unit| *unit.unit.pod_set == *pod_set.name).collect();
        let status = of_pod_set(target, pod_set.pods, &own, rollout);
        Line {
            cluster: Some(target.cluster.clone()),
            created: target.created.clone(),
            ..Line::new(&target.app, &pod_set.name, Numbers::of_pod_set(target, pod_set), status)
        }
    };
    Line {
        cluster: Some(target.cluster.clone()),
        created: target.created.clone(),
        pod_sets: target.pod_sets.iter().map(pod_set).collect(),
        ..Line::new(&target.app, &target.app.name, Numbers::of(target), status(target, &all, rollout))
    }
}

impl Line {
    fn new(app: &AppId, name: &str, numbers: Numbers, status: Status) -> Self {
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

/// The STATUS of an AppSet on a cluster. `units`: those of the cluster, where it has waves.
fn status(target: &TargetReport, units: &[&UnitReport], rollout: Option<&RolloutReport>) -> Status {
    match target.phase {
        Phase::Running => Status::Running,
        Phase::Paused => Status::Paused,
        Phase::Unreachable | Phase::Unmanaged | Phase::KeptOut => Status::Unknown,
        Phase::Degraded | Phase::Refused | Phase::Invalid => Status::Degraded,
        Phase::OutOfSync | Phase::Progressing | Phase::Pending | Phase::Waiting => {
            let held = units.iter().filter_map(|unit| of_hold(unit.hold.as_ref()?, rollout)).max();
            held.unwrap_or_else(|| on_its_way(target, units, rollout))
        }
    }
}

/// The same of one podSet.
fn of_pod_set(
    target: &TargetReport,
    pods: PodCount,
    unit: &[&UnitReport],
    rollout: Option<&RolloutReport>,
) -> Status {
    match unit {
        [unit] if unit.is_done => Status::Running,
        [unit] if unit.failure.is_some() => Status::Degraded,
        [] if target.phase.is_failure() && pods.desired > 0 && pods.available == pods.desired => {
            Status::Running
        }
        _ => status(target, unit, rollout),
    }
}

/// What a unit that is held says of its AppSet; `None`: it only takes its time.
fn of_hold(hold: &Hold, rollout: Option<&RolloutReport>) -> Option<Status> {
    let is_asked = rollout.is_some_and(|rollout| rollout.confirmation.is_some());
    if hold.confirmation().is_some() {
        return Some(Status::WaitingConfirm);
    }
    match hold.gate() {
        Hold::Analysis { .. } if hold.is_failure() => Some(Status::Degraded),
        // What it waits for waits for a person.
        Hold::Wave { .. } if is_asked => Some(Status::WaitingConfirm),
        Hold::Paused => Some(Status::Paused),
        Hold::Stopped { .. }
        | Hold::Reverted { .. }
        | Hold::RevertFailed { .. }
        | Hold::NotRendered { .. } => Some(Status::Degraded),
        Hold::LeftOut { .. } | Hold::Unread | Hold::ClusterUnread { .. } | Hold::Frozen { .. } => {
            Some(Status::Unknown)
        }
        Hold::Confirmation { .. }
        | Hold::Approval { .. }
        | Hold::Pin { .. }
        | Hold::Wave { .. }
        | Hold::WaveLeftOut { .. }
        | Hold::Soak { .. }
        | Hold::Concurrency { .. }
        | Hold::Analysis { .. }
        | Hold::Status { .. }
        | Hold::Window { .. }
        | Hold::After { .. } => None,
    }
}

/// Nobody is asked, and nothing has failed.
fn on_its_way(target: &TargetReport, units: &[&UnitReport], rollout: Option<&RolloutReport>) -> Status {
    let is_at_head = units.iter().all(|unit| unit.is_at_head);
    let is_first = units.iter().all(|unit| unit.previous.is_none() && unit.hold.is_none());
    let is_open = rollout.is_none_or(|rollout| rollout.is_open);
    if target.created.is_none() {
        Status::Installing
    } else if is_at_head && !is_open {
        Status::Scaling
    } else if is_first && (target.pods.available == 0 || !units.is_empty() && is_at_head) {
        Status::Installing
    } else {
        Status::Updating
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, Revision};
    use crate::rollout::{Confirmation, UnitId};

    /// Every one, so that the table cannot lack one.
    const STATUSES: [Status; 9] = [
        Status::Running,
        Status::Scaling,
        Status::Updating,
        Status::Installing,
        Status::WaitingConfirm,
        Status::Paused,
        Status::Deleting,
        Status::Unknown,
        Status::Degraded,
    ];

    #[test]
    fn rollout_md_lists_every_status() {
        assert_eq!(STATUSES.len(), Status::Degraded as usize + 1);
        let page = include_str!("../../../docs/reference/rollout.md");
        let table = page.split("| STATUS of an AppSet | |").nth(1).expect("the table");
        let rows = table.lines().skip(2).map_while(|line| line.strip_prefix("| ")?.split(" |").next());
        let mut listed: Vec<&str> = rows.flat_map(|cell| cell.split(", ")).collect();
        let mut known = STATUSES.map(Status::as_str);
        listed.sort_unstable();
        known.sort_unstable();
        assert_eq!(listed, known);
    }

    fn target(phase: Phase, created: Option<&str>, available: u32) -> TargetReport {
        TargetReport {
            kind: "AppSet",
            pods: PodCount { desired: 2, available },
            version: "v1".to_owned(),
            created: created.map(ToOwned::to_owned),
            ..TargetReport::of_test(AppId::new("shop", "pay"), "bj4", phase)
        }
    }

    fn unit(is_at_head: bool, has_previous: bool, hold: Option<Hold>) -> UnitReport {
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

    fn wave() -> Hold {
        let unit = UnitId::new("bj4", "pay-canary");
        Hold::Wave { wave: "canary".to_owned(), done: 0, of: 1, unit, because: "no image".into() }
    }

    #[test]
    fn status_says_what_an_app_set_does() {
        const THEN: Option<&str> = Some("2026-11-21T12:00:00Z");
        let check = |phase: Phase,
                     created,
                     available,
                     unit: Option<UnitReport>,
                     of: RolloutReport,
                     expected: Status| {
            let units: Vec<&UnitReport> = unit.iter().collect();
            let found = status(&target(phase, created, available), &units, Some(&of));
            assert_eq!(found, expected, "{phase:?} {unit:?}");
        };
        let (open, closed, asked) =
            (|| rollout(true, false), || rollout(false, false), || rollout(true, true));
        check(Phase::Running, THEN, 2, None, closed(), Status::Running);
        check(Phase::Paused, THEN, 2, None, closed(), Status::Paused);
        check(Phase::Unreachable, THEN, 2, None, open(), Status::Unknown);
        check(Phase::Degraded, THEN, 1, Some(unit(true, true, None)), open(), Status::Degraded);
        check(Phase::Pending, None, 0, Some(unit(false, false, None)), open(), Status::Installing);
        check(Phase::Progressing, THEN, 1, Some(unit(true, false, None)), open(), Status::Installing);
        check(Phase::Progressing, THEN, 1, Some(unit(true, true, None)), open(), Status::Updating);
        check(Phase::Progressing, THEN, 1, Some(unit(true, true, None)), closed(), Status::Scaling);
        check(Phase::Waiting, THEN, 2, Some(unit(false, false, Some(wave()))), open(), Status::Updating);
        check(
            Phase::Waiting,
            THEN,
            2,
            Some(unit(false, false, Some(wave()))),
            asked(),
            Status::WaitingConfirm,
        );
        let frozen = Hold::Frozen { because: "gone".into(), waits: Some(Box::new(wave())) };
        check(
            Phase::Waiting,
            THEN,
            2,
            Some(unit(false, true, Some(frozen))),
            asked(),
            Status::WaitingConfirm,
        );
        let back = Hold::Reverted { digest: Digest::of(b"v2") };
        check(Phase::Waiting, THEN, 2, Some(unit(false, true, Some(back))), open(), Status::Degraded);
        check(Phase::Waiting, THEN, 2, Some(unit(false, true, Some(Hold::Paused))), open(), Status::Paused);
    }

    #[test]
    fn worst_cluster_decides_over_all() {
        let app = AppId::new("shop", "pay");
        let numbers = |version| Numbers::new(PodCount { desired: 2, available: 1 }, version);
        let line = |version, status| Line::new(&app, "pay", numbers(version), status);
        let all = over_all(&app, vec![line("v3", Status::Running), line("v4/v3", Status::WaitingConfirm)]);
        assert_eq!(
            (all.numbers.cells(), all.status),
            (["4", "2", "2", "v3/v4"].map(str::to_owned), Status::WaitingConfirm)
        );
    }
}

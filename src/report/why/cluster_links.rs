//! The links `apply` and `health` of a chain: whether the cluster takes the objects, and whether they are healthy.

use std::collections::BTreeSet;

use super::holds::APPROVALS_FOLDER;
use super::subject::ChainSubject;
use super::writers::who_may_write;
use super::{ChainFinding, ChainLink, ChainLinkState};
use crate::model::{App, AppId, ClusterName, ClusterState, InstanceMode, Location};
use crate::plan::{PlanAction, PlanStep};
use crate::report::{DeletionReport, Overview, RolloutReport, TargetPhase, TargetReport};

/// Clusters with objects of the app that Git no longer wants.
pub fn clusters_with_removals<'o>(overview: &'o Overview, app: &AppId) -> BTreeSet<&'o ClusterName> {
    removals(overview, app).map(|it| &it.cluster).collect()
}

/// Deletes, also those that are only found and held, as in observe mode.
pub fn removals<'o>(overview: &'o Overview, app: &AppId) -> impl Iterator<Item = &'o DeletionReport> {
    overview.deletions.iter().chain(&overview.held).filter(move |it| it.app == *app)
}

impl ChainSubject<'_> {
    pub fn apply(&self) -> Option<ChainFinding> {
        let Some(target) = self.target else { return self.deletes() };
        let finding = |state, text: &str| {
            ChainFinding::new(ChainLink::Apply, state, text).with_place(self.manifest_place())
        };
        let waits = |text: &str| Some(ChainFinding::new(ChainLink::Apply, ChainLinkState::Waits, text));
        let detail =
            |otherwise: &'static str| if target.detail.is_empty() { otherwise } else { &target.detail };
        if target.phase == TargetPhase::Unmanaged {
            return Some(
                finding(ChainLinkState::Broken, "tutti does not change it on purpose")
                    .help(["remove `unmanaged: true`"]),
            );
        }
        if let Some(held) = self.unreachable_cluster(target).or_else(|| self.hold_finding(ChainLink::Apply)) {
            return Some(held);
        }
        let differences = target.differences.iter().flat_map(|all| all.iter());
        let refused = differences.filter_map(|it| Some((&it.object, it.refused.as_deref()?))).next();
        if let Some((object, why)) = refused {
            let place = self.step_location(target, |step| step.object == *object);
            let object = object.to_string();
            let text = match why.contains(&object) {
                true => format!("the cluster refuses it: {why}"),
                false => format!("the cluster refuses {object}: {why}"),
            };
            return Some(finding(ChainLinkState::Broken, &text).with_place(place));
        }
        match target.phase {
            TargetPhase::Refused => {
                let place = self.step_location(target, |step| step.intended_action() == PlanAction::Refuse);
                Some(finding(ChainLinkState::Broken, detail("the cluster refuses it")).with_place(place))
            }
            TargetPhase::KeptOut => Some(self.kept_out(target)),
            TargetPhase::Waiting => waits(detail("another step must finish first")),
            TargetPhase::Pending => waits(detail("the next apply is due")),
            TargetPhase::OutOfSync => Some(self.out_of_sync(target)),
            _ => self.deletes(),
        }
    }

    /// The file of an object if it belongs to the app, else the app's manifest.
    fn step_location(&self, target: &TargetReport, is_it: impl Fn(&PlanStep) -> bool) -> Option<Location> {
        let folder = self.manifest.map(App::folder).filter(|folder| !folder.is_empty());
        let step = target.plan.iter().flat_map(|plan| &plan.steps).find(|step| is_it(step));
        let source = step.and_then(|step| step.source.as_ref());
        let own = source.filter(|place| folder.is_some_and(|folder| place.file.starts_with(folder)));
        own.cloned().or_else(|| self.manifest_place())
    }

    fn unreachable_cluster(&self, target: &TargetReport) -> Option<ChainFinding> {
        let cluster = self.context.overview.clusters.iter().find(|cluster| cluster.name == target.cluster);
        let cluster = cluster.filter(|cluster| !cluster.is_up())?;
        let why = if cluster.detail.is_empty() { cluster.state } else { &cluster.detail };
        let state =
            if cluster.state == "Connecting" { ChainLinkState::Waits } else { ChainLinkState::Broken };
        let finding =
            ChainFinding::new(ChainLink::Apply, state, format!("the cluster does not answer: {why}"));
        let place = self.context.fleet.clusters.get(&target.cluster).map(|cluster| cluster.location.clone());
        let folder = place.iter().map(|place| self.folder_of(place)).collect::<Vec<_>>();
        let who = who_may_write(&folder);
        let finding = finding.with_place(place).help([format!("tutti doctor {}", cluster.name)]);
        Some(ChainFinding {
            who: Some(format!("the operator of the cluster or of tutti, or {who}")),
            ..finding
        })
    }

    fn kept_out(&self, target: &TargetReport) -> ChainFinding {
        let text =
            if target.detail.is_empty() { "a taint of the cluster excludes it" } else { &target.detail };
        let place = self.context.fleet.clusters.get(&target.cluster).map(|cluster| cluster.location.clone());
        let folders: Vec<String> = place.iter().map(|place| self.folder_of(place)).collect();
        let by = [vec![self.folder()], folders].concat();
        let help = ["add a toleration to the app, or remove the taint of the cluster"];
        ChainFinding::new(ChainLink::Apply, ChainLinkState::Broken, text)
            .with_place(place)
            .with_writers(&by)
            .help(help)
    }

    /// It differs from the render: what prevents the write.
    fn out_of_sync(&self, target: &TargetReport) -> ChainFinding {
        let fleet = self.context.fleet;
        let of = |state, text: String| ChainFinding::new(ChainLink::Apply, state, text);
        let planned = &target.detail;
        if fleet.instance.mode == InstanceMode::Observe {
            let text = format!("`mode: observe`: {planned}, nothing is written");
            return of(ChainLinkState::Broken, text).with_place(fleet.instance.location.clone());
        }
        let cluster = fleet.clusters.get(&target.cluster);
        if let Some(cluster) = cluster.filter(|it| it.state == ClusterState::Maintaining) {
            let text = format!("the cluster is in maintenance: {planned}");
            return of(ChainLinkState::Broken, text).with_place(Some(cluster.location.clone()));
        }
        let mut steps = target.plan.iter().flat_map(|plan| &plan.steps);
        if steps.any(|step| step.action.is_write() || step.intended_action().is_write()) {
            return of(ChainLinkState::Waits, format!("not applied yet: {planned}"))
                .help(["a running tutti applies it"]);
        }
        let text = if planned.is_empty() { "it differs from the rendered objects" } else { planned };
        of(ChainLinkState::Broken, text.to_owned()).with_place(self.manifest_place())
    }

    /// Deletes that wait for an approval or for something else.
    fn deletes(&self) -> Option<ChainFinding> {
        let waiting = || {
            let all =
                removals(self.context.overview, self.app).filter(|it| Some(&it.cluster) == self.cluster);
            all.filter(|it| it.waits || it.action == PlanAction::Wait)
        };
        let asks = waiting().find(|it| it.approval.is_some());
        let first = asks.or_else(|| waiting().next())?;
        let more = match waiting().count() {
            1 => String::new(),
            number => format!(" (and {} more)", number - 1),
        };
        let text = format!("the delete of {} waits{more}: {}", first.object, first.reason);
        Some(match &first.approval {
            Some(digest) => ChainFinding::new(ChainLink::Apply, ChainLinkState::Broken, text)
                .with_writers(&[APPROVALS_FOLDER.to_owned()])
                .help([format!("tutti approve {digest}")]),
            None => ChainFinding::new(ChainLink::Apply, ChainLinkState::Waits, text),
        })
    }

    pub fn health(&self) -> Option<ChainFinding> {
        let target = self.target?;
        let state = match target.phase {
            TargetPhase::Degraded => ChainLinkState::Broken,
            TargetPhase::Progressing => ChainLinkState::Waits,
            _ => return None,
        };
        let finding = ChainFinding::new(ChainLink::Health, state, &target.detail);
        if state == ChainLinkState::Waits {
            return Some(finding);
        }
        let rollout = self.rollout_report().map(RolloutReport::commands).unwrap_or_default();
        let revert = || vec![format!("git revert {}", target.revision.short())];
        let back = if rollout.is_empty() { revert() } else { rollout };
        let mend = std::iter::once("fix the app".to_owned());
        Some(finding.with_place(self.manifest_place()).help(mend.chain(back)))
    }
}

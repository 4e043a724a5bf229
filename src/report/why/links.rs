//! The links of a chain for one app on one cluster.

use std::collections::BTreeSet;

use super::holds::{self, placement_place};
use super::subject::ChainSubject;
use super::writers::folder_of;
use super::{CauseChain, ChainCluster, ChainFinding, ChainLink, ChainLinkState};
use crate::fleet::codes as fleet_codes;
use crate::model::{
    App, ClusterName, ClusterState, Diagnostic, DiagnosticScope, Location, PolicyAction, TaintEffect,
};
use crate::policy::VerdictCause;
use crate::render::{TargetPolicyVerdict, codes as render_codes};
use crate::report::{TargetPhase, TargetReport};
use crate::rollout::RolloutHold;

/// Errors of the link `policy`.
const POLICY_CODES: [&str; 2] = [render_codes::DENIED, render_codes::WARNED];

/// `app_folder`: of the app in question.
pub fn finding_of_error(link: ChainLink, error: &Diagnostic, app_folder: Option<&str>) -> ChainFinding {
    // A chart or a slow render that is not ready yet needs no action.
    let state =
        if error.code == render_codes::AWAITED { ChainLinkState::Waits } else { ChainLinkState::Broken };
    let finding = ChainFinding::new(link, state, format!("{} [{}]", error.message, error.code));
    let by: Vec<String> = error.location.iter().map(|place| folder_of(&place.file, app_folder)).collect();
    finding.with_place(error.location.clone()).with_writers(&by).help(error.help.clone())
}

impl<'a> ChainSubject<'a> {
    pub fn chain(&self) -> CauseChain {
        let mut findings: Vec<ChainFinding> = Vec::new();
        for link in ChainLink::ALL {
            let is_reached = findings.iter().all(|finding| finding.state == ChainLinkState::Well);
            findings.push(if is_reached { self.finding(link) } else { self.not_reached_finding(link) });
        }
        let ring = || self.context.fleet.ring_of(self.cluster?).map(ToOwned::to_owned);
        let on = self.cluster.map(|name| ChainCluster { name: name.clone(), ring: ring() });
        let broken =
            findings.iter().find(|finding| finding.state != ChainLinkState::Well).map(|finding| finding.link);
        CauseChain {
            clusters: on.into_iter().collect(),
            phase: self.target.map(|target| target.phase.as_str()),
            revision: self.target.map(|target| target.revision.clone()),
            broken,
            findings,
        }
    }

    fn finding(&self, link: ChainLink) -> ChainFinding {
        let unwell = match link {
            ChainLink::Source => self.source(),
            ChainLink::Render => self.render(),
            ChainLink::Policy => self.policy(),
            ChainLink::Rollout => self.rollout(),
            ChainLink::Apply => self.apply(),
            ChainLink::Health => self.health(),
        };
        let finding =
            unwell.unwrap_or_else(|| ChainFinding::new(link, ChainLinkState::Well, self.healthy_text(link)));
        match (&finding.who, &finding.place) {
            (None, Some(place)) if finding.state != ChainLinkState::Well => {
                let by = [self.folder_of(place)];
                finding.with_writers(&by)
            }
            _ => finding,
        }
    }

    /// The text of a healthy link.
    fn healthy_text(&self, link: ChainLink) -> String {
        let manifest = || self.manifest.map(|app| app.location.file.as_str());
        match (link, self.target) {
            (ChainLink::Source, Some(target)) => {
                format!("{}, last changed by {}", manifest().unwrap_or("?"), target.revision.short())
            }
            (ChainLink::Source, None) => "no manifest in Git any more".to_owned(),
            (ChainLink::Render, Some(_)) => "its objects are rendered".to_owned(),
            (ChainLink::Policy, Some(_)) => self.allowed_text(),
            (ChainLink::Rollout, Some(target)) => match self.rollout_report() {
                Some(rollout) if rollout.units_on(&target.cluster).all(|unit| unit.is_at_head) => {
                    "it has the version of Git".to_owned()
                }
                Some(_) => "its wave is open".to_owned(),
                None => "no waves".to_owned(),
            },
            (ChainLink::Apply, Some(_)) => "as rendered".to_owned(),
            (ChainLink::Health, Some(target)) => pods_text(target),
            (_, None) => "nothing to do".to_owned(),
        }
    }

    fn not_reached_finding(&self, link: ChainLink) -> ChainFinding {
        let runs = self.target.filter(|_| link == ChainLink::Health).map(pods_text);
        let text = runs.unwrap_or_else(|| "not reached".to_owned());
        ChainFinding::new(link, ChainLinkState::NotReached, text)
    }

    // ---- source ----

    /// Errors of the source, the cluster or the manifests of the app.
    fn source(&self) -> Option<ChainFinding> {
        if let Some(error) = &self.context.overview.source_error {
            let text = format!("the repository cannot be read: {error}");
            return Some(
                ChainFinding::new(ChainLink::Source, ChainLinkState::Broken, text).help(["tutti doctor"]),
            );
        }
        let (overview, fleet) = (self.context.overview, self.context.fleet);
        let is_on = |on: &ClusterName| self.cluster.is_none_or(|cluster| cluster == on);
        let concerns = |error: &Diagnostic| match &error.scope {
            DiagnosticScope::Instance => true,
            DiagnosticScope::App(of) => of == self.app && !is_render_error(error),
            DiagnosticScope::Target(of, on) => of == self.app && is_on(on) && !is_render_error(error),
            DiagnosticScope::Cluster(on) => self.cluster == Some(on),
            DiagnosticScope::File(_) => false,
        };
        let of_manifest = fleet.broken_apps.get(self.app).into_iter().flat_map(|broken| &broken.errors);
        let of_all = overview.diagnostics.iter().filter(|error| concerns(error));
        let mut errors = of_manifest.chain(of_all).filter(|error| error.is_error());
        let error = errors.next().map(|error| self.of_error(ChainLink::Source, error));
        error.or_else(|| self.unplaced_finding())
    }

    /// Why the app does not run on the requested cluster.
    fn unplaced_finding(&self) -> Option<ChainFinding> {
        let app = self.manifest.filter(|_| self.target.is_none())?;
        let fleet = self.context.fleet;
        let broken = |text: String| ChainFinding::new(ChainLink::Source, ChainLinkState::Broken, text);
        let Some(name) = self.cluster else {
            let is_of_it = |it: &&Diagnostic| {
                let codes =
                    [fleet_codes::PLACED_NOWHERE, fleet_codes::CLUSTER_TAINTED, fleet_codes::CLUSTER_REMOVED];
                codes.contains(&it.code) && matches!(&it.scope, DiagnosticScope::App(of) if of == self.app)
            };
            let told = fleet.diagnostics.iter().find(is_of_it);
            let otherwise =
                || broken("it runs on no cluster".to_owned()).with_place(Some(placement_place(app)));
            return Some(told.map_or_else(otherwise, |told| self.of_error(ChainLink::Source, told)));
        };
        let cluster = fleet.clusters.get(name)?;
        if cluster.state == ClusterState::Removed {
            return Some(
                broken("the cluster is being removed".to_owned()).with_place(Some(cluster.location.clone())),
            );
        }
        if let Some(taint) = app.blocking_taint(&cluster.taints, TaintEffect::NoExecute) {
            let text = format!("the cluster has the taint {taint}, which the app does not tolerate");
            let place = &cluster.location;
            let by = [self.folder(), self.folder_of(place)];
            return Some(
                broken(text)
                    .with_place(Some(place.clone()))
                    .with_writers(&by)
                    .help(["add a toleration to the app"]),
            );
        }
        let place = placement_place(app);
        Some(broken("its placement does not select the cluster".to_owned()).with_place(Some(place)))
    }

    // ---- render, policy ----

    fn render(&self) -> Option<ChainFinding> {
        let target = self.target?;
        // A mistake of several apps is stored for one of them.
        let is_first = |error: &Diagnostic| match &error.location {
            Some(place) => {
                target.detail.starts_with(&format!("error[{}]", error.code))
                    && target.detail.ends_with(&format!(" at {place}"))
            }
            None => target.detail == error.to_string(),
        };
        let is_of_it = |error: &Diagnostic| match &error.scope {
            DiagnosticScope::App(app) => *app == target.app,
            DiagnosticScope::Target(app, on) => {
                *app == target.app && (*on == target.cluster || error.clusters.contains(&target.cluster))
            }
            _ => false,
        };
        let errors = || {
            let all = self.context.overview.diagnostics.iter();
            all.filter(|error| error.is_error() && !POLICY_CODES.contains(&error.code))
        };
        let is_invalid = target.phase == TargetPhase::Invalid;
        let first = errors().find(|error| is_invalid && is_first(error));
        let error = first.or_else(|| errors().find(|error| is_of_it(error)));
        let told = error.map(|error| self.of_error(ChainLink::Render, error));
        let detail = || {
            ChainFinding::new(ChainLink::Render, ChainLinkState::Broken, &target.detail)
                .with_place(self.manifest_place())
        };
        told.or_else(|| is_invalid.then(detail)).or_else(|| self.hold_finding(ChainLink::Render))
    }

    pub fn verdicts(&self) -> impl Iterator<Item = &'a TargetPolicyVerdict> {
        let cluster = self.cluster;
        self.context.verdicts.iter().filter(move |verdict| Some(&verdict.cluster) == cluster)
    }

    fn policy(&self) -> Option<ChainFinding> {
        let mut denied = self.verdicts().filter(|verdict| verdict.policy.action == PolicyAction::Deny);
        let first = denied.next()?;
        let more = match denied.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let broken =
            |text: String| ChainFinding::new(ChainLink::Policy, ChainLinkState::Broken, text + &more);
        let name = &first.policy.name;
        if first.cause == VerdictCause::Broken {
            let place = self.mistake_of_policy(first).unwrap_or_else(|| first.policy.location.clone());
            let text = format!("policy {name} has an error, so it denies all that it selects");
            return Some(
                broken(text).with_place(Some(place)).help(["fix the policy: tutti lint shows the error"]),
            );
        }
        let Diagnostic { message, location, related, .. } = &first.diagnostic;
        // The heading names the cluster.
        let text = message.replacen(&format!(" on {}:", first.cluster), ":", 1);
        let rule = related.first().map(|(place, _)| place.clone());
        let by: Vec<String> = location.iter().chain(&rule).map(|place| self.folder_of(place)).collect();
        let help = match first.cause {
            VerdictCause::NotEvaluated => {
                "add the field to the object, or check it in the rule first with `has(…)`"
            }
            _ => "change the object so that the policy allows it, or change the policy",
        };
        Some(ChainFinding {
            rule,
            ..broken(text).with_place(location.clone()).with_writers(&by).help([help])
        })
    }

    /// The error in the file of a policy.
    fn mistake_of_policy(&self, verdict: &TargetPolicyVerdict) -> Option<Location> {
        let policy = &verdict.policy;
        let named = format!("of policy {} ", policy.name);
        let is_of_it = |it: &&Diagnostic| {
            let file = it.location.as_ref().map(|place| place.file.as_str());
            it.code == fleet_codes::POLICY_EXPRESSION
                && file == Some(&policy.location.file)
                && it.message.contains(&named)
        };
        self.context.fleet.diagnostics.iter().find(is_of_it)?.location.clone()
    }

    fn allowed_text(&self) -> String {
        let (Some(app), Some(name)) = (self.manifest, self.cluster) else { return String::new() };
        let fleet = self.context.fleet;
        let Some(cluster) = fleet.clusters.get(name) else { return String::new() };
        let facts = cluster.facts(fleet.ring_of(name));
        let all = fleet.policies.all();
        let selects = all.filter(|it| it.selector.selects(&app.id, &app.labels, facts)).count();
        let warns: BTreeSet<&str> = self.verdicts().map(|verdict| verdict.policy.name.as_str()).collect();
        let warns = match warns.len() {
            0 => String::new(),
            warns => format!(", {warns} of them with a warning"),
        };
        match selects {
            0 => "no policy is for it".to_owned(),
            1 => format!("1 policy allows it{warns}"),
            many => format!("{many} policies allow it{warns}"),
        }
    }

    // ---- rollout ----

    fn rollout(&self) -> Option<ChainFinding> {
        if let Some(app) = self.manifest.filter(|app| app.paused) {
            let finding = ChainFinding::new(
                ChainLink::Rollout,
                ChainLinkState::Broken,
                RolloutHold::Paused.to_string(),
            );
            let finding = finding.with_place(Some(app.location.clone())).help(["remove `paused: true`"]);
            return Some(ChainFinding { hold: Some(RolloutHold::Paused), ..finding });
        }
        self.hold_finding(ChainLink::Rollout)
    }

    /// The hold of its units, if it belongs to this link.
    pub fn hold_finding(&self, link: ChainLink) -> Option<ChainFinding> {
        let rollout = self.rollout_report()?;
        let holds = rollout.units_on(self.cluster?).filter_map(|unit| unit.hold.as_ref());
        // Of several holds, the one that a person can resolve.
        let hold = holds.min_by_key(|hold| !hold.waits_for_a_person())?;
        Some(holds::hold_finding(self, rollout, hold)).filter(|finding| finding.link == link)
    }

    fn of_error(&self, link: ChainLink, error: &Diagnostic) -> ChainFinding {
        finding_of_error(link, error, self.manifest.map(App::folder))
    }
}

fn is_render_error(error: &Diagnostic) -> bool {
    error.code.starts_with("E3")
}

fn pods_text(target: &TargetReport) -> String {
    let pods = target.pods;
    match (pods.desired, target.version.as_str()) {
        _ if target.phase == TargetPhase::Unreachable => "not known".to_owned(),
        (0, "") if target.phase.is_done() => target.phase.as_str().to_owned(),
        (0, "") => "not reached".to_owned(),
        (0, version) => format!("{version}, no pods"),
        (desired, "") => format!("{}/{desired} available", pods.available),
        (desired, version) => format!("{version}, {}/{desired} available", pods.available),
    }
}

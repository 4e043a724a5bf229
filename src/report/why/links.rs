//! The links of a chain for one app on one cluster.

use std::collections::BTreeSet;

use super::holds::{self, placement_place};
use super::writers::folder_of;
use super::{Chain, Finding, Link, Look, OnCluster, State};
use crate::fleet::codes as fleet_codes;
use crate::model::{
    App, AppId, ClusterName, ClusterState, Diagnostic, Location, PolicyAction, Scope, TaintEffect,
};
use crate::policy::Cause;
use crate::render::{TargetVerdict, codes as render_codes};
use crate::report::{Phase, RolloutReport, TargetReport};
use crate::rollout::Hold;

pub struct Position<'a> {
    pub look: &'a Look<'a>,
    pub app: &'a AppId,
    pub manifest: Option<&'a App>,
    /// `None`: the app is not placed there.
    pub target: Option<&'a TargetReport>,
    pub cluster: Option<&'a ClusterName>,
}

/// Errors of the link `policy`.
const OF_POLICIES: [&str; 2] = [render_codes::DENIED, render_codes::WARNED];

/// `app_folder`: of the app in question.
pub fn of_error(link: Link, error: &Diagnostic, app_folder: Option<&str>) -> Finding {
    // A chart or a slow render that is not ready yet needs no action.
    let state = if error.code == render_codes::AWAITED { State::Waits } else { State::Broken };
    let finding = Finding::new(link, state, format!("{} [{}]", error.message, error.code));
    let by: Vec<String> = error.location.iter().map(|place| folder_of(&place.file, app_folder)).collect();
    finding.at(error.location.clone()).by(&by).help(error.help.clone())
}

impl<'a> Position<'a> {
    pub fn new(
        look: &'a Look<'a>,
        app: &'a AppId,
        target: Option<&'a TargetReport>,
        cluster: Option<&'a ClusterName>,
    ) -> Self {
        let fleet = look.fleet;
        let broken = || fleet.broken.get(app)?.app.as_ref();
        let manifest = fleet.apps.get(app).or_else(broken).map(|app| &**app);
        Self { look, app, manifest, target, cluster }
    }

    pub fn chain(&self) -> Chain {
        let mut findings: Vec<Finding> = Vec::new();
        for link in Link::ALL {
            let is_reached = findings.iter().all(|finding| finding.state == State::Well);
            findings.push(if is_reached { self.finding(link) } else { self.not_reached(link) });
        }
        let ring = || self.look.fleet.ring_of(self.cluster?).map(ToOwned::to_owned);
        let on = self.cluster.map(|name| OnCluster { name: name.clone(), ring: ring() });
        let broken = findings.iter().find(|finding| finding.state != State::Well).map(|finding| finding.link);
        Chain {
            clusters: on.into_iter().collect(),
            phase: self.target.map(|target| target.phase.as_str()),
            revision: self.target.map(|target| target.revision.clone()),
            broken,
            findings,
        }
    }

    fn finding(&self, link: Link) -> Finding {
        let unwell = match link {
            Link::Source => self.source(),
            Link::Render => self.render(),
            Link::Policy => self.policy(),
            Link::Rollout => self.rollout(),
            Link::Apply => self.apply(),
            Link::Health => self.health(),
        };
        let finding = unwell.unwrap_or_else(|| Finding::new(link, State::Well, self.well(link)));
        match (&finding.who, &finding.place) {
            (None, Some(place)) if finding.state != State::Well => {
                let by = [self.folder_of(place)];
                finding.by(&by)
            }
            _ => finding,
        }
    }

    /// The text of a healthy link.
    fn well(&self, link: Link) -> String {
        let manifest = || self.manifest.map(|app| app.location.file.as_str());
        match (link, self.target) {
            (Link::Source, Some(target)) => {
                format!("{}, last changed by {}", manifest().unwrap_or("?"), target.revision.short())
            }
            (Link::Source, None) => "no manifest in Git any more".to_owned(),
            (Link::Render, Some(_)) => "its objects are rendered".to_owned(),
            (Link::Policy, Some(_)) => self.allowed(),
            (Link::Rollout, Some(target)) => match self.rollout_report() {
                Some(rollout) if rollout.units_on(&target.cluster).all(|unit| unit.is_at_head) => {
                    "it has the version of Git".to_owned()
                }
                Some(_) => "its wave is open".to_owned(),
                None => "no waves".to_owned(),
            },
            (Link::Apply, Some(_)) => "as rendered".to_owned(),
            (Link::Health, Some(target)) => runs(target),
            (_, None) => "nothing to do".to_owned(),
        }
    }

    fn not_reached(&self, link: Link) -> Finding {
        let runs = self.target.filter(|_| link == Link::Health).map(runs);
        let text = runs.unwrap_or_else(|| "not reached".to_owned());
        Finding::new(link, State::NotReached, text)
    }

    // ---- source ----

    /// Errors of the source, the cluster or the manifests of the app.
    fn source(&self) -> Option<Finding> {
        if let Some(error) = &self.look.overview.source_error {
            let text = format!("the repository cannot be read: {error}");
            return Some(Finding::new(Link::Source, State::Broken, text).help(["tutti doctor"]));
        }
        let (overview, fleet) = (self.look.overview, self.look.fleet);
        let is_on = |on: &ClusterName| self.cluster.is_none_or(|cluster| cluster == on);
        let concerns = |error: &Diagnostic| match &error.scope {
            Scope::Instance => true,
            Scope::App(of) => of == self.app && !is_of_render(error),
            Scope::Target(of, on) => of == self.app && is_on(on) && !is_of_render(error),
            Scope::Cluster(on) => self.cluster == Some(on),
            Scope::File(_) => false,
        };
        let of_manifest = fleet.broken.get(self.app).into_iter().flat_map(|broken| &broken.errors);
        let of_all = overview.diagnostics.iter().filter(|error| concerns(error));
        let mut errors = of_manifest.chain(of_all).filter(|error| error.is_error());
        let error = errors.next().map(|error| self.of_error(Link::Source, error));
        error.or_else(|| self.unplaced())
    }

    /// Why the app does not run on the requested cluster.
    fn unplaced(&self) -> Option<Finding> {
        let app = self.manifest.filter(|_| self.target.is_none())?;
        let fleet = self.look.fleet;
        let broken = |text: String| Finding::new(Link::Source, State::Broken, text);
        let Some(name) = self.cluster else {
            let is_of_it = |it: &&Diagnostic| {
                let codes =
                    [fleet_codes::PLACED_NOWHERE, fleet_codes::CLUSTER_TAINTED, fleet_codes::CLUSTER_REMOVED];
                codes.contains(&it.code) && matches!(&it.scope, Scope::App(of) if of == self.app)
            };
            let told = fleet.diagnostics.iter().find(is_of_it);
            let otherwise = || broken("it runs on no cluster".to_owned()).at(Some(placement_place(app)));
            return Some(told.map_or_else(otherwise, |told| self.of_error(Link::Source, told)));
        };
        let cluster = fleet.clusters.get(name)?;
        if cluster.state == ClusterState::Removed {
            return Some(
                broken("the cluster is being removed".to_owned()).at(Some(cluster.location.clone())),
            );
        }
        if let Some(taint) = app.kept_away_by(&cluster.taints, TaintEffect::NoExecute) {
            let text = format!("the cluster has the taint {taint}, which the app does not tolerate");
            let place = &cluster.location;
            let by = [self.folder(), self.folder_of(place)];
            return Some(broken(text).at(Some(place.clone())).by(&by).help(["add a toleration to the app"]));
        }
        let place = placement_place(app);
        Some(broken("its placement does not select the cluster".to_owned()).at(Some(place)))
    }

    // ---- render, policy ----

    fn render(&self) -> Option<Finding> {
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
            Scope::App(app) => *app == target.app,
            Scope::Target(app, on) => {
                *app == target.app && (*on == target.cluster || error.clusters.contains(&target.cluster))
            }
            _ => false,
        };
        let errors = || {
            let all = self.look.overview.diagnostics.iter();
            all.filter(|error| error.is_error() && !OF_POLICIES.contains(&error.code))
        };
        let is_invalid = target.phase == Phase::Invalid;
        let first = errors().find(|error| is_invalid && is_first(error));
        let error = first.or_else(|| errors().find(|error| is_of_it(error)));
        let told = error.map(|error| self.of_error(Link::Render, error));
        let detail = || Finding::new(Link::Render, State::Broken, &target.detail).at(self.manifest_place());
        told.or_else(|| is_invalid.then(detail)).or_else(|| self.held(Link::Render))
    }

    pub fn verdicts(&self) -> impl Iterator<Item = &'a TargetVerdict> {
        let cluster = self.cluster;
        self.look.verdicts.iter().filter(move |verdict| Some(&verdict.cluster) == cluster)
    }

    fn policy(&self) -> Option<Finding> {
        let mut denied = self.verdicts().filter(|verdict| verdict.policy.action == PolicyAction::Deny);
        let first = denied.next()?;
        let more = match denied.count() {
            0 => String::new(),
            more => format!(" (and {more} more)"),
        };
        let broken = |text: String| Finding::new(Link::Policy, State::Broken, text + &more);
        let name = &first.policy.name;
        if first.cause == Cause::Broken {
            let place = self.mistake_of_policy(first).unwrap_or_else(|| first.policy.location.clone());
            let text = format!("policy {name} has a mistake, so it denies what it selects");
            return Some(
                broken(text).at(Some(place)).help(["mend the policy: tutti lint says what is wrong"]),
            );
        }
        let Diagnostic { message, location, related, .. } = &first.diagnostic;
        // The heading names the cluster.
        let text = message.replacen(&format!(" on {}:", first.cluster), ":", 1);
        let rule = related.first().map(|(place, _)| place.clone());
        let by: Vec<String> = location.iter().chain(&rule).map(|place| self.folder_of(place)).collect();
        let help = match first.cause {
            Cause::NotEvaluated => {
                "give the object what the rule asks for, or let the rule ask first: `has(…)`"
            }
            _ => "change the object as the policy asks, or the policy",
        };
        Some(Finding { rule, ..broken(text).at(location.clone()).by(&by).help([help]) })
    }

    /// The error in the file of a policy.
    fn mistake_of_policy(&self, verdict: &TargetVerdict) -> Option<Location> {
        let policy = &verdict.policy;
        let named = format!("of policy {} ", policy.name);
        let is_of_it = |it: &&Diagnostic| {
            let file = it.location.as_ref().map(|place| place.file.as_str());
            it.code == fleet_codes::POLICY
                && file == Some(&policy.location.file)
                && it.message.contains(&named)
        };
        self.look.fleet.diagnostics.iter().find(is_of_it)?.location.clone()
    }

    fn allowed(&self) -> String {
        let (Some(app), Some(name)) = (self.manifest, self.cluster) else { return String::new() };
        let fleet = self.look.fleet;
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

    fn rollout(&self) -> Option<Finding> {
        if let Some(app) = self.manifest.filter(|app| app.paused) {
            let finding = Finding::new(Link::Rollout, State::Broken, Hold::Paused.to_string());
            let finding = finding.at(Some(app.location.clone())).help(["remove `paused: true`"]);
            return Some(Finding { hold: Some(Hold::Paused), ..finding });
        }
        self.held(Link::Rollout)
    }

    /// The hold of its units, if it belongs to this link.
    pub fn held(&self, link: Link) -> Option<Finding> {
        let rollout = self.rollout_report()?;
        let holds = rollout.units_on(self.cluster?).filter_map(|unit| unit.hold.as_ref());
        // Of several holds, the one that a person can resolve.
        let hold = holds.min_by_key(|hold| !hold.waits_for_a_person())?;
        Some(holds::finding(self, rollout, hold)).filter(|finding| finding.link == link)
    }

    pub fn rollout_report(&self) -> Option<&'a RolloutReport> {
        self.look.overview.rollout_of(self.app)
    }

    // ---- places ----

    pub fn manifest_place(&self) -> Option<Location> {
        self.manifest.map(|app| app.location.clone())
    }

    /// The folder of its manifest.
    pub fn folder(&self) -> String {
        self.manifest.map_or_else(String::new, |app| self.folder_of(&app.location))
    }

    pub fn folder_of(&self, place: &Location) -> String {
        folder_of(&place.file, self.manifest.map(App::folder))
    }

    fn of_error(&self, link: Link, error: &Diagnostic) -> Finding {
        of_error(link, error, self.manifest.map(App::folder))
    }
}

fn is_of_render(error: &Diagnostic) -> bool {
    error.code.starts_with("E3")
}

fn runs(target: &TargetReport) -> String {
    let pods = target.pods;
    match (pods.desired, target.version.as_str()) {
        _ if target.phase == Phase::Unreachable => "not known".to_owned(),
        (0, "") if target.phase.is_done() => target.phase.as_str().to_owned(),
        (0, "") => "not reached".to_owned(),
        (0, version) => format!("{version}, no pods"),
        (desired, "") => format!("{}/{desired} available", pods.available),
        (desired, version) => format!("{version}, {}/{desired} available", pods.available),
    }
}

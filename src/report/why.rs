//! Why an app is as it is: a chain from Git to its pods, for each of its targets. The first link that is not well is the one to look at;
//! what comes after it was not reached. A pure function of an overview.

use serde::Serialize;

use super::words::count;
use super::{Overview, Phase, RolloutReport, TargetReport};
use crate::model::{AppId, ClusterName, Diagnostic, Location, Revision, Scope};
use crate::plan::Action;

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Link {
    /// The repository, and the manifests in it.
    Source,
    /// Layers and charts to objects.
    Render,
    /// Waves, gates and pauses.
    Rollout,
    /// The cluster takes the objects.
    Apply,
    /// The objects do what they are for.
    Health,
}

impl Link {
    pub const ALL: [Self; 5] = [Self::Source, Self::Render, Self::Rollout, Self::Apply, Self::Health];

    pub fn as_str(self) -> &'static str {
        match self {
            Self::Source => "source",
            Self::Render => "render",
            Self::Rollout => "rollout",
            Self::Apply => "apply",
            Self::Health => "health",
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum State {
    Well,
    /// It goes on by itself.
    Waits,
    /// Somebody has to do something.
    Broken,
    /// An earlier link is not well.
    NotReached,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Finding {
    pub link: Link,
    pub state: State,
    /// What is so, in one line.
    pub text: String,
    /// Where it is written.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub place: Option<Location>,
    /// What to do: one of these.
    #[serde(skip_serializing_if = "Vec::is_empty")]
    pub help: Vec<String>,
}

impl Finding {
    fn new(link: Link, state: State, text: impl Into<String>) -> Self {
        Self { link, state, text: text.into(), place: None, help: Vec::new() }
    }

    fn of_error(link: Link, error: &Diagnostic) -> Self {
        let place = error.location.clone();
        // What is still on its way comes by itself.
        let state = if error.code == AWAITED { State::Waits } else { State::Broken };
        let text = format!("{} [{}]", error.message, error.code);
        Self { place, help: error.help.iter().cloned().collect(), ..Self::new(link, state, text) }
    }
}

/// A chart or a slow render that is not there yet.
const AWAITED: &str = "E3998";

/// One app on one cluster.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Chain {
    pub app: AppId,
    /// `None`: where it runs is not known.
    pub cluster: Option<ClusterName>,
    pub ring: Option<String>,
    pub phase: Option<&'static str>,
    /// The last commit that changed what it is made from.
    pub revision: Option<Revision>,
    /// One for each link, in order.
    pub findings: Vec<Finding>,
}

impl Chain {
    /// The first link that is not well.
    pub fn broken(&self) -> Option<&Finding> {
        self.findings.iter().find(|finding| finding.state != State::Well)
    }

    fn new(app: &AppId, target: Option<&TargetReport>, findings: impl Fn(Link) -> Finding) -> Self {
        let mut all: Vec<Finding> = Vec::new();
        for link in Link::ALL {
            let is_reached = all.iter().all(|finding| finding.state == State::Well);
            all.push(if is_reached { findings(link) } else { not_reached(link, target) });
        }
        Self {
            app: app.clone(),
            cluster: target.map(|target| target.cluster.clone()),
            ring: target.and_then(|target| target.ring.clone()),
            phase: target.map(|target| target.phase.as_str()),
            revision: target.map(|target| target.revision.clone()),
            findings: all,
        }
    }
}

/// Of an app on each of its clusters, in the order of the overview. Of one that no file that can be read defines, one that says which
/// files cannot.
pub fn chains(overview: &Overview, app: &AppId) -> Vec<Chain> {
    let first = overview.targets.partition_point(|target| target.app < *app);
    let targets = overview.targets.iter().skip(first).take_while(|target| target.app == *app);
    let chains: Vec<Chain> = targets.map(|target| of_target(overview, target)).collect();
    if !chains.is_empty() {
        return chains;
    }
    let of_source = || source(overview, app, None);
    of_source().map_or_else(Vec::new, |broken| {
        vec![Chain::new(app, None, |link| match link {
            Link::Source => broken.clone(),
            link => not_reached(link, None),
        })]
    })
}

fn of_target(overview: &Overview, target: &TargetReport) -> Chain {
    Chain::new(&target.app, Some(target), |link| {
        let broken = match link {
            Link::Source => source(overview, &target.app, Some(target)),
            Link::Render => render(overview, target),
            Link::Rollout => rollout(overview, target),
            Link::Apply => apply(overview, target),
            Link::Health => health(overview, target),
        };
        broken.unwrap_or_else(|| Finding::new(link, State::Well, well(overview, target, link)))
    })
}

/// What a link that is well did.
fn well(overview: &Overview, target: &TargetReport, link: Link) -> String {
    match link {
        Link::Source => format!("commit {} changed it last", target.revision.short()),
        Link::Render => match &target.plan {
            Some(plan) => count(plan.steps.len(), "object"),
            None => "rendered".to_owned(),
        },
        Link::Rollout => match overview.rollout_of(&target.app) {
            Some(_) => "its wave is open".to_owned(),
            None => "no waves".to_owned(),
        },
        Link::Apply => "as rendered".to_owned(),
        Link::Health => runs(target),
    }
}

fn not_reached(link: Link, target: Option<&TargetReport>) -> Finding {
    let text = match (link, target) {
        (Link::Health, Some(target)) => runs(target),
        _ => String::new(),
    };
    Finding::new(link, State::NotReached, text)
}

fn runs(target: &TargetReport) -> String {
    let pods = target.pods;
    match (pods.desired, target.version.as_str()) {
        (0, "") => target.phase.as_str().to_owned(),
        (0, version) => format!("{version}, no pods"),
        (desired, "") => format!("{}/{desired} available", pods.available),
        (desired, version) => format!("{version}, {}/{desired} available", pods.available),
    }
}

/// What stops everything, the cluster, or what the manifests say of the app.
fn source(overview: &Overview, app: &AppId, target: Option<&TargetReport>) -> Option<Finding> {
    if let Some(error) = &overview.source_error {
        return Some(Finding::new(
            Link::Source,
            State::Broken,
            format!("the repository cannot be read: {error}"),
        ));
    }
    let concerns = |error: &Diagnostic| match &error.scope {
        Scope::Instance => true,
        Scope::App(of) => of == app && !is_of_render(error),
        Scope::Target(of, on) => {
            of == app && target.is_none_or(|target| target.cluster == *on) && !is_of_render(error)
        }
        Scope::Cluster(on) => target.is_some_and(|target| target.cluster == *on),
        // An app that nobody knows may be in it.
        Scope::File(_) => target.is_none(),
    };
    let mut errors = overview.diagnostics.iter().filter(|error| error.is_error() && concerns(error));
    errors.next().map(|error| Finding::of_error(Link::Source, error))
}

fn is_of_render(error: &Diagnostic) -> bool {
    error.code.starts_with("E3")
}

fn render(overview: &Overview, target: &TargetReport) -> Option<Finding> {
    let concerns = |error: &&Diagnostic| match &error.scope {
        Scope::App(app) => *app == target.app,
        Scope::Target(app, cluster) => *app == target.app && *cluster == target.cluster,
        _ => false,
    };
    let error = overview.diagnostics.iter().filter(|error| error.is_error()).find(concerns);
    error.map(|error| Finding::of_error(Link::Render, error)).or_else(|| {
        let is_invalid = target.phase == Phase::Invalid;
        is_invalid.then(|| Finding::new(Link::Render, State::Broken, target.detail.clone()))
    })
}

fn rollout(overview: &Overview, target: &TargetReport) -> Option<Finding> {
    if target.phase == Phase::Paused {
        let text = if target.detail.is_empty() { "the app is paused" } else { &target.detail };
        return Some(Finding::new(Link::Rollout, State::Broken, text));
    }
    let rollout = overview.rollout_of(&target.app).filter(|_| target.phase == Phase::Waiting)?;
    let first = || rollout.units_on(&target.cluster).find_map(|unit| unit.hold.as_ref());
    let hold = rollout.hold_of(target).or_else(first)?;
    let by_a_person = hold.waits_for_a_person() || hold.is_failure();
    let state = if by_a_person { State::Broken } else { State::Waits };
    Some(Finding {
        help: if by_a_person { RolloutReport::commands(rollout) } else { Vec::new() },
        ..Finding::new(Link::Rollout, state, hold.to_string())
    })
}

fn apply(overview: &Overview, target: &TargetReport) -> Option<Finding> {
    let finding = |state, text: &str| Some(Finding::new(Link::Apply, state, text));
    let detail = |otherwise: &'static str| if target.detail.is_empty() { otherwise } else { &target.detail };
    let cluster = overview.clusters.iter().find(|cluster| cluster.name == target.cluster);
    if let Some(cluster) = cluster.filter(|cluster| !cluster.is_up()) {
        let why = if cluster.detail.is_empty() { cluster.state } else { &cluster.detail };
        let state = if cluster.state == "Connecting" { State::Waits } else { State::Broken };
        return Some(Finding {
            help: vec![format!("tutti doctor {}", cluster.name)],
            ..Finding::new(Link::Apply, state, format!("cluster {} does not answer: {why}", cluster.name))
        });
    }
    let refused = target.differences.iter().flat_map(|all| all.iter()).find_map(|it| it.refused.as_deref());
    if let Some(refused) = refused {
        return finding(State::Broken, &format!("the cluster refuses it: {refused}"));
    }
    match target.phase {
        Phase::Refused => finding(State::Broken, detail("the cluster refuses it")),
        Phase::KeptOut => finding(State::Broken, detail("a taint of the cluster keeps it out")),
        Phase::Unmanaged => finding(State::Broken, detail("it is left alone: `unmanaged`")),
        Phase::Unreachable => finding(State::Broken, detail("the cluster does not answer")),
        Phase::Waiting => finding(State::Waits, detail("something else comes first")),
        Phase::Pending => finding(State::Waits, detail("the next apply is due")),
        Phase::OutOfSync => finding(State::Waits, detail("it differs from what is rendered")),
        _ => deletes(overview, target).or_else(|| refusals(target)),
    }
}

/// A delete that a person has to approve.
fn deletes(overview: &Overview, target: &TargetReport) -> Option<Finding> {
    let waiting: Vec<_> = overview
        .deletions
        .iter()
        .filter(|it| it.waits && it.app == target.app && it.cluster == target.cluster)
        .collect();
    let first = waiting.first()?;
    let of = count(waiting.len(), "delete");
    Some(Finding {
        help: first.approval.iter().map(|digest| format!("tutti approve {digest}")).collect(),
        ..Finding::new(Link::Apply, State::Broken, format!("{of} of {}: {}", first.object, first.reason))
    })
}

/// What tutti itself will not write.
fn refusals(target: &TargetReport) -> Option<Finding> {
    let steps = target.plan.as_deref().into_iter().flat_map(|plan| &plan.steps);
    let mut refused = steps.filter(|step| step.intent() == Action::Refuse);
    refused
        .next()
        .map(|step| Finding::new(Link::Apply, State::Broken, format!("{}: {}", step.object, step.reason)))
}

fn health(overview: &Overview, target: &TargetReport) -> Option<Finding> {
    let state = match target.phase {
        Phase::Degraded => State::Broken,
        Phase::Progressing => State::Waits,
        _ => return None,
    };
    let help = match overview.rollout_of(&target.app).filter(|_| state == State::Broken) {
        Some(rollout) => rollout.commands(),
        None => Vec::new(),
    };
    Some(Finding { help, ..Finding::new(Link::Health, state, target.detail.clone()) })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::report::ClusterReport;

    fn target(phase: Phase, detail: &str) -> TargetReport {
        TargetReport {
            detail: detail.to_owned(),
            ..TargetReport::of_test(AppId::new("shop", "web"), "p1", phase)
        }
    }

    fn overview(target: TargetReport) -> Overview {
        Overview {
            clusters: vec![ClusterReport::of_test("p1", Some("prod"))],
            targets: vec![target],
            ..Overview::default()
        }
    }

    /// The first link that is not well: `link state: text → help`.
    fn broken(overview: &Overview) -> String {
        let chains = chains(overview, &AppId::new("shop", "web"));
        let [chain] = &chains[..] else { panic!("{chains:#?}") };
        assert_eq!(chain.findings.iter().map(|it| it.link).collect::<Vec<_>>(), Link::ALL);
        let Some(first) = chain.broken() else { return "all is well".to_owned() };
        let after = chain.findings.iter().skip_while(|it| it.link != first.link).skip(1);
        assert!(after.clone().all(|it| it.state == State::NotReached), "{chain:#?}");
        let help =
            if first.help.is_empty() { String::new() } else { format!(" → {}", first.help.join(" or ")) };
        format!("{} {:?}: {}{help}", first.link.as_str(), first.state, first.text)
    }

    #[test]
    fn first_link_that_is_not_well_follows_from_the_phase() {
        #[track_caller]
        fn check(phase: Phase, detail: &str, expected: &str) {
            assert_eq!(broken(&overview(target(phase, detail))), expected);
        }
        check(Phase::Running, "", "all is well");
        check(Phase::Paused, "", "rollout Broken: the app is paused");
        check(Phase::Invalid, "no image", "render Broken: no image");
        check(Phase::Waiting, "waits for namespace shop", "apply Waits: waits for namespace shop");
        check(Phase::Refused, "Deployment shop/web: denied", "apply Broken: Deployment shop/web: denied");
        check(Phase::KeptOut, "", "apply Broken: a taint of the cluster keeps it out");
        check(Phase::Pending, "", "apply Waits: the next apply is due");
        check(Phase::Progressing, "0/2 available", "health Waits: 0/2 available");
        check(Phase::Degraded, "CrashLoopBackOff", "health Broken: CrashLoopBackOff");
    }

    #[test]
    fn errors_come_before_what_follows_from_them() {
        let app = || Scope::App(AppId::new("shop", "web"));
        let mut overview = overview(target(Phase::Degraded, "CrashLoopBackOff"));
        overview.diagnostics = vec![
            Diagnostic::error("E3001", "no layer", app()).help("write one"),
            Diagnostic::warning("E2131", "fits nothing", app()),
            Diagnostic::error("E1201", "unknown field", Scope::File("apps/other.yaml".to_owned())),
        ];
        assert_eq!(broken(&overview), "render Broken: no layer [E3001] → write one");
        overview.diagnostics.push(Diagnostic::error("E1204", "wrong type", app()));
        assert_eq!(broken(&overview), "source Broken: wrong type [E1204]");
        overview.source_error = Some("connection refused".to_owned());
        assert_eq!(broken(&overview), "source Broken: the repository cannot be read: connection refused");
    }

    #[test]
    fn app_of_a_file_that_cannot_be_read_is_broken_at_its_source() {
        let mut overview = Overview::default();
        assert!(chains(&overview, &AppId::new("?", "web")).is_empty());
        let scope = Scope::File("apps/web/app.yaml".to_owned());
        overview.diagnostics =
            vec![Diagnostic::error("E1101", "no YAML", scope).at(Location::new("apps/web/app.yaml", 3, 1))];
        assert_eq!(broken(&overview), "source Broken: no YAML [E1101]");
    }

    #[test]
    fn gate_is_named_with_the_command_that_opens_it() {
        let mut overview = overview(target(Phase::Waiting, "waits"));
        overview.rollouts =
            vec![RolloutReport::that_asks(AppId::new("shop", "web"), &["p1"], "canary", "prod")];
        let found = broken(&overview);
        assert!(
            found.starts_with("rollout Broken: ")
                && found.ends_with(" → tutti approve rollout shop/web --through prod"),
            "{found}"
        );
    }

    #[test]
    fn cluster_that_does_not_answer_is_named() {
        let mut overview = overview(target(Phase::Unreachable, ""));
        overview.clusters[0].state = "Offline";
        overview.clusters[0].detail = "connection refused".to_owned();
        assert_eq!(
            broken(&overview),
            "apply Broken: cluster p1 does not answer: connection refused → tutti doctor p1"
        );
    }
}

//! `tutti why`: the first broken link between Git and the pods of an app, and what holds the app. `report::explain_app` computes it; this
//! module finds names and prints.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use jiff::Timestamp;

use super::exit::Exit;
use super::output::{self, OutputFormat};
use super::process::{ProcessArgs, ProcessSettings};
use super::repository;
use super::session::{self, ObserveResult};
use super::timeout::timeout;
use super::width::first_names;
use super::wrapped_line::say_wrapped;
use crate::controller::{ConfigHead, RunEnding, RunUntil};
use crate::fleet::Fleet;
use crate::manifest::read::nearest;
use crate::model::{AppId, ClusterName, Diagnostic, DiagnosticScope};
use crate::render::{FleetRenderer, RenderCache, TargetPolicyVerdict, policy_verdicts_of_app};
use crate::report::Overview;
use crate::report::why::{
    AppExplanation, CauseChain, ChainFinding, ChainLinkState, RuleEffect, RuleReport, WhyContext, explain_app,
};

/// Prefix of the codes of unreadable manifests.
const READ_ERROR_PREFIX: &str = "E1";
const MAX_NAMED_CLUSTERS: usize = 5;
const MAX_CHAINS: usize = 10;
/// Printed rules per standing.
const MAX_RULES: usize = 8;

#[derive(Args, Debug)]
pub struct WhyArgs {
    /// App, as NAMESPACE/NAME or as NAME if it is unique
    app: String,
    #[command(flatten)]
    process: ProcessArgs,
    /// Maximum time to wait for clusters, such as 90s or 5m; a number without a unit is in seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn run(mut args: WhyArgs) -> anyhow::Result<Exit> {
    // Without `=` it selects the cluster to show.
    let (ways, on): (Vec<String>, Vec<String>) =
        std::mem::take(&mut args.process.cluster).into_iter().partition(|cluster| cluster.contains('='));
    ensure!(on.len() < 2, "--cluster {}: name one cluster, or none for all", on.join(" --cluster "));
    args.process.cluster = ways;
    let process = args.process.resolve(Some(".")).await?;
    let until = RunUntil::Explained { timeout: args.timeout };
    let ObserveResult { ending, overview, head } =
        session::observe_with_head(&process, until, false, true).await?;
    let head = head.context("the config repository was not read in time")?;
    let on = on.first().map(|name| find_cluster(&head.fleet, &overview, name)).transpose()?;
    let found = match find_app(&head.fleet, &overview, &args.app)? {
        NamedApp::Unread(app, error) => AppExplanation::of_unread(app, error),
        NamedApp::App(app) => {
            let verdicts = app_verdicts(&head, &process, &app).await;
            let look = WhyContext {
                overview: &overview,
                fleet: &head.fleet,
                verdicts: &verdicts,
                now: Timestamp::now(),
            };
            explain_app(&look, &app, on.as_ref())
        }
    };
    match args.output {
        OutputFormat::Table => why_lines(&found).iter().for_each(|line| say_wrapped(line)),
        format => output::write_value(format, &found)?,
    }
    Ok(match ending {
        RunEnding::Stopped => Exit::Interrupted,
        _ if found.is_well() => Exit::Ok,
        _ => Exit::Differences,
    })
}

// ---- names ----

#[derive(Debug)]
enum NamedApp<'f> {
    App(AppId),
    /// The app may be in an unreadable file.
    Unread(AppId, &'f Diagnostic),
}

fn find_app<'f>(fleet: &'f Fleet, overview: &Overview, name: &str) -> anyhow::Result<NamedApp<'f>> {
    let gone = overview.deletions.iter().chain(&overview.held).map(|it| &it.app);
    let known: BTreeSet<&AppId> = fleet.apps.keys().chain(fleet.broken_apps.keys()).chain(gone).collect();
    let fitting: Vec<&AppId> = match AppId::parse(name) {
        Some(app) => known.get(&app).into_iter().copied().collect(),
        None => known.iter().copied().filter(|app| *app.name == *name).collect(),
    };
    match fitting[..] {
        [app] => return Ok(NamedApp::App(app.clone())),
        [] => {}
        _ => {
            let names: Vec<String> = fitting.iter().map(ToString::to_string).collect();
            bail!("{name} is the name of several apps: {}", first_names(&names, MAX_NAMED_CLUSTERS));
        }
    }
    let (namespace, bare) = name.split_once('/').unwrap_or(("?", name));
    // Other files were read: they hide no app.
    let unread = |it: &&Diagnostic| {
        it.is_error()
            && it.code.starts_with(READ_ERROR_PREFIX)
            && matches!(&it.scope, DiagnosticScope::File(_))
    };
    let is_of_it = |it: &&Diagnostic| {
        let file = it.location.as_ref().map(|place| place.file.as_str()).unwrap_or_default();
        file.split(['/', '.']).any(|part| part == bare)
    };
    if let Some(error) = fleet.diagnostics.iter().filter(unread).find(is_of_it) {
        return Ok(NamedApp::Unread(AppId::new(namespace, bare), error));
    }
    let names: Vec<String> = known.iter().map(ToString::to_string).collect();
    let alike: Vec<&str> = match AppId::parse(name) {
        Some(_) => names.iter().map(String::as_str).collect(),
        None => known.iter().map(|app| &*app.name).collect(),
    };
    let first_unread = fleet.diagnostics.iter().find(unread);
    let hint = first_unread.map(|error| format!("; it may be in a file that cannot be read: {error}"));
    let hint = hint.unwrap_or_default();
    match nearest(name, &alike) {
        Some(near) => bail!("no app {name} here; did you mean {near}?{hint}"),
        None if names.is_empty() => bail!("no app {name} here; there are none{hint}"),
        None => bail!("no app {name} here; there are {}{hint}", first_names(&names, MAX_NAMED_CLUSTERS)),
    }
}

fn find_cluster(fleet: &Fleet, overview: &Overview, name: &str) -> anyhow::Result<ClusterName> {
    let of_files = fleet.clusters.keys().map(ClusterName::as_str);
    // A cluster with an invalid file is known by its mistake and by its objects.
    let of_mistakes = fleet.diagnostics.iter().filter_map(|it| match &it.scope {
        DiagnosticScope::Cluster(name) => Some(name.as_str()),
        _ => None,
    });
    let running = overview.clusters.iter().map(|cluster| cluster.name.as_str());
    let known: BTreeSet<&str> = of_files.chain(of_mistakes).chain(running).collect();
    if known.contains(name) {
        return Ok(ClusterName::from(name));
    }
    let known: Vec<&str> = known.into_iter().collect();
    match nearest(name, &known) {
        Some(near) => bail!("no cluster {name}; did you mean {near}?"),
        None if known.is_empty() => bail!("no cluster {name}; there are none"),
        None => {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            bail!("no cluster {name}; there are {}", first_names(&names, MAX_NAMED_CLUSTERS))
        }
    }
}

/// Policy verdicts of an app, as in `tutti lint`. Other apps are rendered only if a policy needs them.
async fn app_verdicts(head: &ConfigHead, process: &ProcessSettings, app: &AppId) -> Vec<TargetPolicyVerdict> {
    let fleet = &head.fleet;
    let Some(manifest) = fleet.apps.get(app) else { return Vec::new() };
    if !fleet.policies.all().any(|it| it.selector.selects_app(app, &manifest.labels)) {
        return Vec::new();
    }
    let charts = repository::fetched_charts(fleet, process.chart_sites.clone()).await;
    let mut renderer = FleetRenderer::new(fleet, &head.snapshot, &charts);
    let defines_kinds = head.defined.iter().flat_map(|it| it.values()).any(|kinds| !kinds.is_empty());
    let renders = match fleet.policies.use_namespaces() || defines_kinds {
        true => renderer.render_all(&mut RenderCache::default()),
        false => renderer.render_some(&BTreeSet::from([app.clone()]), None),
    };
    policy_verdicts_of_app(&renderer, &renders, manifest)
}

// ---- words ----

fn why_lines(found: &AppExplanation) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, chain) in found.chains.iter().take(MAX_CHAINS).enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        lines.push(heading(&found.app, chain));
        chain.findings.iter().for_each(|finding| lines.extend(finding_lines(finding)));
    }
    let more = found.chains.iter().skip(MAX_CHAINS);
    let clusters: usize = more.map(|chain| chain.clusters.len()).sum();
    if clusters > 0 {
        lines.push(format!("\nand {clusters} more clusters: --cluster NAME shows one, -o json shows all"));
    }
    lines.extend(rule_lines(&found.rules));
    lines
}

fn heading(app: &AppId, chain: &CauseChain) -> String {
    let name = |on: &crate::report::why::ChainCluster| match &on.ring {
        Some(ring) => format!("{} ({ring})", on.name),
        None => on.name.to_string(),
    };
    let names: Vec<String> = chain.clusters.iter().map(name).collect();
    let on = if names.is_empty() {
        String::new()
    } else {
        format!(" on {}", first_names(&names, MAX_NAMED_CLUSTERS))
    };
    // The namespace of an unreadable file is unknown.
    let app = app.to_string();
    let app = app.strip_prefix("?/").unwrap_or(&app);
    let phase = chain.phase.map(|phase| format!(": {phase}")).unwrap_or_default();
    format!("{app}{on}{phase}")
}

fn finding_lines(finding: &ChainFinding) -> Vec<String> {
    let sign = match finding.state {
        ChainLinkState::Well => "✓",
        ChainLinkState::Waits => "…",
        ChainLinkState::Broken => "✗",
        ChainLinkState::NotReached => "·",
    };
    let mut lines =
        vec![format!("  {sign} {:8} {}", finding.link.as_str(), finding.text).trim_end().to_owned()];
    let mut below =
        |label: &str, text: &dyn std::fmt::Display| lines.push(format!("             {label:4} {text}"));
    if let Some(place) = &finding.place {
        below("at", place);
    }
    if let Some(rule) = &finding.rule {
        below("rule", rule);
    }
    if let Some(who) = &finding.who {
        below("by", who);
    }
    for (number, help) in finding.help.iter().enumerate() {
        below(if number == 0 { "do" } else { "or" }, help);
    }
    lines
}

fn rule_lines(rules: &[RuleReport]) -> Vec<String> {
    let mut lines = Vec::new();
    let longest = |of: &dyn Fn(&RuleReport) -> usize| rules.iter().map(of).max().unwrap_or_default();
    let name = longest(&|rule| rule.name.chars().count()).min(32);
    for (standing, sign, title) in [
        (RuleEffect::Holds, "✗", "holds it now:"),
        (RuleEffect::Warns, "!", "warns:"),
        (RuleEffect::WouldHold, "…", "would hold its next version:"),
        (RuleEffect::Passes, "✓", "lets it pass:"),
    ] {
        let all: Vec<&RuleReport> = rules.iter().filter(|rule| rule.standing == standing).collect();
        if all.is_empty() {
            continue;
        }
        lines.push(format!("\n{title}"));
        for rule in all.iter().take(MAX_RULES) {
            let place = rule.place.as_ref().map(|place| format!("  {}:{}", place.file, place.start.line));
            let place = place.unwrap_or_default();
            lines.push(format!(
                "  {sign} {:7} {:name$}  {}{place}",
                rule.kind.as_str(),
                rule.name,
                rule.text
            ));
            let said =
                [rule.who.as_deref().map(|who| ("by", who)), rule.command.as_deref().map(|it| ("do", it))];
            if standing == RuleEffect::Holds {
                lines.extend(
                    said.into_iter().flatten().map(|(label, text)| format!("             {label:4} {text}")),
                );
            }
        }
        if let more @ 1.. = all.len().saturating_sub(MAX_RULES) {
            lines.push(format!("    and {more} more: -o json shows all"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, Location};
    use crate::report::why::{ChainCluster, ChainLink, RuleKind};
    use crate::rollout::RolloutHold;

    fn chain(cluster: &str, text: &str) -> CauseChain {
        let finding = |link, state, text: &str| ChainFinding {
            link,
            state,
            text: text.to_owned(),
            place: None,
            rule: None,
            who: None,
            help: Vec::new(),
            hold: None,
        };
        let place = Some(Location::new("apps/web/app.yaml", 3, 1));
        let help = vec!["mend it".to_owned(), "git revert abc".to_owned()];
        let who = Some("who may write apps/web/".to_owned());
        let broken = finding(ChainLink::Health, ChainLinkState::Broken, text);
        CauseChain {
            clusters: vec![ChainCluster { name: cluster.into(), ring: Some("prod".to_owned()) }],
            phase: Some("Degraded"),
            revision: None,
            broken: Some(ChainLink::Health),
            findings: vec![
                finding(ChainLink::Apply, ChainLinkState::Well, "as rendered"),
                ChainFinding { place, who, help, ..broken },
            ],
        }
    }

    fn rule(number: usize, standing: RuleEffect) -> RuleReport {
        RuleReport {
            kind: RuleKind::Policy,
            name: format!("policy-{number:03}"),
            standing,
            text: "deny: allows it".to_owned(),
            place: Some(Location::new("policies/a.yaml", 3, 18)),
            who: None,
            command: None,
        }
    }

    #[test]
    fn links_and_help_have_one_line_each() {
        let found = AppExplanation {
            app: AppId::new("shop", "web"),
            chains: vec![chain("p1", "no image")],
            rules: Vec::new(),
        };
        let expected = "\
shop/web on p1 (prod): Degraded
  ✓ apply    as rendered
  ✗ health   no image
             at   apps/web/app.yaml:3:1
             by   who may write apps/web/
             do   mend it
             or   git revert abc";
        assert_eq!(why_lines(&found).join("\n"), expected);
    }

    #[test]
    fn output_is_bounded() {
        let chains = (0..2000).map(|number| chain(&format!("c{number}"), &format!("pod {number}"))).collect();
        let rules = (0..100).map(|number| rule(number, RuleEffect::Passes));
        let rules = std::iter::once(rule(100, RuleEffect::Holds)).chain(rules).collect();
        let lines = why_lines(&AppExplanation { app: AppId::new("shop", "web"), chains, rules });
        let has = |text: &str| lines.iter().any(|line| line.contains(text));
        assert!(has("and 1990 more clusters") && has("and 92 more: -o json"), "{lines:#?}");
        assert!(has("✗ policy  policy-100  deny: allows it  policies/a.yaml:3"), "{lines:#?}");
        assert!(lines.len() < 100, "{}", lines.len());
    }

    #[test]
    fn json_matches_the_text() {
        let mut shown = chain("p1", "waits");
        shown.findings[1].hold = Some(RolloutHold::Confirmation {
            after: "a".into(),
            through: "b".into(),
            digest: Digest::of(b"v2"),
        });
        let found = AppExplanation {
            app: AppId::new("shop", "web"),
            chains: vec![shown],
            rules: vec![rule(0, RuleEffect::Passes)],
        };
        let value = serde_json::to_value(&found).expect("a value");
        let finding = &value["chains"][0]["findings"][1];
        assert_eq!(value["app"], "shop/web");
        assert_eq!(value["chains"][0]["clusters"][0], serde_json::json!({"name": "p1", "ring": "prod"}));
        assert_eq!(value["chains"][0]["broken"], "health");
        assert_eq!((&finding["link"], &finding["state"]), (&"health".into(), &"broken".into()));
        assert_eq!(finding["hold"]["code"], "confirmation");
        assert_eq!(finding["place"]["start"]["line"], 3);
        assert_eq!(
            (&value["rules"][0]["kind"], &value["rules"][0]["standing"]),
            (&"policy".into(), &"passes".into())
        );
    }
}

//! `tutti why`: the first broken link between Git and the pods of an app, and what holds the app. `report::why` computes it; this
//! module finds names and prints.

use std::collections::BTreeSet;
use std::time::Duration;

use anyhow::{Context as _, bail, ensure};
use clap::Args;
use jiff::Timestamp;

use super::exit::Exit;
use super::output::{self, Format};
use super::process::{Process, ProcessArgs};
use super::repository;
use super::session::{self, Looked};
use super::timeout::timeout;
use super::width::{first_names, say_wrapped};
use crate::controller::{ConfigHead, Ending, Until};
use crate::fleet::Fleet;
use crate::manifest::read::nearest;
use crate::model::{AppId, ClusterName, Diagnostic, Scope};
use crate::render::{Memory, Renderer, TargetVerdict, verdicts_of};
use crate::report::Overview;
use crate::report::why::{Chain, Finding, Look, Rule, Standing, State, Why, why};

/// Prefix of the codes of unreadable manifests.
const OF_READING: &str = "E1";
const MOST_CLUSTERS: usize = 5;
const MOST_CHAINS: usize = 10;
/// Printed rules per standing.
const MOST_RULES: usize = 8;

#[derive(Args, Debug)]
pub struct WhyArgs {
    /// NAMESPACE/NAME or its name
    app: String,
    #[command(flatten)]
    process: ProcessArgs,
    /// The longest to wait for clusters, as 90s or 5m; a number alone is seconds
    #[arg(long, default_value = "60s", value_name = "DURATION", value_parser = timeout)]
    timeout: Duration,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub async fn run(mut args: WhyArgs) -> anyhow::Result<Exit> {
    // Without `=` it selects the cluster to show.
    let (ways, on): (Vec<String>, Vec<String>) =
        std::mem::take(&mut args.process.cluster).into_iter().partition(|cluster| cluster.contains('='));
    ensure!(on.len() < 2, "--cluster {}: name one cluster, or none for all", on.join(" --cluster "));
    args.process.cluster = ways;
    let process = args.process.resolve(Some(".")).await?;
    let until = Until::Explained { timeout: args.timeout };
    let Looked { ending, overview, head } = session::look_with_head(&process, until, false, true).await?;
    let head = head.context("the config repository was not read in time")?;
    let on = on.first().map(|name| cluster_named(&head.fleet, &overview, name)).transpose()?;
    let found = match app_named(&head.fleet, &overview, &args.app)? {
        Named::Unread(app, error) => Why::of_unread(app, error),
        Named::App(app) => {
            let verdicts = verdicts(&head, &process, &app).await;
            let look =
                Look { overview: &overview, fleet: &head.fleet, verdicts: &verdicts, now: Timestamp::now() };
            why(&look, &app, on.as_ref())
        }
    };
    match args.output {
        Format::Table => lines(&found).iter().for_each(|line| say_wrapped(line)),
        format => output::write_value(format, &found)?,
    }
    Ok(match ending {
        Ending::Stopped => Exit::Interrupted,
        _ if found.is_well() => Exit::Ok,
        _ => Exit::Differences,
    })
}

// ---- names ----

#[derive(Debug)]
enum Named<'f> {
    App(AppId),
    /// The app may be in an unreadable file.
    Unread(AppId, &'f Diagnostic),
}

fn app_named<'f>(fleet: &'f Fleet, overview: &Overview, name: &str) -> anyhow::Result<Named<'f>> {
    let gone = overview.deletions.iter().chain(&overview.held).map(|it| &it.app);
    let known: BTreeSet<&AppId> = fleet.apps.keys().chain(fleet.broken.keys()).chain(gone).collect();
    let fitting: Vec<&AppId> = match AppId::parse(name) {
        Some(app) => known.get(&app).into_iter().copied().collect(),
        None => known.iter().copied().filter(|app| *app.name == *name).collect(),
    };
    match fitting[..] {
        [app] => return Ok(Named::App(app.clone())),
        [] => {}
        _ => {
            let names: Vec<String> = fitting.iter().map(ToString::to_string).collect();
            bail!("{name} is the name of several apps: {}", first_names(&names, MOST_CLUSTERS));
        }
    }
    let (namespace, bare) = name.split_once('/').unwrap_or(("?", name));
    // Other files were read: they hide no app.
    let unread = |it: &&Diagnostic| {
        it.is_error() && it.code.starts_with(OF_READING) && matches!(&it.scope, Scope::File(_))
    };
    let is_of_it = |it: &&Diagnostic| {
        let file = it.location.as_ref().map(|place| place.file.as_str()).unwrap_or_default();
        file.split(['/', '.']).any(|part| part == bare)
    };
    if let Some(error) = fleet.diagnostics.iter().filter(unread).find(is_of_it) {
        return Ok(Named::Unread(AppId::new(namespace, bare), error));
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
        None => bail!("no app {name} here; there are {}{hint}", first_names(&names, MOST_CLUSTERS)),
    }
}

fn cluster_named(fleet: &Fleet, overview: &Overview, name: &str) -> anyhow::Result<ClusterName> {
    let of_files = fleet.clusters.keys().map(ClusterName::as_str);
    // A cluster with an invalid file is known by its mistake and by its objects.
    let of_mistakes = fleet.diagnostics.iter().filter_map(|it| match &it.scope {
        Scope::Cluster(name) => Some(name.as_str()),
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
            bail!("no cluster {name}; there are {}", first_names(&names, MOST_CLUSTERS))
        }
    }
}

/// Policy verdicts of an app, as in `tutti lint`. Other apps are rendered only if a policy needs them.
async fn verdicts(head: &ConfigHead, process: &Process, app: &AppId) -> Vec<TargetVerdict> {
    let fleet = &head.fleet;
    let Some(manifest) = fleet.apps.get(app) else { return Vec::new() };
    if !fleet.policies.all().any(|it| it.selector.selects_app(app, &manifest.labels)) {
        return Vec::new();
    }
    let charts = repository::charts(fleet, process.sites.clone()).await;
    let mut renderer = Renderer::new(fleet, &head.snapshot, &charts);
    let defines_kinds = head.defined.iter().flat_map(|it| it.values()).any(|kinds| !kinds.is_empty());
    let renders = match fleet.policies.look_at_namespaces() || defines_kinds {
        true => renderer.render_all(&mut Memory::default()),
        false => renderer.render_some(&BTreeSet::from([app.clone()]), None),
    };
    verdicts_of(&renderer, &renders, manifest)
}

// ---- words ----

fn lines(found: &Why) -> Vec<String> {
    let mut lines = Vec::new();
    for (number, chain) in found.chains.iter().take(MOST_CHAINS).enumerate() {
        if number > 0 {
            lines.push(String::new());
        }
        lines.push(heading(&found.app, chain));
        chain.findings.iter().for_each(|finding| lines.extend(finding_lines(finding)));
    }
    let more = found.chains.iter().skip(MOST_CHAINS);
    let clusters: usize = more.map(|chain| chain.clusters.len()).sum();
    if clusters > 0 {
        lines.push(format!("\nand {clusters} more clusters: --cluster NAME shows one, -o json shows all"));
    }
    lines.extend(rule_lines(&found.rules));
    lines
}

fn heading(app: &AppId, chain: &Chain) -> String {
    let name = |on: &crate::report::why::OnCluster| match &on.ring {
        Some(ring) => format!("{} ({ring})", on.name),
        None => on.name.to_string(),
    };
    let names: Vec<String> = chain.clusters.iter().map(name).collect();
    let on =
        if names.is_empty() { String::new() } else { format!(" on {}", first_names(&names, MOST_CLUSTERS)) };
    // The namespace of an unreadable file is unknown.
    let app = app.to_string();
    let app = app.strip_prefix("?/").unwrap_or(&app);
    let phase = chain.phase.map(|phase| format!(": {phase}")).unwrap_or_default();
    format!("{app}{on}{phase}")
}

fn finding_lines(finding: &Finding) -> Vec<String> {
    let sign = match finding.state {
        State::Well => "✓",
        State::Waits => "…",
        State::Broken => "✗",
        State::NotReached => "·",
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

fn rule_lines(rules: &[Rule]) -> Vec<String> {
    let mut lines = Vec::new();
    let longest = |of: &dyn Fn(&Rule) -> usize| rules.iter().map(of).max().unwrap_or_default();
    let name = longest(&|rule| rule.name.chars().count()).min(32);
    for (standing, sign, title) in [
        (Standing::Holds, "✗", "holds it now:"),
        (Standing::Warns, "!", "warns:"),
        (Standing::WouldHold, "…", "would hold its next version:"),
        (Standing::Passes, "✓", "lets it pass:"),
    ] {
        let all: Vec<&Rule> = rules.iter().filter(|rule| rule.standing == standing).collect();
        if all.is_empty() {
            continue;
        }
        lines.push(format!("\n{title}"));
        for rule in all.iter().take(MOST_RULES) {
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
            if standing == Standing::Holds {
                lines.extend(
                    said.into_iter().flatten().map(|(label, text)| format!("             {label:4} {text}")),
                );
            }
        }
        if let more @ 1.. = all.len().saturating_sub(MOST_RULES) {
            lines.push(format!("    and {more} more: -o json shows all"));
        }
    }
    lines
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Digest, Location};
    use crate::report::why::{Link, OnCluster, RuleKind};
    use crate::rollout::Hold;

    fn chain(cluster: &str, text: &str) -> Chain {
        let finding = |link, state, text: &str| Finding {
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
        let broken = finding(Link::Health, State::Broken, text);
        Chain {
            clusters: vec![OnCluster { name: cluster.into(), ring: Some("prod".to_owned()) }],
            phase: Some("Degraded"),
            revision: None,
            broken: Some(Link::Health),
            findings: vec![
                finding(Link::Apply, State::Well, "as rendered"),
                Finding { place, who, help, ..broken },
            ],
        }
    }

    fn rule(number: usize, standing: Standing) -> Rule {
        Rule {
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
        let found =
            Why { app: AppId::new("shop", "web"), chains: vec![chain("p1", "no image")], rules: Vec::new() };
        let expected = "\
shop/web on p1 (prod): Degraded
  ✓ apply    as rendered
  ✗ health   no image
             at   apps/web/app.yaml:3:1
             by   who may write apps/web/
             do   mend it
             or   git revert abc";
        assert_eq!(lines(&found).join("\n"), expected);
    }

    #[test]
    fn output_is_bounded() {
        let chains = (0..2000).map(|number| chain(&format!("c{number}"), &format!("pod {number}"))).collect();
        let rules = (0..100).map(|number| rule(number, Standing::Passes));
        let rules = std::iter::once(rule(100, Standing::Holds)).chain(rules).collect();
        let lines = lines(&Why { app: AppId::new("shop", "web"), chains, rules });
        let has = |text: &str| lines.iter().any(|line| line.contains(text));
        assert!(has("and 1990 more clusters") && has("and 92 more: -o json"), "{lines:#?}");
        assert!(has("✗ policy  policy-100  deny: allows it  policies/a.yaml:3"), "{lines:#?}");
        assert!(lines.len() < 100, "{}", lines.len());
    }

    #[test]
    fn json_matches_the_text() {
        let mut shown = chain("p1", "waits");
        shown.findings[1].hold =
            Some(Hold::Confirmation { after: "a".into(), through: "b".into(), digest: Digest::of(b"v2") });
        let found = Why {
            app: AppId::new("shop", "web"),
            chains: vec![shown],
            rules: vec![rule(0, Standing::Passes)],
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

//! `tutti get notifications`, `servers`, `windows` and `analyses`: lists manifests of the repository; no cluster is asked.

use std::collections::BTreeMap;
use std::sync::Arc;

use jiff::Timestamp;
use jiff::civil::Date;
use jiff::tz::TimeZone;
use serde::Serialize;
use serde_json::{Map, Value};

use super::super::exit::Exit;
use super::super::output::{self, OutputFormat, fit_terminal, say, table, write_table};
use super::super::process::ProcessSettings;
use super::super::{diagnostics, repository};
use crate::fleet::Fleet;
use crate::manifest::ManifestKind;
use crate::model::{
    Analysis, App, Diagnostic, InventoryServer, Notification, NotificationPhase, TargetSelector, WaveLimits,
    WaveOrder, Window, WindowAction, WindowTimes,
};
use crate::window::{self, WindowActivity};

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct RouteLine<'a> {
    name: &'a str,
    service: &'static str,
    language: &'static str,
    select: RouteSelectorView<'a>,
}

#[derive(Debug, Serialize)]
struct RouteSelectorView<'a> {
    #[serde(flatten)]
    targets: &'a TargetSelector,
    phases: Option<&'a [NotificationPhase]>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct ServerLine<'a> {
    name: &'a str,
    labels: &'a BTreeMap<String, String>,
    address: Option<&'a str>,
    provider: Option<&'a str>,
    cluster: Option<&'a str>,
    meta: &'a Map<String, Value>,
    expires_at: Date,
    days_left: i32,
    warn_days: u16,
}

pub async fn notifications(process: &ProcessSettings, format: OutputFormat) -> anyhow::Result<Exit> {
    let (fleet, exit) = read_manifests(process, ManifestKind::Notification).await?;
    let mut routes: Vec<&Notification> = fleet.notifications.iter().map(|it| &**it).collect();
    routes.sort_by(|one, other| one.name.cmp(&other.name));
    let line = |it: &&'_ Notification| (it.service.name(), it.language.as_str());
    if format != OutputFormat::Table {
        let lines: Vec<RouteLine<'_>> = routes
            .iter()
            .map(|it| {
                let (service, language) = line(it);
                let select = RouteSelectorView { targets: &it.selector, phases: it.phases.as_deref() };
                RouteLine { name: &it.name, service, language, select }
            })
            .collect();
        output::write_value(format, &lines)?;
    } else if routes.is_empty() {
        say!("no route: create one as notifications/<name>.yaml");
    } else {
        let mut lines = table(&["NAME", "SERVICE", "LANGUAGE", "SELECTS"]);
        for it in &routes {
            let (service, language) = line(it);
            lines.add_row([
                &*it.name,
                service,
                language,
                &*selection_text(&it.selector, it.phases.as_deref()),
            ]);
        }
        write_table(&fit_terminal(lines));
    }
    Ok(exit)
}

/// A selector as text; `everything` means all phases except the start.
fn selection_text(selector: &TargetSelector, phases: Option<&[NotificationPhase]>) -> String {
    let pairs = |labels: &BTreeMap<String, String>| -> Vec<String> {
        labels.iter().map(|(key, value)| format!("{key}={value}")).collect()
    };
    let clusters = &selector.clusters;
    let expressions = clusters.match_expressions.iter().map(|it| {
        let values =
            if it.values.is_empty() { String::new() } else { format!(" ({})", it.values.join(", ")) };
        format!("{} {:?}{values}", it.key, it.operator)
    });
    let of_clusters: Vec<String> = clusters
        .names
        .iter()
        .flatten()
        .cloned()
        .chain(pairs(&clusters.match_labels))
        .chain(expressions)
        .chain(clusters.ring.as_ref().map(|ring| format!("ring={ring}")))
        .collect();
    let apps = [selector.apps.clone().unwrap_or_default(), pairs(&selector.app_labels)].concat();
    let phases = phases.into_iter().flatten().map(|phase| phase.as_str().to_owned()).collect();
    let parts = [
        ("apps", apps),
        ("rings", selector.rings.clone().unwrap_or_default()),
        ("clusters", of_clusters),
        ("phases", phases),
    ];
    let given = parts.iter().filter(|(_, values)| !values.is_empty());
    let given: Vec<String> = given.map(|(what, values)| format!("{what} {}", values.join(", "))).collect();
    if given.is_empty() { "everything".to_owned() } else { given.join("; ") }
}

pub async fn servers(process: &ProcessSettings, format: OutputFormat) -> anyhow::Result<Exit> {
    let (fleet, exit) = read_manifests(process, ManifestKind::Server).await?;
    let today = Timestamp::now().to_zoned(TimeZone::UTC).date();
    let mut lines: Vec<ServerLine<'_>> =
        fleet.servers.iter().map(|server| server_line(server, today)).collect();
    // Soonest expiry first.
    lines.sort_by_key(|line| (line.expires_at, line.name));
    if format != OutputFormat::Table {
        output::write_value(format, &lines)?;
    } else if lines.is_empty() {
        say!("no server: create one as servers/<name>.yaml");
    } else {
        let mut shown = table(&["NAME", "ADDRESS", "PROVIDER", "CLUSTER", "EXPIRES", "DAYS-LEFT"]);
        for line in &lines {
            let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
            shown.add_row([
                line.name.to_owned(),
                text(line.address),
                text(line.provider),
                text(line.cluster),
                line.expires_at.to_string(),
                line.days_left.to_string(),
            ]);
        }
        write_table(&fit_terminal(shown));
    }
    Ok(exit)
}

fn server_line(server: &InventoryServer, today: Date) -> ServerLine<'_> {
    ServerLine {
        name: &server.name,
        labels: &server.labels,
        address: server.address.as_deref(),
        provider: server.provider.as_deref(),
        cluster: server.cluster.as_deref(),
        meta: &server.meta,
        expires_at: server.expires,
        days_left: server.days_left(today),
        warn_days: server.warn_days,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct WindowLine<'a> {
    name: &'a str,
    action: WindowAction,
    select: &'a TargetSelector,
    times: String,
    /// Whether it blocks what it selects.
    is_shut: bool,
    changes_at: Option<Timestamp>,
    reason: Option<&'a str>,
    #[serde(rename = "override")]
    may_override: &'a [String],
}

pub async fn windows(process: &ProcessSettings, format: OutputFormat) -> anyhow::Result<Exit> {
    let (fleet, exit) = read_manifests(process, ManifestKind::Window).await?;
    let now = Timestamp::now();
    let mut lines: Vec<WindowLine<'_>> = fleet.windows.iter().map(|it| window_line(it, now)).collect();
    lines.sort_by_key(|line| line.name);
    if format != OutputFormat::Table {
        output::write_value(format, &lines)?;
    } else if lines.is_empty() {
        say!("no window: create one as policies/<name>.yaml");
    } else {
        let mut shown = table(&["NAME", "ACTION", "SELECTS", "TIMES", "NOW", "CHANGES"]);
        for line in &lines {
            shown.add_row([
                line.name.to_owned(),
                line.action.as_str().to_owned(),
                selection_text(line.select, None),
                line.times.clone(),
                if line.is_shut { "shut" } else { "open" }.to_owned(),
                line.changes_at.map_or_else(|| "-".to_owned(), |at| at.strftime("%F %H:%M UTC").to_string()),
            ]);
        }
        write_table(&fit_terminal(shown));
    }
    Ok(exit)
}

fn window_line(window: &Window, now: Timestamp) -> WindowLine<'_> {
    let WindowActivity { is_active: lasts, until } = window::activity_at(&window.times, now);
    WindowLine {
        name: &window.name,
        action: window.action,
        select: &window.selector,
        times: match &window.times {
            WindowTimes::Repeated { schedule, duration, time_zone } => {
                let zone = time_zone.iana_name().unwrap_or("UTC");
                format!("{schedule} for {duration:#}, {zone}")
            }
            WindowTimes::Once { from, to } => {
                format!("{} to {}", from.strftime("%F %H:%M UTC"), to.strftime("%F %H:%M UTC"))
            }
            WindowTimes::Unknown => "not known".to_owned(),
        },
        is_shut: lasts == (window.action == WindowAction::Deny),
        changes_at: until,
        reason: window.reason.as_deref(),
        may_override: &window.may_override,
    }
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
struct AnalysisLine<'a> {
    name: &'a str,
    /// `prometheus`, `http` or `health`; `None`: the manifest has a mistake.
    asks: Option<&'static str>,
    success: Option<&'a str>,
    failure: Option<&'a str>,
    interval: Option<u64>,
    count: Option<u32>,
    /// Rings and apps that name it.
    used_by: Vec<String>,
}

pub async fn analyses(process: &ProcessSettings, format: OutputFormat) -> anyhow::Result<Exit> {
    let (fleet, exit) = read_manifests(process, ManifestKind::Analysis).await?;
    let lines: Vec<AnalysisLine<'_>> = fleet.analyses.values().map(|it| analysis_line(it, &fleet)).collect();
    if format != OutputFormat::Table {
        output::write_value(format, &lines)?;
    } else if lines.is_empty() {
        say!("no analysis: create one as policies/<name>.yaml");
    } else {
        let mut shown = table(&["NAME", "ASKS", "SUCCESS", "FAILURE", "COUNT", "EVERY", "USED-BY"]);
        for line in &lines {
            let text = |text: Option<&str>| text.unwrap_or("-").to_owned();
            shown.add_row([
                line.name.to_owned(),
                text(line.asks),
                text(line.success),
                text(line.failure),
                line.count.map_or_else(|| "-".to_owned(), |count| count.to_string()),
                line.interval.map_or_else(|| "-".to_owned(), |seconds| format!("{seconds}s")),
                if line.used_by.is_empty() { "-".to_owned() } else { line.used_by.join(", ") },
            ]);
        }
        write_table(&fit_terminal(shown));
    }
    Ok(exit)
}

fn analysis_line<'a>(analysis: &'a Analysis, fleet: &Fleet) -> AnalysisLine<'a> {
    let names = |limits: &WaveLimits| limits.analysis.contains(&analysis.name);
    let rings =
        fleet.rings.iter().filter(|ring| names(&ring.limits)).map(|ring| format!("ring {}", ring.name));
    let in_app = |app: &&Arc<App>| match &app.rollout.order {
        WaveOrder::Default => false,
        WaveOrder::Groups(groups) => names(&groups.limits),
        WaveOrder::Waves(waves) => waves.iter().any(|wave| names(&wave.limits)),
    };
    let apps = fleet.apps.values().filter(in_app).map(|app| app.id.to_string());
    let spec = analysis.spec.as_ref();
    AnalysisLine {
        name: &analysis.name,
        asks: spec.map(|spec| spec.probe.name()),
        success: spec.map(|spec| &*spec.success.text),
        failure: spec.and_then(|spec| spec.failure.as_ref()).map(|it| &*it.text),
        interval: spec.map(|spec| spec.interval.as_secs()),
        count: spec.map(|spec| spec.count),
        used_by: rings.chain(apps).collect(),
    }
}

/// Reads the repository, and prints mistakes of the kind's folder: manifests with mistakes are not listed.
pub async fn read_manifests(process: &ProcessSettings, kind: ManifestKind) -> anyhow::Result<(Fleet, Exit)> {
    let fleet = repository::fleet(&repository::load_snapshot(process, false).await?);
    let is_there = |it: &&Diagnostic| {
        let file = it.location.as_ref().map(|location| location.file.as_str());
        file.zip(kind.folder()).is_some_and(|(file, folder)| file.starts_with(folder))
    };
    let told: Vec<Diagnostic> = fleet.diagnostics.iter().filter(is_there).cloned().collect();
    diagnostics::print(&told);
    let is_wrong = told.iter().any(Diagnostic::is_error);
    Ok((fleet, if is_wrong { Exit::Configuration } else { Exit::Ok }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::assemble;
    use crate::manifest;
    use crate::model::Snapshot;

    #[test]
    fn selector_is_printed_as_text() {
        for (select, expected) in [
            ("", "everything"),
            ("select: {phases: [failed, server-ends]}", "phases failed, server-ends"),
            (
                "select: {apps: {names: [shop/*], matchLabels: {team: shop}}, rings: [prod, test]}",
                "apps shop/*, team=shop; rings prod, test",
            ),
            (
                "select: {clusters: {names: ['bj*'], matchLabels: {zone: bj}, matchExpressions: [{key: gpu, operator: NotIn, values: [a, b]}, {key: x, operator: Exists}], ring: prod}}",
                "clusters bj*, zone=bj, gpu NotIn (a, b), x Exists, ring=prod",
            ),
        ] {
            let text = format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Notification\nmetadata: {{name: a}}\nspec:\n  service: teams\n  url: {{file: hook}}\n  {select}\n"
            );
            let snapshot = Snapshot::of_texts([("notifications/a.yaml", text.as_str())]);
            let fleet = assemble(manifest::read(&snapshot), &snapshot);
            let route = &fleet.notifications[0];
            let told = selection_text(&route.selector, route.phases.as_deref());
            assert_eq!(told, expected, "{:?}", fleet.diagnostics);
        }
    }

    #[test]
    fn analyses_are_listed_with_their_users() {
        let analysis = "apiVersion: tutti.dev/v1alpha1\nkind: Analysis\nmetadata: {name: errors}\nspec: {prometheus: {url: 'https://p', query: up, success: 'result[0] == 1'}, count: 3}\n";
        let rings = "apiVersion: tutti.dev/v1alpha1\nkind: Rings\nmetadata: {name: rings}\nspec: {rings: [{name: test, clusters: {}, analysis: [errors]}]}\n";
        let app = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: web}\nspec: {workloadType: Deployment, developLanguage: go, runType: worker, image: 'a:1', updateStrategy: {waves: [{name: one, analysis: [errors]}]}}\n";
        let files = [("policies/a.yaml", analysis), ("rings.yaml", rings), ("apps/web/app.yaml", app)];
        let snapshot = Snapshot::of_texts(files);
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        let line = analysis_line(&fleet.analyses["errors"], &fleet);
        assert_eq!(
            (line.asks, line.success, line.failure),
            (Some("prometheus"), Some("result[0] == 1"), None)
        );
        assert_eq!((line.count, line.interval), (Some(3), Some(60)));
        assert_eq!(line.used_by, ["ring test", "default/web"], "{:?}", fleet.diagnostics);
    }

    #[test]
    fn windows_are_shut_by_action_and_time() {
        let noon = "schedule: 0 12 * * *, duration: 1h, timeZone: Europe/Berlin";
        let once = "from: 2026-12-24T00:00, to: 2027-01-02T00:00, timeZone: UTC";
        for (spec, now, expected) in [
            (format!("action: deny, {noon}"), "2026-11-27T11:30Z", (true, Some("2026-11-27T12:00Z"))),
            (format!("action: allow, {noon}"), "2026-11-27T11:30Z", (false, Some("2026-11-27T12:00Z"))),
            (format!("action: allow, {noon}"), "2026-11-27T12:30Z", (true, Some("2026-11-28T11:00Z"))),
            (format!("action: deny, {once}"), "2026-11-27T12:30Z", (false, Some("2026-12-24T00:00Z"))),
            (format!("action: deny, {once}"), "2027-11-27T12:30Z", (false, None)),
            ("action: dney".to_owned(), "2026-11-27T12:30Z", (true, None)),
        ] {
            let text = format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Window\nmetadata: {{name: a}}\nspec: {{{spec}}}\n"
            );
            let snapshot = Snapshot::of_texts([("policies/a.yaml", text.as_str())]);
            let fleet = assemble(manifest::read(&snapshot), &snapshot);
            let line = window_line(&fleet.windows[0], now.parse().expect("a time"));
            let changes_at = expected.1.map(|at| at.parse().expect("a time"));
            assert_eq!((line.is_shut, line.changes_at), (expected.0, changes_at), "{spec}");
        }
    }
}

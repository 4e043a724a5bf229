//! Warns of chart names in layers that match no chart.

use std::collections::BTreeSet;

use super::{chart_values, codes};
use crate::fleet::Fleet;
use crate::fleet::charts::{chart_in_folder, chart_source};
use crate::fleet::layers::TEMPLATES_FOLDER;
use crate::manifest::read::suggest;
use crate::manifest::yaml::{self, YamlNode};
use crate::model::{
    AppSet, AppSpec, ChartProvider, ChartSource, Diagnostic, DiagnosticScope, Location, Snapshot,
};

/// One warning for each unknown chart name; none while an app or a chart cannot be read.
pub fn unknown_charts(fleet: &Fleet, snapshot: &Snapshot, charts: &dyn ChartProvider) -> Vec<Diagnostic> {
    let shared = snapshot.files_in(TEMPLATES_FOLDER).map(|(path, _)| path.to_owned());
    let own = fleet.apps.values().map(|app| format!("{}layer/layer.yaml", app.folder()));
    let files: BTreeSet<String> = shared.filter(|path| path.ends_with("/layer.yaml")).chain(own).collect();
    let named: Vec<(String, Location)> =
        files.iter().flat_map(|file| charts_named_in(file, snapshot)).collect();
    if named.is_empty() || !fleet.is_valid() {
        return Vec::new();
    }
    let Some(known) = names_of_charts(fleet, snapshot, charts) else { return Vec::new() };
    let known: Vec<&str> = known.iter().map(String::as_str).collect();
    let unknown = named.into_iter().filter(|(name, _)| !known.contains(&name.as_str()));
    let warning = |(name, place): (String, Location)| {
        let message = format!("no app has a chart of the name {name}");
        let scope = DiagnosticScope::File(place.file.clone());
        Diagnostic::warning(codes::LAYER, message, scope).at(place).help(suggest(&name, &known, &known))
    };
    unknown.map(warning).collect()
}

fn charts_named_in(file: &str, snapshot: &Snapshot) -> Vec<(String, Location)> {
    let Some(text) = snapshot.text(file) else { return Vec::new() };
    let (documents, _) = yaml::parse(file, text);
    let charts = documents.first().and_then(|document| document.root.get("charts"));
    let items = charts.and_then(YamlNode::as_seq).into_iter().flatten();
    let items = items.filter_map(|item| Some((item.as_str()?.to_owned(), item.location(file))));
    let entries = charts.and_then(YamlNode::as_map).into_iter().flatten();
    let entries = entries.map(|entry| (entry.key.clone(), entry.location(file)));
    items.filter(|(name, _)| name != "*").chain(entries).collect()
}

/// The names of all charts; `None`: a chart cannot be read.
fn names_of_charts(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn ChartProvider,
) -> Option<BTreeSet<String>> {
    let app_sets = fleet.apps.values().filter_map(|app| match &app.spec {
        AppSpec::AppSet(app_set) => Some(app_set),
        AppSpec::Component(_) | AppSpec::Objects(_) | AppSpec::Project(_) => None,
    });
    let name = |source: ChartSource| match source {
        ChartSource::Folder { name, version } => chart_in_folder(&name, version.as_deref(), snapshot)
            .map(|chart| chart_values::chart_name(&chart))
            .ok(),
        source => charts.chart(&source).map(|chart| chart_values::chart_name(&chart)).ok(),
    };
    let sources = app_sets.flat_map(AppSet::charts).map(|chart| chart_source(chart, &fleet.instance.charts));
    sources.map(|source| source.ok().and_then(name)).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::assemble;
    use crate::manifest;
    use crate::model::NoCharts;

    #[test]
    fn unknown_chart_names_are_reported() {
        let app = "apiVersion: tutti.dev/v1alpha1\nkind: AppSet\nmetadata: {name: web}\nspec:\n  podSpec: {deployType: \
                   helm, chart: {chartUrl: {url: charts/web}}}\n  clusterTopology: {clusters: [{name: bj1, podSets: [{name: \
                   a}]}]}\n";
        let chart = "apiVersion: v2\nname: nginx\nversion: 1.0.0\n";
        let cluster = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
        let check = |file: &str, text: &str, expected: &[&str]| {
            let files = [
                ("apps/web/app.yaml", app),
                ("clusters/bj1.yaml", cluster),
                ("charts/web/Chart.yaml", chart),
                (file, text),
            ];
            let snapshot = Snapshot::of_texts(files);
            let fleet = assemble(manifest::read(&snapshot), &snapshot);
            let found = unknown_charts(&fleet, &snapshot, &NoCharts);
            let told: Vec<String> = found.iter().map(ToString::to_string).collect();
            assert_eq!(told, expected, "{text}");
        };
        let base = "templates/base/layer.yaml";
        check(base, "charts: [nginx]", &[]);
        check(base, "charts: ['*']", &[]);
        check(base, "charts: true", &[]);
        let told = "warning[E3023]: no app has a chart of the name ngnix at templates/base/layer.yaml:1:10";
        check(base, "charts: [ngnix, nginx]", &[told]);
        check(base, "charts: {nginx: {a: 1}}", &[]);
        let told = "warning[E3023]: no app has a chart of the name redis at apps/web/layer/layer.yaml:1:10";
        check("apps/web/layer/layer.yaml", "charts: {redis: {a: 1}, nginx: true}", &[told]);
    }
}

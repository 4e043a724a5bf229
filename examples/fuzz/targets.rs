//! The fuzz targets.

use rand::RngExt as _;
use rand::rngs::StdRng;
use tutti::fleet::assemble;
use tutti::manifest::hub::Hub;
use tutti::manifest::kinds::{self, DocumentIdentity};
use tutti::manifest::read::ReadContext;
use tutti::manifest::{self, yaml};
use tutti::model::{Diagnostic, DiagnosticScope, NoCharts, Snapshot};
use tutti::render::{FleetRenderer, RenderCache};

type FuzzTarget = fn(&str, &mut StdRng) -> Result<(), String>;

pub const TARGETS: [(&str, FuzzTarget); 3] = [("yaml", read), ("hub", convert), ("templates", render)];

/// Every way in which a text is read as YAML.
fn read(text: &str, _: &mut StdRng) -> Result<(), String> {
    let stream = yaml::read("input.yaml", text);
    for document in &stream.documents {
        let json = document.root.to_json();
        // What was read can be read again from what it is as JSON.
        let again = serde_json::to_string(&json).map_err(|error| error.to_string())?;
        serde_json::from_str::<serde_json::Value>(&again).map_err(|error| format!("{error}: {again}"))?;
    }
    let _ = yaml::parse_values("input.yaml", text);
    places(&stream.mistakes, text)
}

/// As a manifest, in its own version and in every other that its kind has.
fn convert(text: &str, random: &mut StdRng) -> Result<(), String> {
    let rules = ("plugins/conversion/x/1/rules.yaml", text);
    let manifest = ("apps/x/app.yaml", text);
    let files: &[(&str, &str)] =
        if random.random_range(0..8) == 0 { &[rules, manifest] } else { &[manifest] };
    let snapshot = Snapshot::of_texts(files.iter().copied());
    let read = manifest::read(&snapshot);
    places(&read.diagnostics, text)?;
    let _ = assemble(read, &snapshot);
    let (hub, _) = Hub::of(&snapshot);
    for document in yaml::read("apps/x/app.yaml", text).documents {
        let mut root = document.root;
        let mut reading = ReadContext::new("apps/x/app.yaml", DiagnosticScope::Instance);
        let Some(DocumentIdentity::Native(native)) = kinds::identify(&root, &hub, &mut reading) else {
            continue;
        };
        hub.to_hub(native, &mut root, &mut reading);
        let versions: Vec<String> = hub.versions(native).into_iter().map(str::to_owned).collect();
        for version in versions {
            let mut there = root.clone();
            hub.to_version(native, &version, &mut there, &mut reading);
            hub.to_hub(native, &mut there, &mut reading);
        }
    }
    Ok(())
}

const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: one, labels: {zone: a}}\nspec: {connection: {sandbox: {}}}\n";
const APP: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Component\nmetadata: {name: x}\nspec: {workloadType: Deployment, developLanguage: go, runType: server, image: 'x:1', port: 80}\n";

/// As a file of the layer of an app: a template, a part of one, values or a patch.
fn render(text: &str, random: &mut StdRng) -> Result<(), String> {
    let places = ["x.yaml.j2", "deployment.yaml.j2", "_workload.j2", "values.yaml", "patches/x.yaml"];
    let place = format!("apps/x/layer/{}", places[random.random_range(0..places.len())]);
    let files = [("clusters/one.yaml", CLUSTER), ("apps/x/app.yaml", APP), (place.as_str(), text)];
    let snapshot = Snapshot::of_texts(files);
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    let renders = FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default());
    match renders.results().filter_map(|result| result.as_ref().err()).flatten().find(|it| it.code == "E3999")
    {
        Some(fault) => Err(fault.to_string()),
        None => Ok(()),
    }
}

/// Mistakes point into the text.
fn places(mistakes: &[Diagnostic], text: &str) -> Result<(), String> {
    // The reader counts some more characters as ends of lines.
    let lines = text.split(['\n', '\r', '\u{85}', '\u{2028}', '\u{2029}']).count() + 1;
    for mistake in mistakes {
        let Some(location) = mistake.location.as_ref() else { continue };
        if location.start.line as usize > lines || location.start.line == 0 || location.start.column == 0 {
            return Err(format!("{mistake} is outside of {lines} lines"));
        }
    }
    Ok(())
}

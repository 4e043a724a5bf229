//! Parses `layer.yaml`: the clusters of a cluster layer, whether its values reach charts, and values for single charts.

use serde_json::Value;

use super::layer_chart_scope::{LayerChartScope, LayerChartValues};
use super::render_job::RenderJob;
use super::{codes, layer_text, layer_values};
use crate::fleet::layers::TEMPLATES_FOLDER;
use crate::manifest::kinds::placement;
use crate::manifest::read::{ManifestFields, ManifestValue as Field, ReadContext};
use crate::manifest::yaml::{self, YamlNodeKind};
use crate::model::{ClusterSelector, Diagnostic, Location};

pub const LAYER_FILE: &str = "layer.yaml";

#[derive(Clone, Debug, Default, PartialEq)]
pub struct LayerFile {
    /// Only of a cluster layer.
    pub clusters: Option<ClusterSelector>,
    pub charts: LayerChartScope,
}

/// `None`: the layer has no such file. `of_clusters`: `clusters` is required.
pub fn read(
    job: &RenderJob<'_>,
    folder: &str,
    of_clusters: bool,
) -> Result<Option<LayerFile>, Vec<Diagnostic>> {
    let path = format!("{folder}{LAYER_FILE}");
    let Some(file) = job.snapshot.files.get(&path) else { return Ok(None) };
    let text = layer_text::text(job, &path, file).map_err(|mistake| vec![*mistake])?;
    let (documents, mut mistakes) = yaml::parse(&path, text);
    let mut reading = ReadContext::new(&path, job.scope());
    if let Some(second) = documents.get(1) {
        let place = second.root.location(&path);
        reading.mistake(codes::LAYER, "one document was expected, this is another", place, "");
    }
    if let Some(Value::Object(written)) = documents.first().map(|document| document.root.to_json()) {
        layer_values::refuse_encrypted(job, &written, &Location::new(&path, 1, 1))
            .map_err(|mistake| vec![*mistake])?;
    }
    let is_own = !folder.starts_with(TEMPLATES_FOLDER);
    let file = documents.first().and_then(|document| {
        let mut fields = ManifestFields::of(&Field::root(&document.root), &mut reading)?;
        let clusters = if of_clusters { fields.required("clusters", &mut reading) } else { None };
        let help = "write true, false or names of charts, or remove the field: without it, the layer is for no chart";
        let charts = fields.optional_with_value("charts", help, &mut reading);
        fields.finish(&mut reading);
        let clusters = clusters.map(|clusters| placement::selector(&clusters, true, &mut reading));
        let charts = charts.map_or(Some(LayerChartScope::None), |charts| read_chart_scope(&charts, is_own, &mut reading));
        Some(LayerFile { clusters: clusters.flatten(), charts: charts? })
    });
    mistakes.append(&mut reading.mistakes);
    for mistake in &mut mistakes {
        mistake.scope = job.scope();
    }
    match file {
        Some(file) if mistakes.is_empty() => Ok(Some(file)),
        _ if mistakes.is_empty() => {
            let message = format!("{path} is empty");
            let mistake = job.error(codes::LAYER, message).at(Location::new(&path, 1, 1));
            Err(vec![mistake.help("write the clusters or charts of the layer, or delete the file")])
        }
        _ => Err(mistakes),
    }
}

/// Accepts `true`, `"*"`, chart names, or a map of them. An app's own layer (`is_own`) cannot restrict itself.
fn read_chart_scope(
    value: &Field<'_>,
    is_own: bool,
    reading: &mut ReadContext<'_>,
) -> Option<LayerChartScope> {
    match &value.node.kind {
        YamlNodeKind::Bool(false, _) | YamlNodeKind::Seq(_) if is_own => {
            let message = "the values of an app's own layer reach all charts of the app";
            let place = reading.location(value.node);
            let help = "remove `charts`, or move the values to a layer in templates/";
            reading.mistake(codes::LAYER, message, place, &value.path).help(help);
            None
        }
        YamlNodeKind::Bool(true, _) => Some(LayerChartScope::All),
        YamlNodeKind::Bool(false, _) => Some(LayerChartScope::None),
        YamlNodeKind::String(text) if text == "*" => Some(LayerChartScope::All),
        YamlNodeKind::Seq(_) => {
            let names = reading.texts(value)?;
            let all = names.iter().any(|name| name == "*");
            let named = || names.into_iter().map(|name| (name, LayerChartValues::Layer)).collect();
            Some(if all { LayerChartScope::All } else { LayerChartScope::Named(named()) })
        }
        YamlNodeKind::Map(_) => {
            let entries = reading.entries(value)?;
            // Reads every entry, so that all mistakes are reported.
            let charts: Vec<_> = entries
                .into_iter()
                .map(|(name, value)| Some((name.to_owned(), read_chart_values(&value, reading)?)))
                .collect();
            Some(LayerChartScope::Named(charts.into_iter().collect::<Option<_>>()?))
        }
        _ => {
            reading.wrong_type(
                value,
                "true, false, a list of the names of charts, or a map with values for each",
            );
            None
        }
    }
}

fn read_chart_values(value: &Field<'_>, reading: &mut ReadContext<'_>) -> Option<LayerChartValues> {
    match (&value.node.kind, value.node.to_json()) {
        (YamlNodeKind::Bool(true, _), _) => Some(LayerChartValues::Layer),
        (_, Value::Object(values)) => Some(LayerChartValues::Own(values)),
        _ => {
            reading.wrong_type(value, "a map of values for this chart, or true");
            None
        }
    }
}

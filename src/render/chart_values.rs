//! Collects the values of a chart: layers that reach charts, then the podSet, then its rawValues.

use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::layer_file::LAYER_FILE;
use super::render_job::RenderJob;
use super::template_layers::{TemplateLayer, TemplateLayers};
use super::{chart_images, codes, layer_values, template_mistakes};
use crate::fleet::charts::chart_field;
use crate::fleet::codes::TWO_TAGS;
use crate::fleet::layers::TEMPLATES_FOLDER;
use crate::manifest::yaml::{self, YamlNode, YamlNodeKind};
use crate::model::secret_masking::{self, CIPHERTEXT};
use crate::model::{
    Chart, ChartCapabilities, ChartFailure, ChartFailureKind, ChartRequest, Diagnostic, Digest,
    ImageReference, Location,
};
use crate::schedule::AssignedPodSet;

/// One layer of values over the defaults of a chart.
#[derive(Debug)]
pub struct ChartValuesLayer<'a> {
    pub values: Map<String, Value>,
    /// The source file; `None`: the manifest of the podSet.
    source: Option<ValuesSource<'a>>,
}

#[derive(Debug)]
struct ValuesSource<'a> {
    file: String,
    text: &'a str,
    /// The path of keys to the values.
    key_path: Vec<String>,
}

impl ChartValuesLayer<'_> {
    fn of_pod_set(values: Map<String, Value>) -> Self {
        Self { values, source: None }
    }
}

/// The layers of values over the defaults of the chart, lowest first.
pub fn value_layers<'a>(
    job: &'a RenderJob<'_>,
    layers: &'a TemplateLayers,
    pod_set: &AssignedPodSet,
    chart: &Chart,
) -> Result<Vec<ChartValuesLayer<'a>>, Vec<Diagnostic>> {
    let (mut list, mut mistakes) = (Vec::new(), Vec::new());
    let name = chart_name(chart);
    for layer in &layers.list {
        match chart_values_of_layer(job, layer, &name) {
            Ok(mut given) => list.append(&mut given),
            Err(mut found) => mistakes.append(&mut found),
        }
    }
    let places = list.iter().filter_map(|given| given.source.as_ref()?.locate_braces());
    places.for_each(|place| warn_of_braces(job, &place));
    mistakes.extend(encrypted_values(chart).map(|name| {
        layer_values::encrypted_values_mistake(job, Location::new(&format!("{}{name}", chart.origin), 1, 1))
    }));
    let mut raw = pod_set.raw_values.clone();
    match chart_defaults(job, chart) {
        Ok(mut shape) => {
            // A layer may add a part that the chart mentions only in a comment.
            let over = list.iter().map(|given| &given.values).chain(&pod_set.raw_values);
            over.for_each(|over| layer_values::merge(&mut shape, pod_set_keys_of(over)));
            let own = pod_set_values(job, pod_set, chart, &shape);
            if let Some(raw) = &mut raw {
                // An untagged image in rawValues does not contradict the podSet.
                if raw.get("image").and_then(Value::as_str).is_some_and(lacks_tag_and_digest)
                    && own.get("image").is_some_and(Value::is_string)
                {
                    raw.remove("image");
                }
                if let Some(difference) = image_conflict(&own, raw) {
                    let message = format!("podSet {}: {difference}", pod_set.name);
                    let help = "write one of them, or the same in both";
                    mistakes.push(job.error(TWO_TAGS, message).at(pod_set.location.clone()).help(help));
                }
            }
            list.push(ChartValuesLayer::of_pod_set(own));
        }
        Err(failure) => mistakes.push(unreadable_values(job, chart, &failure)),
    }
    if let Some(raw) = raw {
        if json!(raw).to_string().contains("{{") {
            warn_of_braces(job, &pod_set.location);
        }
        list.push(ChartValuesLayer::of_pod_set(raw));
    }
    list.retain(|given| !given.values.is_empty());
    if mistakes.is_empty() { Ok(list) } else { Err(mistakes) }
}

/// The keys that a podSet may set.
const POD_SET_KEYS: [&str; 5] = ["replicaCount", "replicas", "image", "imageTag", "tag"];

fn pod_set_keys_of(values: &Map<String, Value>) -> Map<String, Value> {
    let of_name = |name: &&str| Some(((*name).to_owned(), values.get(*name)?.clone()));
    POD_SET_KEYS.iter().filter_map(of_name).collect()
}

/// The values of a layer that reach a chart: an app's own layer, a shared layer that names charts, and values below the
/// chart's name. Shipped layers are only for shipped templates.
fn chart_values_of_layer<'a>(
    job: &'a RenderJob<'_>,
    layer: &'a TemplateLayer,
    chart: &str,
) -> Result<Vec<ChartValuesLayer<'a>>, Vec<Diagnostic>> {
    let reaches = !layer.folder.starts_with(TEMPLATES_FOLDER) || layer.charts.includes(chart);
    let mut list = Vec::new();
    if let Some(source) = layer.values.as_ref().filter(|it| reaches && !it.is_shipped) {
        let written = ValuesSource { file: source.path.clone(), text: &source.text, key_path: Vec::new() };
        list.push(ChartValuesLayer {
            values: layer_values::values_of_layer(job, layer)?,
            source: Some(written),
        });
    }
    if let Some(values) = layer.charts.values_for(chart) {
        let file = format!("{}{LAYER_FILE}", layer.folder);
        let text = job.snapshot.text(&file).unwrap_or_default();
        let below = vec!["charts".to_owned(), chart.to_owned()];
        list.push(ChartValuesLayer {
            values: values.clone(),
            source: Some(ValuesSource { file, text, key_path: below }),
        });
    }
    Ok(list)
}

/// The name in `Chart.yaml`, else the folder.
pub fn chart_name(chart: &Chart) -> String {
    let folder = || chart.origin.trim_end_matches('/').rsplit('/').next().unwrap_or_default().to_owned();
    chart_field(chart, "name").unwrap_or_else(folder)
}

fn warn_of_braces(job: &RenderJob<'_>, place: &Location) {
    let help = "values are not templates; some charts render `{{ … }}` themselves (`tpl`), most use the text \
                unchanged";
    job.warn(codes::VALUES_NOT_TEMPLATED, "`{{` in values that are not templated", place, help);
}

/// Values files of the chart and its subcharts that hold ciphertext.
fn encrypted_values(chart: &Chart) -> impl Iterator<Item = &str> {
    let values = |name: &str| name == "values.yaml" || name.ends_with("/values.yaml");
    let encrypted = |text: &str| {
        // Helm may read a file that our parser refuses.
        text.contains(CIPHERTEXT)
            && yaml::parse_values("values.yaml", text)
                .map_or(true, |map| secret_masking::ciphertext_path(&map).is_some())
    };
    let names = chart.files.iter().map(|(name, _)| name.as_str()).filter(move |name| values(name));
    names.filter(move |name| chart.text(name).is_some_and(encrypted))
}

/// The `values.yaml` of a chart. Helm accepts more than our parser (duplicate keys, tags, any depth). A file that our parser
/// refuses is rendered by Helm, from a chart that prints only the keys of podSets.
fn chart_defaults(job: &RenderJob<'_>, chart: &Chart) -> Result<Map<String, Value>, ChartFailure> {
    let Some(content) = chart.file("values.yaml") else { return Ok(Map::new()) };
    if let Some(Ok(values)) = chart.text("values.yaml").map(|text| yaml::parse_values("values.yaml", text)) {
        return Ok(values);
    }
    const CHART: &[u8] = b"apiVersion: v2\nname: values\nversion: 0.1.0\n";
    let names = POD_SET_KEYS.map(|name| format!("{name:?}")).join(" ");
    let template = format!(
        "apiVersion: v1\nkind: ConfigMap\nmetadata: {{name: values}}\ndata:\n  values: {{{{ pick .Values {names} | toJson | \
         toJson }}}}\n"
    );
    let files: Vec<(String, Arc<[u8]>)> = vec![
        ("Chart.yaml".to_owned(), CHART.into()),
        ("templates/values.yaml".to_owned(), template.into_bytes().into()),
        ("values.yaml".to_owned(), content.into()),
    ];
    let digest =
        Digest::of(&files.iter().flat_map(|(_, content)| content.iter().copied()).collect::<Vec<u8>>());
    let request = ChartRequest {
        values: Vec::new(),
        release: "values".to_owned(),
        namespace: "default".to_owned(),
        capabilities: ChartCapabilities { kube_version: None, api_versions: Vec::new(), complete: false },
        chart: Arc::new(Chart { origin: chart.origin.clone(), digest, folder: false, files }),
    };
    let output = job.time_slice.run_part(|wait| job.charts.render(&request, wait))?;
    let text = output.objects.first().and_then(|it| it.object.pointer("/data/values")?.as_str());
    let values = text.and_then(|text| serde_json::from_str(text).ok());
    values.ok_or_else(|| ChartFailure::new(ChartFailureKind::Malformed, "the values are not a map"))
}

fn unreadable_values(job: &RenderJob<'_>, chart: &Chart, failure: &ChartFailure) -> Diagnostic {
    if failure.fault == ChartFailureKind::Awaited {
        return template_mistakes::awaited_render(job);
    }
    let message = format!("{}values.yaml cannot be read: {}", chart.origin, failure.message);
    let place = Location::new(&format!("{}values.yaml", chart.origin), 1, 1);
    let known = job.snapshot.files.contains_key(&place.file);
    let diagnostic = job.error(codes::MALFORMED_CHART, message).help("fix values.yaml of the chart");
    if known { diagnostic.at(place) } else { diagnostic.at(job.app.location.clone()) }
}

/// Replicas, image and version of the podSet under the keys that the chart defines. A warning names a missing key.
fn pod_set_values(
    job: &RenderJob<'_>,
    pod_set: &AssignedPodSet,
    chart: &Chart,
    defaults: &Map<String, Value>,
) -> Map<String, Value> {
    let without = |name: &str, what: &str, end: &str| {
        let message = format!(
            "chart {} has no value {name}: the {what} of podSet {} {end}",
            chart_name(chart),
            pod_set.name
        );
        let help = "set the chart's own value under rawValues, or in a layer that reaches charts";
        job.warn(codes::CHART_WITHOUT_VALUE, message, &pod_set.location, help);
    };
    let mut own = Map::new();
    // `replicas: {min: 1}` is no replica count.
    let is_count = |value: &Value| !value.is_object() && !value.is_array();
    let count = ["replicaCount", "replicas"].into_iter().find(|key| defaults.get(*key).is_some_and(is_count));
    match (count, pod_set.replicas) {
        (Some(key), Some(replicas)) => {
            own.insert(key.to_owned(), json!(replicas));
        }
        (None, Some(_)) => without("`replicaCount` or `replicas`", "number of replicas", "is not used"),
        (_, None) => {}
    }
    let (values, missing) = chart_images::image_values(
        defaults,
        pod_set.image.as_deref(),
        pod_set.version.as_deref(),
        &|one, other| one_line_reads(chart, one, other),
    );
    for missing in missing {
        let end = match missing.is_passed_on {
            true => "is used only where its templates read it",
            false => "is not used",
        };
        without(missing.name, missing.setting.name(), end);
    }
    own.extend(values);
    own
}

fn lacks_tag_and_digest(image: &str) -> bool {
    let reference = ImageReference::parse(image);
    reference.tag.is_none() && reference.digest.is_none()
}

fn one_line_reads(chart: &Chart, one: &str, other: &str) -> bool {
    let templates = chart.files.iter().filter(|(name, _)| name.contains("templates/"));
    let texts = templates.filter_map(|(_, content)| std::str::from_utf8(content).ok());
    texts.flat_map(str::lines).any(|line| line.contains(one) && line.contains(other))
}

/// The first key where rawValues would override the image of the podSet.
fn image_conflict(own: &Map<String, Value>, raw: &Map<String, Value>) -> Option<String> {
    const OF_IMAGE: [&str; 6] = ["/image", "/image/tag", "/image/digest", "/image/sha", "/imageTag", "/tag"];
    let (own, raw) = (json!(own), json!(raw));
    let text = |value: &Value| match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let differ = |path: &&&str| {
        let both = own.pointer(path).zip(raw.pointer(path)).filter(|(own, _)| !own.is_object());
        // An emptied digest belonged to another image. A digest in rawValues beside the version is valid.
        let is_emptied =
            |own: &Value| matches!(**path, "/image/digest" | "/image/sha") && text(own).is_empty();
        both.is_some_and(|(own, raw)| text(own) != text(raw) && !is_emptied(own))
    };
    let path = OF_IMAGE.iter().find(differ)?;
    let words = |value: &Value| match text(value) {
        empty if empty.is_empty() => "empty".to_owned(),
        text => text,
    };
    let [says, is] = [&own, &raw].map(|values| values.pointer(path).map(words).unwrap_or_default());
    Some(format!("for `{}` it is {says}, and in rawValues it is {is}", path[1..].replace('/', ".")))
}

/// The position of a value: in the highest layer that has it, else in the chart.
pub fn locate_value(
    job: &RenderJob<'_>,
    given: &[ChartValuesLayer<'_>],
    pod_set: &AssignedPodSet,
    chart: &Chart,
    path: &str,
) -> Option<Location> {
    let path: Vec<&str> = path.strip_prefix(".Values")?.split('.').filter(|part| !part.is_empty()).collect();
    let (first, rest) = path.split_first()?;
    let has = |given: &&ChartValuesLayer<'_>| {
        let value = given.values.get(*first);
        value.and_then(|value| rest.iter().try_fold(value, |value, part| value.get(part))).is_some()
    };
    match given.iter().rev().find(has).map(|given| &given.source) {
        Some(Some(written)) => written.locate(&path),
        Some(None) => Some(pod_set.location.clone()),
        None => {
            let file = format!("{}values.yaml", chart.origin);
            let text = job.snapshot.text(&file)?;
            ValuesSource { file, text, key_path: Vec::new() }.locate(&path)
        }
    }
}

impl ValuesSource<'_> {
    fn locate(&self, path: &[&str]) -> Option<Location> {
        let (last, before) = path.split_last()?;
        self.locate_node(|values| Some(values.find(before)?.entry(last)?.location(&self.file)))
    }

    fn locate_braces(&self) -> Option<Location> {
        if !self.text.contains("{{") {
            return None;
        }
        self.locate_node(|values| Some(node_with_braces(values)?.location(&self.file)))
    }

    fn locate_node(&self, place: impl Fn(&YamlNode) -> Option<Location>) -> Option<Location> {
        let (documents, _) = yaml::parse(&self.file, self.text);
        let root = &documents.first()?.root;
        place(self.key_path.iter().try_fold(root, |node, key| node.get(key))?)
    }
}

fn node_with_braces(node: &YamlNode) -> Option<&YamlNode> {
    match &node.kind {
        YamlNodeKind::String(text) => text.contains("{{").then_some(node),
        YamlNodeKind::Seq(items) => items.iter().find_map(node_with_braces),
        YamlNodeKind::Map(entries) => entries.iter().find_map(|entry| node_with_braces(&entry.value)),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn raw_values_with_other_image_are_reported() {
        let check = |own: Value, raw: Value, expected: Option<&str>| {
            let [own, raw] = [own, raw].map(|values| values.as_object().cloned().unwrap_or_default());
            assert_eq!(image_conflict(&own, &raw).as_deref(), expected, "{own:?} {raw:?}");
        };
        check(json!({"image": {"tag": "v2"}}), json!({"colour": "red"}), None);
        check(json!({"image": {"tag": "v2"}}), json!({"image": {"tag": "v2", "pullPolicy": "Always"}}), None);
        let tag = Some("for `image.tag` it is v2, and in rawValues it is 1.26");
        check(json!({"image": {"tag": "v2"}}), json!({"image": {"tag": 1.26}}), tag);
        let empty = Some("for `image.tag` it is v2, and in rawValues it is empty");
        check(json!({"image": {"tag": "v2"}}), json!({"image": {"tag": null}}), empty);
        let beside = Some("for `tag` it is v2, and in rawValues it is v3");
        check(json!({"image": "nginx", "tag": "v2"}), json!({"tag": "v3"}), beside);
        check(json!({"image": {"tag": "v2", "digest": ""}}), json!({"image": {"digest": "sha256:0a"}}), None);
        let digest = Some("for `image.digest` it is sha256:0f, and in rawValues it is sha256:0a");
        check(json!({"image": {"digest": "sha256:0f"}}), json!({"image": {"digest": "sha256:0a"}}), digest);
        assert!(
            lacks_tag_and_digest("r.io:5000/nginx")
                && !lacks_tag_and_digest("nginx:1")
                && !lacks_tag_and_digest("nginx@sha256:0f")
        );
    }
}

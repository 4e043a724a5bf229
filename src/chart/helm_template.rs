//! Renders with `helm template` if `helm-render` is missing: slower, with the same objects.

use std::fs;
use std::io::{self, Read};
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::mpsc;
use std::thread;

use serde_json::Value;

use super::archive::is_archive_of_subchart;
use super::child::renderer_command;
use super::helm_messages;
use super::render_limits::{ChartRenderLimits, timeout_failure};
use crate::child;
use crate::manifest::yaml;
use crate::model::{ChartFailure, ChartFailureKind, ChartHook, ChartObject, ChartOutput, ChartRequest};

/// Blocks.
pub fn render(
    helm: &Path,
    request: &ChartRequest,
    limits: &ChartRenderLimits,
) -> Result<ChartOutput, ChartFailure> {
    let failed = |what: &str, error: &io::Error| {
        ChartFailure::new(ChartFailureKind::Renderer, format!("failed to {what}: {error}"))
    };
    let folder = tempfile::tempdir().map_err(|error| failed("make a folder for the chart", &error))?;
    let command = prepare(helm, request, limits, folder.path())
        .map_err(|error| failed("write the chart for helm template", &error))?;
    let said = run(command, limits)?;
    let name = chart_name(request);
    if !said.success {
        return Err(explain(&name, &said.errors, limits));
    }
    let objects = split(&name, &said.text)?;
    Ok(ChartOutput { objects, notes: String::new() })
}

/// Reads `Chart.yaml`, which Helm has already accepted.
fn chart_name(request: &ChartRequest) -> String {
    let text = request.chart.text("Chart.yaml").unwrap_or_default();
    let parsed: Value = serde_yaml::from_str(text).unwrap_or_default();
    parsed.get("name").and_then(Value::as_str).unwrap_or_default().to_owned()
}

fn prepare(
    helm: &Path,
    request: &ChartRequest,
    limits: &ChartRenderLimits,
    folder: &Path,
) -> io::Result<Command> {
    let chart = folder.join("chart");
    for (name, content) in &request.chart.files {
        // Chart paths were checked before; this check protects the disk.
        if Path::new(name).components().any(|part| !matches!(part, std::path::Component::Normal(_))) {
            return Err(io::Error::other(format!("{name} leads out of the chart")));
        }
        let path = chart.join(name);
        fs::create_dir_all(path.parent().unwrap_or(&chart))?;
        fs::write(path, content)?;
    }
    let mut command = renderer_command(helm, limits);
    command.arg("template").arg(&request.release).arg(&chart).args(["--namespace", &request.namespace]);
    command.arg("--include-crds");
    // Helm's own check follows every reference, and schemas of packaged subcharts were not checked here.
    if request.chart.files.iter().any(|(name, _)| is_archive_of_subchart(name)) {
        command.arg("--skip-schema-validation");
    }
    for (index, layer) in request.values.iter().enumerate() {
        let path = folder.join(format!("values-{index}.json"));
        fs::write(&path, serde_json::to_vec(layer)?)?;
        command.arg("--values").arg(path);
    }
    if let Some(version) = &request.capabilities.kube_version {
        command.args(["--kube-version", version]);
    }
    for version in &request.capabilities.api_versions {
        command.args(["--api-versions", version]);
    }
    // A folder for Helm's own files, without repositories, plug-ins or registry logins.
    for variable in ["HOME", "HELM_CACHE_HOME", "HELM_CONFIG_HOME", "HELM_DATA_HOME"] {
        command.env(variable, folder.join("home"));
    }
    Ok(command)
}

struct HelmTemplateOutput {
    success: bool,
    text: String,
    errors: String,
}

fn run(mut command: Command, limits: &ChartRenderLimits) -> Result<HelmTemplateOutput, ChartFailure> {
    let failed = |error: io::Error| {
        ChartFailure::new(ChartFailureKind::Renderer, format!("failed to run helm template: {error}"))
    };
    command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped());
    let mut process = child::spawn(&mut command, limits.memory).map_err(failed)?;
    let (sender, read) = mpsc::channel();
    let pipes = [
        process.stdout.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
        process.stderr.take().map(|pipe| Box::new(pipe) as Box<dyn Read + Send>),
    ];
    let limit = limits.answer as u64 + 1;
    for (index, pipe) in pipes.into_iter().enumerate() {
        let sender = sender.clone();
        thread::spawn(move || {
            let mut bytes = Vec::new();
            if let Some(pipe) = pipe {
                let _ = pipe.take(limit).read_to_end(&mut bytes);
            }
            let _ = sender.send((index, bytes));
        });
    }
    let end = std::time::Instant::now() + limits.deadline;
    let mut texts = [Vec::new(), Vec::new()];
    for _ in 0..2 {
        let left = end.saturating_duration_since(std::time::Instant::now());
        let Ok((index, bytes)) = read.recv_timeout(left) else {
            let _ = process.kill();
            let _ = process.wait();
            return Err(timeout_failure(limits.deadline));
        };
        if bytes.len() > limits.answer {
            let _ = process.kill();
            let _ = process.wait();
            let message = format!("the chart makes more than {} bytes", limits.answer);
            return Err(ChartFailure::new(ChartFailureKind::Limit, message));
        }
        if let Some(text) = texts.get_mut(index) {
            *text = bytes;
        }
    }
    let status = process.wait().map_err(failed)?;
    let [text, errors] = texts.map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    Ok(HelmTemplateOutput { success: status.success(), text, errors })
}

fn explain(chart: &str, errors: &str, limits: &ChartRenderLimits) -> ChartFailure {
    if helm_messages::is_out_of_memory(errors) {
        let limit = limits.memory / (1024 * 1024);
        let message = format!("the chart takes more than the {limit} MiB of memory that a render may have");
        return ChartFailure::new(ChartFailureKind::Limit, message);
    }
    if helm_messages::is_out_of_stack(errors) {
        return ChartFailure::new(
            ChartFailureKind::Limit,
            "the chart's templates call themselves without end",
        );
    }
    let start = errors.find("Error: ").map_or(0, |at| at + "Error: ".len());
    let message = errors.get(start..).unwrap_or(errors);
    let message = message.split("\n\nUse --debug").next().unwrap_or(message).trim();
    if message.starts_with("YAML parse error on") {
        return helm_messages::output_failure(chart, "", message);
    }
    if message.starts_with("values don't meet") {
        return ChartFailure::new(ChartFailureKind::Values, message.replace('\n', " "));
    }
    helm_messages::template_failure(chart, message)
}

/// Splits the output of Helm, where each document follows its template name.
fn split(chart: &str, text: &str) -> Result<Vec<ChartObject>, ChartFailure> {
    let mut objects = Vec::new();
    let text = format!("\n{}", text.strip_suffix('\n').unwrap_or(text));
    for part in text.split("\n---\n# Source: ").skip(1) {
        let (file, document) = part.split_once('\n').unwrap_or((part, ""));
        let file = helm_messages::path_in_chart(chart, file.trim());
        let definition = is_definition(file);
        // Helm prints a definition file whole, with all its documents.
        let documents: Vec<&str> =
            if definition { document.split("\n---").collect() } else { vec![document] };
        for document in documents {
            // The line break before the next document belongs to this one, as in a client's stream.
            let object = read(&format!("{document}\n"))
                .map_err(|message| helm_messages::output_failure(chart, file, &message))?;
            if !object.is_null() {
                let hook = if definition { None } else { ChartHook::of(&object) };
                objects.push(ChartObject { file: file.to_owned(), object, definition, hook });
            }
        }
    }
    // The order of `helm-render`.
    objects.sort_by_key(|object| (!object.definition, object.hook.is_some()));
    Ok(objects)
}

/// A file in `crds/` of the chart or of a subchart, which may itself be named `crds`.
fn is_definition(mut file: &str) -> bool {
    while let Some((_, within)) = file.strip_prefix("charts/").and_then(|rest| rest.split_once('/')) {
        file = within;
    }
    file.starts_with("crds/")
}

/// Parses like Kubernetes. Documents that our strict parser refuses go to a lenient one.
fn read(document: &str) -> Result<Value, String> {
    let (documents, mistakes) = yaml::parse("", document);
    match documents.as_slice() {
        [] if mistakes.is_empty() => Ok(Value::Null),
        [one] if mistakes.is_empty() => Ok(one.root.to_json()),
        _ => serde_yaml::from_str(document).map_err(|error| error.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn helm_template_output_is_parsed() {
        let text = "---\n# Source: web/crds/a.yaml\nkind: A\n---\nkind: B\n---\n# Source: web/templates/t.yaml\nkind: C\n\
                    ---\n# Source: web/templates/t.yaml\n# nothing\n---\n# Source: web/charts/db/templates/h.yaml\n\
                    kind: D\nmetadata:\n  annotations:\n    helm.sh/hook: pre-install, Post-Upgrade\n    \
                    helm.sh/hook-weight: \"-5\"\n---\n# Source: web/charts/crds/templates/e.yaml\nkind: E\n\
                    ---\n# Source: web/charts/db/crds/f.yaml\nkind: F\n";
        let objects = split("web", text).unwrap();
        let seen: Vec<_> =
            objects.iter().map(|object| (object.file.as_str(), &object.object["kind"])).collect();
        assert_eq!(
            seen,
            [
                ("crds/a.yaml", &Value::from("A")),
                ("crds/a.yaml", &Value::from("B")),
                ("charts/db/crds/f.yaml", &Value::from("F")),
                ("templates/t.yaml", &Value::from("C")),
                ("charts/crds/templates/e.yaml", &Value::from("E")),
                ("charts/db/templates/h.yaml", &Value::from("D")),
            ]
        );
        let hook = objects[5].hook.clone().unwrap();
        assert_eq!(
            (hook.events, hook.weight),
            (vec!["pre-install".to_owned(), "post-upgrade".to_owned()], -5)
        );
    }
}

//! Charts rendered by `helm-render` and by `helm template` of the same version: differences, and how long each takes.
//!
//! Every folder with a `Chart.yaml` and every `.tgz` is a chart; beside it, `<name>.values.yaml` or `ci/*-values.yaml`
//! inside it are cases of values. `helm_template_ratio` is of a cold cache: neither a result nor the chart is known, but the
//! process runs and has rendered other charts, as it has in tutti; `helm template` finds its chart on the disk. The
//! fastest of three on both sides; each chart counts once, with its first values.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tutti::chart::{ChartRenderLimits, ChartRenderer, RendererProgram, archive};
use tutti::manifest::yaml;
use tutti::model::{Chart, ChartCapabilities, ChartObject, ChartOutput, ChartRequest, Digest};

struct ChartCase {
    name: String,
    request: ChartRequest,
    on_disk: ChartFiles,
}

struct ChartFiles {
    chart: PathBuf,
    values: Option<PathBuf>,
}

/// How often each is timed; the fastest counts, on both sides.
const TIMES: usize = 3;

/// The results of many charts.
#[derive(Default)]
pub struct ChartSummary {
    pub cases: usize,
    pub same: usize,
    pub refused: usize,
    pub different: usize,
    /// `helm template` on a folder that lies on the disk, over ours on a chart that was never seen.
    cold: Vec<f64>,
    /// The same, the start of our process included.
    started: Vec<f64>,
    /// The same, of a chart that was rendered before with other values.
    known: Vec<f64>,
}

/// Renders every chart below a folder both ways and prints the differences.
pub fn compare(folder: &Path, render: &Path, helm: &Path, summary: &mut ChartSummary) {
    let limits = ChartRenderLimits { children: 1, ..ChartRenderLimits::default() };
    let command = ChartRenderer::new(RendererProgram::Helm(helm.to_owned()), limits.clone());
    let engine = ChartRenderer::new(RendererProgram::HelmRender(render.to_owned()), limits.clone());
    let mut timed_charts = BTreeSet::new();
    for ChartCase { name, request, on_disk } in &cases(folder) {
        summary.cases += 1;
        let theirs = command.render(request);
        let (ours, again) = (engine.render(request), engine.render(request));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let again = again.unwrap_or_else(|_| ours.clone());
                let found = differences(&ours, &theirs, &again);
                let word = if found.is_empty() { "same" } else { "DIFFERENT" };
                println!("{word} {name}: {} objects", ours.objects.len());
                // Each chart counts once, however many cases it brings along.
                if timed_charts.insert(request.chart.digest) {
                    summary.note(timed(&engine, render, helm, request, on_disk, &limits));
                }
                found.iter().for_each(|difference| println!("    {difference}"));
                if found.is_empty() { summary.same += 1 } else { summary.different += 1 }
            }
            (Err(ours), Err(theirs)) => {
                summary.refused += 1;
                println!("both refuse {name}:\n    ours:   {ours}\n    theirs: {theirs}");
            }
            (Ok(_), Err(theirs)) => {
                summary.different += 1;
                println!("DIFFERENT {name}: only helm template refuses: {theirs}");
            }
            (Err(ours), Ok(_)) => {
                summary.different += 1;
                println!("DIFFERENT {name}: only ours refuses: {ours}");
            }
        }
    }
}

/// `helm template`; ours with a running process and a new chart; with a new process; with a known chart.
fn timed(
    running: &ChartRenderer,
    render: &Path,
    helm: &Path,
    request: &ChartRequest,
    on_disk: &ChartFiles,
    limits: &ChartRenderLimits,
) -> [Duration; 4] {
    let mut best = [Duration::MAX; 4];
    let mut note = |at: usize, start: Instant| best[at] = best[at].min(start.elapsed());
    for round in 0..TIMES {
        let start = Instant::now();
        by_command(helm, request, on_disk);
        note(0, start);
        let unseen = never_seen(request, round);
        let start = Instant::now();
        let _ = running.render(&unseen);
        note(1, start);
        let other = ChartRequest { release: "again".to_owned(), ..unseen };
        let start = Instant::now();
        let _ = running.render(&other);
        note(3, start);
        let engine = ChartRenderer::new(RendererProgram::HelmRender(render.to_owned()), limits.clone());
        let start = Instant::now();
        let _ = engine.render(request);
        note(2, start);
    }
    best
}

/// `helm template` as a script runs it: from a folder on the disk to text that nobody has read yet.
fn by_command(helm: &Path, request: &ChartRequest, on_disk: &ChartFiles) {
    let mut command = Command::new(helm);
    command
        .arg("template")
        .arg(&request.release)
        .arg(&on_disk.chart)
        .args(["--namespace", &request.namespace]);
    command.arg("--include-crds").stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::null());
    if let Some(values) = &on_disk.values {
        command.arg("--values").arg(values);
    }
    let mut text = Vec::new();
    let process = command.spawn();
    if let Ok(mut process) = process {
        let _ = process.stdout.take().map(|mut pipe| pipe.read_to_end(&mut text));
        let _ = process.wait();
    }
}

impl ChartSummary {
    /// Times as [`timed`] gives them.
    fn note(&mut self, times: [Duration; 4]) {
        let [theirs, new, with_start, known] = times.map(|time| time.as_secs_f64() * 1000.0);
        println!(
            "    helm template {theirs:.0} ms, ours {new:.1} ms, with its start {with_start:.0} ms, again {known:.1} ms"
        );
        self.cold.push(theirs / new);
        self.started.push(theirs / with_start);
        self.known.push(theirs / known);
    }

    pub fn print(mut self) {
        println!(
            "\n{} cases: {} same, {} refused by both, {} different",
            self.cases, self.same, self.refused, self.different
        );
        figure("helm_template_ratio", &mut self.cold);
        figure("helm_template_ratio_with_start", &mut self.started);
        figure("helm_template_ratio_known_chart", &mut self.known);
    }
}

/// The median.
fn figure(name: &str, ratios: &mut [f64]) {
    ratios.sort_by(f64::total_cmp);
    if let Some(median) = ratios.get(ratios.len() / 2) {
        println!("figure {name} {median:.1} (median of {})", ratios.len());
    }
}

/// The same chart under a name that no process knows it by.
fn never_seen(request: &ChartRequest, round: usize) -> ChartRequest {
    let digest = Digest::of(format!("{} {round}", request.chart.digest).as_bytes());
    ChartRequest { chart: Arc::new(Chart { digest, ..(*request.chart).clone() }), ..request.clone() }
}

/// Object by object. What is another in `again`, a second render of ours, changes by itself and is no difference.
fn differences(ours: &ChartOutput, theirs: &ChartOutput, again: &ChartOutput) -> Vec<String> {
    // A name that the chart draws by lot is another each time.
    let keys = |output: &ChartOutput| output.objects.iter().map(key).collect::<BTreeSet<_>>();
    let steady: BTreeSet<String> = keys(ours).intersection(&keys(again)).cloned().collect();
    let drawn = ours.objects.iter().filter(|object| !steady.contains(&key(object)));
    let drawn: BTreeSet<&str> = drawn.map(|object| object.file.as_str()).collect();
    let group = |output: &ChartOutput| {
        let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for object in &output.objects {
            let key = key(object);
            let by_lot = drawn.contains(object.file.as_str()) && !steady.contains(&key);
            let key = if by_lot { format!("{} (a new name)", object.file) } else { key };
            groups.entry(key).or_default().push(object.object.clone());
        }
        groups
    };
    let (ours, theirs, again) = (group(ours), group(theirs), group(again));
    let mut found = Vec::new();
    for key in ours.keys().chain(theirs.keys().filter(|key| !ours.contains_key(*key))) {
        match (ours.get(key), theirs.get(key)) {
            (Some(one), Some(other)) if one.len() != other.len() => {
                found.push(format!("{key}: another number of them"));
            }
            (Some(one), Some(other)) => {
                let twice = again.get(key).unwrap_or(one);
                let mut pairs = one.iter().zip(other).zip(twice);
                let place = pairs.find_map(|((one, other), twice)| first_difference(one, other, twice, ""));
                found.extend(place.map(|place| format!("{key}: {place}")));
            }
            (Some(_), None) => found.push(format!("{key}: only ours")),
            _ => found.push(format!("{key}: only theirs")),
        }
    }
    found
}

/// The identity of an object in a chart.
fn key(made: &ChartObject) -> String {
    let name = made.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("?");
    let kind = made.object.get("kind").and_then(Value::as_str).unwrap_or("?");
    let hook = made.hook.as_ref().map(|hook| hook.events.join(",")).unwrap_or_default();
    format!("{} {kind} {name} {hook}", made.file)
}

/// Where two values differ first, but for what differs from one render of ours to the next.
fn first_difference(one: &Value, other: &Value, again: &Value, path: &str) -> Option<String> {
    let part = |value: Option<&Value>| value.cloned().unwrap_or_default();
    match (one, other) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys = ours.keys().chain(theirs.keys().filter(|key| !ours.contains_key(*key)));
            let mut parts =
                keys.map(|key| (key, part(ours.get(key)), part(theirs.get(key)), part(again.get(key))));
            parts.find_map(|(key, one, other, again)| {
                first_difference(&one, &other, &again, &format!("{path}/{key}"))
            })
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut parts = ours.iter().zip(theirs).enumerate();
            parts.find_map(|(at, (one, other))| {
                first_difference(one, other, &part(again.get(at)), &format!("{path}/{at}"))
            })
        }
        _ if one == other || one != again => None,
        _ => {
            let brief = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!("{path}:\n        ours:   {}\n        theirs: {}", brief(one), brief(other)))
        }
    }
}

fn cases(root: &Path) -> Vec<ChartCase> {
    let mut found = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            let name = path.strip_prefix(root).unwrap_or(&path).display().to_string();
            if path.is_dir() && path.join("Chart.yaml").is_file() {
                found.extend(of_chart(&name, &folder_chart(&path), &path));
            } else if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "tgz") {
                match archive::read(&fs::read(&path).unwrap_or_default(), "x/") {
                    Ok(chart) => found.extend(of_chart(&name, &chart, &path)),
                    Err(failure) => println!("refused {name}: {failure}"),
                }
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn of_chart(name: &str, chart: &Chart, path: &Path) -> Vec<ChartCase> {
    let chart = Arc::new(chart.clone());
    let beside = path.with_extension("values.yaml");
    let mut files = vec![(String::new(), None)];
    files.extend(beside.is_file().then(|| (" with values".to_owned(), Some(beside))));
    for (file, _) in &chart.files {
        if file.starts_with("ci/") && file.ends_with("values.yaml") && path.is_dir() {
            files.push((format!(" with {file}"), Some(path.join(file))));
        }
    }
    let case = |(label, values): (String, Option<PathBuf>)| {
        let text = values.as_deref().map_or(Ok(String::new()), fs::read_to_string).ok()?;
        Some(ChartCase {
            name: format!("{name} {}{label}", version(&chart)),
            request: ChartRequest {
                chart: Arc::clone(&chart),
                values: vec![yaml::parse_values(&label, &text).ok()?],
                release: "demo".to_owned(),
                namespace: "demo".to_owned(),
                capabilities: ChartCapabilities::default(),
            },
            on_disk: ChartFiles { chart: path.to_owned(), values },
        })
    };
    files.into_iter().filter_map(case).collect()
}

fn version(chart: &Chart) -> String {
    let parsed: Option<Value> = serde_yaml::from_str(chart.text("Chart.yaml").unwrap_or_default()).ok();
    let version = parsed.as_ref().and_then(|it| it.get("version")).and_then(Value::as_str);
    version.unwrap_or("?").to_owned()
}

fn folder_chart(root: &Path) -> Chart {
    let mut files = Vec::new();
    let mut folders = vec![root.to_owned()];
    while let Some(folder) = folders.pop() {
        for path in entries(&folder) {
            if path.is_dir() {
                folders.push(path);
            } else if let (Ok(name), Ok(content)) = (path.strip_prefix(root), fs::read(&path)) {
                files.push((name.display().to_string(), content.into()));
            }
        }
    }
    files.sort();
    let digest = Digest::of(format!("{files:?}").as_bytes());
    Chart { origin: "x/".to_owned(), digest, folder: true, files }
}

fn entries(folder: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(folder).into_iter().flatten();
    entries.filter_map(|entry| Some(entry.ok()?.path())).collect()
}

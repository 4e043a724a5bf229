//! Charts rendered by `helm-render` and by `helm template` of the same version: differences, and how long each takes.
//!
//! Every folder with a `Chart.yaml` and every `.tgz` is a chart; beside it, `<name>.values.yaml` or `ci/*-values.yaml`
//! inside it are cases of values. `helm_template_ratio` is of a cold cache: no result and no chart is known, the process
//! runs already, as it does in tutti; `helm template` finds its chart on the disk. The fastest of three on both sides.

use std::collections::BTreeMap;
use std::fs;
use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tutti::chart::{Found, Limits, Renderer, archive};
use tutti::manifest::yaml;
use tutti::model::{Chart, ChartCapabilities, ChartOutput, ChartRequest, Digest};

struct Case {
    name: String,
    request: ChartRequest,
    on_disk: OnDisk,
}

struct OnDisk {
    chart: PathBuf,
    values: Option<PathBuf>,
}

/// How often each is timed; the fastest counts, on both sides.
const TIMES: usize = 3;

/// What came of many charts.
#[derive(Default)]
pub struct Summary {
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

/// Renders every chart below a folder both ways, and says what differs.
pub fn compare(folder: &Path, render: &Path, helm: &Path, summary: &mut Summary) {
    let limits = Limits { children: 1, ..Limits::default() };
    let command = Renderer::new(Found::Command(helm.to_owned()), limits.clone());
    for Case { name, request, on_disk } in &cases(folder) {
        summary.cases += 1;
        let theirs = command.render(request);
        let engine = Renderer::new(Found::Engine(render.to_owned()), limits.clone());
        let (ours, again) = (engine.render(request), engine.render(request));
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let again = again.unwrap_or_else(|_| ours.clone());
                let found = differences(&ours, &theirs, &again);
                let word = if found.is_empty() { "same" } else { "DIFFERENT" };
                let times = timed(render, helm, request, on_disk, &limits);
                let millis = times.map(|time| time.as_secs_f64() * 1000.0);
                println!(
                    "{word} {name}: {} objects; helm template {:.0} ms, ours {:.1} ms, with its start {:.0} ms, again {:.1} ms",
                    ours.objects.len(),
                    millis[0],
                    millis[1],
                    millis[2],
                    millis[3]
                );
                found.iter().for_each(|difference| println!("    {difference}"));
                summary.cold.push(millis[0] / millis[1]);
                summary.started.push(millis[0] / millis[2]);
                summary.known.push(millis[0] / millis[3]);
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
    render: &Path,
    helm: &Path,
    request: &ChartRequest,
    on_disk: &OnDisk,
    limits: &Limits,
) -> [Duration; 4] {
    let mut best = [Duration::MAX; 4];
    let mut note = |at: usize, start: Instant| best[at] = best[at].min(start.elapsed());
    for _ in 0..TIMES {
        let start = Instant::now();
        by_command(helm, request, on_disk);
        note(0, start);
        let engine = Renderer::new(Found::Engine(render.to_owned()), limits.clone());
        // The process runs already, as it does in tutti.
        let _ = engine.render(&tiny());
        let start = Instant::now();
        let _ = engine.render(request);
        note(1, start);
        let other = ChartRequest { release: "again".to_owned(), ..request.clone() };
        let start = Instant::now();
        let _ = engine.render(&other);
        note(3, start);
        let engine = Renderer::new(Found::Engine(render.to_owned()), limits.clone());
        let start = Instant::now();
        let _ = engine.render(request);
        note(2, start);
    }
    best
}

/// `helm template` as a script runs it: from a folder on the disk to text that nobody has read yet.
fn by_command(helm: &Path, request: &ChartRequest, on_disk: &OnDisk) {
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

impl Summary {
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

/// Something to start a process with.
fn tiny() -> ChartRequest {
    let text = "apiVersion: v2\nname: tiny\nversion: 1.0.0\n";
    let files = vec![("Chart.yaml".to_owned(), text.as_bytes().into())];
    let chart = Chart { origin: "x/".to_owned(), digest: Digest::of(text.as_bytes()), folder: true, files };
    ChartRequest {
        chart: Arc::new(chart),
        values: Vec::new(),
        release: "tiny".to_owned(),
        namespace: "tiny".to_owned(),
        capabilities: ChartCapabilities::default(),
    }
}

/// Object by object. What is another in `again`, a second render of ours, changes by itself and is no difference.
fn differences(ours: &ChartOutput, theirs: &ChartOutput, again: &ChartOutput) -> Vec<String> {
    let group = |output: &ChartOutput| {
        let mut groups: BTreeMap<String, Vec<Value>> = BTreeMap::new();
        for object in &output.objects {
            let name = object.object.pointer("/metadata/name").and_then(Value::as_str).unwrap_or("?");
            let kind = object.object.get("kind").and_then(Value::as_str).unwrap_or("?");
            let hook = object.hook.as_ref().map(|hook| hook.events.join(",")).unwrap_or_default();
            let key = format!("{} {kind} {name} {hook}", object.file);
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
                let place = pairs.find_map(|((one, other), twice)| first(one, other, twice, ""));
                found.extend(place.map(|place| format!("{key}: {place}")));
            }
            (Some(_), None) => found.push(format!("{key}: only ours")),
            _ => found.push(format!("{key}: only theirs")),
        }
    }
    found
}

/// Where two values differ first, but for what differs from one render of ours to the next.
fn first(one: &Value, other: &Value, again: &Value, path: &str) -> Option<String> {
    let part = |value: Option<&Value>| value.cloned().unwrap_or_default();
    match (one, other) {
        (Value::Object(ours), Value::Object(theirs)) => {
            let keys = ours.keys().chain(theirs.keys().filter(|key| !ours.contains_key(*key)));
            let mut parts =
                keys.map(|key| (key, part(ours.get(key)), part(theirs.get(key)), part(again.get(key))));
            parts.find_map(|(key, one, other, again)| first(&one, &other, &again, &format!("{path}/{key}")))
        }
        (Value::Array(ours), Value::Array(theirs)) if ours.len() == theirs.len() => {
            let mut parts = ours.iter().zip(theirs).enumerate();
            parts.find_map(|(at, (one, other))| {
                first(one, other, &part(again.get(at)), &format!("{path}/{at}"))
            })
        }
        _ if one == other || one != again => None,
        _ => {
            let brief = |value: &Value| value.to_string().chars().take(200).collect::<String>();
            Some(format!("{path}:\n        ours:   {}\n        theirs: {}", brief(one), brief(other)))
        }
    }
}

fn cases(root: &Path) -> Vec<Case> {
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

fn of_chart(name: &str, chart: &Chart, path: &Path) -> Vec<Case> {
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
        Some(Case {
            name: format!("{name} {}{label}", version(&chart)),
            request: ChartRequest {
                chart: Arc::clone(&chart),
                values: vec![yaml::parse_values(&label, &text).ok()?],
                release: "demo".to_owned(),
                namespace: "demo".to_owned(),
                capabilities: ChartCapabilities::default(),
            },
            on_disk: OnDisk { chart: path.to_owned(), values },
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

//! Charts of a folder, rendered by `helm-render` and by `helm template`: differences, and how long each takes.
//!
//! `cargo xtask charts DIR` runs it. Every folder with a `Chart.yaml` and every `.tgz` under DIR is a chart; beside it,
//! `<name>.values.yaml` or `ci/*-values.yaml` inside it are cases of values.
#![allow(
    clippy::print_stdout,
    clippy::print_stderr,
    clippy::indexing_slicing,
    reason = "a command for developers prints"
)]

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::ExitCode;
use std::sync::Arc;
use std::time::{Duration, Instant};

use serde_json::Value;
use tutti::chart::{Found, Limits, Renderer, archive};
use tutti::manifest::yaml;
use tutti::model::{Chart, ChartCapabilities, ChartFailure, ChartOutput, ChartRequest, Digest};

struct Case {
    name: String,
    request: ChartRequest,
}

fn main() -> ExitCode {
    let mut arguments = std::env::args_os().skip(1).map(PathBuf::from);
    let (Some(folder), Some(render), Some(helm)) = (arguments.next(), arguments.next(), arguments.next())
    else {
        eprintln!("usage: charts DIR HELM-RENDER HELM");
        return ExitCode::FAILURE;
    };
    let cases = cases(&folder);
    let limits = Limits { children: 1, ..Limits::default() };
    let command = Renderer::new(Found::Command(helm), limits.clone());
    let (mut same, mut refused, mut different) = (0, 0, 0);
    let (mut ratios, mut known) = (Vec::new(), Vec::new());
    for Case { name, request } in &cases {
        let engine = Renderer::new(Found::Engine(render.clone()), limits.clone());
        let (theirs, slow) = timed(&command, request);
        // The process runs already, as it does in tutti; the chart is new to it, then known.
        let _ = engine.render(&tiny());
        let (again, cold) = timed(&engine, request);
        let other = ChartRequest { release: "again".to_owned(), ..request.clone() };
        let (_, warm) = timed(&engine, &other);
        let (ours, _) = timed(&engine, request);
        match (ours, theirs) {
            (Ok(ours), Ok(theirs)) => {
                let again = again.unwrap_or_else(|_| ours.clone());
                let found = differences(&ours, &theirs, &again);
                ratios.push(slow.as_secs_f64() / cold.as_secs_f64());
                known.push(slow.as_secs_f64() / warm.as_secs_f64());
                let millis = [slow, cold, warm].map(|time| time.as_secs_f64() * 1000.0);
                println!(
                    "{} {name}: {} objects; helm template {:.0} ms, ours {:.1} ms, again {:.1} ms",
                    if found.is_empty() { "same" } else { "DIFFERENT" },
                    ours.objects.len(),
                    millis[0],
                    millis[1],
                    millis[2]
                );
                found.iter().for_each(|difference| println!("    {difference}"));
                if found.is_empty() { same += 1 } else { different += 1 }
            }
            (Err(ours), Err(theirs)) => {
                refused += 1;
                println!("both refuse {name}:\n    ours:   {ours}\n    theirs: {theirs}");
            }
            (Ok(_), Err(theirs)) => {
                different += 1;
                println!("DIFFERENT {name}: only helm template refuses: {theirs}");
            }
            (Err(ours), Ok(_)) => {
                different += 1;
                println!("DIFFERENT {name}: only ours refuses: {ours}");
            }
        }
    }
    println!("\n{} cases: {same} same, {refused} refused by both, {different} different", cases.len());
    figure("helm_template_ratio", &mut ratios);
    figure("helm_template_ratio_known_chart", &mut known);
    if different == 0 { ExitCode::SUCCESS } else { ExitCode::FAILURE }
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

fn timed(renderer: &Renderer, request: &ChartRequest) -> (Result<ChartOutput, ChartFailure>, Duration) {
    let start = Instant::now();
    let result = renderer.render(request);
    (result, start.elapsed())
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
                found.extend(of_chart(&name, &folder_chart(&path), &path.with_extension("values.yaml")));
            } else if path.is_dir() {
                folders.push(path);
            } else if path.extension().is_some_and(|extension| extension == "tgz") {
                match archive::read(&fs::read(&path).unwrap_or_default(), "x/") {
                    Ok(chart) => found.extend(of_chart(&name, &chart, &path.with_extension("values.yaml"))),
                    Err(failure) => println!("refused {name}: {failure}"),
                }
            }
        }
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

fn of_chart(name: &str, chart: &Chart, beside: &Path) -> Vec<Case> {
    let chart = Arc::new(chart.clone());
    let case = |name: String, values| Case {
        name,
        request: ChartRequest {
            chart: Arc::clone(&chart),
            values: vec![values],
            release: "demo".to_owned(),
            namespace: "demo".to_owned(),
            capabilities: ChartCapabilities::default(),
        },
    };
    let mut texts = vec![(String::new(), String::new())];
    texts.extend(fs::read_to_string(beside).ok().map(|text| (" with values".to_owned(), text)));
    for (file, content) in &chart.files {
        if file.starts_with("ci/") && file.ends_with("values.yaml") {
            texts.push((format!(" with {file}"), String::from_utf8_lossy(content).into_owned()));
        }
    }
    let parsed = texts.into_iter().filter_map(|(label, text)| {
        let values = yaml::parse_values(&label, &text).ok()?;
        Some(case(format!("{name}{label}"), values))
    });
    parsed.collect()
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

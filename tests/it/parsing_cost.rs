//! Time to parse a manifest grows linearly with its length, and stays short for the largest allowed file.

use std::fmt::Write as _;
use std::time::Duration;

use tutti::fleet::assemble;
use tutti::manifest;
use tutti::manifest::yaml::FILE_LIMIT;
use tutti::model::Snapshot;

use crate::support::manifests::cluster;

/// Limit of a test build on a busy machine for one file of the greatest length.
const MAX_DURATION: Duration = Duration::from_secs(4);
/// Allowed growth for four times the length, 2.5 for each doubling: a full cache costs that much at one of the two, a loop in a
/// loop sixteen times.
const MAX_GROWTH: f64 = 6.25;
/// Shorter times are too random to compare.
const MIN_MEASURABLE: Duration = Duration::from_millis(50);
/// The best of this many measurements counts.
const MEASUREMENTS: usize = 4;

/// Creates a text of about this many bytes.
type TextGenerator = fn(usize) -> String;

fn repeated_text(head: &str, size: usize, item: impl Fn(usize) -> String, tail: &str) -> String {
    let mut text = head.to_owned();
    let mut number = 0;
    while text.len() + tail.len() < size {
        let _ = write!(text, "{}", item(number));
        number += 1;
    }
    text + tail
}

fn manifest_text(kind: &str, size: usize, head: &str, item: impl Fn(usize) -> String, tail: &str) -> String {
    let start = format!("apiVersion: tutti.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: a}}\n{head}");
    repeated_text(&start, size, item, tail)
}

const COMPONENT: &str =
    "spec: {workloadType: Deployment, developLanguage: go, runType: server, image: 'a:1', ";

const PARSED_FILES: &[(&str, &str, TextGenerator)] = &[
    ("keys twice", "apps/a/x.yaml", |size| "a: b\n".repeat(size / 5)),
    ("keys twice in a manifest", "apps/a/app.yaml", |size| {
        manifest_text("Objects", size, "", |_| "kind: b\n".into(), "")
    }),
    ("keys", "apps/a/x.yaml", |size| repeated_text("", size, |n| format!("k{n}: b\n"), "")),
    ("unknown fields", "apps/a/app.yaml", |size| {
        manifest_text("Component", size, "spec:\n", |n| format!("  imag{n}: b\n"), "")
    }),
    ("documents", "apps/a/x.yaml", |size| "---\na: 1\n".repeat(size / 9)),
    ("documents with errors", "apps/a/x.yaml", |size| "---\na: 1\na: 2\n".repeat(size / 14)),
    ("documents that are none", "apps/a/x.yaml", |size| "---\na: [\n".repeat(size / 9)),
    ("manifests", "apps/a/x.yaml", |size| {
        let one =
            "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {name: a}\nspec: {files: [a]}\n---\n";
        one.repeat(size / one.len())
    }),
    ("anchors", "apps/a/x.yaml", |size| repeated_text("", size, |n| format!("- &a{n} x\n- *a{n}\n"), "")),
    ("aliases of nothing", "apps/a/x.yaml", |size| {
        repeated_text("", size, |n| format!("- &a{n} x\n- *b{n}\n"), "")
    }),
    ("aliases of aliases", "apps/a/x.yaml", |size| {
        let mut text = "- &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
        for n in 1..size / 40 {
            let last = n - 1;
            let _ = writeln!(text, "- &a{n} [*a{last}, *a{last}, *a{last}, *a{last}, *a{last}]");
        }
        text
    }),
    ("anchors within each other", "apps/a/x.yaml", |size| {
        let open: String = (0..60).map(|n| format!("&a{n} [")).collect();
        repeated_text(&open, size, |_| "x,".into(), &"]".repeat(60))
    }),
    ("brackets", "apps/a/x.yaml", |size| "[".repeat(size)),
    ("braces", "apps/a/x.yaml", |size| "{".repeat(size)),
    ("lists in lists", "apps/a/x.yaml", |size| "- ".repeat(size / 2)),
    ("deeper lines", "apps/a/x.yaml", |size| {
        repeated_text("", size, |n| format!("{}a:\n", " ".repeat(n)), "")
    }),
    ("a long line", "apps/a/x.yaml", |size| format!("a: {}", "x ".repeat(size / 2))),
    ("a long text in quotes", "apps/a/x.yaml", |size| format!("a: \"{}", "\\n ".repeat(size / 3))),
    ("a long key", "apps/a/x.yaml", |size| format!("{}: 1\n", "k".repeat(size))),
    ("a long kind", "apps/a/x.yaml", |size| format!("apiVersion: v1\nkind: Instance{}\n", "k".repeat(size))),
    ("a long comment", "apps/a/x.yaml", |size| format!("# {}\na: 1", "x".repeat(size))),
    ("kinds in what is no YAML", "apps/a/x.yaml", |size| "kind: Instance # [\n: ".repeat(size / 21)),
    ("tabs", "apps/a/x.yaml", |size| "a:\n\tb: 1\n---\n".repeat(size / 13)),
    ("labels", "apps/a/app.yaml", |size| {
        let start = "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nspec: {files: [a]}\nmetadata:\n  name: a\n  labels:\n";
        repeated_text(start, size, |n| format!("    k{n}: v\n"), "")
    }),
    ("labels that are none", "apps/a/app.yaml", |size| {
        let start = "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nspec: {files: [a]}\nmetadata:\n  name: a\n  labels:\n";
        repeated_text(start, size, |n| format!("    k{n}-: -\n"), "")
    }),
    ("names of clusters", "apps/a/app.yaml", |size| {
        let head = format!("{COMPONENT}placement: {{clusters: {{names: [");
        manifest_text("Component", size, &head, |n| format!("bj{n}, "), "bj]}}}\n")
    }),
    ("patterns of clusters", "apps/a/app.yaml", |size| {
        let head = format!("{COMPONENT}placement: {{clusters: {{names: [");
        manifest_text("Component", size, &head, |n| format!("'b?{n}', "), "bj]}}}\n")
    }),
    ("expressions of a selector", "apps/a/app.yaml", |size| {
        let head = format!("{COMPONENT}placement: {{clusters: {{matchExpressions: [");
        manifest_text(
            "Component",
            size,
            &head,
            |n| format!("{{key: k{n}, operator: In, values: [a]}}, "),
            "]}}}\n",
        )
    }),
    ("files", "apps/a/app.yaml", |size| {
        manifest_text("Objects", size, "spec: {files: [", |n| format!("x{n}.yaml, "), "a]}\n")
    }),
    ("patterns of files", "apps/a/app.yaml", |size| {
        manifest_text("Objects", size, "spec: {files: [", |n| format!("'**/x?{n}/**', "), "a]}\n")
    }),
    ("braces of a pattern", "apps/a/app.yaml", |size| {
        manifest_text("Objects", size, "spec: {files: ['", |_| "{a,".into(), "']}\n")
    }),
    ("stars of a pattern", "apps/a/app.yaml", |size| {
        manifest_text("Objects", size, "spec: {files: ['", |_| "**/".into(), "']}\n")
    }),
    ("rings", "rings.yaml", |size| {
        manifest_text(
            "Rings",
            size,
            "spec:\n  rings:\n",
            |n| format!("  - {{name: r{n}, clusters: {{names: [a{n}]}}}}\n"),
            "",
        )
    }),
    ("clusters of an AppSet", "apps/a/app.yaml", |size| {
        let head = "spec:\n  clusterTopology:\n    clusters:\n";
        manifest_text(
            "AppSet",
            size,
            head,
            |n| format!("    - {{name: c{n}, podSets: [{{name: p{n}, replicas: 1}}]}}\n"),
            "",
        )
    }),
    ("podSets of a cluster", "apps/a/app.yaml", |size| {
        let head = "spec:\n  clusterTopology:\n    clusters:\n    - name: bj\n      podSets:\n";
        manifest_text("AppSet", size, head, |n| format!("      - {{name: p{n}, replicas: 1}}\n"), "")
    }),
    ("waves", "apps/a/app.yaml", |size| {
        let head = format!("{COMPONENT}rollout: {{waves: [");
        manifest_text(
            "Component",
            size,
            &head,
            |n| format!("{{name: w{n}, clusters: {{names: [c{n}]}}}}, "),
            "]}}\n",
        )
    }),
    ("routes", "apps/a/app.yaml", |size| {
        let head = format!("{COMPONENT}port: 80, routes: [");
        manifest_text("Component", size, &head, |n| format!("{{name: r{n}, host: h{n}.io}}, "), "]}\n")
    }),
    ("patches", "apps/a/app.yaml", |size| {
        let head = format!("{COMPONENT}patches: [");
        manifest_text(
            "Component",
            size,
            &head,
            |n| format!("{{target: {{name: 'a{n}*'}}, merge: {{}}}}, "),
            "]}\n",
        )
    }),
    ("what is ignored", "tutti.yaml", |size| {
        manifest_text("Instance", size, "spec: {ignore: [", |n| format!("'x{n}/**', "), "y]}\n")
    }),
    ("taints of a cluster", "clusters/c.yaml", |size| {
        let head = "spec:\n  connection: {sandbox: {}}\n  taints:\n";
        manifest_text("Cluster", size, head, |n| format!("  - {{key: k{n}, effect: NoSchedule}}\n"), "")
    }),
    ("members of a project", "projects/a.yaml", |size| {
        manifest_text(
            "Project",
            size,
            "spec:\n  members:\n",
            |n| format!("  - {{user: u{n}, role: view}}\n"),
            "",
        )
    }),
];

fn parse_time(path: &str, text: &str) -> Duration {
    let (bj, gz) = (cluster("bj"), cluster("gz"));
    let snapshot = Snapshot::of_texts([("clusters/bj.yaml", &*bj), ("clusters/gz.yaml", &gz), (path, text)]);
    let begun = thread_cpu_time();
    let fleet = assemble(manifest::read(&snapshot), &snapshot);
    let cost = thread_cpu_time() - begun;
    drop(fleet);
    cost
}

/// CPU time of this thread: other processes are not counted.
fn thread_cpu_time() -> Duration {
    let counted = std::fs::read_to_string("/proc/thread-self/schedstat").expect("Linux counts it");
    let first = counted.split_whitespace().next().and_then(|it| it.parse().ok());
    Duration::from_nanos(first.expect("nanoseconds"))
}

#[test]
fn parsing_time_grows_linearly() {
    let length = FILE_LIMIT - 200;
    let mut slow = Vec::new();
    for (name, path, make) in PARSED_FILES {
        let (quarter, whole) = (make(length / 4), make(length));
        let (mut less, mut more) = (Duration::MAX, Duration::MAX);
        let mut is_wrong = true;
        for _ in 0..MEASUREMENTS {
            less = less.min(parse_time(path, &quarter));
            more = more.min(parse_time(path, &whole));
            is_wrong = more > MAX_DURATION
                || more > MIN_MEASURABLE && more.as_secs_f64() > MAX_GROWTH * less.as_secs_f64();
            if !is_wrong || more > 5 * MAX_DURATION {
                break;
            }
        }
        if is_wrong {
            slow.push(format!("{name}: {less:?}, and {more:?} of four times as much"));
        }
    }
    assert!(slow.is_empty(), "{slow:#?}");
}

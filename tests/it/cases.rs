//! Small repositories that showed a fault once (`tests/fixtures/cases`), each with what is right.

use std::path::PathBuf;

use serde_json::Value;

use crate::support::program;

fn folder(case: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/cases").join(case)
}

/// What `tutti lint -o json` finds.
fn lint(case: &str) -> Vec<Value> {
    let (output, errors, _) = program::run(&folder(case), &["lint", "-o", "json"]);
    assert_eq!(errors, "", "{case}");
    serde_json::from_str(&output).expect("JSON")
}

/// Code, message and place of each mistake.
fn mistakes(case: &str) -> Vec<String> {
    let line = |found: &Value| {
        let (place, start) = (&found["location"], &found["location"]["start"]);
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        let place = format!("{}:{}:{}", text(&place["file"]), start["line"], start["column"]);
        format!("{} {place} {}", text(&found["code"]), text(&found["message"]))
    };
    lint(case).iter().map(line).collect()
}

#[test]
fn selector_that_lost_its_value_is_refused() {
    assert_eq!(mistakes("emptied-selector"), ["E1202 apps/a/app.yaml:11:7 `names` has no value"]);
}

#[test]
fn mistake_of_some_clusters_names_them() {
    let found = lint("label-missing-on-some");
    assert_eq!(found.len(), 1, "{found:?}");
    assert_eq!(
        found[0]["message"],
        "cluster.labels.region is undefined in apps/a/o/cm.yaml.j2 on three and two"
    );
    assert_eq!(found[0]["help"], "on two: did you mean `regoin`? valid: regoin; on three: valid: tier");
    assert_eq!(found[0]["clusters"], serde_json::json!(["three", "two"]));
}

/// Kind and name of each object that the repository renders to.
fn rendered(case: &str, app: &str) -> Vec<Value> {
    let (output, errors, code) = program::run(&folder(case), &["render", app, "-o", "json"]);
    assert_eq!((errors.as_str(), code), ("", 0), "{case}");
    serde_json::from_str(&output).expect("JSON")
}

fn names(objects: &[Value]) -> Vec<String> {
    let text = |value: &Value| value.as_str().unwrap_or("-").to_owned();
    let name = |it: &Value| {
        format!(
            "{} {}/{}",
            text(&it["kind"]),
            text(&it["metadata"]["namespace"]),
            text(&it["metadata"]["name"])
        )
    };
    objects.iter().map(name).collect()
}

#[test]
fn lists_and_json_files_are_read_as_kubectl_reads_them() {
    assert_eq!(lint("lists"), Vec::<Value>::new());
    let check = |app: &str, expected: &[&str]| assert_eq!(names(&rendered("lists", app)), expected, "{app}");
    check("plain", &["ConfigMap default/a", "ConfigMap default/b"]);
    check("team", &["Role default/reader"]);
    check("js2", &["ConfigMap default/j1", "ConfigMap default/j2"]);
    check("js", &["ConfigMap default/j"]);
}

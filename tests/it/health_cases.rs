//! Health scripts in their published form: a folder of `<group>/<Kind>/health.lua`, each with a `health_test.yaml` that
//! gives the expected health of objects in `testdata/`.
//!
//! Scripts in `tests/fixtures/health` are our own and always run. Published scripts are not part of this repository:
//! `TUTTI_HEALTH_CASES=DIR` names a folder of them.

use std::fs;
use std::io::Write as _;
use std::path::{Path, PathBuf};

use serde::Deserialize as _;
use serde_json::Value;
use tutti::health::{HealthRules, RuleBody, RuleSource};
use tutti::model::HealthStatus;

#[derive(Default)]
struct CaseScore {
    right: usize,
    /// An object with a deletion timestamp is Terminating, whatever its script returns.
    terminating: usize,
    wrong: Vec<String>,
}

#[test]
fn our_scripts_match_their_expectations() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/health");
    let (scripts, score) = judge_folders(&root);
    assert_eq!(score.wrong, Vec::<String>::new());
    assert!(scripts >= 12, "{scripts} scripts");
    for folder in kind_folders(&root) {
        // Each script has a healthy, a progressing and a degraded object.
        let cases = fs::read_to_string(folder.join("health_test.yaml")).expect("cases");
        for status in ["Healthy", "Progressing", "Degraded"] {
            assert!(cases.contains(&format!("status: {status}")), "{}: {status}", folder.display());
        }
    }
}

/// A wrong expectation must fail, or the other tests prove nothing.
#[test]
fn wrong_expectation_is_detected() {
    let folder = tempfile::tempdir().expect("a folder");
    let kind = folder.path().join("example.com/Cache");
    fs::create_dir_all(kind.join("testdata")).expect("created");
    let case = |status: &str, message: &str| {
        format!("- {{inputPath: testdata/up.yaml, healthStatus: {{status: {status}, message: {message}}}}}\n")
    };
    let cases = [case("Healthy", "up"), case("Degraded", "up"), case("Healthy", "down")];
    for (name, text) in [
        ("health.lua", "return {status = 'Healthy', message = obj.status.phase}"),
        ("health_test.yaml", &format!("tests:\n{}", cases.concat())),
        ("testdata/up.yaml", "apiVersion: example.com/v1\nkind: Cache\nstatus: {phase: up}\n"),
    ] {
        fs::write(kind.join(name), text).expect("written");
    }
    let (scripts, score) = judge_folders(folder.path());
    assert_eq!((scripts, score.right, score.wrong.len()), (1, 1, 2));
}

#[test]
fn published_scripts_match_their_expectations() {
    let Some(root) = std::env::var_os("TUTTI_HEALTH_CASES").map(PathBuf::from) else {
        // Written to standard error directly: the test runner hides captured output of a passing test.
        let line = "##### PUBLISHED HEALTH SCRIPTS WERE NOT TRIED: set TUTTI_HEALTH_CASES=DIR #####";
        writeln!(std::io::stderr(), "{line}").expect("a standard error");
        return;
    };
    let (scripts, CaseScore { right, terminating, wrong }) = judge_folders(&root);
    let all = right + terminating + wrong.len();
    eprintln!("figure health_scripts={scripts} health_cases={all} right={right} terminating={terminating}");
    assert!(all > 0, "no cases in {}", root.display());
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}

fn kind_folders(root: &Path) -> Vec<PathBuf> {
    subfolders(root).iter().flat_map(|group| subfolders(group)).collect()
}

/// The number of scripts, and their results.
fn judge_folders(root: &Path) -> (usize, CaseScore) {
    let kinds = kind_folders(root);
    let sources: Vec<RuleSource> = kinds.iter().filter_map(|folder| folder_rule(folder)).collect();
    let scripts = sources.len();
    let (rules, mistakes) = HealthRules::compile(sources);
    assert_eq!(mistakes, []);
    let mut score = CaseScore::default();
    for folder in &kinds {
        judge_cases(&rules, folder, &mut score);
    }
    (scripts, score)
}

fn subfolders(of: &Path) -> Vec<PathBuf> {
    let entries = fs::read_dir(of).expect("a folder").filter_map(Result::ok).map(|entry| entry.path());
    let mut found: Vec<PathBuf> = entries.filter(|path| path.is_dir()).collect();
    found.sort();
    found
}

fn folder_rule(folder: &Path) -> Option<RuleSource> {
    let script = fs::read_to_string(folder.join("health.lua")).ok()?;
    let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
    let file = "health.lua".to_owned();
    Some(RuleSource {
        group: name(folder.parent()?)?,
        kind: name(folder)?,
        file,
        body: RuleBody::Script(script),
    })
}

fn judge_cases(rules: &HealthRules, folder: &Path, score: &mut CaseScore) {
    let text = |name: &str| fs::read_to_string(folder.join(name)).ok();
    let Some(cases) = text("health_test.yaml") else { return };
    let cases: Value = serde_yaml::from_str(&cases).expect("YAML");
    for case in cases["tests"].as_array().into_iter().flatten() {
        let input = case["inputPath"].as_str().or(case["inputpath"].as_str()).unwrap_or_default();
        let (wanted, words) = (&case["healthStatus"]["status"], &case["healthStatus"]["message"]);
        let expected = match wanted.as_str().unwrap_or_default() {
            "Healthy" => "Current",
            "Progressing" => "InProgress",
            "Degraded" => "Failed",
            "Missing" => "NotFound",
            other => other,
        };
        let expected_words =
            words.as_str().unwrap_or_default().split_whitespace().collect::<Vec<_>>().join(" ");
        let object = text(input).and_then(|text| first_object(&text)).unwrap_or_default();
        let health = rules.health_of(&object);
        let is_said = match health.reason.strip_suffix('…') {
            Some(beginning) => expected_words.starts_with(beginning),
            None => expected_words == health.reason,
        };
        if health.status == HealthStatus::Terminating {
            score.terminating += 1;
        } else if health.status.as_str() == expected && is_said {
            score.right += 1;
        } else {
            let place = folder.join(input).display().to_string();
            score.wrong.push(format!(
                "{place}: {wanted} {words}, but {} {:?}",
                health.status.as_str(),
                health.reason
            ));
        }
    }
}

/// The first document that is an object.
fn first_object(text: &str) -> Option<Value> {
    let documents = serde_yaml::Deserializer::from_str(text);
    documents.filter_map(|document| Value::deserialize(document).ok()).find(Value::is_object)
}

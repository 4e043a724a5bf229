//! Reads the health rules of the repository: CEL in `health/<group>/<Kind>.yaml`, and Lua in
//! `health/<group>/<Kind>/health.lua` (the layout of Argo CD). Called by `assemble`.

use std::collections::BTreeMap;

use super::codes;
use super::text_locations::location_in_text;
use crate::health::{Expressions, HealthRules, RuleBody, RuleMistake, RulePart, RuleSource};
use crate::manifest::health_rule::{self, FOLDER, HealthRule};
use crate::manifest::read::ReadContext;
use crate::manifest::yaml;
use crate::model::{CelExpression, Diagnostic, DiagnosticScope, Location, Snapshot, UNREADABLE_HELP};

const CORE_FOLDER: &str = "core";
/// In bytes of script, for all rules together. A compiled rule takes up to twenty times that in memory, and all rules are
/// compiled for every commit. Each rule counts as at least the second number.
const MAX_TOTAL_WEIGHT: usize = 4 * 1024 * 1024;
const MIN_RULE_WEIGHT: usize = 4 * 1024;

/// The rules and their mistakes. A rule with a mistake stays: its objects are Unknown.
pub fn load_health_rules(snapshot: &Snapshot) -> (HealthRules, Vec<Diagnostic>) {
    let (mut sources, mut written, mut mistakes) = (Vec::new(), Vec::new(), Vec::new());
    let mut left = MAX_TOTAL_WEIGHT;
    let mut taken: BTreeMap<(String, String), String> = BTreeMap::new();
    for (path, _) in snapshot.files_in(FOLDER) {
        let (group, kind) = match classify_path(path) {
            HealthFileKind::Rule { group, kind } => (group, kind),
            HealthFileKind::Ignored => continue,
            HealthFileKind::Mistake(why) => {
                mistakes.push(path_error(path, why));
                continue;
            }
        };
        let key = (group.to_owned(), kind.to_owned());
        if let Some(first) = taken.get(&key) {
            let message = format!("a second health rule for {kind} of {group}");
            let error =
                Diagnostic::error(codes::NOT_A_HEALTH_RULE, message, DiagnosticScope::File(path.to_owned()))
                    .at(Location::new(path, 1, 1))
                    .related(Location::new(first, 1, 1), "the first one")
                    .help("keep one of them");
            mistakes.push(error);
            continue;
        }
        taken.insert(key, path.to_owned());
        let (mut body, mut rule) = read_rule(path, snapshot, &mut mistakes);
        match left.checked_sub(body.weight().max(MIN_RULE_WEIGHT)) {
            Some(rest) => left = rest,
            None => {
                mistakes.push(total_weight_error(path));
                (body, rule) = (RuleBody::Rejected, None);
            }
        }
        let group = if group == CORE_FOLDER { "" } else { group };
        sources.push(RuleSource {
            group: group.to_owned(),
            kind: kind.to_owned(),
            file: path.to_owned(),
            body,
        });
        written.push((path, rule));
    }
    let (rules, found) = HealthRules::compile(sources);
    for mistake in found {
        if let Some((path, rule)) = written.get(mistake.source) {
            mistakes.push(rule_error(path, rule.as_ref(), &mistake, snapshot));
        }
    }
    (rules, mistakes)
}

enum HealthFileKind<'a> {
    Rule {
        group: &'a str,
        kind: &'a str,
    },
    /// A file of a rule that is not read, or documentation.
    Ignored,
    Mistake(&'static str),
}

fn classify_path(path: &str) -> HealthFileKind<'_> {
    let parts: Vec<&str> = path.strip_prefix(FOLDER).unwrap_or(path).split('/').collect();
    let is_yaml = |file: &str| file.ends_with(".yaml") || file.ends_with(".yml");
    let (group, kind) = match parts.as_slice() {
        // Files that Argo CD keeps beside its scripts: tests and actions.
        [_, _, "health_test.yaml"] | [_, _, "testdata" | "actions", ..] => return HealthFileKind::Ignored,
        [group, kind, "health.lua"] => (*group, *kind),
        [group, file] if is_yaml(file) => (*group, file.rsplit_once('.').map_or(*file, |(kind, _)| kind)),
        [.., file] if is_yaml(file) || file.ends_with(".lua") => {
            return HealthFileKind::Mistake(
                "a file here is health/<group>/<Kind>.yaml or health/<group>/<Kind>/health.lua",
            );
        }
        _ => return HealthFileKind::Ignored,
    };
    match (group, kind) {
        // A rule's message is public, so a rule must not read a Secret.
        (CORE_FOLDER, "Secret") => HealthFileKind::Mistake("a Secret has no health, and no rule may read it"),
        (group, _) if group != CORE_FOLDER && !group.contains('.') && !DOTLESS_GROUPS.contains(&group) => {
            HealthFileKind::Mistake(
                "the folder is named as the API group is, for example example.com, or core",
            )
        }
        (group, kind) => HealthFileKind::Rule { group, kind },
    }
}

/// The API groups without a dot.
const DOTLESS_GROUPS: [&str; 5] = ["apps", "autoscaling", "batch", "extensions", "policy"];

fn path_error(path: &str, why: &str) -> Diagnostic {
    let message = format!("{path} is not a health rule");
    Diagnostic::error(codes::NOT_A_HEALTH_RULE, message, DiagnosticScope::File(path.to_owned()))
        .at(Location::new(path, 1, 1))
        .help(why)
}

fn total_weight_error(path: &str) -> Diagnostic {
    let most = MAX_TOTAL_WEIGHT / 1024 / 1024;
    let message =
        format!("with this one, the health rules of the repository exceed {most} MiB of weighted size");
    let least = MIN_RULE_WEIGHT / 1024;
    let help = format!(
        "have fewer or shorter rules: they are added up in the order of their paths, each as {least} KiB at least; a byte of an \
         expression counts as 8, a bracket in it as 256"
    );
    Diagnostic::error(codes::HEALTH_RULE_EXPRESSION, message, scope(path))
        .at(Location::new(path, 1, 1))
        .help(help)
}

/// An unreadable file becomes a rule that cannot be used.
fn read_rule(
    path: &str,
    snapshot: &Snapshot,
    mistakes: &mut Vec<Diagnostic>,
) -> (RuleBody, Option<HealthRule>) {
    let Some(text) = snapshot.text(path) else {
        let error = Diagnostic::error(
            codes::HEALTH_RULE_EXPRESSION,
            format!("{path} {}", snapshot.why_unreadable(path)),
            scope(path),
        );
        mistakes.push(error.at(Location::new(path, 1, 1)).help(UNREADABLE_HELP));
        return (RuleBody::Rejected, None);
    };
    if path.ends_with(".lua") {
        return (RuleBody::Script(text.to_owned()), None);
    }
    let mut reading = ReadContext::new(path, scope(path));
    let mut stream = yaml::read(path, text);
    reading.mistakes.append(&mut stream.mistakes);
    let rule = match stream.documents.as_mut_slice() {
        [document] => {
            reading.mistakes.append(&mut document.mistakes);
            health_rule::read(&document.root, &mut reading)
        }
        [] if !reading.mistakes.is_empty() => None,
        _ => {
            reading
                .mistake(
                    codes::NOT_A_HEALTH_RULE,
                    "a health rule is one document",
                    Location::new(path, 1, 1),
                    "",
                )
                .help("its file is named as its kind is: another kind has another file");
            None
        }
    };
    let is_whole = !reading.mistakes.iter().any(Diagnostic::is_error);
    mistakes.append(&mut reading.mistakes);
    match rule.filter(|_| is_whole) {
        Some(rule) => (RuleBody::Expressions(rule_expressions(&rule)), Some(rule)),
        None => (RuleBody::Rejected, None),
    }
}

fn scope(path: &str) -> DiagnosticScope {
    DiagnosticScope::File(path.to_owned())
}

fn rule_expressions(rule: &HealthRule) -> Expressions {
    let text = |expression: &CelExpression| expression.text.clone();
    Expressions {
        in_progress: rule.in_progress.as_ref().map(text),
        failed: rule.failed.as_ref().map(text),
        current: rule.current.text.clone(),
    }
}

fn rule_error(
    path: &str,
    rule: Option<&HealthRule>,
    mistake: &RuleMistake,
    snapshot: &Snapshot,
) -> Diagnostic {
    let expression = rule.and_then(|rule| match mistake.part {
        RulePart::InProgress => rule.in_progress.as_ref(),
        RulePart::Failed => rule.failed.as_ref(),
        RulePart::Current => Some(&rule.current),
        RulePart::Script => None,
    });
    let name = mistake.part.name();
    let (message, place, help) = match expression {
        Some(expression) => (
            format!("`{name}` cannot be used: {}", mistake.message),
            location_in_text(&expression.location, mistake.line, mistake.column, snapshot),
            "an expression in CEL, as in admission policies: the fields of the object are at its top, as \
             status.phase",
        ),
        None => (
            format!("the script cannot be used: {}", mistake.message),
            Location::new(path, mistake.line, mistake.column.unwrap_or(1)),
            "a script in Lua 5.4: the object is the global obj, and it returns a table with status and message",
        ),
    };
    let error = Diagnostic::error(codes::HEALTH_RULE_EXPRESSION, message, scope(path)).at(place).help(help);
    match expression {
        Some(expression) => error.in_path(expression.path.clone()),
        None => error,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::HealthStatus;

    fn snapshot(files: &[(&str, &str)]) -> Snapshot {
        Snapshot::of_texts(files.iter().copied())
    }

    /// `file:line:column code message`, one line each.
    #[track_caller]
    fn check(files: &[(&str, &str)], expected: &[&str]) {
        let (_, mistakes) = load_health_rules(&snapshot(files));
        let place = |it: &Diagnostic| it.location.as_ref().map(ToString::to_string).unwrap_or_default();
        let told: Vec<String> =
            mistakes.iter().map(|it| format!("{} {} {}", place(it), it.code, it.message)).collect();
        assert_eq!(told, expected);
        assert!(mistakes.iter().all(|it| it.help.is_some() || it.code < "E2"));
    }

    fn rule(spec: &str) -> String {
        format!("apiVersion: tutti.dev/v1alpha1\nkind: HealthRule\nspec:\n{spec}")
    }

    #[test]
    fn path_names_the_kind_of_a_rule() {
        let (yaml, lua) = (rule("  current: 'false'\n"), "return {status = 'Degraded', message = 'lua'}");
        let files = [
            ("health/core/ConfigMap.yaml", yaml.as_str()),
            ("health/example.com/Cache/health.lua", lua),
            ("health/example.com/Cache/health_test.yaml", "tests: []"),
            ("health/example.com/Cache/testdata/up.yaml", "kind: Cache"),
            ("health/_.example.com/_/health.lua", lua),
            ("health/README.md", "Ours."),
        ];
        check(&files, &[]);
        let (rules, _) = load_health_rules(&snapshot(&files));
        let of = |api_version: &str, kind: &str| {
            rules
                .health_of(&json!({"apiVersion": api_version, "kind": kind, "metadata": {"name": "x"}}))
                .reason
        };
        assert_eq!(of("v1", "ConfigMap"), "none of the expressions holds");
        assert_eq!(of("example.com/v1", "Cache"), "lua");
        assert_eq!(of("db.example.com/v1", "Other"), "lua");
        assert_eq!(of("v1", "Secret"), "");
    }

    #[test]
    fn other_files_are_no_rules() {
        let (yaml, lua) = (rule("  current: 'true'\n"), "return nil");
        check(
            &[("health/Database.yaml", &yaml)],
            &["health/Database.yaml:1:1 E2082 health/Database.yaml is not a health rule"],
        );
        check(
            &[("health/exmaple/X.yaml", &yaml)],
            &["health/exmaple/X.yaml:1:1 E2082 health/exmaple/X.yaml is not a health rule"],
        );
        check(
            &[("health/a.b/C/wealth.lua", lua)],
            &["health/a.b/C/wealth.lua:1:1 E2082 health/a.b/C/wealth.lua is not a health rule"],
        );
        check(
            &[("health/core/Secret.yaml", &yaml)],
            &["health/core/Secret.yaml:1:1 E2082 health/core/Secret.yaml is not a health rule"],
        );
        check(
            &[("health/a.b/C.yaml", &yaml), ("health/a.b/C/health.lua", lua)],
            &["health/a.b/C/health.lua:1:1 E2082 a second health rule for C of a.b"],
        );
        check(
            &[("health/a.b/C.yaml", "apiVersion: v1\nkind: ConfigMap\n")],
            &["health/a.b/C.yaml:2:1 E1110 health/ holds health rules, and this is not one"],
        );
        check(&[("health/a.b/C.yaml", "")], &["health/a.b/C.yaml:1:1 E2082 a health rule is one document"]);
    }

    #[test]
    fn rules_that_are_too_many_or_too_long_together_are_mistakes() {
        let refused = |count: usize, file: &str, text: &str| {
            let path = |number: usize| format!("health/e{number:04}.com/{file}");
            let files: Vec<(String, &str)> = (0..count).map(|number| (path(number), text)).collect();
            let files: Vec<(&str, &str)> = files.iter().map(|(path, text)| (path.as_str(), *text)).collect();
            let (rules, mistakes) = load_health_rules(&snapshot(&files));
            let health = |number: usize| {
                let version = format!("e{number:04}.com/v1");
                rules.health_of(&json!({"apiVersion": version, "kind": "K", "metadata": {"name": "x"}}))
            };
            let first = mistakes.first().expect("an error").clone();
            assert_eq!(first.location.map(|it| it.file), Some(path(count - mistakes.len())));
            assert_eq!(
                first.message,
                "with this one, the health rules of the repository exceed 4 MiB of weighted size"
            );
            assert!(first.help.is_some_and(|help| help.contains("fewer or shorter")));
            assert_eq!(health(0).status, HealthStatus::Failed);
            assert_eq!(health(count - 1).status, HealthStatus::Unknown);
            mistakes.len()
        };
        let short = "return {status = 'Degraded'}";
        assert_eq!(refused(1026, "K/health.lua", short), 2);
        let long = format!("{short}{}", " ".repeat(60 * 1024 - short.len()));
        assert_eq!(refused(71, "K/health.lua", &long), 3);
    }

    #[test]
    fn mistakes_have_their_place() {
        let at = |spec: &str, expected: &[&str]| check(&[("health/a.b/C.yaml", &rule(spec))], expected);
        at(
            "  current: nope(1)\n",
            &["health/a.b/C.yaml:4:12 E2081 `current` cannot be used: there is no function `nope`"],
        );
        at(
            "  current: '1 + nope(1)'\n",
            &["health/a.b/C.yaml:4:17 E2081 `current` cannot be used: there is no function `nope`"],
        );
        at(
            "  failed: |\n    true &&\n      nope(1)\n  current: 'true'\n",
            &["health/a.b/C.yaml:6:7 E2081 `failed` cannot be used: there is no function `nope`"],
        );
        at(
            "  failed: >\n    true &&\n    nope(1)\n  current: 'true'\n",
            &["health/a.b/C.yaml:4:11 E2081 `failed` cannot be used: there is no function `nope`"],
        );
        at(
            "  curent: 'true'\n",
            &[
                "health/a.b/C.yaml:3:1 E1202 `current` is missing",
                "health/a.b/C.yaml:4:3 E1201 unknown field `curent` in `spec`",
            ],
        );
        at(
            "  current: true\n",
            &["health/a.b/C.yaml:4:12 E1203 `current` must be a text, not the boolean true"],
        );
        check(
            &[("health/a.b/C/health.lua", "local a = 1\nreturn {")],
            &["health/a.b/C/health.lua:2:1 E2081 the script cannot be used: unexpected symbol near <eof>"],
        );
    }
}

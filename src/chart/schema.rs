//! Checks values against `values.schema.json`, as Helm does before a render.
//!
//! A schema is as untrusted as its chart, and the cost of a check is unknown in advance. So a worker with limits of time and
//! memory checks it. References resolve only within the schema.

use std::time::Duration;

use jsonschema::{PatternOptions, Retrieve, Uri};
use serde::Deserialize;
use serde_json::Value;

use crate::model::{
    Chart, ChartFailure, ChartFault, NO_WORKER_HELP, RenderEnd, RenderEndCause, TemplateRequest,
    TemplateWorkers, Wait, WorkerTask, short_line,
};

/// The time for all schemas of one render; usual ones take milliseconds.
const TIME: Duration = Duration::from_secs(2);
const BACKTRACKS: usize = 100_000;
/// Reported mistakes of one chart, and characters of each: a mistake may repeat parts of the schema.
const MOST_MISTAKES: usize = 5;
const LONGEST_MISTAKE: usize = 500;

const FILE: &str = "values.schema.json";
const WHERE_TO_LOOK: &str = "look for long lists of `enum` or `required`, and for references that double";
const NOT_FOLLOWED: &str = "only references within the schema (`#/…`) are followed: no file, no server";

/// A schema with the values to check.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Schema {
    chart: String,
    schema: String,
    values: Value,
}

/// Reports the first chart or subchart with invalid values. `schemas` is the JSON list of the renderer.
pub fn check(
    schemas: &str,
    workers: Option<&dyn TemplateWorkers>,
    wait: Wait<'_>,
) -> Result<(), ChartFailure> {
    let Some(workers) = workers else { return check_all(schemas) };
    let request =
        TemplateRequest { task: WorkerTask::CheckValues, kept: &[], body: schemas.to_owned(), time: TIME };
    let answer = workers.ask(&request, wait).map_err(ended)?;
    let found: Option<ChartFailure> = serde_json::from_slice(&answer.body).map_err(|error| {
        ChartFailure::new(
            ChartFault::Renderer,
            format!("the worker's answer to the check of the values cannot be read: {error}"),
        )
    })?;
    found.map_or(Ok(()), Err)
}

/// Whether the check itself failed, which depends on the values too. Workers suspend such checks themselves.
pub fn is_from_check(failure: &ChartFailure) -> bool {
    failure.place.as_ref().is_some_and(|(file, ..)| file == FILE)
}

/// The worker's answer to a request of [`check`].
pub fn check_values(schemas: &str) -> serde_json::Result<String> {
    serde_json::to_string(&check_all(schemas).err())
}

fn ended(end: RenderEnd) -> ChartFailure {
    let limit = |words: String| {
        let message = format!("the check of the values against {FILE} {words}");
        ChartFailure::new(ChartFault::Limit, message).at(FILE, 1, 1)
    };
    match end.cause {
        RenderEndCause::NotYet => {
            ChartFailure::new(ChartFault::Awaited, format!("the values are being checked against {FILE}"))
        }
        RenderEndCause::Time => limit(format!("takes longer than {} s", TIME.as_secs())).help(WHERE_TO_LOOK),
        RenderEndCause::Memory(bytes) => {
            limit(format!("takes more than {} MiB of memory", bytes / 1024 / 1024)).help(WHERE_TO_LOOK)
        }
        RenderEndCause::Stack => {
            limit("goes too deep".to_owned()).help("look for a reference (`$ref`) that leads to itself")
        }
        RenderEndCause::Output(bytes) => {
            limit(format!("returns more than {} MiB", bytes / 1024 / 1024)).help("shorten the schema")
        }
        RenderEndCause::Crash(words) => limit(format!("crashed the worker process: {words}"))
            .help("simplify the schema, and report the crash"),
        RenderEndCause::NoWorker(error) => {
            let message = format!("the values cannot be checked: no worker process starts: {error}");
            ChartFailure::new(ChartFault::Renderer, message).help(NO_WORKER_HELP)
        }
    }
}

fn check_all(schemas: &str) -> Result<(), ChartFailure> {
    let schemas: Vec<Schema> = serde_json::from_str(schemas).map_err(|error| {
        ChartFailure::new(ChartFault::Malformed, format!("the values cannot be read: {error}"))
    })?;
    schemas.iter().try_for_each(|schema| check_one(schema, schemas.len() > 1))
}

fn check_one(said: &Schema, several: bool) -> Result<(), ChartFailure> {
    let of = if several { format!(" of chart {}", said.chart) } else { String::new() };
    let refuse = |fault, words: String| {
        Err(ChartFailure::new(fault, format!("the schema{of} {words}")).at(FILE, 1, 1))
    };
    let schema: Value = match serde_json::from_str(&said.schema) {
        Ok(schema) => schema,
        Err(error) => return refuse(ChartFault::Malformed, format!("is not JSON: {error}")),
    };
    if let Some(reference) = elsewhere(&schema) {
        let failure = refuse(ChartFault::Values, format!("refers to {reference}"));
        return failure.map_err(|failure| failure.help(NOT_FOLLOWED));
    }
    let options = jsonschema::options()
        .with_retriever(Nowhere)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS));
    let validator = match options.build(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            let words = short_line(&error.to_string(), LONGEST_MISTAKE);
            return refuse(ChartFault::Malformed, format!("is not a schema: {words}"));
        }
    };
    let mistakes: Vec<(String, String)> = validator
        .iter_errors(&said.values)
        .take(MOST_MISTAKES)
        .map(|error| {
            let words = short_line(&error.masked_with("the value").to_string(), LONGEST_MISTAKE);
            (short_line(&path(error.instance_path().as_str()), LONGEST_MISTAKE), words)
        })
        .collect();
    let Some((first, _)) = mistakes.first() else { return Ok(()) };
    let words: Vec<String> = mistakes.iter().map(|(path, words)| format!("{path}: {words}")).collect();
    let message = format!("the values do not fit the schema{of}: {}", words.join("; "));
    Err(ChartFailure::new(ChartFault::Values, message).about(first.clone()))
}

/// For `helm template`, which checks values itself and follows every reference: refuses external references in schemas of the
/// chart and its subcharts.
pub fn only_own_references(chart: &Chart) -> Result<(), ChartFailure> {
    for (name, content) in &chart.files {
        if name.rsplit('/').next() != Some(FILE) {
            continue;
        }
        let schema: Value = serde_json::from_slice(content).unwrap_or_default();
        if let Some(reference) = elsewhere(&schema) {
            let message = format!("the schema refers to {reference}");
            return Err(ChartFailure::new(ChartFault::Values, message).at(name, 1, 1).help(NOT_FOLLOWED));
        }
    }
    Ok(())
}

/// `/image/tag` as a template writes it.
fn path(pointer: &str) -> String {
    format!(".Values{}", pointer.replace('/', "."))
}

/// Resolves no external reference.
struct Nowhere;

impl Retrieve for Nowhere {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is not followed").into())
    }
}

/// The first external reference, even where no value leads.
fn elsewhere(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => map.iter().find_map(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                (!reference.starts_with('#')).then_some(reference.as_str())
            }
            (_, value) => elsewhere(value),
        }),
        Value::Array(items) => items.iter().find_map(elsewhere),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::TemplateAnswer;

    #[track_caller]
    fn check(schema: &Value, values: &Value, expected: &str) {
        let said = json!([{"chart": "web", "schema": schema.to_string(), "values": values}]);
        let words = check_all(&said.to_string()).err().map(|failure| failure.message).unwrap_or_default();
        assert!(words.contains(expected) && words.is_empty() == expected.is_empty(), "{words}");
        assert!(words.len() < 1000, "{}", words.len());
    }

    #[test]
    fn values_against_schema_are_reported() {
        let schema = json!({"$schema": "http://json-schema.org/draft-07/schema#", "required": ["port"], "properties": {
            "port": {"$ref": "#/definitions/port"}, "image": {"properties": {"tag": {"type": "string"}}}},
            "definitions": {"port": {"type": "integer", "maximum": 65535}}});
        check(&schema, &json!({"port": 80, "image": {"tag": "1"}}), "");
        check(
            &schema,
            &json!({"port": 80, "image": {"tag": 1}}),
            ".Values.image.tag: the value is not of type \"string\"",
        );
        check(
            &schema,
            &json!({"port": 70000}),
            ".Values.port: the value is greater than the maximum of 65535",
        );
        check(&schema, &json!({}), "\"port\" is a required property");
    }

    #[test]
    fn schema_references_stay_inside() {
        for reference in [
            "file:///etc/passwd",
            "http://127.0.0.1:1/x.json",
            "https://example.com/x.json#/a",
            "other.json",
            "urn:x:y",
            "//example.com/x",
        ] {
            let direct = json!({"$ref": reference});
            check(&direct, &json!({}), &format!("refers to {reference}"));
            let hidden = json!({"properties": {"never": {"items": [{"$ref": reference}]}}});
            check(&hidden, &json!({}), &format!("refers to {reference}"));
        }
        check(
            &json!({"$ref": "#/nowhere"}),
            &json!({}),
            "is not a schema: Pointer '/nowhere' does not exist",
        );
    }

    #[derive(Debug)]
    struct FailingWorkers(RenderEndCause);

    impl TemplateWorkers for FailingWorkers {
        fn ask(&self, request: &TemplateRequest<'_>, _: Wait<'_>) -> Result<TemplateAnswer, RenderEnd> {
            assert_eq!((request.task, request.kept.len(), request.time), (WorkerTask::CheckValues, 0, TIME));
            Err(RenderEnd { cause: self.0.clone(), place: None })
        }
    }

    #[test]
    fn ended_schema_worker_fails_chart() {
        let failure =
            |cause| super::check("[{}]", Some(&FailingWorkers(cause)), Wait::TO_THE_END).unwrap_err();
        for (cause, words) in [
            (RenderEndCause::Time, "takes longer than 2 s"),
            (RenderEndCause::Memory(1024 * 1024), "takes more than 1 MiB of memory"),
            (RenderEndCause::Stack, "goes too deep"),
        ] {
            let failure = failure(cause);
            assert_eq!(failure.fault, ChartFault::Limit);
            let message = format!("the check of the values against values.schema.json {words}");
            assert_eq!((failure.message, failure.help.is_some()), (message, true));
            assert_eq!(failure.place, Some(("values.schema.json".to_owned(), 1, 1)));
        }
        assert_eq!(failure(RenderEndCause::NotYet).fault, ChartFault::Awaited);
        assert_eq!(failure(RenderEndCause::NoWorker(String::new())).fault, ChartFault::Renderer);
    }

    /// A worker in this process.
    #[derive(Debug)]
    struct InProcessWorkers;

    impl TemplateWorkers for InProcessWorkers {
        fn ask(&self, request: &TemplateRequest<'_>, _: Wait<'_>) -> Result<TemplateAnswer, RenderEnd> {
            let body = check_values(&request.body).expect("an answer").into_bytes();
            Ok(TemplateAnswer { body, took: Duration::ZERO })
        }
    }

    #[test]
    fn worker_result_equals_local_result() {
        let schema = json!({"required": ["port"]}).to_string();
        for values in [json!({}), json!({"port": 1})] {
            let schemas = json!([{"chart": "web", "schema": schema, "values": values}]).to_string();
            let here = super::check(&schemas, None, Wait::TO_THE_END);
            assert_eq!(super::check(&schemas, Some(&InProcessWorkers), Wait::TO_THE_END), here);
            assert_eq!(here.is_ok(), values != json!({}));
        }
    }

    #[test]
    fn mistakes_are_shortened() {
        let schema = json!({"properties": {"a": {"const": "x".repeat(100_000)}}});
        check(&schema, &json!({"a": "y"}), "…");
        check(&json!({"additionalProperties": {"type": "string"}}), &json!({"a".repeat(100_000): 1}), "…");
    }

    #[test]
    fn recursion_ends() {
        check(&json!({"$ref": "#"}), &json!({}), "");
        let tree = json!({"properties": {"left": {"$ref": "#"}, "leaf": {"type": "string"}}});
        check(&tree, &json!({"left": {"left": {"leaf": "x"}}}), "");
        check(&tree, &json!({"left": {"left": {"leaf": 1}}}), ".Values.left.left.leaf");
    }

    #[test]
    fn patterns_do_not_hang() {
        let schema = json!({"properties": {"a": {"pattern": "^(a+)+(?=b)$"}}});
        let started = std::time::Instant::now();
        let said = json!([{"schema": schema.to_string(), "values": {"a": "a".repeat(60)}}]);
        assert!(check_all(&said.to_string()).is_err());
        assert!(started.elapsed().as_secs() < 5);
    }

    #[test]
    fn invalid_schema_is_reported() {
        check(&json!({"type": "nonsense"}), &json!({}), "is not a schema");
        let said = json!([{"schema": "{", "values": {}}]).to_string();
        assert!(check_all(&said).unwrap_err().message.contains("is not JSON"));
    }
}

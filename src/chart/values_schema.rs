//! Checks values against `values.schema.json`, as Helm does before a render.
//!
//! A schema is as untrusted as its chart, and the cost of a check is unknown in advance. So a worker with limits of time and
//! memory checks it. References resolve only within the schema.

use std::time::Duration;

use jsonschema::{PatternOptions, Retrieve, Uri};
use serde::Deserialize;
use serde_json::Value;

use crate::model::{
    Chart, ChartFailure, ChartFailureKind, NO_WORKER_HELP, RenderFailure, RenderFailureCause, RenderWait,
    TemplateRequest, TemplateWorkers, WorkerTask, short_line,
};

/// The time for all schemas of one render; usual ones take milliseconds.
const CHECK_TIME: Duration = Duration::from_secs(2);
const BACKTRACKS: usize = 100_000;
/// Reported mistakes of one chart, and characters of each: a mistake may repeat parts of the schema.
const MOST_MISTAKES: usize = 5;
const LONGEST_MISTAKE: usize = 500;

const SCHEMA_FILE: &str = "values.schema.json";
const WHERE_TO_LOOK: &str = "look for long lists of `enum` or `required`, and for references that double";
const NOT_FOLLOWED: &str = "only references within the schema (`#/…`) are followed: no file, no server";

/// A schema with the values to check.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct ValuesSchema {
    chart: String,
    schema: String,
    values: Value,
}

/// Reports the first chart or subchart with invalid values. `schemas` is the JSON list of the renderer.
pub fn check(
    schemas: &str,
    workers: Option<&dyn TemplateWorkers>,
    wait: RenderWait<'_>,
) -> Result<(), ChartFailure> {
    let Some(workers) = workers else { return check_all(schemas) };
    let request = TemplateRequest {
        task: WorkerTask::CheckValues,
        cached: &[],
        body: schemas.to_owned(),
        time: CHECK_TIME,
    };
    let answer = workers.run_task(&request, wait).map_err(worker_end_failure)?;
    let found: Option<ChartFailure> = serde_json::from_slice(&answer.body).map_err(|error| {
        ChartFailure::new(
            ChartFailureKind::Renderer,
            format!("the worker's answer to the check of the values cannot be read: {error}"),
        )
    })?;
    found.map_or(Ok(()), Err)
}

/// Whether the check itself failed, which depends on the values too. Workers suspend such checks themselves.
pub fn is_from_check(failure: &ChartFailure) -> bool {
    failure.place.as_ref().is_some_and(|(file, ..)| file == SCHEMA_FILE)
}

/// The worker's answer to a request of [`check`].
pub fn check_values(schemas: &str) -> serde_json::Result<String> {
    serde_json::to_string(&check_all(schemas).err())
}

fn worker_end_failure(end: RenderFailure) -> ChartFailure {
    let limit = |words: String| {
        let message = format!("the check of the values against {SCHEMA_FILE} {words}");
        ChartFailure::new(ChartFailureKind::Limit, message).at(SCHEMA_FILE, 1, 1)
    };
    match end.cause {
        RenderFailureCause::Postponed => ChartFailure::new(
            ChartFailureKind::Awaited,
            format!("the values are being checked against {SCHEMA_FILE}"),
        ),
        RenderFailureCause::Time => {
            limit(format!("takes longer than {} s of processor time", CHECK_TIME.as_secs()))
                .help(WHERE_TO_LOOK)
        }
        RenderFailureCause::Memory(bytes) => {
            limit(format!("takes more than {} MiB of memory", bytes / 1024 / 1024)).help(WHERE_TO_LOOK)
        }
        RenderFailureCause::Stack => {
            limit("recurses too deeply".to_owned()).help("look for a reference (`$ref`) that leads to itself")
        }
        RenderFailureCause::Output(bytes) => {
            limit(format!("returns more than {} MiB", bytes / 1024 / 1024)).help("shorten the schema")
        }
        RenderFailureCause::Crash(words) => limit(format!("crashed the worker process: {words}"))
            .help("simplify the schema, and report the crash"),
        RenderFailureCause::NoWorker(error) => {
            let message = format!("the values cannot be checked: no worker process starts: {error}");
            ChartFailure::new(ChartFailureKind::Renderer, message).help(NO_WORKER_HELP)
        }
    }
}

fn check_all(schemas: &str) -> Result<(), ChartFailure> {
    let schemas: Vec<ValuesSchema> = serde_json::from_str(schemas).map_err(|error| {
        ChartFailure::new(ChartFailureKind::Malformed, format!("the values cannot be read: {error}"))
    })?;
    schemas.iter().try_for_each(|schema| check_one(schema, schemas.len() > 1))
}

fn check_one(said: &ValuesSchema, several: bool) -> Result<(), ChartFailure> {
    let of = if several { format!(" of chart {}", said.chart) } else { String::new() };
    let refuse = |fault, words: String| {
        Err(ChartFailure::new(fault, format!("the schema{of} {words}")).at(SCHEMA_FILE, 1, 1))
    };
    let schema: Value = match serde_json::from_str(&said.schema) {
        Ok(schema) => schema,
        Err(error) => return refuse(ChartFailureKind::Malformed, format!("is not JSON: {error}")),
    };
    if let Some(reference) = outside_reference(&schema) {
        let failure = refuse(ChartFailureKind::Values, format!("refers to {reference}"));
        return failure.map_err(|failure| failure.help(NOT_FOLLOWED));
    }
    let options = jsonschema::options()
        .with_retriever(NoRetriever)
        .with_pattern_options(PatternOptions::fancy_regex().backtrack_limit(BACKTRACKS));
    let validator = match options.build(&schema) {
        Ok(validator) => validator,
        Err(error) => {
            let words = short_line(&error.to_string(), LONGEST_MISTAKE);
            return refuse(ChartFailureKind::Malformed, format!("is not a schema: {words}"));
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
    Err(ChartFailure::new(ChartFailureKind::Values, message).about(first.clone()))
}

/// For `helm template`, which checks values itself and follows every reference: refuses external references in schemas of the
/// chart and its subcharts.
pub fn refuse_outside_references(chart: &Chart) -> Result<(), ChartFailure> {
    for (name, content) in &chart.files {
        if name.rsplit('/').next() != Some(SCHEMA_FILE) {
            continue;
        }
        let schema: Value = serde_json::from_slice(content).unwrap_or_default();
        if let Some(reference) = outside_reference(&schema) {
            let message = format!("the schema refers to {reference}");
            return Err(ChartFailure::new(ChartFailureKind::Values, message)
                .at(name, 1, 1)
                .help(NOT_FOLLOWED));
        }
    }
    Ok(())
}

/// `/image/tag` as a template writes it.
fn path(pointer: &str) -> String {
    format!(".Values{}", pointer.replace('/', "."))
}

/// Resolves no external reference.
struct NoRetriever;

impl Retrieve for NoRetriever {
    fn retrieve(&self, uri: &Uri<String>) -> Result<Value, Box<dyn std::error::Error + Send + Sync>> {
        Err(format!("{uri} is not followed").into())
    }
}

/// The first external reference, even where no value leads.
fn outside_reference(schema: &Value) -> Option<&str> {
    match schema {
        Value::Object(map) => map.iter().find_map(|(key, value)| match (key.as_str(), value) {
            ("$ref" | "$dynamicRef" | "$recursiveRef", Value::String(reference)) => {
                (!reference.starts_with('#')).then_some(reference.as_str())
            }
            (_, value) => outside_reference(value),
        }),
        Value::Array(items) => items.iter().find_map(outside_reference),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::model::TemplateResponse;

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
    struct FailingWorkers(RenderFailureCause);

    impl TemplateWorkers for FailingWorkers {
        fn run_task(
            &self,
            request: &TemplateRequest<'_>,
            _: RenderWait<'_>,
        ) -> Result<TemplateResponse, RenderFailure> {
            assert_eq!(
                (request.task, request.cached.len(), request.time),
                (WorkerTask::CheckValues, 0, CHECK_TIME)
            );
            Err(RenderFailure { cause: self.0.clone(), place: None })
        }
    }

    #[test]
    fn ended_schema_worker_fails_chart() {
        let failure =
            |cause| super::check("[{}]", Some(&FailingWorkers(cause)), RenderWait::UNLIMITED).unwrap_err();
        for (cause, words) in [
            (RenderFailureCause::Time, "takes longer than 2 s of processor time"),
            (RenderFailureCause::Memory(1024 * 1024), "takes more than 1 MiB of memory"),
            (RenderFailureCause::Stack, "recurses too deeply"),
        ] {
            let failure = failure(cause);
            assert_eq!(failure.fault, ChartFailureKind::Limit);
            let message = format!("the check of the values against values.schema.json {words}");
            assert_eq!((failure.message, failure.help.is_some()), (message, true));
            assert_eq!(failure.place, Some(("values.schema.json".to_owned(), 1, 1)));
        }
        assert_eq!(failure(RenderFailureCause::Postponed).fault, ChartFailureKind::Awaited);
        assert_eq!(failure(RenderFailureCause::NoWorker(String::new())).fault, ChartFailureKind::Renderer);
    }

    /// A worker in this process.
    #[derive(Debug)]
    struct InProcessWorkers;

    impl TemplateWorkers for InProcessWorkers {
        fn run_task(
            &self,
            request: &TemplateRequest<'_>,
            _: RenderWait<'_>,
        ) -> Result<TemplateResponse, RenderFailure> {
            let body = check_values(&request.body).expect("an answer").into_bytes();
            Ok(TemplateResponse { body, took: Duration::ZERO })
        }
    }

    #[test]
    fn worker_result_equals_local_result() {
        let schema = json!({"required": ["port"]}).to_string();
        for values in [json!({}), json!({"port": 1})] {
            let schemas = json!([{"chart": "web", "schema": schema, "values": values}]).to_string();
            let here = super::check(&schemas, None, RenderWait::UNLIMITED);
            assert_eq!(super::check(&schemas, Some(&InProcessWorkers), RenderWait::UNLIMITED), here);
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

//! Options of a delete, from the body or else from the query.

use serde_json::Value;

use super::query::{self, QueryParameters};
use crate::api_error::{ApiError, FieldError};
use crate::object;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) enum DeletionPropagation {
    /// By the finalizers of the object, else in the background.
    #[default]
    Unspecified,
    Background,
    Foreground,
    Orphan,
}

#[derive(Debug, Clone, Default)]
pub(crate) struct RequestDeleteOptions {
    pub(crate) uid: Option<String>,
    pub(crate) resource_version: Option<String>,
    pub(crate) propagation: DeletionPropagation,
    pub(crate) grace_seconds: Option<i64>,
    pub(crate) dry_run: bool,
}

impl RequestDeleteOptions {
    /// From a body that is a `DeleteOptions` or nothing of any kind.
    pub(crate) fn of_body(body: &Value) -> Result<Self, ApiError> {
        check_types(body).map_err(ApiError::bad_request)?;
        let text = |path: &[&str]| object::text(body, path).map(str::to_owned);
        let dry_run: Vec<&str> = object::list(body, &["dryRun"]).iter().filter_map(Value::as_str).collect();
        let orphan = object::value_at(body, &["orphanDependents"]).and_then(Value::as_bool);
        let propagation = propagation(orphan, object::text(body, &["propagationPolicy"]), &dry_run)?;
        Ok(Self {
            uid: text(&["preconditions", "uid"]),
            resource_version: text(&["preconditions", "resourceVersion"]),
            propagation,
            grace_seconds: object::value_at(body, &["gracePeriodSeconds"]).and_then(Value::as_i64),
            dry_run: !dry_run.is_empty(),
        })
    }

    pub(crate) fn of_query(query: &QueryParameters) -> Result<Self, ApiError> {
        let grace_seconds = query.integer("gracePeriodSeconds")?;
        let orphan = query.get("orphanDependents").map(|_| query.flag("orphanDependents"));
        let propagation = propagation(orphan, query.get("propagationPolicy"), &[])?;
        let dry_run = query.dry_run("DeleteOptions")?;
        Ok(Self { propagation, grace_seconds, dry_run, ..Self::default() })
    }
}

/// Old and new option together are refused like unknown values.
fn propagation(
    orphan: Option<bool>,
    policy: Option<&str>,
    dry_run: &[&str],
) -> Result<DeletionPropagation, ApiError> {
    let mut mistakes = Vec::new();
    if let (Some(_), Some(policy)) = (orphan, policy) {
        let why = "orphanDependents and deletionPropagation cannot be both set";
        mistakes.push(FieldError::invalid("propagationPolicy", &Value::from(policy), why));
    }
    let propagation = match (policy, orphan) {
        (None, None) => DeletionPropagation::Unspecified,
        (Some("Background"), _) | (None, Some(false)) => DeletionPropagation::Background,
        (Some("Foreground"), _) => DeletionPropagation::Foreground,
        (Some("Orphan"), _) | (None, Some(true)) => DeletionPropagation::Orphan,
        (Some(other), _) => {
            mistakes.push(FieldError {
                field: "propagationPolicy".to_owned(),
                reason: "FieldValueNotSupported",
                message: format!(
                    "Unsupported value: {other:?}: supported values: \"Foreground\", \"Background\", \"Orphan\", \"nil\""
                ),
            });
            DeletionPropagation::Background
        }
    };
    mistakes.extend(query::unsupported_dry_run(dry_run));
    if mistakes.is_empty() {
        Ok(propagation)
    } else {
        Err(ApiError::invalid_options("DeleteOptions", &mistakes))
    }
}

/// Fields with the types that the server reads them into.
const FIELDS: &[(&[&str], &str, &str)] = &[
    (&["gracePeriodSeconds"], "DeleteOptions.gracePeriodSeconds", "int64"),
    (&["preconditions"], "DeleteOptions.preconditions", "v1.Preconditions"),
    (&["preconditions", "uid"], "Preconditions.preconditions.uid", "types.UID"),
    (&["preconditions", "resourceVersion"], "Preconditions.preconditions.resourceVersion", "string"),
    (&["orphanDependents"], "DeleteOptions.orphanDependents", "bool"),
    (&["propagationPolicy"], "DeleteOptions.propagationPolicy", "v1.DeletionPropagation"),
    (&["dryRun"], "DeleteOptions.dryRun", "[]string"),
];

fn check_types(body: &Value) -> Result<(), String> {
    for (path, field, wanted) in FIELDS {
        let Some(value) = object::value_at(body, path).filter(|value| !value.is_null()) else { continue };
        let fits = match *wanted {
            "int64" => value.is_i64(),
            "bool" => value.is_boolean(),
            "[]string" => value.is_array(),
            "v1.Preconditions" => value.is_object(),
            _ => value.is_string(),
        };
        if !fits {
            let found = match value {
                Value::Number(number) if *wanted == "int64" => format!("number {number}"),
                other => noun(other).to_owned(),
            };
            return Err(format!(
                "json: cannot unmarshal {found} into Go struct field {field} of type {wanted}"
            ));
        }
    }
    Ok(())
}

fn noun(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "bool",
        Value::Number(_) => "number",
        Value::String(_) => "string",
        Value::Array(_) => "array",
        Value::Object(_) => "object",
    }
}

//! Decoded values, and the errors and warnings of a real server.

use serde_json::{Value, json};

use super::{FieldValidation, ResponseWarnings, TypeName, from_json, object};

const DEPLOYMENT: TypeName<'_> = TypeName { group: "apps", version: "v1", kind: "Deployment" };
const SECRET: TypeName<'_> = TypeName { group: "", version: "v1", kind: "Secret" };

fn read(kind: TypeName<'_>, body: &str, validation: FieldValidation) -> (Result<Value, String>, Vec<String>) {
    let warnings = ResponseWarnings::default();
    let read = object(kind, |_| vec![], body.as_bytes(), false, validation, &warnings);
    (read.map_err(|error| error.message), warnings.all())
}

/// What is wrong with a Deployment, without the part that every message begins with.
fn refused(body: &str, expected: &str) {
    let said = read(DEPLOYMENT, body, FieldValidation::Warn).0.unwrap_err();
    let said = said
        .strip_prefix("Deployment in version \"v1\" cannot be handled as a Deployment: ")
        .unwrap_or(&said);
    assert_eq!(said, expected, "{body}");
}

fn wrong_type(spec: &Value, expected: &str) {
    refused(&json!({"spec": spec}).to_string(), &format!("json: cannot unmarshal {expected}"));
}

fn container(fields: &Value) -> Value {
    json!({"template": {"spec": {"containers": [fields]}}})
}

#[test]
fn unknown_and_duplicate_fields_warn_in_order() {
    let body = r#"{"spec": {"foo": {"a": 1, "a": 2}, "replicas": 0, "foo": 3, "replicas": 2,
        "selector": {"matchLabels": {"a": "b", "a": "c"}}, "template": {"spec": {"containers": [{"imag": 1}]}}}}"#;
    let complaints = [
        "unknown field \"spec.foo\"",
        "duplicate field \"spec.replicas\"",
        "duplicate field \"spec.selector.matchLabels.a\"",
        "unknown field \"spec.template.spec.containers[0].imag\"",
    ];
    let (read_with_warnings, warnings) = read(DEPLOYMENT, body, FieldValidation::Warn);
    let expected = json!({"spec": {"replicas": 2, "selector": {"matchLabels": {"a": "c"}},
        "template": {"spec": {"containers": [{}]}}}});
    assert_eq!(
        (read_with_warnings, warnings),
        (Ok(expected.clone()), complaints.map(str::to_owned).to_vec())
    );
    assert_eq!(read(DEPLOYMENT, body, FieldValidation::Ignore), (Ok(expected), vec![]));
    let said = read(DEPLOYMENT, body, FieldValidation::Strict).0.unwrap_err();
    assert_eq!(
        said,
        format!(
            "Deployment in version \"v1\" cannot be handled as a Deployment: strict decoding error: {}",
            complaints.join(", ")
        )
    );
}

#[test]
fn a_hundred_complaints_are_enough() {
    let fields: serde_json::Map<_, _> = (0..120).map(|number| (format!("u{number}"), json!(1))).collect();
    let body = json!({"spec": fields}).to_string();
    assert_eq!(read(DEPLOYMENT, &body, FieldValidation::Warn).1.len(), 100);
}

#[test]
fn wrong_types_are_reported_as_go_types() {
    wrong_type(
        &json!({"replicas": "3"}),
        "string into Go struct field DeploymentSpec.spec.replicas of type int32",
    );
    wrong_type(
        &json!({"replicas": 1.5}),
        "number 1.5 into Go struct field DeploymentSpec.spec.replicas of type int32",
    );
    wrong_type(&json!({"paused": 1}), "number into Go struct field DeploymentSpec.spec.paused of type bool");
    wrong_type(
        &json!({"selector": []}),
        "array into Go struct field DeploymentSpec.spec.selector of type v1.LabelSelector",
    );
    wrong_type(
        &json!({"selector": {"matchLabels": {"a": 1}}}),
        "number into Go struct field LabelSelector.spec.selector.matchLabels of type string",
    );
    wrong_type(
        &json!({"template": {"spec": {"containers": {}}}}),
        "object into Go struct field PodSpec.spec.template.spec.containers of type []v1.Container",
    );
    wrong_type(
        &container(&json!({"imagePullPolicy": 1})),
        "number into Go struct field Container.spec.template.spec.containers.imagePullPolicy of type v1.PullPolicy",
    );
    wrong_type(
        &container(&json!({"resources": {"limits": []}})),
        "array into Go struct field ResourceRequirements.spec.template.spec.containers.resources.limits of type v1.ResourceList",
    );
    wrong_type(
        &container(&json!({"livenessProbe": {"httpGet": {"port": true}}})),
        "bool into Go struct field HTTPGetAction.spec.template.spec.containers.livenessProbe.ProbeHandler.httpGet.port of type int32",
    );
    refused(
        r#"{"spec": "x"}"#,
        "json: cannot unmarshal string into Go struct field Deployment.spec of type v1.DeploymentSpec",
    );
}

#[test]
fn custom_decoders_report_before_the_first_wrong_type() {
    let quantity = json!({"replicas": "x", "template": {"spec": {"containers": [
        {"resources": {"limits": {"cpu": "abc"}}}]}}});
    refused(
        &json!({"spec": quantity}).to_string(),
        "quantities must match the regular expression '^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$'",
    );
    wrong_type(
        &json!({"replicas": "x", "paused": "y"}),
        "string into Go struct field DeploymentSpec.spec.replicas of type int32",
    );
}

#[test]
fn times_and_bytes_are_checked() {
    let layout = "2006-01-02T15:04:05Z07:00";
    refused(
        r#"{"metadata": {"creationTimestamp": "x"}}"#,
        &format!("parsing time \"x\" as \"{layout}\": cannot parse \"x\" as \"2006\""),
    );
    refused(
        r#"{"metadata": {"creationTimestamp": "2026-11-21 10:00:00Z"}}"#,
        &format!(
            "parsing time \"2026-11-21 10:00:00Z\" as \"{layout}\": cannot parse \" 10:00:00Z\" as \"T\""
        ),
    );
    refused(
        r#"{"metadata": {"creationTimestamp": "2026-13-21T10:00:00Z"}}"#,
        "parsing time \"2026-13-21T10:00:00Z\": month out of range",
    );
    let said = read(SECRET, r#"{"data": {"a": "%%%"}}"#, FieldValidation::Warn).0.unwrap_err();
    assert_eq!(
        said,
        "Secret in version \"v1\" cannot be handled as a Secret: illegal base64 data at input byte 0"
    );
}

#[test]
fn nulls_drop_struct_fields_and_zero_items() {
    let body = json!({"spec": {"replicas": null, "template": {"spec": {"containers": [
        {"args": [null, "a"], "resources": {"limits": {"cpu": null}}}]}}}});
    let expected = json!({"spec": {"template": {"spec": {"containers": [
        {"args": ["", "a"], "resources": {"limits": {"cpu": "0"}}}]}}}});
    assert_eq!(read(DEPLOYMENT, &body.to_string(), FieldValidation::Strict), (Ok(expected), vec![]));
}

#[test]
fn a_body_that_is_no_object_is_unrecognized() {
    let check = |body: &str, why: &str, summary: &str| {
        refused(
            body,
            &format!(
                "the object provided is unrecognized (must be of type Deployment): couldn't get version/kind; json parse error: {why} ({summary})"
            ),
        );
    };
    check("", "unexpected end of JSON input", "<empty>");
    check("{", "unexpected end of JSON input", "{");
    check("not json", "invalid character 'o' in literal null (expecting 'u')", "6e6f74206a736f6e");
    check("{\"a\":01}", "invalid character '1' after object key:value pair", "{\"a\":01}");
    check("{} x", "invalid character 'x' after top-level value", "{} x");
    check("{\"a\": 1,}", "invalid character '}' looking for beginning of object key string", "{\"a\": 1,}");
    check(
        "{\"kind\": 1}",
        "json: cannot unmarshal number into Go struct field .kind of type string",
        "{\"kind\": 1}",
    );
    let deep = "[".repeat(100_000);
    assert!(read(DEPLOYMENT, &deep, FieldValidation::Warn).0.unwrap_err().contains("exceeded max depth"));
}

#[test]
fn unknown_kinds_are_reported() {
    let said =
        read(DEPLOYMENT, r#"{"apiVersion": "apps/v2", "kind": "Deployment"}"#, FieldValidation::Warn).0;
    let why = "no kind \"Deployment\" is registered for version \"apps/v2\" in scheme \"pkg/runtime/scheme.go:111\"";
    assert_eq!(
        said.unwrap_err(),
        format!("Deployment in version \"v2\" cannot be handled as a Deployment: {why}")
    );
    refused(
        r#"{"apiVersion": "a/b/c", "kind": "Deployment"}"#,
        "the object provided is unrecognized (must be of type Deployment): unexpected GroupVersion string: a/b/c ({\"apiVersion\": \"a/b/c\", \"kind\" ...)",
    );
}

#[test]
fn patched_objects_are_decoded_again() {
    let patched = json!({"kind": "Deployment", "apiVersion": "apps/v1", "spec": {"zed": 1, "foo": 1}});
    let warnings = ResponseWarnings::default();
    let complaints = vec!["duplicate field \"spec.a\"".to_owned()];
    let read =
        |validation| from_json(&patched, DEPLOYMENT, |_| vec![], complaints.clone(), validation, &warnings);
    let error = read(FieldValidation::Strict).unwrap_err();
    assert_eq!(error.code, 422);
    let why = "strict decoding error: duplicate field \"spec.a\", unknown field \"spec.foo\", unknown field \"spec.zed\"";
    assert!(error.message.ends_with(why), "{}", error.message);
    assert_eq!(read(FieldValidation::Warn).unwrap()["spec"], json!({}));
    assert_eq!(warnings.all().len(), 3);
}

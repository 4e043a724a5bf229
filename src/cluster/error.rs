//! Errors of cluster requests, sorted by what can be done about them.

use kube::core::Status;
use serde_json::error::Category;

use super::response_bounds::OverBound;
use crate::model::{ClusterName, ObjectId, short_line};

/// Characters of a server's message that are kept.
const MESSAGE: usize = 2048;
/// The same for names: of reasons, managers and subresources.
const NAME: usize = 128;

/// A field that another manager owns.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FieldConflict {
    pub manager: String,
    /// The subresource of the write; empty for the object itself, and on servers that do not report it.
    pub subresource: String,
    /// As the API server writes it: `.spec.replicas`.
    pub field: String,
}

/// An immutable field of a refused change.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ImmutableField {
    /// As the API server writes it: `spec.selector`.
    pub field: String,
    /// The server's text without values.
    pub why: String,
}

#[derive(Debug, thiserror::Error)]
pub enum Error {
    #[error("failed to read the connection of cluster {cluster}: {detail}")]
    Connection { cluster: ClusterName, detail: String },
    #[error("failed to reach cluster {cluster}: {detail}")]
    Unreachable { cluster: ClusterName, detail: String },
    /// The rest of the response is not read.
    #[error("cluster {cluster} sent an answer that exceeds a limit: {detail}")]
    OverBound { cluster: ClusterName, detail: String },
    #[error("failed to log in to cluster {cluster}: {detail}")]
    Denied {
        cluster: ClusterName,
        detail: String,
        /// The server knows the user, who lacks the right.
        forbidden: bool,
    },
    #[error("failed to find {kind} in cluster {cluster}: it serves no such kind")]
    NotServed { cluster: ClusterName, kind: String },
    #[error("failed to apply {object}: conflict with {}", managers(.conflicts))]
    Conflict { object: ObjectId, conflicts: Vec<FieldConflict> },
    /// Some servers of aggregated APIs do not implement it.
    #[error(
        "failed to apply {object}: the API server of its kind does not support server-side apply; \
         upgrade that server, or remove the object from Git"
    )]
    NoServerSideApply { object: ObjectId },
    /// Between two requests about it.
    #[error("{object} was not written: a newer commit took over")]
    Superseded { object: ObjectId },
    /// Another process may be the leader. Whether a write that was sent took effect is unknown.
    #[error("{object} was not written: this process did not renew the lease of the leader in time")]
    NotLeader { object: ObjectId },
    #[error("failed to {action} {object}: {}", whys(.fields))]
    Immutable { action: &'static str, object: ObjectId, fields: Vec<ImmutableField> },
    #[error("failed to {action} {object}: {detail}")]
    Rejected { action: &'static str, object: ObjectId, code: u16, reason: String, detail: String },
    #[error("failed to {action} {object}: namespaces {namespace:?} not found")]
    NamespaceMissing { action: &'static str, object: ObjectId, namespace: String },
    #[error("failed to {action} in cluster {cluster}: {detail}")]
    Request { cluster: ClusterName, action: &'static str, code: u16, detail: String },
}

impl Error {
    /// The object or its namespace does not exist.
    pub fn is_missing(&self) -> bool {
        matches!(
            self,
            Self::NotServed { .. } | Self::NamespaceMissing { .. } | Self::Rejected { code: 404, .. }
        )
    }

    /// The same request may succeed soon.
    pub fn is_transient(&self) -> bool {
        match self {
            Self::Unreachable { .. }
            | Self::OverBound { .. }
            | Self::Superseded { .. }
            | Self::NotLeader { .. } => true,
            Self::Rejected { code, reason, .. } => {
                *code == 429 || *code == 409 || (*code >= 500 && reason != INVALID)
            }
            // 501 is permanent: the server does not implement the request.
            Self::Request { code, .. } => *code == 429 || (*code >= 500 && *code != 501),
            // An unknown user may be known soon; a missing right is intended.
            Self::Denied { forbidden, .. } => !forbidden,
            Self::Connection { .. }
            | Self::NotServed { .. }
            | Self::NoServerSideApply { .. }
            | Self::Immutable { .. }
            | Self::NamespaceMissing { .. }
            | Self::Conflict { .. } => false,
        }
    }

    /// Without the server's text, for objects with secret values.
    #[must_use]
    pub fn without_values(self) -> Self {
        match self {
            Self::Rejected { action, object, code, reason, detail } => {
                let unknown = if detail.ends_with(UNKNOWN_FIELD) {
                    format!(": {UNKNOWN_FIELD}")
                } else {
                    String::new()
                };
                let detail = format!(
                    "{reason} ({code}){unknown}; the answer is not shown, because it may quote encrypted values"
                );
                Self::Rejected { action, object, code, reason, detail }
            }
            Self::Request { cluster, action, code, .. } => {
                let detail =
                    format!("the answer is not shown, because it may quote encrypted values ({code})");
                Self::Request { cluster, action, code, detail }
            }
            Self::Conflict { object, mut conflicts } => {
                for conflict in &mut conflicts {
                    conflict.field = field_without_values(&conflict.field);
                }
                conflicts.dedup();
                Self::Conflict { object, conflicts }
            }
            Self::Immutable { action, object, mut fields } => {
                for field in &mut fields {
                    field.why = IMMUTABLE.to_owned();
                }
                Self::Immutable { action, object, fields }
            }
            other => other,
        }
    }

    /// Makes server texts one line without control characters, of bounded length.
    fn cleaned(mut self) -> Self {
        match &mut self {
            Self::Connection { detail, .. }
            | Self::Unreachable { detail, .. }
            | Self::OverBound { detail, .. }
            | Self::Denied { detail, .. }
            | Self::Request { detail, .. } => *detail = clean(detail),
            Self::Rejected { reason, detail, .. } => (*reason, *detail) = (clean_name(reason), clean(detail)),
            Self::Conflict { conflicts, .. } => {
                for FieldConflict { manager, subresource, field } in conflicts {
                    (*manager, *subresource, *field) =
                        (clean_name(manager), clean_name(subresource), clean(field));
                }
            }
            Self::Immutable { fields, .. } => {
                for ImmutableField { field, why } in fields {
                    (*field, *why) = (clean(field), clean(why));
                }
            }
            Self::NotServed { .. }
            | Self::NoServerSideApply { .. }
            | Self::Superseded { .. }
            | Self::NotLeader { .. }
            | Self::NamespaceMissing { .. } => {}
        }
        self
    }

    pub fn is_unreachable(&self) -> bool {
        matches!(self, Self::Unreachable { .. })
    }
}

/// The field up to its first list: list items are named by their content, which may contain brackets and dots.
pub fn field_without_values(field: &str) -> String {
    field.split_once('[').map_or_else(|| field.to_owned(), |(list, _)| format!("{list}[…]"))
}

fn managers(conflicts: &[FieldConflict]) -> String {
    let mut parts: Vec<(String, Vec<&str>)> = Vec::new();
    for FieldConflict { manager, subresource, field } in conflicts {
        let who = match &**subresource {
            "" => format!("{manager:?}"),
            subresource => format!("{manager:?} through {subresource}"),
        };
        match parts.iter_mut().find(|(known, _)| *known == who) {
            Some((_, fields)) => fields.push(field),
            None => parts.push((who, vec![field])),
        }
    }
    let parts: Vec<String> =
        parts.iter().map(|(who, fields)| format!("{who} over {}", fields.join(", "))).collect();
    parts.join("; ")
}

/// Groups the fields by reason.
fn whys(fields: &[ImmutableField]) -> String {
    let parts: Vec<String> = fields
        .chunk_by(|one, other| one.why == other.why)
        .map(|alike| {
            let names: Vec<&str> = alike.iter().map(|it| it.field.as_str()).collect();
            format!("{}: {}", names.join(", "), alike[0].why)
        })
        .collect();
    parts.join("; ")
}

/// Converts an error of the client. `object`: if the request was about one.
pub(super) fn classify(
    cluster: &ClusterName,
    action: &'static str,
    object: Option<&ObjectId>,
    error: &kube::Error,
) -> Error {
    let error = match error {
        kube::Error::Api(status) => classify_status(cluster, action, object, status),
        kube::Error::SerdeError(error) => {
            Error::Request { cluster: cluster.clone(), action, code: 502, detail: unreadable(error) }
        }
        // The request was never sent, because the name is not allowed in an address. A retry fails too.
        kube::Error::BuildRequest(_) | kube::Error::HttpError(_) => {
            let detail = format!("its name does not fit in a request: {}", innermost(error));
            match object.cloned() {
                Some(object) => {
                    Error::Rejected { action, object, code: 400, reason: "BadRequest".to_owned(), detail }
                }
                None => Error::Request { cluster: cluster.clone(), action, code: 400, detail },
            }
        }
        other => match OverBound::find_in(other) {
            Some(over) => Error::OverBound { cluster: cluster.clone(), detail: over.to_string() },
            None => Error::Unreachable { cluster: cluster.clone(), detail: innermost(other) },
        },
    };
    error.cleaned()
}

/// Without the text at that place: it may be a Secret.
fn unreadable(error: &serde_json::Error) -> String {
    let why = match error.classify() {
        Category::Io | Category::Eof => "it ends too early",
        Category::Syntax => "it is not JSON",
        Category::Data => "it is not the requested object",
    };
    format!("an answer that cannot be read: {why} (at its byte {} or so)", error.column())
}

/// A server message, as it may be shown and stored.
pub(super) fn clean(message: &str) -> String {
    short_line(message, MESSAGE)
}

fn clean_name(name: &str) -> String {
    short_line(name, NAME)
}

fn classify_status(
    cluster: &ClusterName,
    action: &'static str,
    object: Option<&ObjectId>,
    status: &Status,
) -> Error {
    let code = status.code;
    if code == 401 {
        let is_quoted = object.is_none_or(|object| !is_secret(object));
        let detail = if is_quoted { status.message.clone() } else { without_values(status) };
        return Error::Denied { cluster: cluster.clone(), detail, forbidden: false };
    }
    let Some(object) = object else {
        let detail = status.message.clone();
        return if code == 403 {
            Error::Denied { cluster: cluster.clone(), detail, forbidden: true }
        } else {
            Error::Request { cluster: cluster.clone(), action, code, detail }
        };
    };
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let conflicts: Vec<FieldConflict> = causes
        .iter()
        .filter(|cause| cause.reason == "FieldManagerConflict")
        .map(|cause| FieldConflict {
            manager: manager_of(&cause.message),
            subresource: subresource_of(&cause.message),
            field: cause.field.clone(),
        })
        .collect();
    if code == 409 && !conflicts.is_empty() {
        return Error::Conflict { object: object.clone(), conflicts };
    }
    if is_of_another(status) {
        let (reason, detail) = ("Conflict".to_owned(), OTHER_OBJECT.to_owned());
        return Error::Rejected { action, object: object.clone(), code: 409, reason, detail };
    }
    if let Some(namespace) = missing_namespace(status, object) {
        return Error::NamespaceMissing { action, object: object.clone(), namespace };
    }
    if let Some(mut fields) = immutable_fields(status) {
        if is_secret(object) {
            fields.iter_mut().for_each(|field| IMMUTABLE.clone_into(&mut field.why));
        }
        return Error::Immutable { action, object: object.clone(), fields };
    }
    let detail = if is_secret(object) { without_values(status) } else { status.message.clone() };
    let reason = if breaks_schema(status).is_some() { INVALID } else { reason_of(status) }.to_owned();
    Error::Rejected { action, object: object.clone(), code, reason, detail }
}

/// The namespace that is missing for this object.
fn missing_namespace(status: &Status, object: &ObjectId) -> Option<String> {
    let details = status.details.as_ref().filter(|details| details.kind == "namespaces")?;
    let namespace = object.namespace.as_deref().filter(|namespace| *details.name == **namespace)?;
    (status.code == 404).then(|| namespace.to_owned())
}

const INVALID: &str = "Invalid";

/// The schema violation of an apply: an unknown field, or a number for a text. API servers return 500 without a
/// reason for it, and a retry fails too.
fn breaks_schema(status: &Status) -> Option<&str> {
    let rest = status.message.strip_prefix("failed to create typed patch object (")?;
    (status.code == 500).then_some(rest.split_once("): ")?.1)
}

const OTHER_OBJECT: &str = "another object has its name now";

/// The object that was meant is gone, and another one has its name. API servers report its uid as invalid. The
/// message alone is not enough: that of an environment variable lists all allowed fields, and one of them is the uid.
fn is_of_another(status: &Status) -> bool {
    let mut causes = status.details.iter().flat_map(|details| &details.causes);
    status.code == 422 && causes.any(|cause| cause.field == "metadata.uid")
}

const IMMUTABLE: &str = "field is immutable";

/// How API servers report an immutable field: all messages of their validation, and the usual one of custom kinds.
const NEVER_CHANGES: &[&str] = &[
    "immutable",
    "may not be changed",
    "may not change",
    "cannot change",
    "cannot be changed",
    "pod updates may not",
    "updates to ",
];

/// The immutable fields of a refused change, if nothing else is wrong: an invalid object would be refused when it is
/// created again too.
fn immutable_fields(status: &Status) -> Option<Vec<ImmutableField>> {
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let field = |cause: &kube::core::response::StatusCause| {
        // After the first line, a Pod's message has a diff in Go syntax.
        let message = cause.message.split('\n').next().unwrap_or_default();
        let words = message.to_lowercase();
        let is_one = NEVER_CHANGES.iter().any(|known| words.contains(known));
        // Metadata fields are about the name, not the content.
        let is_content = !cause.field.is_empty() && !cause.field.starts_with("metadata.");
        // `Invalid value: …: field is immutable`: values come first.
        let why = message.rsplit(": ").next().unwrap_or(IMMUTABLE).to_owned();
        (is_one && is_content).then(|| ImmutableField { field: cause.field.clone(), why })
    };
    let fields: Option<Vec<ImmutableField>> =
        if status.code == 422 { causes.iter().map(field).collect() } else { None };
    fields.filter(|fields| !fields.is_empty())
}

/// In any group: another kind with this name is likely to contain secrets too.
fn is_secret(object: &ObjectId) -> bool {
    &*object.kind == "Secret"
}

const UNKNOWN_FIELD: &str = "field not declared in schema";

/// A reason is one word. Others may quote the refused value.
fn reason_of(status: &Status) -> &str {
    let is_word = status.reason.chars().all(|letter| letter.is_ascii_alphanumeric());
    if is_word { &status.reason } else { "refused" }
}

/// The message for an object with secret values: servers quote invalid values.
fn without_values(status: &Status) -> String {
    if let Some(words) = breaks_schema(status) {
        // `.data.password: expected string, got …`: the value comes last.
        let words = words.split_once(", got ").map_or(words, |(words, _)| words);
        return format!("{INVALID} ({}): {words}", status.code);
    }
    let mut text = format!("{} ({})", reason_of(status), status.code);
    let causes = status.details.as_ref().map(|details| details.causes.as_slice()).unwrap_or_default();
    let fields: Vec<&str> =
        causes.iter().map(|cause| cause.field.as_str()).filter(|field| !field.is_empty()).collect();
    if !fields.is_empty() {
        text.push_str(": ");
        text.push_str(&fields.join(", "));
    }
    text
}

/// The manager in `conflict with "kubectl-client-side-apply" using apps/v1`.
fn manager_of(message: &str) -> String {
    message.split('"').nth(1).unwrap_or(message).to_owned()
}

/// The subresource in `conflict with "keda" with subresource "scale" using apps/v1`.
fn subresource_of(message: &str) -> String {
    let named = message.split_once("\" with subresource \"").and_then(|(_, rest)| rest.split_once('"'));
    named.map(|(name, _)| name.to_owned()).unwrap_or_default()
}

/// The last cause of the chain: `connection refused` says more than `client error`.
pub(super) fn innermost(error: &dyn std::error::Error) -> String {
    let mut current = error;
    while let Some(source) = current.source() {
        current = source;
    }
    current.to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn conflict_names_each_manager_once() {
        let conflict = |manager: &str, subresource: &str, field: &str| FieldConflict {
            manager: manager.into(),
            subresource: subresource.into(),
            field: field.into(),
        };
        let error = Error::Conflict {
            object: ObjectId::new("apps", "Deployment", Some("shop"), "pay"),
            conflicts: vec![
                conflict("kubectl", "", ".spec.replicas"),
                conflict("hpa", "", ".spec.x"),
                conflict("kubectl", "", ".spec.paused"),
                conflict("kubectl", "scale", ".spec.y"),
            ],
        };
        assert_eq!(
            error.to_string(),
            r#"failed to apply Deployment shop/pay: conflict with "kubectl" over .spec.replicas, .spec.paused; "hpa" over .spec.x; "kubectl" through scale over .spec.y"#
        );
        assert!(!error.is_transient());
    }

    #[test]
    fn conflict_names_the_subresource() {
        for (message, manager, subresource) in [
            (r#"conflict with "keda" with subresource "scale" using apps/v1"#, "keda", "scale"),
            (r#"conflict with "keda" with subresource "scale""#, "keda", "scale"),
            (r#"conflict with "kubectl" using apps/v1"#, "kubectl", ""),
        ] {
            let found = (manager_of(message), subresource_of(message));
            assert_eq!(found, (manager.to_owned(), subresource.to_owned()), "{message}");
        }
    }

    #[test]
    fn invalid_name_is_a_permanent_error() {
        let request = kube::core::Request::new("/api/v1/namespaces/shop/configmaps");
        let error = request.get("NOT A NAME", &kube::api::GetParams::default()).expect_err("no address");
        let (cluster, error) = (ClusterName::from("bj1"), kube::Error::BuildRequest(error));
        let object = ObjectId::new("", "ConfigMap", Some("shop"), "NOT A NAME");
        let refused = classify(&cluster, "apply", Some(&object), &error);
        assert!(!refused.is_transient(), "{refused}");
        let words = "failed to apply ConfigMap shop/NOT A NAME: its name does not fit in a request: ";
        assert!(refused.to_string().starts_with(words), "{refused}");
        assert!(!classify(&cluster, "list pods", None, &error).is_transient());
    }

    #[test]
    fn conflict_does_not_quote_list_items() {
        let conflict = |field: &str| FieldConflict {
            manager: "kubectl".into(),
            subresource: String::new(),
            field: field.into(),
        };
        let hosts = [r#".spec.hosts[="hunter2]x"]"#, r#".spec.hosts[="hunter3"]"#, ".spec.replicas"];
        let error = Error::Conflict {
            object: ObjectId::new("apps", "Deployment", Some("shop"), "pay"),
            conflicts: hosts.map(conflict).to_vec(),
        };
        let told = r#"failed to apply Deployment shop/pay: conflict with "kubectl" over .spec.hosts[…], .spec.replicas"#;
        assert_eq!(error.without_values().to_string(), told);
    }

    fn refused(causes: &[(&str, &str)]) -> Error {
        let causes: Vec<_> = causes
            .iter()
            .map(|(field, message)| serde_json::json!({"field": field, "message": message}))
            .collect();
        let status: Status = serde_json::from_value(serde_json::json!({
            "status": "Failure", "code": 422, "reason": "Invalid", "message": "it is invalid",
            "details": {"causes": causes},
        }))
        .unwrap_or_default();
        let object = ObjectId::new("apps", "Deployment", Some("shop"), "pay");
        let error = kube::Error::Api(Box::new(status));
        classify(&ClusterName::from("bj5"), "apply", Some(&object), &error)
    }

    #[test]
    fn immutable_change_is_distinguished_from_invalid_one() {
        let check = |causes: &[(&str, &str)], expected: &str| {
            let told = refused(causes).to_string();
            assert_eq!(told, format!("failed to apply Deployment shop/pay: {expected}"));
        };
        let selector =
            ("spec.selector", "Invalid value: {\"matchLabels\":{\"app\":\"x\"}}: field is immutable");
        check(&[selector], "spec.selector: field is immutable");
        check(
            &[(
                "spec",
                "Forbidden: updates to statefulset spec for fields other than 'replicas' are forbidden",
            )],
            "spec: updates to statefulset spec for fields other than 'replicas' are forbidden",
        );
        // The diff follows below.
        check(
            &[(
                "spec",
                "Forbidden: pod updates may not change fields other than `spec.tolerations`\n  core.PodSpec{\n  \tNodeName: \"one\",\n",
            )],
            "spec: pod updates may not change fields other than `spec.tolerations`",
        );
        check(&[("roleRef", "Invalid value: {}: cannot change roleRef")], "roleRef: cannot change roleRef");
        check(
            &[("spec.clusterIPs[0]", "Invalid value: [\"10.0.0.1\"]: may not change once set")],
            "spec.clusterIPs[0]: may not change once set",
        );
        // A create would be refused too.
        check(&[selector, ("spec.replicas", "Invalid value: -1: must be positive")], "it is invalid");
        check(&[], "it is invalid");
    }

    #[test]
    fn recreated_object_is_recognized_by_the_uid_field() {
        let check = |causes: &[(&str, &str)], expected: u16| {
            let error = refused(causes);
            assert!(matches!(&error, Error::Rejected { code, .. } if *code == expected), "{error}");
            assert_eq!(error.is_transient(), expected == 409, "{error}");
        };
        let uid = ("metadata.uid", "Invalid value: \"u2\": field is immutable");
        // Servers report it twice, with other differing fields beside it.
        check(&[uid, uid], 409);
        check(&[uid, ("spec.selector", "Invalid value: {}: field is immutable")], 409);
        let variable = "spec.template.spec.containers[0].env[0].valueFrom.fieldRef.fieldPath";
        let supported =
            "Unsupported value: \"metadata.labels\": supported values: \"metadata.name\", \"metadata.uid\"";
        check(&[(variable, supported)], 422);
        check(&[("", "no object may say metadata.uid")], 422);
        assert_eq!(
            refused(&[uid]).to_string(),
            format!("failed to apply Deployment shop/pay: {OTHER_OBJECT}")
        );
    }

    #[test]
    fn transient_errors_are_distinguished() {
        let rejected = |code: u16, reason: &str, detail: &str| Error::Rejected {
            action: "apply",
            object: ObjectId::new("", "ConfigMap", Some("a"), "b"),
            code,
            reason: reason.into(),
            detail: detail.into(),
        };
        assert!(rejected(429, "TooManyRequests", "").is_transient());
        assert!(rejected(503, "ServiceUnavailable", "").is_transient());
        assert!(!rejected(422, "Invalid", "").is_transient());
        assert!(rejected(500, "InternalError", "etcdserver: request timed out").is_transient());
    }

    #[test]
    fn schema_violation_is_a_permanent_error() {
        fn check(kind: &str, words: &str, expected: &str) {
            let status: Status = serde_json::from_value(serde_json::json!({
                "status": "Failure", "code": 500,
                "message": format!("failed to create typed patch object (shop/db; v1, Kind={kind}): {words}"),
            }))
            .expect("a status");
            let object = ObjectId::new("", kind, Some("shop"), "db");
            let error = kube::Error::Api(Box::new(status));
            let error = classify(&ClusterName::from("bj5"), "apply", Some(&object), &error);
            assert!(!error.is_transient(), "{error}");
            assert!(error.to_string().ends_with(expected), "{error}");
        }
        let number = ".data.x: expected string, got &value.valueUnstructured{Value:1}";
        check("ConfigMap", ".spec.imagine: field not declared in schema", "field not declared in schema");
        check("ConfigMap", number, number);
        check("Secret", number, "Invalid (500): .data.x: expected string");
        check("Secret", ".datum: field not declared in schema", ".datum: field not declared in schema");
    }

    #[test]
    fn secret_values_are_not_shown() {
        let status: Status = serde_json::from_value(serde_json::json!({
            "status": "Failure", "code": 422, "reason": "Invalid",
            "message": "Secret \"db\" is invalid: data[password]: Invalid value: \"hunter2\"",
            "details": {"causes": [{
                "reason": "FieldValueInvalid", "field": "data[password]",
                "message": "Invalid value: \"hunter2\"",
            }]},
        }))
        .unwrap_or_default();
        let told = |kind: &str| {
            let object = ObjectId::new("", kind, Some("shop"), "db");
            let error = kube::Error::Api(Box::new(status.clone()));
            classify(&ClusterName::from("bj5"), "apply", Some(&object), &error)
        };
        let error = told("Secret");
        assert_eq!(error.to_string(), "failed to apply Secret shop/db: Invalid (422): data[password]");
        assert!(!format!("{error:?}").contains("hunter2"));
        assert!(told("ConfigMap").to_string().contains("hunter2"));
    }
}

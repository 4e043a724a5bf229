//! Access reviews. There is no access control: everything is allowed.

use serde_json::{Value, json};

use crate::registry::ResourceKind;

/// The answer to a review that was sent; `None` when the kind is no review.
pub(super) fn answer_review(kind: &ResourceKind, sent: &Value, now: &str) -> Option<Value> {
    let status = match (kind.group.as_str(), kind.plural.as_str()) {
        ("authorization.k8s.io", "selfsubjectaccessreviews") => json!({"allowed": true}),
        ("authorization.k8s.io", "selfsubjectrulesreviews") => json!({
            "resourceRules": [{"verbs": ["*"], "apiGroups": ["*"], "resources": ["*"]}],
            "nonResourceRules": [{"verbs": ["*"], "nonResourceURLs": ["*"]}],
            "incomplete": false,
        }),
        ("authentication.k8s.io", "selfsubjectreviews") => json!({
            "userInfo": {"username": "sandbox", "groups": ["system:masters", "system:authenticated"]},
        }),
        _ => return None,
    };
    let mut answer = json!({"kind": kind.kind, "apiVersion": kind.api_version(), "metadata": {}});
    if kind.plural == "selfsubjectreviews" {
        answer["metadata"]["creationTimestamp"] = json!(now);
    } else {
        answer["spec"] = sent.get("spec").cloned().unwrap_or_else(|| json!({}));
    }
    answer["status"] = status;
    Some(answer)
}

//! Reads the requests of service accounts from an API server's audit log.
//!
//! The audit policy logs service accounts only: controllers and administrators use certificates and would fill the log.

use std::fs;
use std::path::Path;

use serde_json::Value;

use crate::Error;

const POLICY: &str = "apiVersion: audit.k8s.io/v1
kind: Policy
omitStages: [RequestReceived, ResponseStarted]
rules:
- {level: Metadata, userGroups: ['system:serviceaccounts']}
- {level: None}
";

const LOG: &str = "audit.log";

/// One request that was answered.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AuditedRequest {
    /// As the server calls it: `get`, `list`, `watch`, `create`, `update`, `patch`, `delete`.
    pub verb: String,
    /// As roles name it: `deployments.apps`, `deployments.apps/scale`; the path of what is no resource.
    pub resource: String,
    /// With its query.
    pub uri: String,
    pub status: u16,
    /// The user agent.
    pub user_agent: String,
    /// When, to the microsecond, in UTC: such times are in order as texts are.
    pub time: String,
}

/// The arguments of an API server that enable the log.
pub(crate) fn apiserver_arguments(folder: &Path) -> Result<Vec<String>, Error> {
    let policy = folder.join("audit-policy.yaml");
    fs::write(&policy, POLICY).map_err(Error::file("write", &policy))?;
    Ok(vec![
        format!("--audit-policy-file={}", policy.display()),
        format!("--audit-log-path={}", folder.join(LOG).display()),
        // The log is read from its beginning.
        "--audit-log-maxsize=1000".into(),
    ])
}

/// Everything that one account has asked, oldest first.
pub(crate) fn read(folder: &Path, user: &str) -> Result<Vec<AuditedRequest>, Error> {
    let path = folder.join(LOG);
    let text = fs::read_to_string(&path).map_err(Error::file("read", &path))?;
    // The last line may not be whole yet.
    let events = text.lines().filter_map(|line| serde_json::from_str::<Value>(line).ok());
    Ok(events
        .filter(|event| event["user"]["username"] == user)
        .map(|event| audited_request(&event))
        .collect())
}

fn audited_request(event: &Value) -> AuditedRequest {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let uri = text(&event["requestURI"]);
    let object = &event["objectRef"];
    let resource = match (object["resource"].as_str(), object["apiGroup"].as_str()) {
        (None, _) => uri.split('?').next().unwrap_or_default().to_owned(),
        (Some(resource), None) => resource.to_owned(),
        (Some(resource), Some(group)) => format!("{resource}.{group}"),
    };
    let resource = match object["subresource"].as_str() {
        Some(subresource) => format!("{resource}/{subresource}"),
        None => resource,
    };
    let status = event["responseStatus"]["code"].as_u64().and_then(|code| u16::try_from(code).ok());
    AuditedRequest {
        verb: text(&event["verb"]),
        resource,
        uri,
        status: status.unwrap_or_default(),
        user_agent: text(&event["userAgent"]),
        time: text(&event["requestReceivedTimestamp"]),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn audited_requests_use_role_resource_names() {
        let check = |object: Value, expected: &str| {
            let event = json!({"verb": "patch", "requestURI": "/path?a=b", "objectRef": object, "responseStatus": {"code": 409}});
            let asked = audited_request(&event);
            assert_eq!((asked.resource.as_str(), asked.status), (expected, 409));
        };
        check(json!({"resource": "configmaps"}), "configmaps");
        check(json!({"resource": "deployments", "apiGroup": "apps"}), "deployments.apps");
        check(
            json!({"resource": "deployments", "apiGroup": "apps", "subresource": "scale"}),
            "deployments.apps/scale",
        );
        check(Value::Null, "/path");
    }
}

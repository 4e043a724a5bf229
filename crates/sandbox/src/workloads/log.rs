//! What containers wrote.

use serde_json::Value;

use crate::object;
use crate::status::ApiError;

/// What a container wrote; a crashed one says why at the end.
pub(crate) fn log_of(pod: &Value, container: &str) -> Result<String, ApiError> {
    let statuses = object::list(pod, &["status", "containerStatuses"]);
    let status = match container {
        "" => statuses.first(),
        name => object::find_by(statuses, "name", name),
    };
    let declared = object::list(pod, &["spec", "containers"]);
    if !container.is_empty() && object::find_by(declared, "name", container).is_none() {
        return Err(ApiError::bad_request(format!(
            "container {container} is not valid for pod {}",
            object::name(pod)
        )));
    }
    let waiting = status.and_then(|status| object::text(status, &["state", "waiting", "reason"]));
    match waiting {
        Some("CrashLoopBackOff") => Ok("starting\nfatal: simulated crash\n".to_owned()),
        Some(reason) => Err(ApiError::bad_request(format!(
            "container \"{}\" in pod \"{}\" is waiting to start: {reason}",
            status.and_then(|status| status["name"].as_str()).unwrap_or(container),
            object::name(pod)
        ))),
        None => Ok("starting\nready\n".to_owned()),
    }
}

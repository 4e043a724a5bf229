//! Container logs. A failing container's log ends with the text of its annotation `sim.tutti.dev/log`, if it has one.

use serde_json::{Value, json};

use super::pod_failure;
use super::sim_annotations::LOG;
use crate::api_error::{ApiError, FieldError};
use crate::cluster::SandboxState;
use crate::object;
use crate::wire::query::QueryParameters;

/// The requested part of a log.
#[derive(Debug)]
pub(crate) struct PodLogQuery {
    /// Empty: the only one.
    container: String,
    previous: bool,
    follow: bool,
    tail: Option<usize>,
    limit: Option<usize>,
}

impl PodLogQuery {
    pub(crate) fn parse(query: &QueryParameters, pod: &str) -> Result<Self, ApiError> {
        let (tail, limit) = (query.integer("tailLines")?, query.integer("limitBytes")?);
        let mut mistakes = Vec::new();
        let mut check = |field: &str, number: Option<i64>, least: i64, why: &str| {
            if let Some(number) = number.filter(|number| *number < least) {
                mistakes.push(FieldError::invalid(field, &json!(number), why));
            }
            number.and_then(|number| usize::try_from(number).ok())
        };
        let tail = check("tailLines", tail, 0, "must be greater than or equal to 0");
        let limit = check("limitBytes", limit, 1, "must be greater than 0");
        if !mistakes.is_empty() {
            return Err(ApiError::invalid_log_options(pod, &mistakes));
        }
        for name in ["timestamps", "sinceSeconds", "sinceTime", "stream"] {
            if query.flag(name) {
                return Err(ApiError::not_simulated(format!("{name} of logs")));
            }
        }
        let (previous, follow) = (query.flag("previous"), query.flag("follow"));
        Ok(Self { container: query.text("container").to_owned(), previous, follow, tail, limit })
    }

    /// The last lines, and of those the first bytes.
    fn trim(&self, text: &str) -> Vec<u8> {
        let lines = text.split_inclusive('\n').count();
        let from = lines - self.tail.unwrap_or(lines).min(lines);
        let mut bytes = text.split_inclusive('\n').skip(from).collect::<String>().into_bytes();
        bytes.truncate(self.limit.unwrap_or(bytes.len()));
        bytes
    }
}

/// A part of the log of one container, as a kubelet answers; `None` when the pod has none.
pub(crate) fn container_log(
    state: &SandboxState,
    pod: &Value,
    query: &PodLogQuery,
) -> Result<Option<Vec<u8>>, ApiError> {
    let container = container_of(pod, &query.container)?;
    if object::text(pod, &["spec", "nodeName"]).is_none() {
        return Ok(None);
    }
    let name = object::name(pod);
    let refused = |why: &str| {
        let message = format!("container \"{container}\" in pod \"{name}\" {why}");
        Err(ApiError::bad_request(message))
    };
    let lists = ["containerStatuses", "initContainerStatuses"];
    let status = lists
        .iter()
        .find_map(|list| object::find_by(object::list(pod, &["status", list]), "name", container));
    let Some(status) = status else { return refused("is not available") };
    let end = |which: &str| object::value_at(status, &[which, "terminated"]);
    let is_running = object::value_at(status, &["state", "running"]).is_some();
    let end = match (query.previous, end("state"), end("lastState")) {
        (true, _, None) => {
            let message =
                format!("previous terminated container \"{container}\" in pod \"{name}\" not found");
            return Err(ApiError::bad_request(message));
        }
        (true, _, before) => before,
        (false, ..) if is_running => None,
        (false, now, before) => now.or(before),
    };
    let pod = pod_failure::with_scenario(state, pod);
    let text = match end {
        Some(end) => exit_line(&pod, end),
        None if is_running && query.follow => {
            return Err(ApiError::not_simulated("following the log of a running container"));
        }
        None if is_running && status["ready"] == true => "starting\nready\n".to_owned(),
        None if is_running => "starting\n".to_owned(),
        None => {
            return refused(&match object::text(status, &["state", "waiting", "reason"]) {
                Some("ErrImagePull") => "is waiting to start: image can't be pulled".to_owned(),
                Some("ImagePullBackOff") => {
                    "is waiting to start: trying and failing to pull image".to_owned()
                }
                Some(reason) => format!("is waiting to start: {reason}"),
                None => "is waiting to start - no logs yet".to_owned(),
            });
        }
    };
    Ok(Some(query.trim(&text)))
}

fn exit_line(pod: &Value, end: &Value) -> String {
    if end["exitCode"] == 0 {
        return "starting\ndone\n".to_owned();
    }
    let last = object::annotation(pod, LOG).unwrap_or("fatal: simulated crash");
    format!("starting\n{}\n", last.strip_suffix('\n').unwrap_or(last))
}

/// The container that is meant.
fn container_of<'p>(pod: &'p Value, wanted: &'p str) -> Result<&'p str, ApiError> {
    let of = |list: &str| object::list(pod, &["spec", list]).iter().filter_map(|one| one["name"].as_str());
    let all: Vec<&str> = of("initContainers").chain(of("containers")).collect();
    match (wanted, object::list(pod, &["spec", "containers"])) {
        ("", [only]) => Ok(only["name"].as_str().unwrap_or("")),
        ("", _) => Err(ApiError::bad_request(format!(
            "a container name must be specified for pod {}, choose one of: [{}]",
            object::name(pod),
            all.join(" ")
        ))),
        _ if all.contains(&wanted) => Ok(wanted),
        _ => {
            let message = format!("container {wanted} is not valid for pod {}", object::name(pod));
            Err(ApiError::bad_request(message))
        }
    }
}

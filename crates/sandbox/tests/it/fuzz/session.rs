//! A cluster and the requests to it.

use std::panic::AssertUnwindSafe;
use std::time::{Duration, SystemTime};

use bytes::Bytes;
use futures::FutureExt;
use http::{Request, Response, StatusCode};
use http_body_util::{BodyExt, Full};
use sandbox::{Sandbox, SandboxOptions};
use serde_json::Value;
use tower::Service;

use super::requests::{FuzzRequest, ServedResource, random_request};
use super::response_check;
use crate::draw::SeededRandom;

/// A request without a valid response.
#[derive(Debug)]
pub struct FuzzFinding {
    seed: u64,
    number: u64,
    request: FuzzRequest,
    pub reason: String,
}

impl FuzzFinding {
    /// About no single request.
    fn of_session(seed: u64, number: u64, why: String) -> Self {
        let asked = FuzzRequest { method: "", uri: String::new(), headers: Vec::new(), body: Vec::new() };
        Self { seed, number, request: asked, reason: why }
    }

    pub fn text(&self) -> String {
        let FuzzRequest { method, uri, headers, body } = &self.request;
        let body = String::from_utf8_lossy(body);
        let body: String = body.chars().take(4_000).collect();
        format!(
            "seed {} request {}: {}\n  {method} {uri}\n  {headers:?}\n  {body}",
            self.seed, self.number, self.reason
        )
    }
}

/// Runs this many requests; `slow` is the allowed processor time of one.
pub fn session(seed: u64, requests: u64, slow: Option<Duration>) -> Vec<FuzzFinding> {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().start_paused(true).build();
    match runtime {
        Ok(runtime) => runtime.block_on(Box::pin(run(seed, requests, slow))),
        Err(error) => vec![FuzzFinding::of_session(seed, requests, error.to_string())],
    }
}

/// Processor time of this thread: other processes are not counted.
fn thread_cpu_time() -> Duration {
    let text = std::fs::read_to_string("/proc/thread-self/schedstat").unwrap_or_default();
    let nanos = text.split(' ').next().and_then(|text| text.parse().ok());
    Duration::from_nanos(nanos.unwrap_or_default())
}

/// Some kinds of every cluster can be listed after any requests.
const MIN_LISTED_KINDS: usize = 40;

struct FuzzSession {
    sandbox: Sandbox,
    draw: SeededRandom,
    resources: Vec<ServedResource>,
}

async fn run(seed: u64, requests: u64, slow: Option<Duration>) -> Vec<FuzzFinding> {
    let options =
        SandboxOptions { seed, epoch: SystemTime::UNIX_EPOCH, history: 200, ..SandboxOptions::default() };
    let mut running = FuzzSession {
        sandbox: Sandbox::new(options),
        draw: SeededRandom::new(seed, 9),
        resources: Vec::new(),
    };
    let mut findings = Vec::new();
    for number in 0..requests {
        if number % 50 == 0 {
            running.resources = running.discover().await;
        }
        let live = running.find_object().await;
        let asked = random_request(&mut running.draw, &running.resources, live.as_ref());
        let before = thread_cpu_time();
        let why = running.send_request(&asked).await;
        let took = thread_cpu_time().saturating_sub(before);
        let why = why.or_else(|| slow.filter(|slow| took > *slow).map(|_| format!("took {took:?}")));
        if let Some(why) = why {
            findings.push(FuzzFinding { seed, number, request: asked, reason: why });
        }
        if running.draw.percent_chance(30) {
            let millis = running.draw.below(10_000);
            tokio::time::sleep(Duration::from_millis(millis)).await;
        }
    }
    if let Err(why) = running.check_cluster().await {
        findings.push(FuzzFinding::of_session(seed, requests, why));
    }
    findings
}

impl FuzzSession {
    /// The fault of the response.
    async fn send_request(&mut self, asked: &FuzzRequest) -> Option<String> {
        let mut request = Request::builder().method(asked.method).uri(asked.uri.as_str());
        for (name, value) in &asked.headers {
            request = request.header(*name, value);
        }
        // an HTTP client cannot send this request
        let request = request.body(Full::new(Bytes::from(asked.body.clone()))).ok()?;
        let mut service = self.sandbox.service();
        let Ok(answer) = AssertUnwindSafe(service.call(request)).catch_unwind().await else {
            return Some("panicked".to_owned());
        };
        let Ok(answer) = answer else { return Some("the connection broke".to_owned()) };
        let code = answer.status();
        let media = answer
            .headers()
            .get("content-type")
            .and_then(|value| value.to_str().ok())
            .unwrap_or("")
            .to_owned();
        let is_watch = asked.method == "GET" && asked.uri.contains("watch=");
        let Ok(body) = AssertUnwindSafe(read_body(answer)).catch_unwind().await else {
            return Some("panicked in the body".to_owned());
        };
        response_check::response_fault(code, &media, &body, is_watch, asked.method == "HEAD")
    }

    async fn get(&mut self, uri: &str) -> Option<(StatusCode, Value)> {
        let request = Request::builder().uri(uri).body(Full::new(Bytes::new())).ok()?;
        let answer = self.sandbox.service().call(request).await.ok()?;
        let code = answer.status();
        Some((code, serde_json::from_slice(&read_body(answer).await).ok()?))
    }

    async fn discover(&mut self) -> Vec<ServedResource> {
        let mut versions = vec!["v1".to_owned()];
        if let Some((_, groups)) = self.get("/apis").await {
            for group in groups["groups"].as_array().into_iter().flatten() {
                let all = group["versions"].as_array().into_iter().flatten();
                versions.extend(all.filter_map(|one| Some(one["groupVersion"].as_str()?.to_owned())));
            }
        }
        let mut served = Vec::new();
        for api_version in versions {
            let root = if api_version.contains('/') { "apis" } else { "api" };
            let Some((_, list)) = self.get(&format!("/{root}/{api_version}")).await else { continue };
            let text = |one: &Value, field: &str| one[field].as_str().unwrap_or("").to_owned();
            let all = list["resources"].as_array().into_iter().flatten();
            served.extend(all.filter(|one| !text(one, "name").contains('/')).map(|one| ServedResource {
                api_version: api_version.clone(),
                plural: text(one, "name"),
                kind: text(one, "kind"),
                namespaced: one["namespaced"] == true,
            }));
        }
        served
    }

    /// An existing object.
    async fn find_object(&mut self) -> Option<(ServedResource, Value)> {
        let kinds = [
            "Deployment",
            "ConfigMap",
            "Service",
            "StatefulSet",
            "Job",
            "Pod",
            "Secret",
            "CustomResourceDefinition",
        ];
        let kind = *self.draw.choose(&kinds);
        let custom = self.draw.percent_chance(20);
        let fits = |one: &&ServedResource| {
            if custom { one.api_version.starts_with("fuzz.") } else { one.kind == kind }
        };
        let served = self.resources.iter().rev().find(fits)?.clone();
        let root = if served.api_version.contains('/') { "apis" } else { "api" };
        let (_, list) = self.get(&format!("/{root}/{}/{}", served.api_version, served.plural)).await?;
        let items = list["items"].as_array().filter(|items| !items.is_empty())?;
        let mut object = self.draw.choose(items).clone();
        object["kind"] = served.kind.clone().into();
        object["apiVersion"] = served.api_version.clone().into();
        Some((served, object))
    }

    /// The controllers run, and every list can be read.
    async fn check_cluster(&mut self) -> Result<(), String> {
        let all = self.discover().await;
        if all.len() < MIN_LISTED_KINDS {
            return Err(format!("only {} kinds are served", all.len()));
        }
        for served in all {
            let root = if served.api_version.contains('/') { "apis" } else { "api" };
            let uri = format!("/{root}/{}/{}", served.api_version, served.plural);
            let (code, list) = self.get(&uri).await.ok_or_else(|| format!("{uri} gives no JSON"))?;
            let is_list = list["items"].is_array();
            if code == StatusCode::OK && !is_list {
                return Err(format!("{uri} is no list: {list}"));
            }
        }
        let object = Bytes::from(
            r#"{"metadata": {"name": "last"}, "spec": {"selector": {"matchLabels": {"last": "1"}},
            "template": {"metadata": {"labels": {"last": "1"}}, "spec": {"containers": [{"name": "c", "image": "c:1"}]}}}}"#,
        );
        let uri = "/apis/apps/v1/namespaces/kube-public/deployments";
        let request = Request::post(uri).header("content-type", "application/json").body(Full::new(object));
        let request = request.map_err(|error| error.to_string())?;
        let answer = self.sandbox.service().call(request).await.map_err(|error| error.to_string())?;
        if !answer.status().is_success() {
            return Err(format!("no deployment can be made any more: {}", answer.status()));
        }
        tokio::time::sleep(Duration::from_secs(300)).await;
        match self.get(&format!("{uri}/last")).await {
            Some((_, last)) if last["status"]["replicas"] == 1 => Ok(()),
            last => Err(format!("the controllers are dead: {last:?}")),
        }
    }
}

/// The body; of a watch its first second.
async fn read_body(answer: Response<sandbox::ResponseBody>) -> Bytes {
    let mut body = answer.into_body();
    let mut all = Vec::new();
    let until = tokio::time::Instant::now() + Duration::from_secs(1);
    while let Ok(Some(Ok(frame))) = tokio::time::timeout_at(until, body.frame()).await {
        if let Ok(data) = frame.into_data() {
            all.extend_from_slice(&data);
        }
    }
    all.into()
}

//! Sends requests to one API server and records the responses.

use std::time::Duration;

use futures::StreamExt;
use http::{Method, Request, Response};
use http_body_util::BodyExt;
use kube::Client;
use kube::client::Body;
use sandbox::Sandbox;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::normalization::{Normalizer, sort_fields};
use super::watch_stream::WatchReader;

/// Longer than any awaited change.
const WAIT_TIMEOUT: Duration = Duration::from_secs(60);
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// Headers that are part of a response.
const RECORDED_HEADERS: &[&str] = &["warning", "retry-after", "allow", "content-type"];

/// The user agent of requests without a field manager.
const USER_AGENT: &str = "tester/1.0 (contract)";

pub const MERGE_PATCH: &str = "application/merge-patch+json";
pub const JSON_PATCH: &str = "application/json-patch+json";
pub const STRATEGIC_PATCH: &str = "application/strategic-merge-patch+json";
pub const APPLY_PATCH: &str = "application/apply-patch+yaml";

/// A check's client for one server: its own namespace, and a transcript.
pub struct ContractProbe {
    client: Client,
    namespace: String,
    suffix: String,
    normalizer: Normalizer,
    lines: Vec<String>,
    is_quiet: bool,
    /// On the sandbox: for faults on purpose.
    pub sandbox: Option<Sandbox>,
}

#[derive(Debug)]
pub struct ProbeResponse {
    pub code: u16,
    /// The response as JSON, or its text as a JSON string.
    pub body: Value,
}

impl ProbeResponse {
    /// The text at a JSON pointer.
    pub fn text(&self, pointer: &str) -> String {
        self.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default().to_owned()
    }

    pub fn revision(&self) -> String {
        self.text("/metadata/resourceVersion")
    }
}

impl ContractProbe {
    /// `suffix` separates the names of this run from those of other runs on the same server.
    pub async fn new(client: Client, check: &str, suffix: &str) -> Self {
        let short: String = check.chars().filter(char::is_ascii_alphanumeric).take(50).collect();
        let namespace = format!("{short}-{suffix}");
        let mut probe = Self {
            client,
            namespace: namespace.clone(),
            suffix: suffix.to_owned(),
            normalizer: Normalizer::default(),
            lines: Vec::new(),
            is_quiet: true,
            sandbox: None,
        };
        probe.normalizer.alias(&namespace, "NS");
        let made = probe.post("/api/v1/namespaces", json!({"metadata": {"name": namespace}})).await;
        assert_eq!(made.code, 201, "{:?}", made.body);
        // bare pods are refused before
        probe.wait_until(&probe.namespaced_path("/api/v1", "serviceaccounts/default"), |_| true).await;
        probe.is_quiet = false;
        probe
    }

    /// Deletes the namespace, without waiting for it.
    pub async fn finish(mut self) -> Vec<String> {
        self.is_quiet = true;
        let path = format!("/api/v1/namespaces/{}", self.namespace);
        self.delete(&path, None).await;
        self.lines
    }

    pub fn client(&self) -> Client {
        self.client.clone()
    }

    pub fn namespace(&self) -> &str {
        &self.namespace
    }

    /// A path inside the check's namespace: `at("/apis/apps/v1", "deployments/x")`.
    pub fn namespaced_path(&self, group_version: &str, rest: &str) -> String {
        format!("{group_version}/namespaces/{}/{rest}", self.namespace)
    }

    /// A name for a cluster-wide object, shown as `name` in the transcript.
    pub fn unique_name(&mut self, name: &str) -> String {
        let unique = format!("{name}-{}", self.suffix);
        self.normalizer.alias(&unique, name);
        unique
    }

    /// A variable word, and how it is shown.
    pub fn alias(&mut self, actual: &str, shown: &str) {
        self.normalizer.alias(actual, shown);
    }

    /// A sentence in the transcript.
    pub fn record_note(&mut self, text: &str) {
        let text = self.normalizer.normalize_text(text);
        self.lines.push(format!("# {text}"));
    }

    /// A value in the transcript, with a label.
    pub fn record_value(&mut self, label: &str, value: &Value) {
        let leaves = self.normalizer.leaf_lines(value);
        let label = self.normalizer.normalize_text(label);
        self.lines.push(format!("= {label}"));
        self.lines.extend(leaves.into_iter().map(|leaf| format!("  {leaf}")));
    }

    /// Records nothing until [`start_recording`](Self::start_recording): for requests that only prepare a check.
    pub fn stop_recording(&mut self) -> &mut Self {
        self.is_quiet = true;
        self
    }

    pub fn start_recording(&mut self) -> &mut Self {
        self.is_quiet = false;
        self
    }

    pub async fn get(&mut self, path: &str) -> ProbeResponse {
        self.send(Method::GET, path, &[], "").await
    }

    /// Several reads, one after the other.
    pub async fn get_all(&mut self, paths: impl IntoIterator<Item = impl AsRef<str>>) {
        for path in paths {
            self.get(path.as_ref()).await;
        }
    }

    pub async fn post(&mut self, path: &str, object: Value) -> ProbeResponse {
        self.send(Method::POST, path, &[("content-type", "application/json")], &object.to_string()).await
    }

    pub async fn put(&mut self, path: &str, object: Value) -> ProbeResponse {
        self.send(Method::PUT, path, &[("content-type", "application/json")], &object.to_string()).await
    }

    /// A patch of one of the media types above.
    pub async fn patch(&mut self, media: &str, path: &str, patch: Value) -> ProbeResponse {
        self.send(Method::PATCH, path, &[("content-type", media)], &patch.to_string()).await
    }

    /// A server-side apply as `manager`; `path` may have a query.
    pub async fn apply(&mut self, manager: &str, path: &str, object: Value) -> ProbeResponse {
        let mark = if path.contains('?') { '&' } else { '?' };
        self.patch(APPLY_PATCH, &format!("{path}{mark}fieldManager={manager}"), object).await
    }

    /// A delete, with options in its body.
    pub async fn delete(&mut self, path: &str, options: Option<Value>) -> ProbeResponse {
        let body = options.map(|options| options.to_string()).unwrap_or_default();
        self.send(Method::DELETE, path, &[("content-type", "application/json")], &body).await
    }

    /// Any request.
    pub async fn send(
        &mut self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> ProbeResponse {
        let response = self.respond(method.clone(), path, headers, body).await;
        let (parts, stream) = response.into_parts();
        let whole = tokio::time::timeout(WAIT_TIMEOUT, stream.collect()).await;
        let bytes = whole.unwrap_or_else(|_| panic!("no end of {method} {path}")).unwrap().to_bytes();
        let text = String::from_utf8_lossy(&bytes);
        let body_value = serde_json::from_str(&text).unwrap_or_else(|_| json!(text));
        self.normalizer.record_revision(&body_value);
        if !self.is_quiet {
            self.record_request(&method, path, headers, body);
            self.lines.push(format!("< {}", parts.status.as_u16()));
            for name in RECORDED_HEADERS {
                for value in parts.headers.get_all(*name) {
                    let value = self.normalizer.normalize_text(value.to_str().unwrap_or_default());
                    if value == "application/json" {
                        continue;
                    }
                    self.lines.push(format!("  {name}: {value}"));
                }
            }
            let leaves = self.normalizer.leaf_lines(&body_value);
            self.lines.extend(leaves.into_iter().map(|leaf| format!("  {leaf}")));
        }
        // what is sent back later has one order of fields on all servers
        ProbeResponse { code: parts.status.as_u16(), body: sort_fields(&body_value) }
    }

    /// A watch; its events are written down as they are read.
    pub async fn watch(&mut self, path: &str) -> WatchReader {
        self.watch_with(path, &[]).await
    }

    pub async fn watch_with(&mut self, path: &str, headers: &[(&str, &str)]) -> WatchReader {
        let response = self.respond(Method::GET, path, headers, "").await;
        if !self.is_quiet {
            self.record_request(&Method::GET, path, headers, "");
            self.lines.push(format!("< {}", response.status().as_u16()));
        }
        let body = response.into_body().into_data_stream();
        WatchReader::new(body.map(|chunk| chunk.map_err(|error| error.to_string())).boxed())
    }

    /// Records an event of a watch.
    pub fn record_event(&mut self, event: &Value) {
        let kind = event["type"].as_str().unwrap_or_default();
        let mut object = event["object"].clone();
        if kind == "BOOKMARK" {
            object["metadata"]["resourceVersion"] = json!("");
        }
        let leaves = self.normalizer.leaf_lines(&object);
        self.lines.push(format!("< {kind}"));
        self.lines.extend(leaves.into_iter().map(|leaf| format!("  {leaf}")));
    }

    /// Reads a path, without recording, until it exists and is `done`; fails after a minute.
    pub async fn wait_until(&self, path: &str, done: impl Fn(&Value) -> bool) -> Value {
        self.wait_for_answer(path, |answer| answer.code == 200 && done(&answer.body)).await.body
    }

    pub async fn wait_until_gone(&self, path: &str) {
        self.wait_for_answer(path, |answer| answer.code == 404).await;
    }

    async fn wait_for_answer(&self, path: &str, done: impl Fn(&ProbeResponse) -> bool) -> ProbeResponse {
        let end = Instant::now() + WAIT_TIMEOUT;
        loop {
            let response = self.respond(Method::GET, path, &[], "").await;
            let code = response.status().as_u16();
            let bytes = response.into_body().collect().await.unwrap().to_bytes();
            let answer = ProbeResponse { code, body: serde_json::from_slice(&bytes).unwrap_or_default() };
            if done(&answer) {
                return answer;
            }
            assert!(Instant::now() < end, "waited in vain for {path}: {answer:?}");
            tokio::time::sleep(POLL_INTERVAL).await;
        }
    }

    async fn respond(
        &self,
        method: Method,
        path: &str,
        headers: &[(&str, &str)],
        body: &str,
    ) -> Response<Body> {
        let mut request = Request::builder().method(method).uri(path);
        if !headers.iter().any(|(name, _)| *name == "user-agent") {
            request = request.header("user-agent", USER_AGENT);
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let request = request.body(Body::from(body.as_bytes().to_vec())).unwrap();
        tokio::time::timeout(WAIT_TIMEOUT, self.client.send(request)).await.unwrap().unwrap()
    }

    fn record_request(&mut self, method: &Method, path: &str, headers: &[(&str, &str)], body: &str) {
        let path = self.normalizer.normalize_text(path);
        self.lines.push(format!("> {method} {path}"));
        for (name, value) in headers.iter().filter(|(_, value)| *value != "application/json") {
            self.lines.push(format!("  {name}: {value}"));
        }
        if !body.is_empty() {
            let body = self.normalizer.normalize_text(body);
            let shown = if body.len() > 1500 { format!("({} bytes)", body.len()) } else { body };
            self.lines.push(format!("  {shown}"));
        }
    }
}

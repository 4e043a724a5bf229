//! An API server that answers like a real one, except for requests that a test answers.

use std::net::Ipv4Addr;
use std::sync::Arc;
use std::time::Duration;

use parking_lot::Mutex;
use serde_json::{Value, json};
use tokio::io::{AsyncWriteExt as _, BufReader};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;

use super::http1::{Http1Request, read_request};

/// The longest answer, so that a failing test ends.
const MAX_ANSWER_TIME: Duration = Duration::from_secs(90);
/// The size of one piece of an endless answer.
pub const CHUNK: usize = 64 * 1024;

/// One request.
#[derive(Clone, Debug)]
pub struct ApiRequest {
    pub method: String,
    pub path: String,
    pub query: String,
    pub body: Vec<u8>,
}

impl ApiRequest {
    pub fn is_watch(&self) -> bool {
        self.query.split('&').any(|part| part == "watch=true")
    }

    /// Whether the watch begins with a list.
    pub fn is_streamed_list(&self) -> bool {
        self.is_watch() && self.query.contains("sendInitialEvents=true")
    }

    /// A list of a kind, of one or all namespaces.
    pub fn is_list(&self, plural: &str) -> bool {
        self.method == "GET" && !self.is_watch() && self.path.ends_with(&format!("/{plural}"))
    }

    pub fn is_watch_of(&self, plural: &str) -> bool {
        self.is_watch() && self.path.ends_with(&format!("/{plural}"))
    }
}

/// The pieces of a body by number; `None` ends it.
type BodyPieces = Box<dyn FnMut(usize) -> Option<Vec<u8>> + Send>;

pub struct ApiAnswer {
    status: u16,
    headers: Vec<String>,
    pieces: BodyPieces,
    pause: Duration,
}

impl ApiAnswer {
    pub fn json(value: &Value) -> Self {
        Self::whole(200, value.to_string().into_bytes())
    }

    pub fn whole(status: u16, body: Vec<u8>) -> Self {
        let mut body = Some(body);
        Self::pieces(status, move |_| body.take())
    }

    pub fn pieces(status: u16, pieces: impl FnMut(usize) -> Option<Vec<u8>> + Send + 'static) -> Self {
        Self { status, headers: Vec::new(), pieces: Box::new(pieces), pause: Duration::ZERO }
    }

    /// `first`, then `more` without end.
    pub fn endless(status: u16, first: &str, more: impl Into<Vec<u8>>) -> Self {
        let (first, more) = (first.as_bytes().to_vec(), more.into());
        Self::pieces(status, move |number| Some(if number == 0 { first.clone() } else { more.clone() }))
    }

    pub fn header(mut self, line: impl Into<String>) -> Self {
        self.headers.push(line.into());
        self
    }

    /// The pause between two pieces.
    pub fn pause(mut self, pause: Duration) -> Self {
        self.pause = pause;
        self
    }
}

type ApiResponder = dyn Fn(&ApiRequest) -> Option<ApiAnswer> + Send + Sync;

/// Stops when it is dropped.
pub struct ApiServer {
    pub address: String,
    pub requests: Arc<Mutex<Vec<ApiRequest>>>,
    _tasks: JoinSet<()>,
}

impl ApiServer {
    /// `says` answers requests; for `None` the server answers as one without objects.
    pub async fn start(says: impl Fn(&ApiRequest) -> Option<ApiAnswer> + Send + Sync + 'static) -> Self {
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).await.expect("a port");
        let address = format!("http://{}", listener.local_addr().expect("an address"));
        let says: Arc<ApiResponder> = Arc::new(says);
        let asked: Arc<Mutex<Vec<ApiRequest>>> = Arc::default();
        let log = Arc::clone(&asked);
        let mut tasks = JoinSet::new();
        tasks.spawn(async move {
            let mut connections = JoinSet::new();
            while let Ok((stream, _)) = listener.accept().await {
                let (says, log) = (Arc::clone(&says), Arc::clone(&log));
                connections.spawn(async move {
                    // The other side may disconnect at any time.
                    let _ = tokio::time::timeout(MAX_ANSWER_TIME, serve(stream, &*says, &log)).await;
                });
            }
        });
        Self { address, requests: asked, _tasks: tasks }
    }

    pub fn count(&self, is_meant: impl Fn(&ApiRequest) -> bool) -> usize {
        self.requests.lock().iter().filter(|asked| is_meant(asked)).count()
    }
}

async fn serve(stream: TcpStream, says: &ApiResponder, log: &Mutex<Vec<ApiRequest>>) -> std::io::Result<()> {
    stream.set_nodelay(true)?;
    let mut stream = BufReader::new(stream);
    while let Some(Http1Request { method, target, body, .. }) = read_request(&mut stream).await? {
        let (path, query) = target.split_once('?').unwrap_or((&target, ""));
        let asked = ApiRequest { method, path: path.to_owned(), query: query.to_owned(), body };
        log.lock().push(asked.clone());
        let answer = says(&asked).unwrap_or_else(|| default_answer(&asked));
        send(stream.get_mut(), answer).await?;
    }
    Ok(())
}

async fn send(stream: &mut TcpStream, mut answer: ApiAnswer) -> std::io::Result<()> {
    let mut head = format!("HTTP/1.1 {} X\r\ntransfer-encoding: chunked\r\n", answer.status);
    if !answer.headers.iter().any(|line| line.starts_with("content-type")) {
        head.push_str("content-type: application/json\r\n");
    }
    for line in &answer.headers {
        head.push_str(line);
        head.push_str("\r\n");
    }
    stream.write_all(format!("{head}\r\n").as_bytes()).await?;
    for number in 0.. {
        let Some(piece) = (answer.pieces)(number) else { break };
        if piece.is_empty() {
            continue;
        }
        stream.write_all(format!("{:x}\r\n", piece.len()).as_bytes()).await?;
        stream.write_all(&piece).await?;
        stream.write_all(b"\r\n").await?;
        if answer.pause > Duration::ZERO {
            stream.flush().await?;
            tokio::time::sleep(answer.pause).await;
        }
    }
    stream.write_all(b"0\r\n\r\n").await
}

/// The answers of an API server without objects; applied objects are not stored.
fn default_answer(asked: &ApiRequest) -> ApiAnswer {
    if asked.is_watch() {
        // Only bookmarks.
        let mut end = bookmark("1");
        end["object"]["metadata"]["annotations"] = json!({"k8s.io/initial-events-end": "true"});
        let end = format!("{end}\n");
        return ApiAnswer::pieces(200, move |number| (number < 60).then(|| end.clone().into_bytes()))
            .pause(Duration::from_secs(1));
    }
    match (asked.method.as_str(), asked.path.as_str()) {
        ("GET", "/version") => ApiAnswer::json(&version()),
        ("GET", "/api") => ApiAnswer::json(&json!({"kind": "APIVersions", "versions": ["v1"]})),
        ("GET", "/apis") => {
            ApiAnswer::json(&json!({"kind": "APIGroupList", "apiVersion": "v1", "groups": []}))
        }
        ("GET", "/api/v1") => ApiAnswer::json(&json!({
            "kind": "APIResourceList", "groupVersion": "v1", "resources": [
                resource("namespaces", "Namespace", false), resource("services", "Service", true),
                resource("configmaps", "ConfigMap", true), resource("secrets", "Secret", true),
            ],
        })),
        ("GET", path) if is_object(path) => ApiAnswer::whole(404, status(404, "NotFound", "not found")),
        ("GET", _) => ApiAnswer::json(&list(&[], "", "1")),
        ("PATCH", _) => {
            let mut object: Value = serde_json::from_slice(&asked.body).unwrap_or_default();
            object["metadata"]["uid"] = json!("00000000-0000-4000-8000-000000000001");
            object["metadata"]["resourceVersion"] = json!("2");
            ApiAnswer::json(&object)
        }
        _ => ApiAnswer::json(&json!({"kind": "Status", "apiVersion": "v1", "status": "Success"})),
    }
}

fn is_object(path: &str) -> bool {
    let parts: Vec<&str> = path.trim_start_matches('/').split('/').collect();
    match parts.as_slice() {
        ["api", "v1", "namespaces", _, rest @ ..] => rest.len() != 1,
        ["api", "v1", rest @ ..] => rest.len() > 1,
        _ => false,
    }
}

/// A kubeconfig for a server without TLS.
pub fn kubeconfig(server: &str) -> String {
    format!(
        "apiVersion: v1\nkind: Config\ncurrent-context: x\nclusters: [{{name: x, cluster: {{server: '{server}'}}}}]\n\
         users: [{{name: x, user: {{}}}}]\ncontexts: [{{name: x, context: {{cluster: x, user: x}}}}]\n"
    )
}

pub fn version() -> Value {
    json!({"major": "1", "minor": "36", "gitVersion": "v1.36.0", "gitCommit": "", "gitTreeState": "",
        "buildDate": "", "goVersion": "", "compiler": "", "platform": ""})
}

pub fn resource(plural: &str, kind: &str, namespaced: bool) -> Value {
    let verbs = ["get", "list", "watch", "create", "patch", "update", "delete"];
    json!({"name": plural, "singularName": "", "namespaced": namespaced, "kind": kind, "verbs": verbs})
}

pub fn list(items: &[Value], token: &str, version: &str) -> Value {
    let metadata = json!({"resourceVersion": version, "continue": token});
    json!({"kind": "List", "apiVersion": "v1", "metadata": metadata, "items": items})
}

pub fn bookmark(version: &str) -> Value {
    let metadata = json!({"resourceVersion": version, "creationTimestamp": null});
    json!({"type": "BOOKMARK", "object": {"kind": "ConfigMap", "apiVersion": "v1", "metadata": metadata}})
}

/// One of our objects, by its annotations.
pub fn config_map(name: &str, version: usize, annotation: &str) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": name, "namespace": "shop", "uid": format!("uid-{name}"), "resourceVersion": version.to_string(),
        "labels": {"tutti.dev/managed-by": "main"},
        "annotations": {
            "tutti.dev/app": "shop/hello", "tutti.dev/origin": format!("/ConfigMap/shop/{name}"), "note": annotation,
        },
    }})
}

pub fn status(code: u16, reason: &str, message: &str) -> Vec<u8> {
    let status = json!({"kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
        "message": message, "reason": reason, "code": code});
    status.to_string().into_bytes()
}

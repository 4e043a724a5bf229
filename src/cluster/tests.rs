use std::collections::BTreeMap;
use std::convert::Infallible;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use http::{Request, Response};
use http_body_util::Full;
use kube::client::Body;
use parking_lot::Mutex;
use serde_json::{Value, json};

use super::{Catalog, Client, ClusterLink, HomeCluster, KeyObjectKind};
use crate::model::{ClusterName, DataKeyRef, GroupVersionKind};

/// An API server without aggregated discovery. Each path has a list of responses; the last one repeats.
#[derive(Clone)]
struct Server(Arc<Mutex<Answers>>);

/// Code and body by path.
type Answers = BTreeMap<String, Vec<(u16, Value)>>;

impl Server {
    fn new() -> Self {
        let group = |name: &str, version: &str| {
            let version = json!({"groupVersion": format!("{name}/{version}"), "version": version});
            json!({"name": name, "versions": [version], "preferredVersion": version})
        };
        let groups = [group("apps", "v1"), group("metrics.example.com", "v1"), group("example.com", "v1")];
        let server = Self(Arc::default());
        server.answers("/version", &[(200, version("v1.24.3"))]);
        server.answers("/api", &[(200, json!({"versions": ["v1"], "serverAddressByClientCIDRs": []}))]);
        server.answers("/apis", &[(200, json!({"kind": "APIGroupList", "groups": groups}))]);
        server.answers("/api/v1", &[(200, resources("v1", &["Pod", "ConfigMap", "Secret"]))]);
        server.answers("/apis/apps/v1", &[(200, resources("apps/v1", &["Deployment", "ReplicaSet"]))]);
        server.answers("/apis/example.com/v1", &[(200, resources("example.com/v1", &["Pod"]))]);
        server.answers("/apis/metrics.example.com/v1", &[failure(503)]);
        server
    }

    fn answers(&self, path: &str, answers: &[(u16, Value)]) {
        self.0.lock().insert(path.to_owned(), answers.to_vec());
    }

    /// Once, before the others.
    fn answers_first(&self, path: &str, answer: (u16, Value)) {
        self.0.lock().entry(path.to_owned()).or_default().insert(0, answer);
    }

    fn answer(&self, path: &str) -> (u16, Value) {
        match self.0.lock().get_mut(path) {
            Some(answers) if answers.len() > 1 => answers.remove(0),
            Some(answers) => answers[0].clone(),
            None => failure(404),
        }
    }

    async fn client(&self) -> Client {
        let server = self.clone();
        let service = tower::service_fn(move |request: Request<Body>| {
            let (code, answer) = server.answer(request.uri().path());
            let body = Body::from(answer.to_string().into_bytes());
            let response = Response::builder().status(code).body(body).expect("a response");
            async move { Ok::<_, Infallible>(response) }
        });
        let link = ClusterLink::in_process(service);
        Client::connect(ClusterName::from("bj5"), &link).await.expect("a client")
    }
}

fn version(git: &str) -> Value {
    let rest = json!({"major": "1", "minor": "24", "gitVersion": git, "platform": "linux/amd64"});
    let mut info =
        ["gitCommit", "gitTreeState", "buildDate", "goVersion", "compiler"].map(|key| (key, json!("")));
    let mut all = rest.as_object().cloned().unwrap_or_default();
    all.extend(info.iter_mut().map(|(key, value)| ((*key).to_owned(), value.take())));
    Value::Object(all)
}

fn failure(code: u16) -> (u16, Value) {
    (code, json!({"kind": "Status", "status": "Failure", "message": "no", "reason": "No", "code": code}))
}

fn resources(version: &str, kinds: &[&str]) -> Value {
    let verbs = ["list", "watch", "patch", "delete", "get"];
    let resource = |kind: &&str| {
        let plural = format!("{}s", kind.to_lowercase());
        json!({"name": plural, "singularName": "", "namespaced": true, "kind": kind, "verbs": verbs})
    };
    let resources: Vec<Value> = kinds.iter().map(resource).collect();
    json!({"kind": "APIResourceList", "groupVersion": version, "resources": resources})
}

fn list(version: &str, kind: &str, count: usize) -> (u16, Value) {
    let items: Vec<Value> = (0..count).map(|n| json!({"metadata": {"name": format!("n{n}")}})).collect();
    (200, json!({"apiVersion": version, "kind": format!("{kind}List"), "metadata": {}, "items": items}))
}

async fn discovered(client: &Client) -> Catalog {
    client.discover().await.expect("a catalog")
}

#[tokio::test(start_paused = true)]
async fn unavailable_group_hides_no_other() {
    let server = Server::new();
    let client = server.client().await;
    let catalog = discovered(&client).await;
    let kinds: Vec<String> = catalog.preferred().map(ToString::to_string).collect();
    assert_eq!(kinds.len(), 6, "{kinds:?}");
    assert!(catalog.get(&GroupVersionKind::new("apps", "v1", "Deployment")).is_some_and(|it| it.manageable));

    // Without the core group discovery fails.
    server.answers("/api/v1", &[failure(503)]);
    client.discover().await.expect_err("no core group");
}

#[tokio::test(start_paused = true)]
async fn stale_api_still_counts_as_served() {
    let server = Server::new();
    let client = server.client().await;
    let metrics = "metrics.example.com/v1/Metric";
    let down = discovered(&client).await;
    let unknown = down.capabilities(None);
    assert!(unknown.has("metrics.example.com/v1") && !unknown.has(metrics));
    assert!(unknown.has("apps/v1/Deployment") && unknown.version.git_version == "v1.24.3");
    assert_eq!(down.unknown_api_versions(&unknown).collect::<Vec<_>>(), ["metrics.example.com/v1"]);

    server.answers(
        "/apis/metrics.example.com/v1",
        &[(200, resources("metrics.example.com/v1", &["Metric"])), failure(503)],
    );
    let up = discovered(&client).await;
    let known = up.capabilities(Some(&unknown));
    assert!(known.has(metrics) && up.unknown_api_versions(&known).next().is_none());
    let down = discovered(&client).await;
    assert_eq!(down.capabilities(Some(&known)), known);
    assert_eq!(down.unknown_api_versions(&known).next(), None);

    // A kind that disappears while its server answers is gone.
    server.answers("/apis/metrics.example.com/v1", &[(200, resources("metrics.example.com/v1", &[]))]);
    assert!(!discovered(&client).await.capabilities(Some(&known)).has(metrics));
}

#[tokio::test(start_paused = true)]
async fn incomplete_aggregated_discovery_is_ignored() {
    let server = Server::new();
    let client = server.client().await;
    let expected = discovered(&client).await;
    assert!(
        expected.serves_definition("v1.")
            && expected.serves_definition("v1.apps")
            && expected.serves_definition("deployments.apps")
    );
    assert!(!expected.serves_definition("v2.") && !expected.serves_definition("v2.apps"));

    // The first request reaches an old server, the second a new one.
    let group = |items: Value| json!({"kind": "APIGroupDiscoveryList", "metadata": {}, "items": items});
    let versions = json!([{"version": "v1", "resources": [], "freshness": "Current"}]);
    let core = group(json!([{"metadata": {"name": ""}, "versions": versions}]));
    server.answers_first("/apis", (200, group(json!([]))));
    server.answers_first("/api", (200, core));
    assert_eq!(discovered(&client).await, expected);
}

#[tokio::test(start_paused = true)]
async fn unlistable_kind_hides_no_other() {
    let server = Server::new();
    let client = server.client().await;
    let catalog = discovered(&client).await;
    server.answers("/api/v1/configmaps", &[failure(429), failure(503), list("v1", "ConfigMap", 1)]);
    server.answers("/api/v1/secrets", &[failure(403)]);
    server.answers("/apis/apps/v1/deployments", &[failure(500)]);
    server.answers("/api/v1/pods", &[list("v1", "Pod", 0)]);
    server.answers("/apis/apps/v1/replicasets", &[list("apps/v1", "ReplicaSet", 0)]);
    // With the name of a kind that has no object.
    server.answers("/apis/example.com/v1/pods", &[list("example.com/v1", "Pod", 1)]);

    let mut found = client.kinds_in_use(&catalog, "main").await.expect("an inventory");
    found.kinds.sort();
    found.unlistable.sort_by_key(|(kind, _)| kind.clone());
    assert_eq!(
        found.kinds,
        [GroupVersionKind::new("", "v1", "ConfigMap"), GroupVersionKind::new("example.com", "v1", "Pod")]
    );
    let hidden: Vec<GroupVersionKind> = found.unlistable.into_iter().map(|(kind, _)| kind).collect();
    assert_eq!(
        hidden,
        [GroupVersionKind::new("", "v1", "Secret"), GroupVersionKind::new("apps", "v1", "Deployment")]
    );
}

/// Copied labels do not make a kind used: all pages are read for an object that is no copy.
#[tokio::test(start_paused = true)]
async fn our_endpoints_are_distinguished_from_copies() {
    let server = Server::new();
    server.answers("/api/v1", &[(200, resources("v1", &["Endpoints"]))]);
    for group in ["apps", "example.com"] {
        server.answers(&format!("/apis/{group}/v1"), &[(200, resources(&format!("{group}/v1"), &[]))]);
    }
    let client = server.client().await;
    let catalog = discovered(&client).await;
    let page = |origin: &str, token: &str| {
        let (code, mut page) = list("v1", "Endpoints", 1);
        page["items"][0]["metadata"]["namespace"] = json!("shop");
        page["items"][0]["metadata"]["annotations"]["tutti.dev/origin"] = json!(origin);
        page["metadata"]["continue"] = json!(token);
        (code, page)
    };
    let (copy, own) = ("/Service/shop/n0", "/Endpoints/shop/n0");
    let cases = [
        (vec![page(copy, "")], 0),
        (vec![page(copy, "more"), page(copy, "")], 0),
        (vec![page(copy, "more"), page(own, "")], 1),
        (vec![page(own, "more"), failure(410)], 1),
        // An incomplete list may contain anything.
        (vec![page(copy, "more"), failure(410)], 1),
    ];
    for (pages, expected) in cases {
        server.answers("/api/v1/endpointss", &pages);
        let found = client.kinds_in_use(&catalog, "main").await.expect("an inventory");
        assert_eq!((found.kinds.len(), found.unlistable.len()), (expected, 0), "{pages:?}");
    }
    server.answers("/api/v1/endpointss", &[page(copy, "more"), failure(403)]);
    let found = client.kinds_in_use(&catalog, "main").await.expect("an inventory");
    assert_eq!((found.kinds.len(), found.unlistable.len()), (0, 1));
}

/// A kubeconfig file with one user.
fn write_kubeconfig(path: &std::path::Path, user: &str) {
    let text = format!(
        "current-context: one\ncontexts: [{{name: one, context: {{cluster: one, user: admin}}}}]\n\
         clusters: [{{name: one, cluster: {{server: 'https://127.0.0.1:1'}}}}]\nusers: [{{name: admin, user: {user}}}]\n"
    );
    std::fs::write(path, text).expect("a file");
}

#[tokio::test]
async fn renewed_credential_has_its_new_end() {
    use base64::Engine as _;
    let folder = tempfile::tempdir().expect("a folder");
    let (config, token) = (folder.path().join("config"), folder.path().join("token"));
    let issue = |expires: i64| {
        let claims =
            base64::engine::general_purpose::URL_SAFE_NO_PAD.encode(format!(r#"{{"exp": {expires}}}"#));
        std::fs::write(&token, format!("e30.{claims}.c2lnbmF0dXJl\n")).expect("a file");
    };
    let link = ClusterLink::Kubeconfig { path: config.clone(), context: None };
    write_kubeconfig(&config, &format!("{{tokenFile: {}}}", token.display()));
    issue(1_900_000_000);
    let client = Client::connect(ClusterName::from("one"), &link).await.expect("a connection");
    let ends = |client: &Client| client.credential().expires.map(|it| it.as_second());
    assert_eq!(ends(&client), Some(1_900_000_000));
    issue(1_900_003_600);
    assert!(
        !client.is_outdated(&link).await.expect("it can be read"),
        "whoever renews a token changes no connection"
    );
    assert_eq!(ends(&client), Some(1_900_000_000), "that one is shown still");
    tokio::time::pause();
    tokio::time::advance(Duration::from_secs(60)).await;
    tokio::time::resume();
    client.renewed_credential().await;
    assert_eq!(ends(&client.clone()), Some(1_900_003_600));

    let exec = |script: &str| {
        let exec =
            format!("{{apiVersion: client.authentication.k8s.io/v1, command: sh, args: [-c, {script:?}]}}");
        write_kubeconfig(&config, &format!("{{exec: {exec}}}"));
    };
    let status = r#"{"expirationTimestamp": "2030-03-17T17:46:40Z", "token": "hunter2"}"#;
    exec(&format!("echo '{{\"status\": {status}, \"kind\": \"ExecCredential\"}}'"));
    assert!(
        client.is_outdated(&link).await.expect("it can be read"),
        "another way to log in is another connection"
    );
    let client = Client::connect(ClusterName::from("one"), &link).await.expect("a connection");
    assert_eq!(ends(&client), Some(1_900_000_000));
    assert!(!client.is_outdated(&link).await.expect("it can be read"));
    exec("echo hunter2; exit 1");
    let error = Client::connect(ClusterName::from("one"), &link).await.expect_err("it fails").to_string();
    assert!(error.ends_with("the plug-in sh failed: exit status: 1"), "{error}");
    assert_eq!(ends(&client), Some(1_900_000_000), "what was brought is good until then");
}

#[tokio::test]
async fn answers_of_the_home_cluster_have_bounds_too() {
    let server = tower::service_fn(|_: Request<Body>| async {
        let body = Full::new(Bytes::from(vec![b' '; 5 * 1024 * 1024]));
        Ok::<_, Infallible>(Response::new(body))
    });
    let home = HomeCluster::at(ClusterLink::in_process(server));
    let at = DataKeyRef { namespace: "default".into(), name: "one".into(), key: "key".into() };
    let error = home.read(KeyObjectKind::Secret, &at).await.expect_err("it is too long").to_string();
    assert!(
        error.ends_with("its answer to GET /api/v1/namespaces/default/secrets/one is longer than 4 MiB"),
        "{error}"
    );
}

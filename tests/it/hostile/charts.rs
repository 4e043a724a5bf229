//! Chart servers that do not answer, and schemas without bounds.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use serde_json::{Value, json};
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpListener;

use super::fixture::HostileFixture;
use crate::charts::support::helm_programs;

/// An index of charts that arrives byte by byte and never ends.
async fn dripping_server() -> (String, Arc<AtomicBool>) {
    let listener = TcpListener::bind("127.0.0.1:0").await.expect("a port");
    let address = listener.local_addr().expect("an address").to_string();
    let was_asked = Arc::new(AtomicBool::new(false));
    let asked = Arc::clone(&was_asked);
    tokio::spawn(async move {
        while let Ok((mut connection, _)) = listener.accept().await {
            asked.store(true, Ordering::Relaxed);
            tokio::spawn(async move {
                let _ = connection.write_all(b"HTTP/1.1 200 OK\r\n\r\n").await;
                while connection.write_all(b"a").await.is_ok() {
                    tokio::time::sleep(Duration::from_secs(1)).await;
                }
            });
        }
    });
    (address, was_asked)
}

/// With a chart of the repository `web` in tutti.yaml.
const APP: &str = "\
apiVersion: tutti.dev/v1alpha1
kind: AppSet
metadata: {name: slow, namespace: shop}
spec:
  podSpec: {deployType: Helm, chart: {chartUrl: {url: web/web, chartVersion: 1.0.0}}}
  clusterTopology: {clusters: [{name: good, podSets: [{name: slow}]}]}
";

#[tokio::test(flavor = "multi_thread")]
async fn a_dripping_chart_server_delays_its_app_only() {
    let (host, was_asked) = dripping_server().await;
    let mut arena = HostileFixture::start(&[]).await;
    let instance = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\n\
         spec: {{charts: {{repositories: [{{name: web, url: 'http://{host}/charts'}}]}}}}\n"
    );
    let changes = [("tutti.yaml", Some(instance.as_str())), ("apps/slow/app.yaml", Some(APP))];
    arena.repository.commit("Name a chart", &changes);
    arena.until_logged(&format!("http://{host}/charts is being fetched")).await;
    for _ in 0..3 {
        arena.check_healthy_app().await;
    }
    assert!(was_asked.load(Ordering::Relaxed));
}

/// A chart in the repository with a schema and values, and its app.
fn with_schema(name: &str, schema: &Value, values: &Value) -> [(String, String); 4] {
    let app = APP.replace("slow", name).replace("web/web", &format!("charts/{name}"));
    let file = |path: &str| format!("charts/{name}/{path}");
    [
        (format!("apps/{name}/app.yaml"), app),
        (file("Chart.yaml"), format!("apiVersion: v2\nname: {name}\nversion: 1.0.0\n")),
        (file("values.yaml"), values.to_string()),
        (file("values.schema.json"), schema.to_string()),
    ]
}

/// `$id` changes the base of a reference: each step seems harmless, but doubles the work, 30 times.
fn doubling_schema() -> Value {
    let part = |number: usize| {
        let next = json!({"$ref": format!("#/$defs/y{number}")});
        (format!("y{}", number - 1), json!({"allOf": [next, next]}))
    };
    let mut doubling: serde_json::Map<String, Value> = (1..=30).map(part).collect();
    doubling.insert("y30".to_owned(), json!({"type": "object"}));
    let mut parts: serde_json::Map<String, Value> =
        (0..=30).map(|it| (format!("y{it}"), json!({}))).collect();
    parts.insert("x".to_owned(), json!({"$id": "http://b/", "$defs": doubling, "$ref": "#/$defs/y0"}));
    json!({"$schema": "https://json-schema.org/draft/2020-12/schema", "$defs": parts, "$ref": "#/$defs/x"})
}

#[tokio::test(flavor = "multi_thread")]
async fn schemas_without_end_end_their_apps_alone() {
    let Some(helm) = helm_programs() else { return };
    const LENGTH: usize = 20_000;
    let items = |items: Value| json!({"properties": {"a": {"items": items}}});
    let names: Vec<String> = (0..LENGTH).map(|number| format!("x{number}")).collect();
    let objects: Vec<Value> = (0..LENGTH).map(|number| json!({"x": number})).collect();
    let values = json!({"a": vec![json!({"y": 1}); LENGTH]});
    let rows = [
        ("requires", items(json!({"required": names})), "takes more than 256 MiB"),
        ("compares", items(json!({"enum": objects})), "takes longer than 2 s"),
        ("doubles", doubling_schema(), "takes longer than 2 s"),
    ];
    let files: Vec<_> =
        rows.iter().flat_map(|(name, schema, _)| with_schema(name, schema, &values)).collect();
    let changes: Vec<_> = files.iter().map(|(path, text)| (path.as_str(), Some(text.as_str()))).collect();
    let mut arena = HostileFixture::new().await;
    arena.start_process(&[], |command| {
        command.env("TUTTI_HELM_RENDER", &helm.helm_render);
    });
    arena.check_healthy_app().await;
    arena.repository.commit("Add charts with hostile schemas", &changes);
    for (name, _, _) in &rows {
        arena.until_logged(&format!("charts/{name}/values.schema.json")).await;
    }
    arena.check_healthy_app().await;
    let log = arena.log();
    for (name, _, words) in rows {
        // On a busy machine the time limit comes before the memory limit.
        let is_told = |line: &str| {
            line.contains(&format!("charts/{name}"))
                && [words, "takes longer than 2 s"].iter().any(|words| line.contains(words))
        };
        assert!(log.lines().any(is_told), "{name}: {words}:\n{log}");
    }
}

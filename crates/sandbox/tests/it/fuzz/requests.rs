//! Random requests, most of them almost valid.

use serde_json::{Value, json};

use super::{json, manifests, schemas};
use crate::draw::SeededRandom;

/// A kind in the server's discovery.
#[derive(Debug, Clone)]
pub struct ServedResource {
    pub api_version: String,
    pub plural: String,
    pub kind: String,
    pub namespaced: bool,
}

#[derive(Debug, Clone)]
pub struct FuzzRequest {
    pub method: &'static str,
    pub uri: String,
    pub headers: Vec<(&'static str, String)>,
    pub body: Vec<u8>,
}

const NAMES: &[&str] =
    &["a", "b", "c", "default", "kubernetes", "sandbox-node-1", "A!", "%2e%2e", "x%00y", "é"];
const NAMESPACES: &[&str] =
    &["default", "default", "default", "default", "a", "kube-system", "nowhere", "%20"];
const SUBRESOURCES: &[&str] =
    &["status", "scale", "log", "exec", "eviction", "binding", "finalize", "odd", "resize"];
const ACCEPT_HEADERS: &[&str] = &[
    "application/json",
    "*/*",
    "application/json;as=Table;v=v1;g=meta.k8s.io,application/json",
    "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io",
    "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
    "application/vnd.kubernetes.protobuf",
    "application/yaml",
    "text/html",
    ";;;",
    "application/json;q=x",
    "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList",
];
const PATCH_TYPES: &[&str] = &[
    "application/merge-patch+json",
    "application/json-patch+json",
    "application/strategic-merge-patch+json",
    "application/apply-patch+yaml",
    "application/apply-patch+cbor",
    "text/plain",
];
const QUERY_PARAMETERS: &[(&str, &[&str])] = &[
    (
        "labelSelector",
        &["app=a", "app in (a,b)", "!app", "app notin (", "a==b,c!=d", "x>1", "()", "app=%zz", "é=1"],
    ),
    (
        "fieldSelector",
        &["metadata.name=a", "status.phase!=Running", "spec.nodeName=", "odd=1", "=", "metadata.name"],
    ),
    ("limit", &["1", "2", "0", "-1", "99999999999999999999", "x"]),
    (
        "continue",
        &["", "eyJ2Ijoi", "AAAA", "%%%", "eyJ2IjoibWV0YS5rOHMuaW8vdjEiLCJydiI6LTEsInN0YXJ0IjoieCJ9"],
    ),
    ("resourceVersion", &["0", "1", "5000", "999999999", "-1", "18446744073709551615", "x", ""]),
    ("resourceVersionMatch", &["Exact", "NotOlderThan", "odd", ""]),
    ("watch", &["true", "1", "false", "x"]),
    ("timeoutSeconds", &["1", "0", "-1", "18446744073709551615", "x"]),
    ("sendInitialEvents", &["true", "false", "x"]),
    ("allowWatchBookmarks", &["true", "x"]),
    ("dryRun", &["All", "all", "", "None"]),
    ("fieldManager", &["m", "", "é", "a/b"]),
    ("fieldValidation", &["Strict", "Warn", "Ignore", "odd"]),
    ("force", &["true", "false", "x"]),
    ("propagationPolicy", &["Foreground", "Orphan", "Background", "odd"]),
    ("gracePeriodSeconds", &["0", "1", "-1", "9223372036854775807", "18446744073709551615", "x"]),
    ("pretty", &["true"]),
    ("container", &["main", "odd"]),
    ("odd", &["%ff%fe", "+&=", ""]),
];

fn random_path(draw: &mut SeededRandom, served: &ServedResource, with_name: bool) -> String {
    let root = if served.api_version.contains('/') { "apis" } else { "api" };
    let mut path = format!("/{root}/{}", served.api_version);
    if served.namespaced && !draw.percent_chance(3) {
        path.push_str(&format!("/namespaces/{}", draw.choose(NAMESPACES)));
    }
    path.push_str(&format!("/{}", served.plural));
    if with_name {
        let name = if draw.percent_chance(80) { draw.choose(&NAMES[..3]) } else { draw.choose(NAMES) };
        path.push_str(&format!("/{name}"));
        if draw.percent_chance(15) {
            let known = draw.percent_chance(70);
            path.push_str(&format!(
                "/{}",
                draw.choose(if known { &SUBRESOURCES[..2] } else { SUBRESOURCES })
            ));
        }
    }
    match draw.below(60) {
        0 => path.push('/'),
        1 => path = path.replace("/v1", "//v1"),
        2 => path.push_str("/%2F/.."),
        3 => (*draw.choose(&[
            "/version",
            "/openapi/v3",
            "/api",
            "/apis",
            "/",
            "/healthz",
            "/apis/apps",
            "/openapi/v3/apis/apps/v1",
        ]))
        .clone_into(&mut path),
        _ => {}
    }
    path
}

fn random_query(draw: &mut SeededRandom) -> String {
    if draw.percent_chance(40) {
        return String::new();
    }
    let mut parts = Vec::new();
    for _ in 0..=draw.below(3) {
        let (name, values) = draw.choose(QUERY_PARAMETERS);
        let encoded = draw.choose(values).replace(' ', "%20").replace('é', "%C3%A9").replace('>', "%3E");
        parts.push(format!("{name}={encoded}"));
    }
    format!("?{}", parts.join("&"))
}

/// An object for the path, mostly valid.
fn random_object(draw: &mut SeededRandom, served: &ServedResource) -> Value {
    let name = (*draw.choose(&NAMES[..3])).to_owned();
    let mut object = match served.kind.as_str() {
        "CustomResourceDefinition" => {
            let number = draw.below(3);
            schemas::random_definition(draw, number)
        }
        kind => manifests::valid_object(&served.api_version, kind, &name),
    };
    if served.api_version.starts_with("fuzz.") {
        object["spec"] = json::random_value(draw, 4);
        object["status"] = json::random_value(draw, 3);
    }
    if draw.percent_chance(5) {
        object["metadata"]["finalizers"] = json!(["a.example.com/hold"]);
    }
    if draw.percent_chance(5) {
        object["metadata"]["annotations"]["sim.tutti.dev/fail"] =
            json!(draw.choose(&["oom", "evict", "odd", "readiness"]));
    }
    object
}

fn random_json_patch(draw: &mut SeededRandom, object: &Value) -> Value {
    let paths = [
        "/metadata/labels/app",
        "/spec/replicas",
        "/spec/template/spec/containers/0/image",
        "/metadata/finalizers",
        "/spec/template/spec/containers/-",
        "/data/a",
        "",
        "/",
        "/a~1b/~0",
        "/spec/list/0",
        "/metadata/name",
        "/spec",
        "/metadata/annotations",
        "/spec/template/spec/containers/99999999999999999999",
        "no",
        "/metadata/managedFields",
    ];
    (0..=draw.below(3))
        .map(|_| {
            let value = match draw.below(3) {
                0 => object.pointer(draw.choose::<&str>(&paths)).cloned().unwrap_or_default(),
                _ => json::random_value(draw, 2),
            };
            json!({"op": draw.choose(&["add", "remove", "replace", "test", "copy", "move", "odd"]),
                "path": draw.choose(&paths), "from": draw.choose(&paths), "value": value})
        })
        .collect()
}

/// Corrupts the text of a value.
fn corrupt_text(draw: &mut SeededRandom, body: Vec<u8>) -> Vec<u8> {
    let mut body = body;
    match draw.below(8) {
        0 => body.truncate(draw.below(1 + body.len() as u64) as usize),
        1 => {
            for _ in 0..=draw.below(5) {
                if let Some(at) = body.len().checked_sub(1).map(|last| draw.below(last as u64 + 1) as usize) {
                    body[at] = draw.next() as u8;
                }
            }
        }
        2 => body = json::deep_json(draw).into_bytes(),
        3 => body = (0..draw.below(60)).map(|_| draw.next() as u8).collect(),
        4 => body = "a: &a [*a]\nb: !!binary x\n? [c]\n: d\n".to_owned().into_bytes(),
        5 => body.splice(0..0, *b"\xef\xbb\xbf").for_each(drop),
        6 => body = json::random_value(draw, 3).to_string().into_bytes(),
        _ => body.extend_from_slice(b" {}"),
    }
    body
}

/// The next request. `live` is an object that the server may have, to write back.
pub fn random_request(
    draw: &mut SeededRandom,
    served: &[ServedResource],
    live: Option<&(ServedResource, Value)>,
) -> FuzzRequest {
    let weighty =
        ["Deployment", "Pod", "Service", "ConfigMap", "CustomResourceDefinition", "StatefulSet", "Job"];
    let mut chosen = draw.choose(served).clone();
    if draw.percent_chance(50) {
        let kind = *draw.choose(&weighty);
        if let Some(found) = served.iter().find(|one| one.kind == kind) {
            chosen = found.clone();
        }
    } else if draw.percent_chance(40)
        && let Some(found) = served.iter().rev().find(|one| one.api_version.starts_with("fuzz."))
    {
        chosen = found.clone();
    }
    let method = *draw.choose(&[
        "GET", "GET", "POST", "POST", "POST", "PUT", "PATCH", "PATCH", "PATCH", "DELETE", "HEAD", "OPTIONS",
    ]);
    let mut object = random_object(draw, &chosen);
    let mut named = method != "POST" && !(method != "PATCH" && draw.percent_chance(15));
    let mut uri = random_path(draw, &chosen, named);
    if let Some((kind, live)) = live.filter(|_| ["PUT", "PATCH"].contains(&method) && draw.percent_chance(60))
    {
        object = live.clone();
        let root = if kind.api_version.contains('/') { "apis" } else { "api" };
        let text = |field: &str| live["metadata"][field].as_str().unwrap_or("").to_owned();
        let home = if kind.namespaced { format!("/namespaces/{}", text("namespace")) } else { String::new() };
        uri = format!("/{root}/{}{home}/{}/{}", kind.api_version, kind.plural, text("name"));
        named = true;
        if draw.percent_chance(20) {
            uri.push_str(draw.choose::<&str>(&["/status", "/scale"]));
        }
    }
    if draw.percent_chance(40) {
        (0..=draw.below(3)).for_each(|_| json::mutate_value(draw, &mut object));
    }
    let mut headers = vec![("accept", (*draw.choose(ACCEPT_HEADERS)).to_owned())];
    if draw.percent_chance(70) {
        headers[0].1 = "application/json".to_owned();
    }
    let mut media = "application/json";
    if method == "PATCH" {
        let known = draw.percent_chance(90);
        media = *draw.choose(if known { &PATCH_TYPES[..4] } else { PATCH_TYPES });
    }
    let mut body = match (method, media) {
        ("GET" | "HEAD" | "OPTIONS", _) => Vec::new(),
        ("DELETE", _) if draw.percent_chance(60) => Vec::new(),
        ("DELETE", _) => json!({"kind": "DeleteOptions", "apiVersion": "v1", "propagationPolicy": draw.choose(&["Foreground", "Orphan", "odd"]),
            "gracePeriodSeconds": json::random_value(draw, 0), "preconditions": json::random_value(draw, 1)})
        .to_string()
        .into_bytes(),
        (_, "application/json-patch+json") => random_json_patch(draw, &object).to_string().into_bytes(),
        (_, "application/apply-patch+yaml") => {
            if draw.percent_chance(80) && let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) {
                ["managedFields", "resourceVersion", "uid", "creationTimestamp"].iter().for_each(|field| {
                    metadata.shift_remove(*field);
                });
            }
            if draw.percent_chance(30) { serde_yaml::to_string(&object).unwrap_or_default().into_bytes() } else { object.to_string().into_bytes() }
        }
        _ => object.to_string().into_bytes(),
    };
    if !body.is_empty() && draw.percent_chance(10) {
        body = corrupt_text(draw, body);
    }
    if !body.is_empty() || draw.percent_chance(10) {
        headers.push((
            "content-type",
            if draw.percent_chance(95) { media.to_owned() } else { json::random_text(draw) },
        ));
    }
    uri.push_str(&random_query(draw));
    if media == "application/apply-patch+yaml" && named && draw.percent_chance(90) {
        uri.push_str(if uri.contains('?') { "&fieldManager=m" } else { "?fieldManager=m" });
    }
    FuzzRequest { method, uri, headers, body }
}

//! Requests that no client should send.

use http::Method;
use serde_json::json;

use super::probe::{APPLY_PATCH, ContractProbe, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

const CORE: &str = "/api/v1";
const JSON: (&str, &str) = ("content-type", "application/json");

fn deep_body(levels: usize) -> String {
    format!("{}1{}", "[".repeat(levels), "]".repeat(levels))
}

pub async fn broken_bodies_are_bad_requests(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    for body in [
        "{",
        "{\"metadata\":{\"name\":\"one\"",
        "",
        " ",
        "null",
        "[]",
        "\"text\"",
        "12",
        "true",
        "{}{}",
        "{\"metadata\":{\"name\":\"one\"}} trailing",
        "{\"metadata\":",
        "{'metadata':{}}",
        "{\"metadata\":{\"name\":\"one\",}}",
        "not json",
        "\u{feff}{}",
        "{\"metadata\":{\"name\":\"\\ud800\"}}",
    ] {
        probe.send(Method::POST, &path, &[JSON], body).await;
    }
}

pub async fn broken_bodies_of_other_verbs(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let one = format!("{path}/one");
    probe.stop_recording().post(&path, json!({"metadata": {"name": "one"}})).await;
    probe.start_recording();
    for body in ["{", "", "[]", "null", "not json", "\"text\""] {
        probe.send(Method::PUT, &one, &[JSON], body).await;
        for media in [MERGE_PATCH, JSON_PATCH, STRATEGIC_PATCH] {
            probe.send(Method::PATCH, &one, &[("content-type", media)], body).await;
        }
        probe
            .send(Method::PATCH, &format!("{one}?fieldManager=a"), &[("content-type", APPLY_PATCH)], body)
            .await;
    }
    for body in ["{", "[]", "\"text\"", "not json"] {
        probe.send(Method::DELETE, &one, &[JSON], body).await;
    }
}

pub async fn bodies_of_other_kinds_are_bad_requests(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    for (version, kind) in [
        ("v1", "Secret"),
        ("v2", "ConfigMap"),
        ("apps/v1", "Deployment"),
        ("v1", "Nope"),
        ("nope.example/v1", "Nope"),
        ("a/b/c", "ConfigMap"),
        ("v1", ""),
        ("", "ConfigMap"),
        ("", "Secret"),
        ("v1", "configmap"),
        ("v1", "ConfigMapList"),
        ("v1", "Status"),
        ("v1", "DeleteOptions"),
    ] {
        let body = json!({"apiVersion": version, "kind": kind, "metadata": {"name": "one"}});
        probe.post(&path, body).await;
        probe.stop_recording().delete(&format!("{path}/one"), None).await;
        probe.start_recording();
    }
    probe.stop_recording().post(&path, json!({"metadata": {"name": "two"}})).await;
    probe.start_recording();
    let two = format!("{path}/two");
    let secret = json!({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "two"}});
    probe.put(&two, secret.clone()).await;
    probe.patch(MERGE_PATCH, &two, secret).await;
    probe.patch(MERGE_PATCH, &two, json!({"apiVersion": "v2"})).await;
    probe.send(Method::POST, &path, &[JSON], r#"{"kind": 1, "metadata": {"name": "x"}}"#).await;
    probe.send(Method::POST, &path, &[JSON], r#"{"apiVersion": {}, "metadata": {"name": "x"}}"#).await;
}

pub async fn deep_bodies_are_refused(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    for levels in [9000, 10_001] {
        let body = format!("{{\"metadata\":{{\"name\":\"one\"}},\"data\":{}}}", deep_body(levels));
        let answer = probe.stop_recording().send(Method::POST, &path, &[JSON], &body).await;
        probe
            .start_recording()
            .record_value(&format!("{levels} levels"), &json!([answer.code, answer.body["reason"]]));
    }
    probe.stop_recording().post(&path, json!({"metadata": {"name": "one"}})).await;
    for media in [MERGE_PATCH, JSON_PATCH, STRATEGIC_PATCH] {
        let body = format!("{{\"data\":{{\"a\":{}}}}}", deep_body(10_001));
        let headers = [("content-type", media)];
        let answer = probe.send(Method::PATCH, &format!("{path}/one"), &headers, &body).await;
        probe.start_recording().record_value(media, &json!([answer.code, answer.body["reason"]]));
        probe.stop_recording();
    }
    probe.start_recording();
}

pub async fn bodies_have_a_largest_size(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let filled = |size: usize| {
        let frame = r#"{"metadata":{"name":"one"},"data":{"x":""}}"#;
        frame.replace("\"\"", &format!("\"{}\"", "x".repeat(size - frame.len())))
    };
    let limit = 3 * 1024 * 1024;
    probe.send(Method::POST, &path, &[JSON], &filled(limit + 1)).await;
    let answer = probe.stop_recording().send(Method::POST, &path, &[JSON], &filled(limit)).await;
    probe
        .start_recording()
        .record_value("at the limit", &json!([answer.code, answer.body["reason"], answer.body["message"]]));
    let answer =
        probe.stop_recording().send(Method::POST, &path, &[JSON], &filled(1024 * 1024 + 10_000)).await;
    probe
        .start_recording()
        .record_value("too much data", &json!([answer.code, answer.body["reason"], answer.body["message"]]));
    probe.stop_recording().post(&path, json!({"metadata": {"name": "one"}})).await;
    probe.start_recording();
    let body = filled(limit + 1);
    probe.send(Method::PUT, &format!("{path}/one"), &[JSON], &body).await;
    probe.send(Method::PATCH, &format!("{path}/one"), &[("content-type", MERGE_PATCH)], &body).await;
    probe.send(Method::DELETE, &format!("{path}/one"), &[JSON], &body).await;
}

pub async fn yaml_bodies_are_read(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    for (media, body) in [
        ("application/yaml", "metadata:\n  name: one\ndata:\n  a: b\n"),
        ("application/yaml", "metadata: {name: two}\n"),
        ("application/yaml", "a: b: c"),
        ("application/yaml", "- 1\n"),
        ("application/yaml", ""),
        ("application/yaml", "metadata:\n\tname: tab\n"),
        ("application/yaml", "{\"metadata\":{\"name\":\"three\"}}"),
        ("application/json", "metadata:\n  name: four\n"),
        ("text/yaml", "metadata: {name: five}\n"),
    ] {
        probe.send(Method::POST, &path, &[("content-type", media)], body).await;
    }
}

pub async fn unknown_content_types_are_unsupported(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let one = format!("{path}/one");
    let body = r#"{"metadata":{"name":"one"}}"#;
    for media in [
        "text/plain",
        "application/xml",
        "application/x-www-form-urlencoded",
        "multipart/form-data; boundary=x",
        "garbage",
        ";;",
        "application/json; charset=utf-8",
        "application/json; charset=latin1; x=\"y",
        "APPLICATION/JSON",
        "application/*",
        "*/*",
    ] {
        probe.send(Method::POST, &path, &[("content-type", media)], body).await;
        probe.stop_recording().delete(&one, None).await;
        probe.start_recording();
    }
    probe.send(Method::POST, &path, &[], body).await;
    probe.send(Method::PUT, &one, &[("content-type", "text/plain")], body).await;
    probe.send(Method::PUT, &one, &[], body).await;
    for media in ["application/json", "text/plain", "application/yaml", "*/*", "garbage", ""] {
        probe.send(Method::PATCH, &one, &[("content-type", media)], "{}").await;
    }
    probe.send(Method::PATCH, &one, &[], "{}").await;
    probe
        .send(Method::PATCH, &one, &[("content-type", "application/merge-patch+json; charset=utf-8")], "{}")
        .await;
    probe.send(Method::DELETE, &one, &[("content-type", "text/plain")], "").await;
    probe.send(Method::DELETE, &one, &[("content-type", "text/plain")], "{}").await;
}

pub async fn what_a_client_accepts(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let one = format!("{path}/one");
    probe.stop_recording().post(&path, json!({"metadata": {"name": "one"}})).await;
    probe.start_recording();
    for accept in [
        "text/html",
        "text/plain",
        "image/*",
        "garbage",
        "",
        "*/*",
        "application/*",
        "application/json;q=0.5",
        "text/html, application/json;q=0.9",
        "application/json; charset=utf-8",
        "application/json;as=Nope;v=v1;g=meta.k8s.io",
        "application/json;as=Table;v=v9;g=meta.k8s.io",
        "application/json;as=Table",
        "application/json;as=PartialObjectMetadata",
        "application/json;as=PartialObjectMetadataList;v=v1;g=meta.k8s.io",
        "application/json;as=PartialObjectMetadata;v=v1;g=nope.example",
        "application/json;as=PartialObjectMetadata;v=v1;g=nope.example, application/json",
        "APPLICATION/JSON",
    ] {
        probe.send(Method::GET, &one, &[("accept", accept)], "").await;
    }
    for accept in ["text/html", "application/json;as=PartialObjectMetadata;v=v1;g=meta.k8s.io"] {
        probe.send(Method::GET, &path, &[("accept", accept)], "").await;
        probe.send(Method::GET, "/api/v1", &[("accept", accept)], "").await;
        probe.send(Method::GET, "/nope", &[("accept", accept)], "").await;
        let body = r#"{"metadata":{"name":"two"}}"#;
        probe.send(Method::POST, &path, &[JSON, ("accept", accept)], body).await;
        probe.send(Method::DELETE, &one, &[("accept", accept)], "").await;
        probe
            .send(
                Method::GET,
                &format!("{path}?watch=1&timeoutSeconds=1&resourceVersion=1"),
                &[("accept", accept)],
                "",
            )
            .await;
    }
}

pub async fn unknown_paths_are_not_found(probe: &mut ContractProbe) {
    let paths = [
        "/nope",
        "/api/v2",
        "/api/v2/configmaps",
        "/api/v1/nope",
        "/api/v1/nope/one",
        "/apis/nope.example",
        "/apis/nope.example/v1",
        "/apis/nope.example/v1/things",
        "/apis/apps/v9",
        "/apis/apps/v9/deployments",
        "/apis/apps/v1/nope",
        "/apis/apps/v1/configmaps",
        "/api/v1/deployments",
        "/api/v1/configmaps/one",
        "/api/v1/ConfigMaps",
        "/api/v1/configmap",
        "/openapi",
        "/openapi/v3/nope",
        "/openapi/v3/apis/nope.example/v1",
        "/healthz/nope",
    ];
    probe.get_all(paths).await;
    for path in ["/apis/", "/api/", "/api/v1/", "/apis/apps/", "/apis/apps/v1/"] {
        let answer = probe.stop_recording().get(path).await;
        probe.start_recording().record_value(path, &json!([answer.code, answer.body["kind"]]));
    }
    for rest in [
        "nope",
        "nope/one",
        "nodes",
        "nodes/one",
        "configmaps/one/status",
        "configmaps/one/nope",
        "configmaps/one/a/b",
        "secrets/",
        "secrets/none/",
        "/configmaps",
        "configmaps//none",
        "",
        "namespaces",
        "pods/none/nope",
    ] {
        probe.get(&probe.namespaced_path(CORE, rest)).await;
    }
    for rest in ["deployments/one/nope", "deployments/one/log", "replicasets/one/scale/x"] {
        probe.get(&probe.namespaced_path("/apis/apps/v1", rest)).await;
    }
}

pub async fn strange_paths(probe: &mut ContractProbe) {
    for rest in [
        "configmaps/a%2Fb",
        "configmaps/a%20b",
        "configmaps/%zz",
        "configmaps/%",
        "configmaps/%00",
        "configmaps/%C3%A4",
        "configmaps/%ff",
        "configmaps/..",
        "configmaps/.",
        "configmaps/%2e%2e",
        "configmaps/a+b",
        "configmaps/A",
        "configmaps/one;x=y",
        "configmap%73/none",
        "configmaps/a?",
        "configmaps/a?&&=&",
        "configmaps/a?%zz",
        "configmaps/a?a;b",
    ] {
        probe.get(&probe.namespaced_path(CORE, rest)).await;
    }
    probe.get_all(["//api/v1", "/api//v1", "/api/v1/../v1", "/./version"]).await;
    let long = format!("/api/v1/namespaces/default/configmaps/{}", "a".repeat(3000));
    let answer = probe.stop_recording().get(&long).await;
    probe
        .start_recording()
        .record_value("a very long name", &json!([answer.code, answer.text("/message").len()]));
    probe.post("/api/v1/namespaces/%20/configmaps", json!({"metadata": {"name": "x"}})).await;
    probe.post("/api/v1/namespaces//configmaps", json!({"metadata": {"name": "x"}})).await;
}

pub async fn methods_that_a_path_has_not(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let one = format!("{path}/one");
    let body = r#"{"metadata":{"name":"one"}}"#;
    probe.stop_recording().post(&path, json!({"metadata": {"name": "one"}})).await;
    probe.start_recording();
    probe.send(Method::POST, &one, &[JSON], body).await;
    probe.send(Method::PUT, &path, &[JSON], body).await;
    probe.send(Method::PATCH, &path, &[("content-type", MERGE_PATCH)], "{}").await;
    probe.send(Method::DELETE, "/api/v1/namespaces", &[], "").await;
    probe.send(Method::DELETE, "/api/v1/configmaps", &[], "").await;
    probe.send(Method::PATCH, "/api/v1/configmaps", &[("content-type", MERGE_PATCH)], "{}").await;
    probe.send(Method::OPTIONS, &path, &[], "").await;
    probe.send(Method::OPTIONS, &one, &[], "").await;
    probe.send(Method::TRACE, &one, &[], "").await;
    probe.send(Method::from_bytes(b"BREW").unwrap(), &one, &[], "").await;
    probe.send(Method::HEAD, &one, &[], "").await;
    probe.send(Method::HEAD, &path, &[], "").await;
    probe.send(Method::HEAD, &probe.namespaced_path(CORE, "configmaps/none"), &[], "").await;
    for about in ["/api", "/apis", "/api/v1", "/apis/apps", "/healthz"] {
        for method in [Method::POST, Method::DELETE, Method::OPTIONS] {
            let answer = probe.stop_recording().send(method.clone(), about, &[JSON], "{}").await;
            probe
                .start_recording()
                .record_value(&format!("{method} {about}"), &json!([answer.code, answer.body["reason"]]));
        }
    }
    let deployment = probe.namespaced_path("/apis/apps/v1", "deployments/one");
    for (method, subresource) in [
        (Method::DELETE, "status"),
        (Method::POST, "status"),
        (Method::DELETE, "scale"),
        (Method::POST, "scale"),
    ] {
        probe.send(method, &format!("{deployment}/{subresource}"), &[JSON], "{}").await;
    }
    probe.send(Method::POST, &probe.namespaced_path(CORE, "pods/one/log"), &[JSON], "{}").await;
}

//! Lists: pages, selectors, revisions.

use std::fmt::Write as _;

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use http::Method;
use serde_json::{Value, json};

use super::probe::{ContractProbe, MERGE_PATCH};

const CORE: &str = "/api/v1";

/// Secrets `a` to `e`: nothing else creates Secrets.
async fn create_five_secrets(probe: &mut ContractProbe) -> String {
    let path = probe.namespaced_path(CORE, "secrets");
    for (name, parity) in [("a", "odd"), ("b", "even"), ("c", "odd"), ("d", "even"), ("e", "odd")] {
        let labels = json!({"parity": parity, "name": name});
        probe.stop_recording().post(&path, json!({"metadata": {"name": name, "labels": labels}})).await;
    }
    probe.start_recording();
    path
}

fn item_names(list: &Value) -> String {
    let items = list["items"].as_array().map_or(&[][..], Vec::as_slice);
    items.iter().filter_map(|item| item["metadata"]["name"].as_str()).collect::<Vec<_>>().join(" ")
}

/// Lists, and records only the names or the error.
async fn show_list_names(probe: &mut ContractProbe, path: &str) {
    let answer = probe.stop_recording().get(path).await;
    let query = path.split_once('?').map_or("", |(_, query)| query);
    let found = match answer.code {
        200 => json!(item_names(&answer.body)),
        code => json!([code, answer.body["reason"], answer.body["message"], answer.body["details"]]),
    };
    probe.start_recording().record_value(query, &found);
}

pub async fn a_list_in_pages(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    let first = probe.get(&format!("{path}?limit=2")).await;
    probe.stop_recording().post(&path, json!({"metadata": {"name": "b2"}})).await;
    probe.stop_recording().delete(&format!("{path}/d"), None).await;
    let token = first.text("/metadata/continue");
    probe.alias(&token, "FIRST");
    probe.start_recording().record_note("b2 is made and d is deleted");
    let second = probe.get(&format!("{path}?limit=2&continue={token}")).await;
    let token = second.text("/metadata/continue");
    probe.alias(&token, "SECOND");
    let third = probe.get(&format!("{path}?limit=2&continue={token}")).await;
    let revision = first.revision();
    probe.record_value("one revision", &json!(revision == second.revision() && revision == third.revision()));
}

pub async fn pages_with_a_selector_count_nothing(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    let first = probe.get(&format!("{path}?limit=1&labelSelector=parity=odd")).await;
    let token = first.text("/metadata/continue");
    probe.alias(&token, "FIRST");
    probe.get(&format!("{path}?limit=1&labelSelector=parity=odd&continue={token}")).await;
    probe.get(&format!("{path}?limit=5")).await;
    probe.get(&format!("{path}?limit=3&labelSelector=parity=odd")).await;
    let rest = probe.stop_recording().get(&format!("{path}?continue={token}")).await;
    probe
        .start_recording()
        .record_value("the rest without limit and selector", &json!(item_names(&rest.body)));
}

pub async fn limits_of_all_sorts(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    for limit in
        ["", "0", "-1", "1", "+1", "1.5", "abc", "9223372036854775807", "9223372036854775808", "0x2", "%202"]
    {
        show_list_names(probe, &format!("{path}?limit={limit}")).await;
    }
    show_list_names(probe, &format!("{path}?limit=1&limit=3")).await;
}

pub async fn bad_continue_tokens(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    let first = probe.stop_recording().get(&format!("{path}?limit=2")).await;
    let token = first.text("/metadata/continue");
    let revision = first.revision();
    probe.start_recording();
    let coded = |text: &str| URL_SAFE_NO_PAD.encode(text);
    for token in [
        "garbage".to_owned(),
        "%%%".to_owned(),
        coded("not json"),
        coded("{}"),
        coded("[]"),
        coded(r#"{"v":"meta.k8s.io/v2","rv":5,"start":"a"}"#),
        coded(r#"{"v":"meta.k8s.io/v1","start":"a"}"#),
        coded(r#"{"v":"meta.k8s.io/v1","rv":5}"#),
        coded(r#"{"v":"meta.k8s.io/v1","rv":5,"start":"../../a"}"#),
        coded(r#"{"v":"meta.k8s.io/v1","rv":"x","start":"a"}"#),
    ] {
        show_list_names(probe, &format!("{path}?limit=2&continue={token}")).await;
    }
    for rest in [
        format!("resourceVersion={revision}"),
        "resourceVersion=0".to_owned(),
        "resourceVersion=".to_owned(),
        format!("resourceVersion={revision}&resourceVersionMatch=Exact"),
        "resourceVersionMatch=Exact".to_owned(),
    ] {
        let answer = probe.stop_recording().get(&format!("{path}?limit=2&continue={token}&{rest}")).await;
        let said = if answer.code == 200 { json!(item_names(&answer.body)) } else { answer.body };
        probe.start_recording().record_value(&rest.replace(&revision, "RV"), &said);
    }
}

pub async fn label_selectors(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    for selector in [
        "parity=odd",
        "parity==odd",
        "parity!=odd",
        "parity%3Dodd",
        "parity in (odd)",
        "parity in (odd, even)",
        "parity notin (odd)",
        "parity",
        "!parity",
        "absent",
        "!absent",
        "absent!=x",
        "absent notin (x)",
        "parity=odd,name!=a",
        "parity=odd, name in (a,c)",
        " parity = odd ",
        "parity=",
        "name in ()",
        "name in (a,)",
        "name in (,a)",
        "name in (a,a,b)",
        "name notin (a),name notin (b)",
        "name > a",
        "name>1",
        "name<1",
        "",
        ",",
        "!parity,name",
        "in=x",
        "notin=x",
        "in",
        "in in (in)",
        "example.com/x",
        "example.com/x=y",
    ] {
        show_list_names(
            probe,
            &format!(
                "{path}?labelSelector={}",
                selector.replace(' ', "%20").replace('>', "%3E").replace('<', "%3C")
            ),
        )
        .await;
    }
}

pub async fn label_selectors_that_do_not_parse(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    for selector in [
        "a b",
        "=x",
        "a=b=c",
        "a=(b",
        "a in b",
        "a in (b",
        "a in b)",
        "a in (b c)",
        "a notin",
        "!",
        "!a=b",
        "!!a",
        "a,,b",
        "a,",
        ",a",
        "a>b",
        "a>1.5",
        "a===b",
        "a!b",
        "a=!b",
        "-a",
        "a=-b",
        "a/b/c",
        "/a",
        "a/",
        "ä=b",
        "a=ä",
        "a=b;c=d",
        "UPPER.case/x",
        "a in (-b)",
        "()",
        ")",
        "(",
        "a=\"b\"",
        "a&b",
    ] {
        let coded: String = selector.bytes().fold(String::new(), |mut text, byte| {
            let _ = write!(text, "%{byte:02X}");
            text
        });
        let answer = probe.stop_recording().get(&format!("{path}?labelSelector={coded}")).await;
        let said =
            json!([answer.code, answer.body["reason"], answer.body["message"], item_names(&answer.body)]);
        probe.start_recording().record_value(selector, &said);
    }
    probe.get(&format!("{path}?labelSelector={}", "a".repeat(64))).await;
    probe.get(&format!("{path}?labelSelector=a={}", "b".repeat(64))).await;
    probe.get(&format!("{path}?labelSelector=x%20y")).await;
}

pub async fn field_selectors(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    let namespace = probe.namespace().to_owned();
    for selector in [
        "metadata.name=a",
        "metadata.name==a",
        "metadata.name!=a",
        "metadata.name=none",
        "metadata.name=a,metadata.name=b",
        "metadata.name!=a,metadata.name!=b",
        "type=Opaque",
        "type!=Opaque",
        "type=",
        "",
        ",",
        "metadata.name=a,",
        "metadata.name = a",
        "metadata.name=%5C,",
        "metadata.name=a%5C=b",
        "metadata.name",
        "metadata.name%3Ca",
        "metadata.uid=x",
        "metadata.labels.name=a",
        "spec.nope=x",
        "=x",
        "a=b=c",
        "status.phase=Running",
    ] {
        show_list_names(probe, &format!("{path}?fieldSelector={}", selector.replace(' ', "%20"))).await;
    }
    show_list_names(probe, &format!("{path}?fieldSelector=metadata.namespace={namespace}")).await;
    show_list_names(probe, &format!("{path}?fieldSelector=metadata.namespace=default")).await;
    show_list_names(
        probe,
        &format!("/api/v1/secrets?fieldSelector=metadata.namespace={namespace},metadata.name=a"),
    )
    .await;
    show_list_names(probe, &format!("{path}?fieldSelector=metadata.name=a&labelSelector=parity=even")).await;
    probe.get(&format!("{path}?fieldSelector=spec.nope=x")).await;
}

/// The supported field selectors of each kind.
pub async fn field_selectors_of_kinds(probe: &mut ContractProbe) {
    let fields = [
        "metadata.name",
        "metadata.namespace",
        "status.phase",
        "spec.nodeName",
        "spec.restartPolicy",
        "spec.schedulerName",
        "spec.serviceAccountName",
        "spec.hostNetwork",
        "status.podIP",
        "status.podIPs",
        "status.nominatedNodeName",
        "spec.unschedulable",
        "spec.clusterIP",
        "spec.type",
        "involvedObject.kind",
        "involvedObject.namespace",
        "involvedObject.name",
        "involvedObject.uid",
        "involvedObject.apiVersion",
        "involvedObject.resourceVersion",
        "involvedObject.fieldPath",
        "reason",
        "reportingComponent",
        "source",
        "type",
        "name",
        "status.successful",
        "status.replicas",
        "spec.replicas",
        "regarding.name",
        "spec.signerName",
    ];
    for (group_version, plural, namespaced) in [
        ("/api/v1", "pods", true),
        ("/api/v1", "configmaps", true),
        ("/api/v1", "secrets", true),
        ("/api/v1", "services", true),
        ("/api/v1", "events", true),
        ("/api/v1", "namespaces", false),
        ("/api/v1", "nodes", false),
        ("/api/v1", "persistentvolumes", false),
        ("/api/v1", "persistentvolumeclaims", true),
        ("/apis/apps/v1", "deployments", true),
        ("/apis/apps/v1", "replicasets", true),
        ("/apis/apps/v1", "statefulsets", true),
        ("/apis/apps/v1", "daemonsets", true),
        ("/apis/batch/v1", "jobs", true),
        ("/apis/batch/v1", "cronjobs", true),
        ("/apis/events.k8s.io/v1", "events", true),
        ("/apis/networking.k8s.io/v1", "ingresses", true),
        ("/apis/rbac.authorization.k8s.io/v1", "clusterroles", false),
        ("/apis/apiextensions.k8s.io/v1", "customresourcedefinitions", false),
    ] {
        let path = if namespaced {
            probe.namespaced_path(group_version, plural)
        } else {
            format!("{group_version}/{plural}")
        };
        let mut offered = Vec::new();
        let mut refusal = Value::Null;
        for field in fields {
            let answer = probe.stop_recording().get(&format!("{path}?limit=1&fieldSelector={field}=x")).await;
            if answer.code == 200 {
                offered.push(field);
            } else if field == "spec.signerName" {
                refusal = answer.body["message"].clone();
            }
        }
        probe
            .start_recording()
            .record_value(&format!("{group_version}/{plural}"), &json!([offered.join(" "), refusal]));
    }
}

pub async fn pods_by_phase_and_node(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "pods");
    let node = probe.unique_name("no-such-node");
    for (name, node) in [("placed", Some(node.as_str())), ("waiting", None)] {
        let mut spec = json!({"schedulerName": "nobody", "automountServiceAccountToken": false,
            "containers": [{"name": "main", "image": "nginx"}]});
        if let Some(node) = node {
            spec["nodeName"] = json!(node);
        }
        probe.stop_recording().post(&path, json!({"metadata": {"name": name}, "spec": spec})).await;
    }
    probe.start_recording();
    for selector in [
        "status.phase=Pending".to_owned(),
        "status.phase!=Pending".to_owned(),
        format!("spec.nodeName={node}"),
        "spec.nodeName=".to_owned(),
        "spec.nodeName!=".to_owned(),
        "spec.schedulerName=nobody".to_owned(),
        "spec.restartPolicy=Always".to_owned(),
        "spec.serviceAccountName=default".to_owned(),
        "spec.hostNetwork=false".to_owned(),
    ] {
        let answer = probe.stop_recording().get(&format!("{path}?fieldSelector={selector}")).await;
        probe
            .start_recording()
            .record_value(&selector.replace(&node, "NODE"), &json!([answer.code, item_names(&answer.body)]));
    }
}

pub async fn events_by_their_object(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "events");
    let namespace = probe.namespace().to_owned();
    for (name, about, reason, kind) in [("one", "x", "Started", "Normal"), ("two", "y", "Failed", "Warning")]
    {
        let event = json!({"metadata": {"name": name}, "reason": reason, "type": kind,
            "involvedObject": {"kind": "Pod", "namespace": namespace, "name": about, "apiVersion": "v1"}});
        probe.stop_recording().post(&path, event).await;
    }
    for selector in [
        "involvedObject.name=x",
        "involvedObject.kind=Pod",
        "reason=Failed",
        "type=Warning",
        "involvedObject.name=y,type=Normal",
    ] {
        show_list_names(probe, &format!("{path}?fieldSelector={selector}")).await;
    }
}

pub async fn revisions_and_how_they_match(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    let revision = probe.stop_recording().get(&path).await.revision();
    let token = probe.get(&format!("{path}?limit=2")).await.text("/metadata/continue");
    probe.start_recording();
    for at in ["", "0", "RV", "abc", "-1", "1.5", "99999999999999999999999", "%20"] {
        for matching in ["", "Exact", "NotOlderThan", "Nope"] {
            for page in ["", "limit=2", "limit=2&continue=TOKEN"] {
                let mut query = format!("resourceVersion={at}");
                if !matching.is_empty() {
                    let _ = write!(query, "&resourceVersionMatch={matching}");
                }
                if !page.is_empty() {
                    let _ = write!(query, "&{page}");
                }
                let sent = query.replace("RV", &revision).replace("TOKEN", &token);
                let answer = probe.stop_recording().get(&format!("{path}?{sent}")).await;
                let said = match answer.code {
                    200 => json!(item_names(&answer.body)),
                    code => {
                        json!([code, answer.body["reason"], answer.body["message"], answer.body["details"]])
                    }
                };
                probe.start_recording().record_value(&query, &said);
            }
        }
    }
    let exact = probe
        .stop_recording()
        .get(&format!("{path}?resourceVersion={revision}&resourceVersionMatch=Exact"))
        .await;
    probe
        .start_recording()
        .record_value("the revision of an exact list", &json!(exact.revision() == revision));
}

pub async fn a_list_of_the_past(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    let revision = probe.stop_recording().get(&path).await.revision();
    probe.delete(&format!("{path}/a"), None).await;
    probe.patch(MERGE_PATCH, &format!("{path}/b"), json!({"metadata": {"labels": {"later": "yes"}}})).await;
    probe.post(&path, json!({"metadata": {"name": "f"}})).await;
    probe.start_recording();
    for query in [
        "&resourceVersionMatch=Exact",
        "&resourceVersionMatch=NotOlderThan",
        "",
        "&resourceVersionMatch=Exact&labelSelector=!later",
        "&resourceVersionMatch=Exact&limit=3",
    ] {
        let answer = probe.stop_recording().get(&format!("{path}?resourceVersion={revision}{query}")).await;
        probe.start_recording().record_value(
            query,
            &json!([answer.code, item_names(&answer.body), answer.revision() == revision]),
        );
    }
}

pub async fn a_revision_of_the_future(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    let far = "resourceVersion=9000000000";
    probe.get(&format!("{path}?{far}")).await;
    probe.get(&format!("{path}?{far}&resourceVersionMatch=NotOlderThan")).await;
    probe.get(&format!("{path}?{far}&resourceVersionMatch=Exact")).await;
    probe.get(&format!("{path}?{far}&limit=2")).await;
    probe.get(&format!("{path}/a?{far}")).await;
    probe.get(&format!("{path}/a?resourceVersion=0")).await;
    probe.get(&format!("{path}/a?resourceVersion=abc")).await;
    probe.get(&format!("{path}/none?{far}")).await;
    probe.get(&format!("{path}?watch=1&timeoutSeconds=1&{far}")).await;
}

pub async fn items_of_a_list_carry_no_kind(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    probe.get(&format!("{path}?labelSelector=name=a")).await;
    probe.get(&format!("{path}?labelSelector=name=none")).await;
    for (group_version, plural) in [
        ("/api/v1", "pods"),
        ("/api/v1", "events"),
        ("/api/v1", "limitranges"),
        ("/apis/apps/v1", "deployments"),
        ("/apis/batch/v1", "cronjobs"),
        ("/apis/networking.k8s.io/v1", "ingresses"),
        ("/apis/discovery.k8s.io/v1", "endpointslices"),
        ("/apis/autoscaling/v2", "horizontalpodautoscalers"),
        ("/apis/coordination.k8s.io/v1", "leases"),
    ] {
        let path = probe.namespaced_path(group_version, plural);
        probe.get(&format!("{path}?labelSelector=none")).await;
    }
}

pub async fn parameters_that_mean_nothing_are_ignored(probe: &mut ContractProbe) {
    let path = create_five_secrets(probe).await;
    for query in [
        "pretty=true",
        "pretty=nope",
        "nope=1",
        "watch=0",
        "watch=false",
        "watch=False",
        "watch=&timeoutSeconds=1",
        "timeout=10s",
        "timeoutSeconds=5",
        "timeoutSeconds=abc",
        "timeoutSeconds=-1",
        "timeoutSeconds=1.5",
        "timeoutSeconds=",
        "timeoutSeconds=99999999999999999999",
        "allowWatchBookmarks=nope",
        "allowWatchBookmarks=true",
        "sendInitialEvents=nope",
        "sendInitialEvents=true",
        "sendInitialEvents=false",
        "timeout=abc",
        "timeout=-1s",
        "timeout=100h",
        "kind=x",
    ] {
        show_list_names(probe, &format!("{path}?{query}")).await;
    }
    let pretty = probe.stop_recording().get(&format!("{path}/a?pretty=true")).await;
    probe.start_recording().record_value("pretty", &pretty.body["metadata"]["name"]);
}

const METADATA: &str = "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1";
const METADATA_LIST: &str = "application/json;as=PartialObjectMetadataList;g=meta.k8s.io;v=v1";

pub async fn metadata_only(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "secrets");
    let json_body = ("content-type", "application/json");
    let body = r#"{"metadata":{"name":"a","labels":{"x":"y"}},"stringData":{"p":"q"}}"#;
    probe.send(Method::POST, &path, &[json_body, ("accept", METADATA)], body).await;
    let one = format!("{path}/a");
    for accept in [
        METADATA,
        METADATA_LIST,
        "application/json;as=PartialObjectMetadata;g=meta.k8s.io;v=v1,application/json",
    ] {
        probe.send(Method::GET, &one, &[("accept", accept)], "").await;
        probe.send(Method::GET, &path, &[("accept", accept)], "").await;
    }
    let patch = r#"{"metadata":{"annotations":{"c":"d"}}}"#;
    probe.send(Method::PATCH, &one, &[("content-type", MERGE_PATCH), ("accept", METADATA)], patch).await;
    let missing = probe.namespaced_path(CORE, "secrets/none");
    probe.send(Method::GET, &missing, &[("accept", METADATA)], "").await;
    probe.send(Method::GET, &format!("{path}?limit=1"), &[("accept", METADATA_LIST)], "").await;
    probe.send(Method::DELETE, &one, &[("accept", METADATA)], "").await;
}

//! Server-side apply: ownership of fields, and conflicts.

use serde_json::{Value, json};

use super::apply_records::{applied_object, apply_and_show, config_map};
use super::probe::{APPLY_PATCH, ContractProbe, MERGE_PATCH};

const CORE: &str = "/api/v1";
const APPS: &str = "/apis/apps/v1";

/// A deployment whose controller changes only its status.
fn deployment(spec: Value) -> Value {
    let mut out = applied_object(
        "apps/v1",
        "Deployment",
        json!({"spec": {"selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}}),
    );
    for (name, value) in spec.as_object().unwrap() {
        out["spec"][name] = value.clone();
    }
    out
}

fn pod_template(pod: Value) -> Value {
    applied_object("v1", "PodTemplate", json!({"template": {"spec": pod}}))
}

fn service(spec: Value) -> Value {
    applied_object("v1", "Service", json!({"spec": spec}))
}

/// Each value replaces the whole ConfigMap.
async fn create_map(probe: &mut ContractProbe, manager: &str, data: Value) -> String {
    let path = probe.namespaced_path(CORE, "configmaps");
    let sent = json!({"metadata": {"name": "one"}, "data": data});
    probe.stop_recording().post(&format!("{path}?fieldManager={manager}"), sent).await;
    probe.start_recording();
    format!("{path}/one")
}

pub async fn an_apply_creates_and_says_what_it_owns(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(APPS, "deployments/one");
    let sent = applied_object(
        "apps/v1",
        "Deployment",
        json!({
        "metadata": {"labels": {"l": "1"}, "annotations": {"example.com/a": "1"}, "finalizers": ["example.com/f"]},
        "spec": {"replicas": 0, "paused": true, "selector": {"matchLabels": {"a": "b"}},
            "strategy": {"rollingUpdate": {"maxSurge": "10%"}},
            "template": {"metadata": {"labels": {"a": "b"}}, "spec": {
                "nodeSelector": {"n": "1"}, "tolerations": [{"key": "t", "operator": "Exists"}],
                "volumes": [{"name": "v", "emptyDir": {}}],
                "containers": [{"name": "main", "image": "nginx", "args": ["x"],
                    "env": [{"name": "E", "value": "1"}], "resources": {"limits": {"cpu": "1000m"}},
                    "volumeMounts": [{"name": "v", "mountPath": "/v"}],
                    "ports": [{"containerPort": 80}, {"containerPort": 53, "protocol": "UDP", "name": "dns"}]}]}}}}),
    );
    apply_and_show(probe, "a", &one, sent.clone(), "/none").await;
    apply_and_show(probe, "a", &one, sent, "/none").await;
    probe.stop_recording().patch(MERGE_PATCH, &one, json!({"metadata": {"finalizers": null}})).await;
}

pub async fn an_apply_needs_a_manager(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "configmaps/one");
    for query in ["", "?fieldManager=", "?fieldManager=a%0Ab", "?fieldManager=a&force=maybe"] {
        probe.patch(APPLY_PATCH, &format!("{one}{query}"), config_map(json!({}))).await;
    }
    probe.patch(MERGE_PATCH, &format!("{one}?force=true"), json!({})).await;
}

pub async fn a_conflict_names_the_manager_and_the_field(probe: &mut ContractProbe) {
    let one = create_map(probe, "m", json!({"x": "1"})).await;
    probe.apply("a", &one, config_map(json!({"data": {"x": "2"}}))).await;
    // without a name: the agent, and the time of the write
    let two = probe.namespaced_path(CORE, "configmaps");
    probe.stop_recording().post(&two, json!({"metadata": {"name": "two"}, "data": {"x.y/z": "1"}})).await;
    probe.start_recording();
    let mut sent = config_map(json!({"data": {"x.y/z": "2"}}));
    sent["metadata"]["name"] = json!("two");
    apply_and_show(probe, "a", &format!("{two}/two"), sent, "/data").await;
}

pub async fn conflicts_with_several_managers_are_listed(probe: &mut ContractProbe) {
    let one = create_map(probe, "z", json!({"p": "1", "q": "1"})).await;
    apply_and_show(probe, "m", &one, config_map(json!({"data": {"r": "1", "s": "1"}})), "/data").await;
    apply_and_show(
        probe,
        "b",
        &one,
        config_map(json!({"data": {"t": "1"}, "metadata": {"labels": {"l": "1"}}})),
        "/data",
    )
    .await;
    let sent = config_map(json!({"data": {"p": "2", "q": "2", "r": "2", "t": "2", "u": "2"},
        "metadata": {"labels": {"l": "2"}}}));
    apply_and_show(probe, "a", &one, sent.clone(), "/data").await;
    // one field, two owners
    apply_and_show(probe, "c", &one, config_map(json!({"data": {"t": "1", "p": "1"}})), "/data").await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"t": "2", "p": "2"}})), "/data").await;
}

pub async fn equal_values_are_shared(probe: &mut ContractProbe) {
    let one = create_map(probe, "m", json!({"x": "1"})).await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"x": "1"}})), "/data").await;
    apply_and_show(probe, "b", &one, config_map(json!({"data": {"x": "1"}})), "/data").await;
    apply_and_show(probe, "b", &one, config_map(json!({"data": {"x": "2"}})), "/data").await;
    apply_and_show(probe, "a", &one, config_map(json!({})), "/data").await;
    apply_and_show(probe, "b", &one, config_map(json!({"data": {"y": "1"}})), "/data").await;
}

pub async fn force_takes_fields_away(probe: &mut ContractProbe) {
    let one = create_map(probe, "m", json!({"x": "1", "y": "1"})).await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"z": "1"}})), "/data").await;
    let forced = format!("{one}?force=true");
    apply_and_show(probe, "b", &forced, config_map(json!({"data": {"x": "2", "z": "2"}})), "/data").await;
    apply_and_show(probe, "b", &forced, config_map(json!({"data": {"x": "2", "y": "2", "z": "2"}})), "/data")
        .await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"z": "2"}})), "/data").await;
    apply_and_show(
        probe,
        "c",
        &format!("{one}?force=false"),
        config_map(json!({"data": {"z": "3"}})),
        "/data",
    )
    .await;
}

pub async fn a_field_that_is_no_longer_applied_goes(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "configmaps/one");
    apply_and_show(
        probe,
        "a",
        &one,
        config_map(json!({"data": {"x": "1", "y": "1"}, "metadata": {"labels": {"l": "1"}}})),
        "",
    )
    .await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"y": "1"}})), "").await;
    apply_and_show(probe, "a", &one, config_map(json!({})), "").await;
}

pub async fn a_dropped_field_stays_for_whoever_else_holds_it(probe: &mut ContractProbe) {
    let one = create_map(probe, "m", json!({"x": "1"})).await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"x": "1", "y": "1"}})), "/data").await;
    apply_and_show(probe, "a", &one, config_map(json!({})), "/data").await;
    // the parent is owned by an update
    let templates = probe.namespaced_path(CORE, "podtemplates");
    let two = format!("{templates}/one");
    let containers = json!({"containers": [{"name": "main", "image": "nginx"}]});
    probe
        .stop_recording()
        .post(&format!("{templates}?fieldManager=m"), pod_template(containers.clone()))
        .await;
    let limits = |limits: Value| {
        pod_template(json!({"containers": [{"name": "main", "resources": {"limits": limits}}]}))
    };
    apply_and_show(probe, "a", &two, limits(json!({"cpu": "1"})), "/template/spec/containers").await;
    apply_and_show(probe, "a", &two, pod_template(json!({})), "/template/spec/containers").await;
    // a container of another manager is emptied but stays
    apply_and_show(
        probe,
        "a",
        &two,
        pod_template(json!({"containers": [{"name": "side", "image": "b"}]})),
        "/none",
    )
    .await;
    probe
        .stop_recording()
        .patch(
            MERGE_PATCH,
            &format!("{two}?fieldManager=m"),
            json!({"template": {"spec": {"hostNetwork": true}}}),
        )
        .await;
    apply_and_show(probe, "a", &two, pod_template(json!({})), "/template/spec/containers").await;
}

pub async fn a_dropped_field_with_a_default_gets_it(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(APPS, "deployments/one");
    let sent =
        deployment(json!({"replicas": 0, "paused": true, "minReadySeconds": 3, "revisionHistoryLimit": 4,
        "strategy": {"type": "Recreate"}}));
    apply_and_show(probe, "a", &one, sent, "/spec/replicas").await;
    let scheduler = "/spec/template/spec/schedulerName";
    probe
        .stop_recording()
        .patch(MERGE_PATCH, &one, json!({"spec": {"template": {"spec": {"schedulerName": "nobody"}}}}))
        .await;
    let dropped = apply_and_show(probe, "a", &one, deployment(json!({"paused": true})), scheduler).await;
    for field in ["replicas", "minReadySeconds", "revisionHistoryLimit", "strategy"] {
        probe.record_value(field, &dropped.body["spec"][field]);
    }
}

pub async fn two_managers_share_a_list_by_its_keys(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "podtemplates/one");
    let containers = "/template/spec/containers";
    let of = |names: &[&str]| {
        let list: Vec<Value> = names.iter().map(|name| json!({"name": name, "image": "nginx"})).collect();
        pod_template(json!({"containers": list}))
    };
    apply_and_show(probe, "a", &one, of(&["one", "two"]), "/none").await;
    apply_and_show(probe, "b", &one, of(&["three", "two"]), "/none").await;
    apply_and_show(probe, "a", &one, of(&["one"]), "/none").await;
    apply_and_show(probe, "b", &one, of(&["three"]), "/none").await;
    apply_and_show(probe, "b", &one, of(&[]), containers).await;
    let env =
        |list: Value| pod_template(json!({"containers": [{"name": "one", "image": "nginx", "env": list}]}));
    let variables = "/template/spec/containers/0/env";
    apply_and_show(
        probe,
        "a",
        &one,
        env(json!([{"name": "A", "value": "1"}, {"name": "B", "value": "1"}])),
        variables,
    )
    .await;
    let b = pod_template(json!({"containers": [{"name": "one", "env": [{"name": "A", "value": "2"}]}]}));
    apply_and_show(probe, "b", &one, b.clone(), variables).await;
    apply_and_show(probe, "b", &format!("{one}?force=true"), b, variables).await;
}

pub async fn applied_lists_keep_an_order(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "podtemplates/one");
    let base = pod_template(json!({"containers": [{"name": "main", "image": "nginx"}]}));
    apply_and_show(probe, "base", &one, base, "/none").await;
    for (manager, names) in [
        ("a", vec!["A", "B", "C"]),
        ("a", vec!["C", "B", "A"]),
        ("b", vec!["X", "B", "Y"]),
        ("a", vec!["D", "A", "B", "C"]),
        ("b", vec!["Y", "X"]),
        ("a", vec!["C", "E"]),
    ] {
        let env: Vec<Value> = names.iter().map(|name| json!({"name": name, "value": "1"})).collect();
        let sent = pod_template(json!({"containers": [{"name": "main", "env": env}]}));
        let answer = probe.stop_recording().apply(manager, &one, sent).await;
        let after = answer.body.pointer("/template/spec/containers/0/env").cloned().unwrap_or_default();
        let order: Vec<&str> =
            after.as_array().into_iter().flatten().filter_map(|one| one["name"].as_str()).collect();
        probe
            .start_recording()
            .record_value(&format!("{manager} applies {names:?}"), &json!(order.join(" ")));
    }
}

pub async fn atomic_lists_and_maps_have_one_owner(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "podtemplates/one");
    let main = |fields: Value| {
        let mut container = json!({"name": "main", "image": "nginx"});
        container.as_object_mut().unwrap().extend(fields.as_object().unwrap().clone());
        pod_template(json!({"containers": [container]}))
    };
    apply_and_show(probe, "a", &one, main(json!({"args": ["1", "2"]})), "/none").await;
    apply_and_show(probe, "b", &one, main(json!({"args": ["1", "2", "3"]})), "/none").await;
    apply_and_show(probe, "b", &one, main(json!({"args": ["1", "2"]})), "/none").await;
    let force = format!("{one}?force=true");
    apply_and_show(probe, "b", &force, main(json!({"args": ["3"]})), "/template/spec/containers/0/args")
        .await;
    let nodes = |map: Value| {
        pod_template(
            json!({"nodeSelector": map, "securityContext": {"sysctls": [{"name": "a", "value": "b"}]}}),
        )
    };
    apply_and_show(probe, "c", &one, nodes(json!({"a": "1"})), "/none").await;
    apply_and_show(probe, "d", &one, nodes(json!({"b": "1"})), "/none").await;
    apply_and_show(probe, "d", &force, nodes(json!({"b": "1"})), "/template/spec/nodeSelector").await;
    apply_and_show(probe, "c", &one, pod_template(json!({})), "/template/spec/nodeSelector").await;
}

pub async fn sets_are_united(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "configmaps/one");
    let with = |names: &[&str]| config_map(json!({"metadata": {"finalizers": names}}));
    let at = "/metadata/finalizers";
    apply_and_show(probe, "a", &one, with(&["example.com/b", "example.com/a"]), at).await;
    apply_and_show(probe, "b", &one, with(&["example.com/c", "example.com/a"]), at).await;
    apply_and_show(probe, "a", &one, with(&["example.com/d"]), at).await;
    apply_and_show(probe, "b", &one, with(&["example.com/c", "example.com/c"]), at).await;
    apply_and_show(probe, "b", &one, with(&[]), at).await;
    apply_and_show(probe, "a", &one, config_map(json!({})), at).await;
}

pub async fn doubled_keys_are_refused(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "podtemplates/one");
    let twice = json!([{"name": "main", "image": "a"}, {"name": "main", "image": "b"}]);
    apply_and_show(probe, "a", &one, pod_template(json!({"containers": twice})), "/none").await;
    let env = json!([{"name": "E", "value": "1"}, {"name": "E", "value": "2"}]);
    let sent = pod_template(json!({"containers": [{"name": "main", "image": "a", "env": env}]}));
    apply_and_show(probe, "a", &one, sent.clone(), "/none").await;
    let without = pod_template(json!({"containers": [{"image": "a"}]}));
    apply_and_show(probe, "a", &one, without, "/none").await;
    // an update may have duplicates; an apply does not change them
    let path = probe.namespaced_path(CORE, "podtemplates?fieldManager=m");
    probe.stop_recording().post(&path, sent).await;
    let env = |env: Value| pod_template(json!({"containers": [{"name": "main", "env": env}]}));
    let at = "/template/spec/containers/0/env";
    apply_and_show(probe, "a", &one, env(json!([{"name": "F", "value": "1"}])), at).await;
    apply_and_show(probe, "a", &one, env(json!([{"name": "E", "value": "3"}])), at).await;
    apply_and_show(probe, "a", &format!("{one}?force=true"), env(json!([{"name": "E", "value": "3"}])), at)
        .await;
}

pub async fn service_ports_are_known_by_port_and_protocol(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "services/one");
    let ports = |ports: Value| service(json!({"ports": ports}));
    let show = "/spec/ports";
    let one_port = json!([{"name": "t", "port": 80}]);
    apply_and_show(probe, "a", &one, ports(one_port), show).await;
    let both = json!([{"name": "t", "port": 80}, {"name": "u", "port": 80, "protocol": "UDP"}]);
    apply_and_show(probe, "a", &one, ports(both), show).await;
    apply_and_show(
        probe,
        "b",
        &one,
        ports(json!([{"name": "t", "port": 80, "protocol": "TCP", "targetPort": 81}])),
        show,
    )
    .await;
    apply_and_show(probe, "c", &one, ports(json!([{"name": "x", "port": 90, "targetPort": "web"}])), show)
        .await;
    apply_and_show(probe, "a", &one, ports(json!([{"name": "u", "port": 80, "protocol": "UDP"}])), show)
        .await;
}

//! Server-side apply: accepted requests, and how other writes and subresources are recorded.

use serde_json::{Value, json};

use super::apply_records::{applied_object, apply_and_show, config_map, own_fields, show_answer};
use super::probe::{APPLY_PATCH, ContractProbe, JSON_PATCH, MERGE_PATCH, STRATEGIC_PATCH};

const CORE: &str = "/api/v1";
const APPS: &str = "/apis/apps/v1";
const BATCH: &str = "/apis/batch/v1";

pub async fn null_in_an_apply(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "configmaps/one");
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"x": "1", "y": null}})), "/data").await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"x": null}})), "/data").await;
    apply_and_show(probe, "a", &one, config_map(json!({"data": null})), "/data").await;
    apply_and_show(
        probe,
        "a",
        &one,
        config_map(json!({"metadata": {"labels": null, "annotations": {}}})),
        "",
    )
    .await;
    let two = probe.namespaced_path(CORE, "podtemplates/one");
    let container = json!({"name": "main", "image": "a", "args": null, "resources": {}, "env": []});
    let sent = applied_object(
        "v1",
        "PodTemplate",
        json!({"template": {"spec": {"containers": [container], "nodeSelector": null}}}),
    );
    apply_and_show(probe, "a", &two, sent, "/template/spec/containers").await;
}

pub async fn what_an_apply_may_say_about_itself(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "configmaps/one");
    let made = apply_and_show(probe, "a", &one, config_map(json!({"data": {"x": "1"}})), "/none").await;
    let revision = made.revision();
    for metadata in [
        json!({"resourceVersion": "1"}),
        json!({"resourceVersion": revision}),
        json!({"managedFields": []}),
        json!({"managedFields": [{"manager": "a", "operation": "Apply"}]}),
        json!({"uid": "00000000-0000-0000-0000-000000000009"}),
        json!({"generation": 7, "creationTimestamp": null}),
        json!({"name": "two"}),
        json!({"namespace": "default"}),
    ] {
        let answer = probe
            .stop_recording()
            .apply("a", &one, config_map(json!({"metadata": metadata, "data": {"x": "1"}})))
            .await;
        let shown = metadata.to_string().replace(&revision, "(current)");
        show_answer(probe.start_recording(), &shown, &answer, "/none");
    }
    let none = probe.namespaced_path(CORE, "configmaps/none");
    for metadata in [json!({"uid": "00000000-0000-0000-0000-000000000009"}), json!({"resourceVersion": "1"})]
    {
        let mut metadata = metadata;
        metadata["name"] = json!("none");
        apply_and_show(probe, "a", &none, config_map(json!({"metadata": metadata})), "/none").await;
    }
}

pub async fn the_type_of_an_apply_must_be_right(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "configmaps/one");
    for (api_version, kind) in
        [("v2", "ConfigMap"), ("apps/v1", "ConfigMap"), ("v1", "Secret"), ("", "ConfigMap"), ("v1", "")]
    {
        let mut sent = config_map(json!({}));
        sent["apiVersion"] = json!(api_version);
        sent["kind"] = json!(kind);
        probe.apply("a", &one, sent).await;
    }
    for body in
        ["", "[]", "a: b: c", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {x: 1}\n", "7"]
    {
        let path = format!("{one}?fieldManager=a");
        probe.send(http::Method::PATCH, &path, &[("content-type", APPLY_PATCH)], body).await;
    }
}

pub async fn unknown_fields_in_an_apply(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "podtemplates/one");
    // one mistake at a time: of several a real server reports one or all
    let sent = applied_object(
        "v1",
        "PodTemplate",
        json!({"template": {"spec": {"containers": [{"name": "main", "image": "a", "imagine": "b"}]}}}),
    );
    for query in ["?fieldValidation=Strict", "?fieldValidation=Warn", "?fieldValidation=Ignore", ""] {
        apply_and_show(probe, "a", &format!("{one}{query}"), sent.clone(), "/none").await;
    }
    let wrong = applied_object(
        "v1",
        "PodTemplate",
        json!({"template": {"spec": {"containers": [{"name": "main", "image": 7}]}}}),
    );
    apply_and_show(probe, "a", &one, wrong, "/none").await;
    let wrong =
        applied_object("v1", "PodTemplate", json!({"template": {"spec": {"containers": {"name": "main"}}}}));
    apply_and_show(probe, "a", &one, wrong, "/none").await;
    let configs = probe.namespaced_path(CORE, "configmaps/one");
    apply_and_show(probe, "a", &configs, config_map(json!({"data": {"x": 1}})), "/data").await;
}

pub async fn other_writes_are_recorded_as_updates(probe: &mut ContractProbe) {
    let path = probe.namespaced_path(CORE, "configmaps");
    let one = format!("{path}/one");
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"x": "1", "y": "1", "z": "1"}})), "/none")
        .await;
    let put = config_map(json!({"data": {"x": "2", "y": "1", "w": "1"}}));
    let answer = probe.stop_recording().put(&format!("{one}?fieldManager=putter"), put).await;
    show_answer(probe.start_recording(), "a put changes x, adds w, drops z", &answer, "/data");
    for (media, patch) in [
        (MERGE_PATCH, json!({"data": {"y": null, "v": "1"}})),
        (
            JSON_PATCH,
            json!([{"op": "remove", "path": "/data/x"}, {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}]),
        ),
        (STRATEGIC_PATCH, json!({"data": {"$patch": "replace", "u": "1"}})),
        (MERGE_PATCH, json!({"data": {"u": "1"}})),
    ] {
        let answer =
            probe.stop_recording().patch(media, &format!("{one}?fieldManager=patcher"), patch.clone()).await;
        show_answer(probe.start_recording(), &patch.to_string(), &answer, "/data");
    }
    let same = probe
        .stop_recording()
        .put(
            &format!("{one}?fieldManager=idle"),
            config_map(json!({"data": {"u": "1"}, "metadata": {"labels": {"l": "1"}}})),
        )
        .await;
    show_answer(probe.start_recording(), "a put of the same", &same, "/none");
    // the same manager by apply and by update
    let answer = probe
        .stop_recording()
        .patch(MERGE_PATCH, &format!("{one}?fieldManager=a"), json!({"data": {"u": "2"}}))
        .await;
    show_answer(probe.start_recording(), "a patches what it may apply", &answer, "/none");
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"u": "3"}})), "/data").await;
}

/// A CronJob that no controller changes.
pub async fn subresources_are_owned_apart(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(BATCH, "cronjobs/one");
    let sent = |time: &str| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]});
        let job = json!({"spec": {"template": {"spec": pod}}});
        let spec = json!({"schedule": "1 1 1 1 *", "suspend": true, "jobTemplate": job});
        let status = json!({"lastScheduleTime": format!("20{time}-01-01T00:00:00Z")});
        applied_object("batch/v1", "CronJob", json!({"spec": spec, "status": status}))
    };
    apply_and_show(probe, "a", &one, sent("01"), "/none").await;
    let status = apply_and_show(probe, "a", &format!("{one}/status"), sent("02"), "/none").await;
    probe.record_value("status", &json!(status.body["status"]["lastScheduleTime"] == "2002-01-01T00:00:00Z"));
    apply_and_show(probe, "b", &format!("{one}/status"), sent("03"), "/none").await;
    let mut only = sent("02");
    only.as_object_mut().unwrap().remove("spec");
    apply_and_show(probe, "a", &format!("{one}/status"), only, "/none").await;
    apply_and_show(probe, "a", &one, sent("04"), "/none").await;
    let mut none = sent("05");
    none["metadata"]["name"] = json!("none");
    apply_and_show(probe, "a", &probe.namespaced_path(BATCH, "cronjobs/none/status"), none, "/none").await;
}

fn scalable(replicas: Value) -> Value {
    let pod = json!({"containers": [{"name": "main", "image": "nginx"}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod});
    let spec = json!({"paused": true, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let mut out = applied_object("apps/v1", "Deployment", json!({"spec": spec}));
    if !replicas.is_null() {
        out["spec"]["replicas"] = replicas;
    }
    out
}

pub async fn a_scale_is_owned_apart(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(APPS, "deployments/one");
    apply_and_show(probe, "a", &one, scalable(json!(0)), "/spec/replicas").await;
    let scale = json!({"metadata": {"name": "one"}, "spec": {"replicas": 1}});
    probe.stop_recording().put(&format!("{one}/scale?fieldManager=scaler"), scale).await;
    let after = probe.get(&one).await;
    show_answer(probe.start_recording(), "scaled", &after, "/spec/replicas");
    apply_and_show(probe, "a", &one, scalable(json!(0)), "/spec/replicas").await;
    apply_and_show(probe, "a", &one, scalable(Value::Null), "/spec/replicas").await;
}

pub async fn a_scale_can_be_applied(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(APPS, "deployments/one");
    apply_and_show(probe, "a", &one, scalable(json!(0)), "/spec/replicas").await;
    let applied =
        |replicas: u32| applied_object("autoscaling/v1", "Scale", json!({"spec": {"replicas": replicas}}));
    apply_and_show(probe, "b", &format!("{one}/scale"), applied(2), "/spec").await;
    apply_and_show(probe, "b", &format!("{one}/scale?force=true"), applied(0), "/spec").await;
    let after = probe.stop_recording().get(&one).await;
    show_answer(probe.start_recording(), "after", &after, "/spec/replicas");
}

pub async fn scales_of_other_workloads_can_be_applied(probe: &mut ContractProbe) {
    for (plural, kind) in [("replicasets", "ReplicaSet"), ("statefulsets", "StatefulSet")] {
        let one = probe.namespaced_path(APPS, &format!("{plural}/one"));
        let scale = format!("{one}/scale");
        let main = |replicas: u32| {
            let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
            applied_object(
                "apps/v1",
                kind,
                json!({"spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
            )
        };
        let wanted = |fields: Value| applied_object("autoscaling/v1", "Scale", fields);
        let replicas = |replicas: Value| wanted(json!({"spec": {"replicas": replicas}}));
        apply_and_show(probe, "b", &scale, replicas(json!(1)), "/spec").await;
        apply_and_show(probe, "a", &one, main(0), "/spec/replicas").await;
        apply_and_show(probe, "b", &scale, replicas(json!(1)), "/spec").await;
        apply_and_show(probe, "b", &format!("{scale}?force=true"), replicas(json!(1)), "/spec").await;
        apply_and_show(probe, "a", &one, main(0), "/spec/replicas").await;
        apply_and_show(probe, "a", &one, main(1), "/spec/replicas").await;
        let put = json!({"metadata": {"name": "one"}, "spec": {"replicas": 0}});
        probe.stop_recording().put(&format!("{scale}?fieldManager=scaler"), put).await;
        apply_and_show(probe, "b", &scale, replicas(json!(1)), "/spec").await;
        apply_and_show(probe, "c", &scale, replicas(Value::Null), "/spec").await;
        for odd in [json!(-1), json!(3_000_000_000_u32), json!("x"), json!(1.5)] {
            apply_and_show(probe, "b", &format!("{scale}?force=true"), replicas(odd), "/spec").await;
        }
        for metadata in [
            json!({"uid": "00000000-0000-0000-0000-000000000009"}),
            json!({"resourceVersion": "1"}),
            json!({"labels": {"a": "b"}}),
        ] {
            apply_and_show(
                probe,
                "b",
                &format!("{scale}?force=true"),
                wanted(json!({"metadata": metadata, "spec": {"replicas": 0}})),
                "/spec",
            )
            .await;
        }
        apply_and_show(probe, "b", &scale, applied_object("apps/v1", kind, json!({})), "/spec").await;
        apply_and_show(probe, "b", &format!("{scale}?dryRun=All"), replicas(json!(1)), "/spec").await;
        let after = probe.stop_recording().get(&one).await;
        show_answer(probe.start_recording(), "after", &after, "/spec/replicas");
    }
}

pub async fn a_dry_apply_changes_nothing(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(APPS, "replicasets/one");
    let dry = format!("{one}?dryRun=All");
    let sent = |replicas: u32| {
        applied_object(
            "apps/v1",
            "ReplicaSet",
            json!({"spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}}),
        )
    };
    apply_and_show(probe, "a", &dry, sent(0), "/spec/replicas").await;
    let gone = probe.stop_recording().get(&one).await.code;
    probe.start_recording().record_value("is not there", &json!(gone));
    apply_and_show(probe, "a", &one, sent(0), "/none").await;
    let answered = apply_and_show(probe, "b", &format!("{dry}&force=true"), sent(1), "/spec/replicas").await;
    apply_and_show(probe, "b", &dry, sent(2), "/spec/replicas").await;
    let before = probe.stop_recording().get(&one).await;
    show_answer(probe.start_recording(), "untouched", &before, "/spec/replicas");
    let real = probe.stop_recording().apply("b", &format!("{one}?force=true"), sent(0)).await;
    probe.start_recording().record_value("same fields but replicas", &{
        let mut fields = own_fields(&answered.body);
        fields["spec"]["replicas"] = json!(0);
        json!(fields == own_fields(&real.body))
    });
}

pub async fn managed_fields_can_be_emptied(probe: &mut ContractProbe) {
    let one = probe.namespaced_path(CORE, "configmaps/one");
    let applied = config_map(json!({"data": {"x": "1", "y": "1"}}));
    apply_and_show(probe, "a", &one, applied.clone(), "/none").await;
    for (what, fields) in
        [("a list of nothing", json!([{}])), ("an empty list", json!([])), ("null", Value::Null)]
    {
        let patch = json!({"metadata": {"managedFields": fields}});
        let answer = probe.stop_recording().patch(MERGE_PATCH, &format!("{one}?fieldManager=m"), patch).await;
        show_answer(probe.start_recording(), what, &answer, "/data");
        apply_and_show(probe, "a", &one, applied.clone(), "/none").await;
    }
    let remove = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}, {"op": "add", "path": "/data/z", "value": "1"}]);
    let answer = probe.stop_recording().patch(JSON_PATCH, &format!("{one}?fieldManager=m"), remove).await;
    show_answer(probe.start_recording(), "reset with a change", &answer, "/data");
    apply_and_show(probe, "a", &one, config_map(json!({"data": {"x": "2"}})), "/data").await;
    for fields in [
        json!([{"manager": "q", "operation": "Update"}]),
        json!([{"manager": "q", "operation": "Other", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]),
        json!([{"manager": "q", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:y": {}}}}]),
    ] {
        let patch = json!({"metadata": {"managedFields": fields}});
        let answer =
            probe.stop_recording().patch(MERGE_PATCH, &format!("{one}?fieldManager=m"), patch.clone()).await;
        show_answer(probe.start_recording(), &patch.to_string(), &answer, "/none");
    }
}

/// The same numbers on every target.
struct FixedRandom(u64);

impl FixedRandom {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn percent_chance(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn choose<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Some of the names, in some order.
    fn choose_some(&mut self, names: &[&'static str]) -> Vec<&'static str> {
        let mut out: Vec<&str> = names.iter().copied().filter(|_| self.percent_chance(55)).collect();
        for at in (1..out.len()).rev() {
            out.swap(at, self.below(at as u64 + 1) as usize);
        }
        out
    }

    fn random_map(&mut self, names: &[&'static str]) -> Value {
        self.choose_some(names)
            .into_iter()
            .map(|name| (name.to_owned(), json!(self.choose(&["1", "2"]))))
            .collect()
    }

    fn container(&mut self, name: &str) -> Value {
        let mut out = json!({"name": name, "image": self.choose(&["i:1", "i:2"])});
        if self.percent_chance(60) {
            let names = self.choose_some(&["A", "B", "C"]);
            out["env"] = names
                .into_iter()
                .map(|name| json!({"name": name, "value": self.choose(&["1", "2"])}))
                .collect();
        }
        if self.percent_chance(40) {
            let names = self.choose_some(&["80", "81"]);
            out["ports"] = names
                .into_iter()
                .map(|port| json!({"containerPort": port.parse::<u32>().unwrap()}))
                .collect();
        }
        if self.percent_chance(40) {
            out["args"] = json!(self.choose_some(&["x", "y"]));
        }
        if self.percent_chance(30) {
            out["resources"] = json!({"limits": {"cpu": self.choose(&["1", "1000m", "500m"])}});
        }
        out
    }

    fn pod_template(&mut self) -> Value {
        let names = self.choose_some(&["main", "side", "third"]);
        let containers: Vec<Value> = names.into_iter().map(|name| self.container(name)).collect();
        let mut out =
            applied_object("v1", "PodTemplate", json!({"template": {"spec": {"containers": containers}}}));
        if self.percent_chance(50) {
            out["metadata"]["labels"] = self.random_map(&["a", "b", "c"]);
        }
        if self.percent_chance(30) {
            out["template"]["spec"]["nodeSelector"] = self.random_map(&["n", "m"]);
        }
        if self.percent_chance(30) {
            out["metadata"]["finalizers"] = json!(self.choose_some(&["example.com/a", "example.com/b"]));
        }
        out
    }
}

/// Random applies, forced and not, and updates: the response of every step, and the final objects.
pub async fn random_applies(probe: &mut ContractProbe) {
    for story in 1..=20 {
        let mut draw = FixedRandom(story);
        for _ in 0..story {
            draw.below(2);
        }
        let path = probe.namespaced_path(CORE, "podtemplates");
        let name = format!("random-{story}");
        let one = format!("{path}/{name}");
        let mut codes = Vec::new();
        for _ in 0..8 {
            let manager = draw.choose(&["a", "b", "c"]);
            let mut sent = draw.pod_template();
            sent["metadata"]["name"] = json!(name);
            let verb = draw.below(10);
            let answer = match verb {
                0 => probe.stop_recording().put(&format!("{one}?fieldManager={manager}"), sent).await,
                1 => {
                    let patch = json!({"metadata": {"labels": sent["metadata"]["labels"]}});
                    probe
                        .stop_recording()
                        .patch(MERGE_PATCH, &format!("{one}?fieldManager={manager}"), patch)
                        .await
                }
                2..=4 => probe.stop_recording().apply(manager, &one, sent).await,
                _ => probe.stop_recording().apply(manager, &format!("{one}?force=true"), sent).await,
            };
            let verb =
                ["put", "patch", "apply", "apply", "apply"].get(verb as usize).unwrap_or(&"forced apply");
            let message = answer.body["message"].as_str().unwrap_or_default();
            codes.push(format!("{manager}: {verb}: {} {message}", answer.code).trim_end().to_owned());
        }
        let end = probe.stop_recording().get(&one).await;
        probe.start_recording().record_value(&name, &json!(codes));
        show_answer(probe, &format!("{name} at last"), &end, "");
        probe.stop_recording().patch(MERGE_PATCH, &one, json!({"metadata": {"finalizers": null}})).await;
    }
    probe.start_recording();
}

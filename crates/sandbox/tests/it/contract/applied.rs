//! Server-side apply: accepted requests, and how other writes and subresources are recorded.

use serde_json::{Value, json};

use super::owned::{apply, config, object, own_fields, tell};
use super::probe::{APPLY, JSON_PATCH, MERGE, Probe, STRATEGIC};

const CORE: &str = "/api/v1";
const APPS: &str = "/apis/apps/v1";
const BATCH: &str = "/apis/batch/v1";

pub async fn null_in_an_apply(probe: &mut Probe) {
    let one = probe.at(CORE, "configmaps/one");
    apply(probe, "a", &one, config(json!({"data": {"x": "1", "y": null}})), "/data").await;
    apply(probe, "a", &one, config(json!({"data": {"x": null}})), "/data").await;
    apply(probe, "a", &one, config(json!({"data": null})), "/data").await;
    apply(probe, "a", &one, config(json!({"metadata": {"labels": null, "annotations": {}}})), "").await;
    let two = probe.at(CORE, "podtemplates/one");
    let container = json!({"name": "main", "image": "a", "args": null, "resources": {}, "env": []});
    let sent = object(
        "v1",
        "PodTemplate",
        json!({"template": {"spec": {"containers": [container], "nodeSelector": null}}}),
    );
    apply(probe, "a", &two, sent, "/template/spec/containers").await;
}

pub async fn what_an_apply_may_say_about_itself(probe: &mut Probe) {
    let one = probe.at(CORE, "configmaps/one");
    let made = apply(probe, "a", &one, config(json!({"data": {"x": "1"}})), "/none").await;
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
        let answer =
            probe.quiet().apply("a", &one, config(json!({"metadata": metadata, "data": {"x": "1"}}))).await;
        let shown = metadata.to_string().replace(&revision, "(current)");
        tell(probe.loud(), &shown, &answer, "/none");
    }
    let none = probe.at(CORE, "configmaps/none");
    for metadata in [json!({"uid": "00000000-0000-0000-0000-000000000009"}), json!({"resourceVersion": "1"})]
    {
        let mut metadata = metadata;
        metadata["name"] = json!("none");
        apply(probe, "a", &none, config(json!({"metadata": metadata})), "/none").await;
    }
}

pub async fn the_type_of_an_apply_must_be_right(probe: &mut Probe) {
    let one = probe.at(CORE, "configmaps/one");
    for (api_version, kind) in
        [("v2", "ConfigMap"), ("apps/v1", "ConfigMap"), ("v1", "Secret"), ("", "ConfigMap"), ("v1", "")]
    {
        let mut sent = config(json!({}));
        sent["apiVersion"] = json!(api_version);
        sent["kind"] = json!(kind);
        probe.apply("a", &one, sent).await;
    }
    for body in
        ["", "[]", "a: b: c", "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: one}\ndata: {x: 1}\n", "7"]
    {
        let path = format!("{one}?fieldManager=a");
        probe.send(http::Method::PATCH, &path, &[("content-type", APPLY)], body).await;
    }
}

pub async fn unknown_fields_in_an_apply(probe: &mut Probe) {
    let one = probe.at(CORE, "podtemplates/one");
    // one mistake at a time: of several a real server reports one or all
    let sent = object(
        "v1",
        "PodTemplate",
        json!({"template": {"spec": {"containers": [{"name": "main", "image": "a", "imagine": "b"}]}}}),
    );
    for query in ["?fieldValidation=Strict", "?fieldValidation=Warn", "?fieldValidation=Ignore", ""] {
        apply(probe, "a", &format!("{one}{query}"), sent.clone(), "/none").await;
    }
    let wrong = object(
        "v1",
        "PodTemplate",
        json!({"template": {"spec": {"containers": [{"name": "main", "image": 7}]}}}),
    );
    apply(probe, "a", &one, wrong, "/none").await;
    let wrong = object("v1", "PodTemplate", json!({"template": {"spec": {"containers": {"name": "main"}}}}));
    apply(probe, "a", &one, wrong, "/none").await;
    let configs = probe.at(CORE, "configmaps/one");
    apply(probe, "a", &configs, config(json!({"data": {"x": 1}})), "/data").await;
}

pub async fn other_writes_are_recorded_as_updates(probe: &mut Probe) {
    let path = probe.at(CORE, "configmaps");
    let one = format!("{path}/one");
    apply(probe, "a", &one, config(json!({"data": {"x": "1", "y": "1", "z": "1"}})), "/none").await;
    let put = config(json!({"data": {"x": "2", "y": "1", "w": "1"}}));
    let answer = probe.quiet().put(&format!("{one}?fieldManager=putter"), put).await;
    tell(probe.loud(), "a put changes x, adds w, drops z", &answer, "/data");
    for (media, patch) in [
        (MERGE, json!({"data": {"y": null, "v": "1"}})),
        (
            JSON_PATCH,
            json!([{"op": "remove", "path": "/data/x"}, {"op": "add", "path": "/metadata/labels", "value": {"l": "1"}}]),
        ),
        (STRATEGIC, json!({"data": {"$patch": "replace", "u": "1"}})),
        (MERGE, json!({"data": {"u": "1"}})),
    ] {
        let answer = probe.quiet().patch(media, &format!("{one}?fieldManager=patcher"), patch.clone()).await;
        tell(probe.loud(), &patch.to_string(), &answer, "/data");
    }
    let same = probe
        .quiet()
        .put(
            &format!("{one}?fieldManager=idle"),
            config(json!({"data": {"u": "1"}, "metadata": {"labels": {"l": "1"}}})),
        )
        .await;
    tell(probe.loud(), "a put of the same", &same, "/none");
    // the same manager by apply and by update
    let answer =
        probe.quiet().patch(MERGE, &format!("{one}?fieldManager=a"), json!({"data": {"u": "2"}})).await;
    tell(probe.loud(), "a patches what it may apply", &answer, "/none");
    apply(probe, "a", &one, config(json!({"data": {"u": "3"}})), "/data").await;
}

/// A CronJob that no controller changes.
pub async fn subresources_are_owned_apart(probe: &mut Probe) {
    let one = probe.at(BATCH, "cronjobs/one");
    let sent = |time: &str| {
        let pod = json!({"restartPolicy": "Never", "containers": [{"name": "main", "image": "nginx"}]});
        let job = json!({"spec": {"template": {"spec": pod}}});
        let spec = json!({"schedule": "1 1 1 1 *", "suspend": true, "jobTemplate": job});
        let status = json!({"lastScheduleTime": format!("20{time}-01-01T00:00:00Z")});
        object("batch/v1", "CronJob", json!({"spec": spec, "status": status}))
    };
    apply(probe, "a", &one, sent("01"), "/none").await;
    let status = apply(probe, "a", &format!("{one}/status"), sent("02"), "/none").await;
    probe.show("status", &json!(status.body["status"]["lastScheduleTime"] == "2002-01-01T00:00:00Z"));
    apply(probe, "b", &format!("{one}/status"), sent("03"), "/none").await;
    let mut only = sent("02");
    only.as_object_mut().unwrap().remove("spec");
    apply(probe, "a", &format!("{one}/status"), only, "/none").await;
    apply(probe, "a", &one, sent("04"), "/none").await;
    let mut none = sent("05");
    none["metadata"]["name"] = json!("none");
    apply(probe, "a", &probe.at(BATCH, "cronjobs/none/status"), none, "/none").await;
}

fn scalable(replicas: Value) -> Value {
    let pod = json!({"containers": [{"name": "main", "image": "nginx"}]});
    let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": pod});
    let spec = json!({"paused": true, "selector": {"matchLabels": {"a": "b"}}, "template": template});
    let mut out = object("apps/v1", "Deployment", json!({"spec": spec}));
    if !replicas.is_null() {
        out["spec"]["replicas"] = replicas;
    }
    out
}

pub async fn a_scale_is_owned_apart(probe: &mut Probe) {
    let one = probe.at(APPS, "deployments/one");
    apply(probe, "a", &one, scalable(json!(0)), "/spec/replicas").await;
    let scale = json!({"metadata": {"name": "one"}, "spec": {"replicas": 1}});
    probe.quiet().put(&format!("{one}/scale?fieldManager=scaler"), scale).await;
    let after = probe.get(&one).await;
    tell(probe.loud(), "scaled", &after, "/spec/replicas");
    apply(probe, "a", &one, scalable(json!(0)), "/spec/replicas").await;
    apply(probe, "a", &one, scalable(Value::Null), "/spec/replicas").await;
}

pub async fn a_scale_can_be_applied(probe: &mut Probe) {
    let one = probe.at(APPS, "deployments/one");
    apply(probe, "a", &one, scalable(json!(0)), "/spec/replicas").await;
    let applied = |replicas: u32| object("autoscaling/v1", "Scale", json!({"spec": {"replicas": replicas}}));
    apply(probe, "b", &format!("{one}/scale"), applied(2), "/spec").await;
    apply(probe, "b", &format!("{one}/scale?force=true"), applied(0), "/spec").await;
    let after = probe.quiet().get(&one).await;
    tell(probe.loud(), "after", &after, "/spec/replicas");
}

pub async fn scales_of_other_workloads_can_be_applied(probe: &mut Probe) {
    for (plural, kind) in [("replicasets", "ReplicaSet"), ("statefulsets", "StatefulSet")] {
        let one = probe.at(APPS, &format!("{plural}/one"));
        let scale = format!("{one}/scale");
        let main = |replicas: u32| {
            let template = json!({"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}});
            object(
                "apps/v1",
                kind,
                json!({"spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}}, "template": template}}),
            )
        };
        let wanted = |fields: Value| object("autoscaling/v1", "Scale", fields);
        let replicas = |replicas: Value| wanted(json!({"spec": {"replicas": replicas}}));
        apply(probe, "b", &scale, replicas(json!(1)), "/spec").await;
        apply(probe, "a", &one, main(0), "/spec/replicas").await;
        apply(probe, "b", &scale, replicas(json!(1)), "/spec").await;
        apply(probe, "b", &format!("{scale}?force=true"), replicas(json!(1)), "/spec").await;
        apply(probe, "a", &one, main(0), "/spec/replicas").await;
        apply(probe, "a", &one, main(1), "/spec/replicas").await;
        let put = json!({"metadata": {"name": "one"}, "spec": {"replicas": 0}});
        probe.quiet().put(&format!("{scale}?fieldManager=scaler"), put).await;
        apply(probe, "b", &scale, replicas(json!(1)), "/spec").await;
        apply(probe, "c", &scale, replicas(Value::Null), "/spec").await;
        for odd in [json!(-1), json!(3_000_000_000_u32), json!("x"), json!(1.5)] {
            apply(probe, "b", &format!("{scale}?force=true"), replicas(odd), "/spec").await;
        }
        for metadata in [
            json!({"uid": "00000000-0000-0000-0000-000000000009"}),
            json!({"resourceVersion": "1"}),
            json!({"labels": {"a": "b"}}),
        ] {
            apply(
                probe,
                "b",
                &format!("{scale}?force=true"),
                wanted(json!({"metadata": metadata, "spec": {"replicas": 0}})),
                "/spec",
            )
            .await;
        }
        apply(probe, "b", &scale, object("apps/v1", kind, json!({})), "/spec").await;
        apply(probe, "b", &format!("{scale}?dryRun=All"), replicas(json!(1)), "/spec").await;
        let after = probe.quiet().get(&one).await;
        tell(probe.loud(), "after", &after, "/spec/replicas");
    }
}

pub async fn a_dry_apply_changes_nothing(probe: &mut Probe) {
    let one = probe.at(APPS, "replicasets/one");
    let dry = format!("{one}?dryRun=All");
    let sent = |replicas: u32| {
        object(
            "apps/v1",
            "ReplicaSet",
            json!({"spec": {"replicas": replicas, "selector": {"matchLabels": {"a": "b"}},
        "template": {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "main", "image": "nginx"}]}}}}),
        )
    };
    apply(probe, "a", &dry, sent(0), "/spec/replicas").await;
    let gone = probe.quiet().get(&one).await.code;
    probe.loud().show("is not there", &json!(gone));
    apply(probe, "a", &one, sent(0), "/none").await;
    let answered = apply(probe, "b", &format!("{dry}&force=true"), sent(1), "/spec/replicas").await;
    apply(probe, "b", &dry, sent(2), "/spec/replicas").await;
    let before = probe.quiet().get(&one).await;
    tell(probe.loud(), "untouched", &before, "/spec/replicas");
    let real = probe.quiet().apply("b", &format!("{one}?force=true"), sent(0)).await;
    probe.loud().show("same fields but replicas", &{
        let mut fields = own_fields(&answered.body);
        fields["spec"]["replicas"] = json!(0);
        json!(fields == own_fields(&real.body))
    });
}

pub async fn managed_fields_can_be_emptied(probe: &mut Probe) {
    let one = probe.at(CORE, "configmaps/one");
    let applied = config(json!({"data": {"x": "1", "y": "1"}}));
    apply(probe, "a", &one, applied.clone(), "/none").await;
    for (what, fields) in
        [("a list of nothing", json!([{}])), ("an empty list", json!([])), ("null", Value::Null)]
    {
        let patch = json!({"metadata": {"managedFields": fields}});
        let answer = probe.quiet().patch(MERGE, &format!("{one}?fieldManager=m"), patch).await;
        tell(probe.loud(), what, &answer, "/data");
        apply(probe, "a", &one, applied.clone(), "/none").await;
    }
    let remove = json!([{"op": "replace", "path": "/metadata/managedFields", "value": [{}]}, {"op": "add", "path": "/data/z", "value": "1"}]);
    let answer = probe.quiet().patch(JSON_PATCH, &format!("{one}?fieldManager=m"), remove).await;
    tell(probe.loud(), "reset with a change", &answer, "/data");
    apply(probe, "a", &one, config(json!({"data": {"x": "2"}})), "/data").await;
    for fields in [
        json!([{"manager": "q", "operation": "Update"}]),
        json!([{"manager": "q", "operation": "Other", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {}}]),
        json!([{"manager": "q", "operation": "Update", "apiVersion": "v1", "fieldsType": "FieldsV1", "fieldsV1": {"f:data": {"f:y": {}}}}]),
    ] {
        let patch = json!({"metadata": {"managedFields": fields}});
        let answer = probe.quiet().patch(MERGE, &format!("{one}?fieldManager=m"), patch.clone()).await;
        tell(probe.loud(), &patch.to_string(), &answer, "/none");
    }
}

/// The same numbers on every target.
struct Draw(u64);

impl Draw {
    fn below(&mut self, bound: u64) -> u64 {
        self.0 = self.0.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (self.0 >> 33) % bound
    }

    fn is(&mut self, percent: u64) -> bool {
        self.below(100) < percent
    }

    fn of<'a>(&mut self, choices: &[&'a str]) -> &'a str {
        choices[self.below(choices.len() as u64) as usize]
    }

    /// Some of the names, in some order.
    fn some(&mut self, names: &[&'static str]) -> Vec<&'static str> {
        let mut out: Vec<&str> = names.iter().copied().filter(|_| self.is(55)).collect();
        for at in (1..out.len()).rev() {
            out.swap(at, self.below(at as u64 + 1) as usize);
        }
        out
    }

    fn map(&mut self, names: &[&'static str]) -> Value {
        self.some(names).into_iter().map(|name| (name.to_owned(), json!(self.of(&["1", "2"])))).collect()
    }

    fn container(&mut self, name: &str) -> Value {
        let mut out = json!({"name": name, "image": self.of(&["i:1", "i:2"])});
        if self.is(60) {
            let names = self.some(&["A", "B", "C"]);
            out["env"] =
                names.into_iter().map(|name| json!({"name": name, "value": self.of(&["1", "2"])})).collect();
        }
        if self.is(40) {
            let names = self.some(&["80", "81"]);
            out["ports"] = names
                .into_iter()
                .map(|port| json!({"containerPort": port.parse::<u32>().unwrap()}))
                .collect();
        }
        if self.is(40) {
            out["args"] = json!(self.some(&["x", "y"]));
        }
        if self.is(30) {
            out["resources"] = json!({"limits": {"cpu": self.of(&["1", "1000m", "500m"])}});
        }
        out
    }

    fn pod_template(&mut self) -> Value {
        let names = self.some(&["main", "side", "third"]);
        let containers: Vec<Value> = names.into_iter().map(|name| self.container(name)).collect();
        let mut out = object("v1", "PodTemplate", json!({"template": {"spec": {"containers": containers}}}));
        if self.is(50) {
            out["metadata"]["labels"] = self.map(&["a", "b", "c"]);
        }
        if self.is(30) {
            out["template"]["spec"]["nodeSelector"] = self.map(&["n", "m"]);
        }
        if self.is(30) {
            out["metadata"]["finalizers"] = json!(self.some(&["example.com/a", "example.com/b"]));
        }
        out
    }
}

/// Random applies, forced and not, and updates: the response of every step, and the final objects.
pub async fn random_applies(probe: &mut Probe) {
    for story in 1..=20 {
        let mut draw = Draw(story);
        for _ in 0..story {
            draw.below(2);
        }
        let path = probe.at(CORE, "podtemplates");
        let name = format!("random-{story}");
        let one = format!("{path}/{name}");
        let mut codes = Vec::new();
        for _ in 0..8 {
            let manager = draw.of(&["a", "b", "c"]);
            let mut sent = draw.pod_template();
            sent["metadata"]["name"] = json!(name);
            let verb = draw.below(10);
            let answer = match verb {
                0 => probe.quiet().put(&format!("{one}?fieldManager={manager}"), sent).await,
                1 => {
                    let patch = json!({"metadata": {"labels": sent["metadata"]["labels"]}});
                    probe.quiet().patch(MERGE, &format!("{one}?fieldManager={manager}"), patch).await
                }
                2..=4 => probe.quiet().apply(manager, &one, sent).await,
                _ => probe.quiet().apply(manager, &format!("{one}?force=true"), sent).await,
            };
            let verb =
                ["put", "patch", "apply", "apply", "apply"].get(verb as usize).unwrap_or(&"forced apply");
            let message = answer.body["message"].as_str().unwrap_or_default();
            codes.push(format!("{manager}: {verb}: {} {message}", answer.code).trim_end().to_owned());
        }
        let end = probe.quiet().get(&one).await;
        probe.loud().show(&name, &json!(codes));
        tell(probe, &format!("{name} at last"), &end, "");
        probe.quiet().patch(MERGE, &one, json!({"metadata": {"finalizers": null}})).await;
    }
    probe.loud();
}

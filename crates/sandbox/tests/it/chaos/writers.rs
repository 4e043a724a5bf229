//! Clients that write.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use kube::api::{ApiResource, DeleteParams, DynamicObject, Patch, PatchParams, PostParams};
use kube::core::GroupVersionKind;
use kube::{Api, Client};
use parking_lot::Mutex;
use sandbox::{Sandbox, Scenario};
use serde_json::{Value, json};
use tokio::time::Instant;

use crate::draw::SeededRandom;
use crate::support::{config_map, deployment};

/// The log of a run: each action with its time and result.
#[derive(Clone)]
pub struct RunLog {
    started: Instant,
    lines: Arc<Mutex<String>>,
}

impl RunLog {
    pub fn new() -> Self {
        Self { started: Instant::now(), lines: Arc::default() }
    }

    pub fn write(&self, line: &str) {
        let at = self.started.elapsed().as_millis();
        self.lines.lock().push_str(&format!("{at} {line}\n"));
    }

    pub fn text(&self) -> String {
        self.lines.lock().clone()
    }
}

/// Values that a writer may find later: the last accepted one, and those of later writes with a lost response.
pub struct AcceptedValues {
    pub values: BTreeSet<String>,
}

pub struct ChaosWriter {
    pub name: &'static str,
    pub client: Client,
    pub sandbox: Sandbox,
    pub draw: SeededRandom,
    pub log: RunLog,
    pub until: Instant,
}

pub fn api(client: &Client, group: &str, kind: &str) -> Api<DynamicObject> {
    let kind = GroupVersionKind::gvk(group, "v1", kind);
    Api::default_namespaced_with(client.clone(), &ApiResource::from_gvk(&kind))
}

/// The result in one word, without wording that differs.
fn outcome_word<T>(result: &kube::Result<T>) -> String {
    match result {
        Ok(_) => "ok".to_owned(),
        Err(kube::Error::Api(status)) => format!("{} {}", status.code, status.reason),
        Err(_) => "broken".to_owned(),
    }
}

const SCENARIOS: &[&str] = &[
    "",
    "rules: [{fail: crash-loop, fail-share: 1/3, fail-count: 4}]",
    "rules: [{name: web-1*, fail: readiness}]",
    "rules: [{image: '*:2', fail: image-pull}]",
    "rules: [{start: 1s..30s, fail: slow-terminate}]",
    "rules: [{fail: oom, fail-after: 10s, fail-count: 2}]",
    "rules: [{fail: unschedulable, fail-share: 1/2}]",
];

impl ChaosWriter {
    /// Works until the end; returns the values that its own ConfigMap may have then.
    pub async fn run(mut self) -> (&'static str, AcceptedValues) {
        let mut promise = AcceptedValues { values: [String::new()].into() };
        let mut round = 0;
        while Instant::now() < self.until {
            tokio::time::sleep(Duration::from_millis(200 + self.draw.below(8_000))).await;
            round += 1;
            self.write_own_map(&mut promise, round).await;
            let (what, outcome) = match self.name {
                "left" | "right" => self.apply().await,
                "updater" => self.update().await,
                "scaler" => self.scale().await,
                "deleter" => self.delete().await,
                _ => self.change_scenario(),
            };
            self.log.write(&format!("{} {what}: {outcome}", self.name));
        }
        (self.name, promise)
    }

    async fn write_own_map(&mut self, promise: &mut AcceptedValues, round: u64) {
        let value = round.to_string();
        let object = config_map(&format!("own-{}", self.name), json!({"round": value}));
        let parameters = PatchParams::apply(self.name);
        let api = api(&self.client, "", "ConfigMap");
        let result = api.patch(&format!("own-{}", self.name), &parameters, &Patch::Apply(&object)).await;
        match &result {
            Ok(_) => promise.values = [value].into(),
            Err(kube::Error::Api(_)) => {}
            Err(_) => _ = promise.values.insert(value),
        }
        self.log.write(&format!("{} round {round}: {}", self.name, outcome_word(&result)));
    }

    /// Two managers: one applies images, the other labels; both apply data of the same ConfigMaps.
    async fn apply(&mut self) -> (String, String) {
        let number = self.draw.below(3);
        let mut parameters = PatchParams::apply(self.name);
        parameters.force = self.draw.below(3) == 0;
        let (kind, group, object) = if self.draw.below(2) == 0 {
            let key = if self.draw.below(4) == 0 { "shared" } else { self.name };
            let value = self.draw.below(5).to_string();
            ("ConfigMap", "", config_map(&format!("data-{number}"), json!({key: value})))
        } else {
            let mut object =
                deployment(&format!("web-{number}"), 2, &format!("web:{}", 1 + self.draw.below(3)));
            object["metadata"]["labels"] = json!({self.name: self.draw.below(3).to_string()});
            if self.draw.below(2) == 0 {
                object["spec"].as_object_mut().unwrap().remove("replicas");
            }
            ("Deployment", "apps", object)
        };
        let name = object["metadata"]["name"].as_str().unwrap();
        let result = api(&self.client, group, kind).patch(name, &parameters, &Patch::Apply(&object)).await;
        (format!("apply {kind} {name} force={}", parameters.force), outcome_word(&result))
    }

    /// Reads an object, changes it, and writes it back.
    async fn update(&mut self) -> (String, String) {
        let name = format!("data-{}", self.draw.below(3));
        let api = api(&self.client, "", "ConfigMap");
        let result = match api.get(&name).await {
            Ok(mut object) => {
                tokio::time::sleep(Duration::from_millis(self.draw.below(500))).await;
                object.data["data"]["updated"] = Value::from(self.draw.below(5).to_string());
                api.replace(&name, &PostParams::default(), &object).await
            }
            other => other,
        };
        (format!("update {name}"), outcome_word(&result))
    }

    async fn scale(&mut self) -> (String, String) {
        let name = format!("web-{}", self.draw.below(3));
        let replicas = self.draw.below(5);
        let patch = Patch::Merge(json!({"spec": {"replicas": replicas}}));
        let result =
            api(&self.client, "apps", "Deployment").patch_scale(&name, &PatchParams::default(), &patch).await;
        (format!("scale {name} {replicas}"), outcome_word(&result))
    }

    async fn delete(&mut self) -> (String, String) {
        let number = self.draw.below(3);
        let parameters = match self.draw.below(3) {
            0 => DeleteParams::foreground(),
            1 => DeleteParams::orphan(),
            _ => DeleteParams::background(),
        };
        let (group, kind, name) = match self.draw.below(3) {
            0 => ("", "ConfigMap", format!("data-{number}")),
            _ => ("apps", "Deployment", format!("web-{number}")),
        };
        let result = api(&self.client, group, kind).delete(&name, &parameters).await;
        (format!("delete {kind} {name} {:?}", parameters.propagation_policy), outcome_word(&result))
    }

    fn change_scenario(&mut self) -> (String, String) {
        let scenario = self.draw.choose(SCENARIOS);
        self.sandbox.set_scenario(Scenario::parse(scenario).unwrap());
        (format!("scenario {scenario}"), "ok".to_owned())
    }
}

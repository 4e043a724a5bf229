//! One run of chaos.

use std::time::{Duration, SystemTime};

use kube::Client;
use kube::api::ListParams;
use sandbox::{FaultPlan, Sandbox, SandboxOptions, Scenario};
use serde_json::Value;
use tokio::time::Instant;

use super::invariants;
use super::watchers::{ObjectRevisions, WatchedState, watch_manually, watch_with_kube};
use super::writers::{AcceptedValues, ChaosWriter, RunLog, api};
use crate::draw::SeededRandom;

const FAULT_DURATION: Duration = Duration::from_secs(300);
/// Longer than the longest watch and the longest back-off.
const REST_DURATION: Duration = Duration::from_secs(900);
const WRITERS: &[&str] = &["left", "right", "updater", "scaler", "deleter", "weather"];
const KINDS: &[(&str, &str)] = &[("", "Pod"), ("apps", "Deployment"), ("", "ConfigMap")];

pub async fn run(seed: u64) -> Result<String, String> {
    let mut draw = SeededRandom::new(seed, 0);
    let options = SandboxOptions {
        seed,
        name: "eu-1".to_owned(),
        epoch: SystemTime::UNIX_EPOCH,
        history: 50 + draw.below(1_000) as usize,
        ..SandboxOptions::default()
    };
    let sandbox = Sandbox::new(options);
    let client = Client::new(sandbox.service(), "default");
    sandbox.set_faults(&FaultPlan::random(seed, draw.below(101) as u8, FAULT_DURATION));
    let mirrors: Vec<(&str, &str, Vec<WatchedState>)> = KINDS
        .iter()
        .map(|(group, kind)| {
            let api = || api(&client, group, kind);
            (
                *group,
                *kind,
                vec![watch_with_kube(api(), false), watch_with_kube(api(), true), watch_manually(api())],
            )
        })
        .collect();
    let log = RunLog::new();
    let promises = run_writers(&sandbox, &client, &log, seed).await;
    sandbox.set_faults(&FaultPlan::default());
    sandbox.set_scenario(Scenario::default());
    tokio::time::sleep(REST_DURATION).await;
    let mut all = Vec::new();
    for (group, kind, mirrors) in &mirrors {
        let objects = list(&client, group, kind).await;
        compare_watchers(kind, &objects, mirrors)?;
        all.extend(objects);
    }
    all.extend(list(&client, "apps", "ReplicaSet").await);
    check_invariants(&all, &promises)?;
    let mut text = log.text();
    text.push_str(&format!("{:?}\n", sandbox.fault_counts()));
    for record in sandbox.requests() {
        text.push_str(&format!("{record:?}\n"));
    }
    for object in &all {
        text.push_str(&format!("{object}\n"));
    }
    Ok(text)
}

async fn run_writers(
    sandbox: &Sandbox,
    client: &Client,
    log: &RunLog,
    seed: u64,
) -> Vec<(&'static str, AcceptedValues)> {
    let until = Instant::now() + FAULT_DURATION;
    let tasks: Vec<_> = (1..)
        .zip(WRITERS)
        .map(|(number, name)| ChaosWriter {
            name,
            client: client.clone(),
            sandbox: sandbox.clone(),
            draw: SeededRandom::new(seed, number),
            log: log.clone(),
            until,
        })
        .map(|actor| tokio::spawn(actor.run()))
        .collect();
    let mut promises = Vec::new();
    for task in tasks {
        promises.push(task.await.unwrap());
    }
    promises
}

async fn list(client: &Client, group: &str, kind: &str) -> Vec<Value> {
    let list = api(client, group, kind).list(&ListParams::default()).await.unwrap();
    let mut objects: Vec<Value> = list.items.iter().map(|one| serde_json::to_value(one).unwrap()).collect();
    objects.iter_mut().for_each(|one| one["kind"] = Value::from(kind));
    objects
}

fn metadata_text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or("").to_owned()
}

fn compare_watchers(kind: &str, objects: &[Value], mirrors: &[WatchedState]) -> Result<(), String> {
    let listed: ObjectRevisions = objects
        .iter()
        .map(|one| (metadata_text(one, "name"), metadata_text(one, "resourceVersion")))
        .collect();
    for (number, mirror) in mirrors.iter().enumerate() {
        let held = mirror.objects.lock().clone();
        if held != listed {
            return Err(format!("reflector {number} of {kind} holds {held:?}, the list {listed:?}"));
        }
        if let Some(fault) = mirror.violations.lock().first() {
            return Err(format!("{kind} {fault}"));
        }
    }
    Ok(())
}

fn check_invariants(all: &[Value], promises: &[(&str, AcceptedValues)]) -> Result<(), String> {
    for object in all {
        if let Some(what) = invariants::missing_managed_field(object) {
            return Err(format!("{} {}: {what}", object["kind"], metadata_text(object, "name")));
        }
    }
    if let Some(orphan) = invariants::orphaned_object(all) {
        return Err(format!("{orphan} outlived its owner"));
    }
    let deployments = all.iter().filter(|one| one["kind"] == "Deployment");
    if let Some(broken) = deployments.clone().find_map(invariants::incomplete_deployment) {
        return Err(broken);
    }
    for (name, promise) in promises {
        let own = all.iter().find(|one| metadata_text(one, "name") == format!("own-{name}"));
        let value = own.and_then(|own| own["data"]["round"].as_str()).unwrap_or("");
        if !promise.values.contains(value) {
            return Err(format!("{name} was promised {:?} and finds {value:?}", promise.values));
        }
    }
    Ok(())
}

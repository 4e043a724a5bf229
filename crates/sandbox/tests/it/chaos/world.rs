//! One run of chaos.

use std::time::{Duration, SystemTime};

use kube::Client;
use kube::api::ListParams;
use sandbox::{FaultPlan, Sandbox, SandboxOptions, Scenario};
use serde_json::Value;
use tokio::time::Instant;

use super::actors::{Actor, Log, Promise, api};
use super::held;
use super::mirror::{Mirror, Objects, by_hand, by_watcher};
use crate::draw::Draw;

const CHAOS: Duration = Duration::from_secs(300);
/// Longer than the longest watch and the longest back-off.
const REST: Duration = Duration::from_secs(900);
const ACTORS: &[&str] = &["left", "right", "updater", "scaler", "deleter", "weather"];
const KINDS: &[(&str, &str)] = &[("", "Pod"), ("apps", "Deployment"), ("", "ConfigMap")];

pub async fn run(seed: u64) -> Result<String, String> {
    let mut draw = Draw::new(seed, 0);
    let options = SandboxOptions {
        seed,
        name: "eu-1".to_owned(),
        epoch: SystemTime::UNIX_EPOCH,
        history: 50 + draw.below(1_000) as usize,
        ..SandboxOptions::default()
    };
    let sandbox = Sandbox::new(options);
    let client = Client::new(sandbox.service(), "default");
    sandbox.set_faults(&FaultPlan::random(seed, draw.below(101) as u8, CHAOS));
    let mirrors: Vec<(&str, &str, Vec<Mirror>)> = KINDS
        .iter()
        .map(|(group, kind)| {
            let api = || api(&client, group, kind);
            (*group, *kind, vec![by_watcher(api(), false), by_watcher(api(), true), by_hand(api())])
        })
        .collect();
    let log = Log::new();
    let promises = work(&sandbox, &client, &log, seed).await;
    sandbox.set_faults(&FaultPlan::default());
    sandbox.set_scenario(Scenario::default());
    tokio::time::sleep(REST).await;
    let mut all = Vec::new();
    for (group, kind, mirrors) in &mirrors {
        let objects = list(&client, group, kind).await;
        compare(kind, &objects, mirrors)?;
        all.extend(objects);
    }
    all.extend(list(&client, "apps", "ReplicaSet").await);
    check(&all, &promises)?;
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

async fn work(sandbox: &Sandbox, client: &Client, log: &Log, seed: u64) -> Vec<(&'static str, Promise)> {
    let until = Instant::now() + CHAOS;
    let tasks: Vec<_> = (1..)
        .zip(ACTORS)
        .map(|(number, name)| Actor {
            name,
            client: client.clone(),
            sandbox: sandbox.clone(),
            draw: Draw::new(seed, number),
            log: log.clone(),
            until,
        })
        .map(|actor| tokio::spawn(actor.work()))
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

fn text(object: &Value, field: &str) -> String {
    object["metadata"][field].as_str().unwrap_or("").to_owned()
}

fn compare(kind: &str, objects: &[Value], mirrors: &[Mirror]) -> Result<(), String> {
    let listed: Objects =
        objects.iter().map(|one| (text(one, "name"), text(one, "resourceVersion"))).collect();
    for (number, mirror) in mirrors.iter().enumerate() {
        let held = mirror.objects.lock().clone();
        if held != listed {
            return Err(format!("reflector {number} of {kind} holds {held:?}, the list {listed:?}"));
        }
        if let Some(fault) = mirror.faults.lock().first() {
            return Err(format!("{kind} {fault}"));
        }
    }
    Ok(())
}

fn check(all: &[Value], promises: &[(&str, Promise)]) -> Result<(), String> {
    for object in all {
        if let Some(what) = held::unowned_field(object) {
            return Err(format!("{} {}: {what}", object["kind"], text(object, "name")));
        }
    }
    if let Some(orphan) = held::orphan(all) {
        return Err(format!("{orphan} outlived its owner"));
    }
    let deployments = all.iter().filter(|one| one["kind"] == "Deployment");
    if let Some(broken) = deployments.clone().find_map(held::unavailable) {
        return Err(broken);
    }
    for (name, promise) in promises {
        let own = all.iter().find(|one| text(one, "name") == format!("own-{name}"));
        let value = own.and_then(|own| own["data"]["round"].as_str()).unwrap_or("");
        if !promise.allowed.contains(value) {
            return Err(format!("{name} was promised {:?} and finds {value:?}", promise.allowed));
        }
    }
    Ok(())
}

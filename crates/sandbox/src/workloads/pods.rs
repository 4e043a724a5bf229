//! The scheduler and the kubelets: a pod's way from Pending to Ready, and to its end.

use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::context::Context;
use super::failure::{Failure, ready_after};
use super::pod_status::{Phase, write_status};
use crate::object;
use crate::store::Key;
use crate::verbs::{Caller, DeleteOptions};

/// A pod as its node knows it.
#[derive(Debug, Clone)]
pub(super) struct Run {
    started: Instant,
    start_takes: Duration,
    stops: Option<Instant>,
    restarts: u32,
    next_restart: Option<Instant>,
    /// Since when the pod is ready.
    pub(super) ready_since: Option<Instant>,
}

/// From the first failed pull to the back-off, and the first back-off of a crash loop.
const PULL_RETRY: Duration = Duration::from_secs(2);
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(300);

pub(super) fn reconcile(context: &mut Context<'_>, key: &Key, pod: &Value) {
    if object::is_deleting(pod) {
        return end(context, key, pod);
    }
    if matches!(object::text(pod, &["status", "phase"]), Some("Succeeded" | "Failed")) {
        return;
    }
    if Failure::of(pod) == Some(Failure::Unschedulable) {
        write_status(context, key, Phase::Unschedulable);
        return;
    }
    if object::text(pod, &["spec", "nodeName"]).is_none() {
        bind(context, key);
    }
    let run = begin(context, pod);
    advance(context, key, pod, run);
}

fn bind(context: &mut Context<'_>, key: &Key) {
    let nodes: Vec<String> =
        context.state.store.list("nodes", None).map(|node| object::name(node).to_owned()).collect();
    let chosen = context.state.seed.below(nodes.len() as u64) as usize;
    let Some(node) = nodes.get(chosen) else { return };
    let scheduler = Caller::named("kube-scheduler");
    context.write(key, "binding", &scheduler, |pod| object::set(pod, &["spec", "nodeName"], node.as_str()));
}

fn begin(context: &mut Context<'_>, pod: &Value) -> Run {
    let uid = object::uid(pod);
    if let Some(run) = context.memory.pods.get(uid) {
        return run.clone();
    }
    let (shortest, longest) = context.state.options.pod_start;
    let drawn = context.state.seed.duration(shortest, longest);
    let run = Run {
        started: context.now,
        start_takes: ready_after(pod).unwrap_or(drawn),
        stops: None,
        restarts: 0,
        next_restart: None,
        ready_since: None,
    };
    context.memory.pods.insert(uid.to_owned(), run.clone());
    run
}

fn advance(context: &mut Context<'_>, key: &Key, pod: &Value, mut run: Run) {
    let (now, ready_at) = (context.now, run.started + run.start_takes);
    let failure = Failure::of(pod);
    if failure == Some(Failure::ImagePull) {
        let fails_at = run.started + run.start_takes / 2;
        let backs_off_at = fails_at + PULL_RETRY;
        let phase = match now {
            now if now < fails_at => Phase::Creating,
            now if now < backs_off_at => Phase::PullFailed,
            _ => Phase::PullBackOff,
        };
        write_status(context, key, phase);
        if let Some(next) = [fails_at, backs_off_at].into_iter().find(|at| *at > now) {
            context.again_at(key, next);
        }
        return;
    }
    if now < ready_at {
        write_status(context, key, Phase::Creating);
        return context.again_at(key, ready_at);
    }
    match failure {
        Some(failure @ (Failure::CrashLoop | Failure::OutOfMemory)) => crash(context, key, pod, failure, run),
        Some(_) => write_status(context, key, Phase::Unready),
        None => {
            if run.ready_since.is_none() {
                run.ready_since = Some(now);
                context.memory.pods.insert(object::uid(pod).to_owned(), run);
            }
            run_on(context, key, pod, ready_at);
        }
    }
}

/// A pod that runs: for ever, or as long as jobs run.
fn run_on(context: &mut Context<'_>, key: &Key, pod: &Value, ready_at: Instant) {
    if object::text(pod, &["spec", "restartPolicy"]) == Some("Always") {
        return write_status(context, key, Phase::Ready);
    }
    let done_at = ready_at + context.state.options.job_run;
    if context.now < done_at {
        write_status(context, key, Phase::Ready);
        context.again_at(key, done_at);
    } else {
        write_status(context, key, Phase::Succeeded);
    }
}

fn crash(context: &mut Context<'_>, key: &Key, pod: &Value, failure: Failure, mut run: Run) {
    if object::text(pod, &["spec", "restartPolicy"]) == Some("Never") {
        return write_status(context, key, Phase::Failed(failure));
    }
    let back_off = |restarts: u32| (FIRST_BACK_OFF * 2_u32.pow(restarts.min(5))).min(LONGEST_BACK_OFF);
    if run.next_restart.is_none_or(|at| at <= context.now) {
        if run.next_restart.is_some() {
            run.restarts += 1;
        }
        run.next_restart = Some(context.now + back_off(run.restarts));
        context.memory.pods.insert(object::uid(pod).to_owned(), run.clone());
        let wait = back_off(run.restarts);
        write_status(context, key, Phase::Crashed { failure, restarts: run.restarts + 1, wait });
    }
    if let Some(at) = run.next_restart {
        context.again_at(key, at);
    }
}

/// A deleted pod runs a little longer, then its node lets go of it.
fn end(context: &mut Context<'_>, key: &Key, pod: &Value) {
    let grace =
        Duration::from_secs(object::integer(pod, &["metadata", "deletionGracePeriodSeconds"]).max(0) as u64);
    let takes = context.state.options.pod_stop.min(grace);
    let now = context.now;
    let mut run = begin(context, pod);
    let stops = *run.stops.get_or_insert(now + takes);
    context.memory.pods.insert(object::uid(pod).to_owned(), run);
    if now < stops {
        return context.again_at(key, stops);
    }
    context.delete(key, &DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() });
}

/// Is the pod counted as a replica?
pub(super) fn is_active(pod: &Value) -> bool {
    !object::is_deleting(pod)
        && !matches!(object::text(pod, &["status", "phase"]), Some("Succeeded" | "Failed"))
}

pub(super) fn is_ready(pod: &Value) -> bool {
    object::condition_is_true(pod, "Ready")
}

/// When the pod counts as available; `None` while it is not ready.
pub(super) fn available_at(context: &Context<'_>, pod: &Value, min_ready: Duration) -> Option<Instant> {
    if !is_ready(pod) {
        return None;
    }
    let since = context.memory.pods.get(object::uid(pod)).and_then(|run| run.ready_since);
    Some(since.unwrap_or(context.now) + min_ready)
}

/// A pod from a template, controlled by `owner`.
pub(super) fn from_template(owner: &Value, api_version: &str, kind: &str) -> Value {
    let template = object::at(owner, &["spec", "template"]).cloned().unwrap_or_default();
    let mut metadata = json!({"generateName": format!("{}-", object::name(owner))});
    for field in ["labels", "annotations"] {
        if let Some(value) = object::at(&template, &["metadata", field]) {
            metadata[field] = value.clone();
        }
    }
    metadata["ownerReferences"] = json!([object::controller_reference(owner, api_version, kind)]);
    json!({"metadata": metadata, "spec": template["spec"]})
}

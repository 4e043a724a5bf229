//! The kubelets: run a pod from bound to Ready and until its end.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::controller_context::ControllerContext;
use super::pod_events;
use super::pod_failure::{self, PodFailure};
use super::pod_run::{FailingPodStep, PodRun};
use super::pod_status::{SimulatedPodState, write_status};
use crate::object;
use crate::store::StoreKey;
use crate::verbs::RequestDeleteOptions;

/// From the first failed pull to the back-off, and the first back-off of a crash loop.
const PULL_RETRY: Duration = Duration::from_secs(2);
const FIRST_BACK_OFF: Duration = Duration::from_secs(10);
const LONGEST_BACK_OFF: Duration = Duration::from_secs(300);
const TOLD_RESTARTS: u32 = 4;
/// How long a crashing container runs, the first time and later.
const FIRST_CRASH: Duration = Duration::from_millis(200);
const NEXT_CRASH: Duration = Duration::from_secs(1);

/// A node finds out that it is short of something no sooner than this.
const FIRST_EVICTION: Duration = Duration::from_secs(1);
/// How often a kubelet probes for readiness.
const PROBE_EVERY: Duration = Duration::from_secs(10);

fn back_off(restarts: u32) -> Duration {
    (FIRST_BACK_OFF * 2_u32.pow(restarts.min(5))).min(LONGEST_BACK_OFF)
}

pub(super) fn run(context: &mut ControllerContext<'_>, key: &StoreKey, pod: &Value) {
    let (mut run, is_new) = begin(context, pod);
    if is_new {
        pod_events::pulling(context, pod);
    }
    let (now, ready_at) = (context.now, run.started + run.start_takes);
    let failure = current_failure(context, key, pod, &mut run);
    if failure == Some(PodFailure::ImagePull) && object::text(pod, &["status", "phase"]) != Some("Running") {
        return fail_to_pull(context, key, pod, run);
    }
    if now < ready_at {
        write_status(context, key, SimulatedPodState::Creating);
        return context.requeue_at(key, ready_at);
    }
    match failure {
        Some(failure @ (PodFailure::CrashLoop | PodFailure::OutOfMemory)) => {
            crash(context, key, pod, failure, run);
        }
        Some(PodFailure::Init) if !object::list(pod, &["spec", "initContainers"]).is_empty() => {
            crash(context, key, pod, PodFailure::Init, run);
        }
        // a pod that is made anew each time would be so without end in one instant
        Some(PodFailure::Evict) if now < run.started + FIRST_EVICTION => {
            write_status(context, key, SimulatedPodState::Ready);
            context.requeue_at(key, run.started + FIRST_EVICTION);
        }
        Some(PodFailure::Evict) => {
            pod_events::evicted(context, pod);
            write_status(context, key, SimulatedPodState::Evicted);
        }
        Some(PodFailure::Unknown | PodFailure::ConfigError) => {
            write_status(context, key, SimulatedPodState::ConfigError);
        }
        Some(PodFailure::Readiness) => {
            if write_status(context, key, SimulatedPodState::Unready) {
                pod_events::started(context, pod, run.start_takes);
                pod_events::unhealthy(context, pod);
            }
            forget_ready(context, pod);
        }
        _ => succeed(context, key, pod, run, ready_at),
    }
}

/// How the pod fails now: perhaps later only, perhaps no more.
fn current_failure(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    pod: &Value,
    run: &mut PodRun,
) -> Option<PodFailure> {
    let failure = PodFailure::of(pod).filter(|failure| run.past_failure != Some(*failure))?;
    let (now, begins) = (context.now, run.started + run.start_takes + PodFailure::delay_before(pod));
    if begins > run.started + run.start_takes && now < begins {
        context.requeue_at(key, begins);
        return None;
    }
    let Some(count) = PodFailure::max_failures(pod) else { return Some(failure) };
    if failure == PodFailure::Readiness {
        let heals = begins + PROBE_EVERY * count;
        if now < heals {
            context.requeue_at(key, heals);
        }
        return (now < heals).then_some(failure);
    }
    let enough = match run.next_step.filter(|(at, _)| *at <= now) {
        Some((_, FailingPodStep::BackOff)) if failure != PodFailure::ImagePull => {
            run.restarts == 0 && count <= 1
        }
        Some((_, FailingPodStep::Restart)) => run.restarts + 1 >= count,
        Some((_, FailingPodStep::Pull)) => run.restarts >= count,
        _ => count == 0,
    };
    if !enough {
        return Some(failure);
    }
    if failure != PodFailure::ImagePull && run.next_step.is_some() {
        run.restarts += 1;
        write_status(context, key, SimulatedPodState::Restarted { failure, restarts: run.restarts });
        pod_events::restarted(context, pod);
    }
    run.next_step = None;
    run.past_failure = Some(failure);
    save_run(context, pod, run.clone());
    None
}

fn begin(context: &mut ControllerContext<'_>, pod: &Value) -> (PodRun, bool) {
    let uid = object::uid(pod);
    if let Some(run) = context.memory.pod_runs.get(uid) {
        return (run.clone(), false);
    }
    let (shortest, longest) = context.state.options.pod_start;
    let drawn = context.state.seed.duration(shortest, longest);
    let run = PodRun {
        started: context.now,
        start_takes: pod_failure::start_duration(pod).unwrap_or(drawn),
        stops_at: None,
        restarts: 0,
        next_step: None,
        past_failure: None,
        ready_since: None,
    };
    context.memory.pod_runs.insert(uid.to_owned(), run.clone());
    (run, true)
}

fn save_run(context: &mut ControllerContext<'_>, pod: &Value, run: PodRun) {
    context.memory.pod_runs.insert(object::uid(pod).to_owned(), run);
}

fn forget_ready(context: &mut ControllerContext<'_>, pod: &Value) {
    if let Some(run) = context.memory.pod_runs.get_mut(object::uid(pod)) {
        run.ready_since = None;
    }
}

fn succeed(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    pod: &Value,
    mut run: PodRun,
    ready_at: Instant,
) {
    let since = *run.ready_since.get_or_insert(context.now);
    let start_takes = run.start_takes;
    save_run(context, pod, run);
    if object::text(pod, &["spec", "restartPolicy"]) != Some("Always") {
        let done_at = since.max(ready_at) + context.state.options.job_run;
        if context.now >= done_at {
            if object::text(pod, &["status", "phase"]) == Some("Pending") {
                pod_events::started(context, pod, start_takes);
            }
            write_status(context, key, SimulatedPodState::Succeeded);
            return;
        }
        context.requeue_at(key, done_at);
    }
    if write_status(context, key, SimulatedPodState::Ready) {
        pod_events::started(context, pod, start_takes);
    }
}

/// `ErrImagePull`, then permanently `ImagePullBackOff`; only events show the retries.
fn fail_to_pull(context: &mut ControllerContext<'_>, key: &StoreKey, pod: &Value, mut run: PodRun) {
    let now = context.now;
    let fails_at = run.started + run.start_takes / 2;
    if now < fails_at {
        write_status(context, key, SimulatedPodState::Creating);
        return context.requeue_at(key, fails_at);
    }
    let (at, step) = *run.next_step.get_or_insert((fails_at, FailingPodStep::Pull));
    if at <= now {
        run.next_step = match step {
            FailingPodStep::BackOff => {
                write_status(context, key, SimulatedPodState::PullBackOff);
                pod_events::pull_backs_off(context, pod);
                run.restarts += 1;
                Some((now + back_off(run.restarts - 1), FailingPodStep::Pull))
            }
            FailingPodStep::Pull | FailingPodStep::Restart => {
                if run.restarts == 0 {
                    write_status(context, key, SimulatedPodState::PullFailed);
                } else {
                    pod_events::pulling(context, pod);
                }
                pod_events::pull_failed(context, pod);
                Some((now + PULL_RETRY, FailingPodStep::BackOff))
            }
        };
    }
    if let Some((at, _)) = run.next_step {
        context.requeue_at(key, at);
    }
    save_run(context, pod, run);
}

fn crash(
    context: &mut ControllerContext<'_>,
    key: &StoreKey,
    pod: &Value,
    failure: PodFailure,
    mut run: PodRun,
) {
    if object::text(pod, &["spec", "restartPolicy"]) == Some("Never") {
        pod_events::started(context, pod, run.start_takes);
        write_status(context, key, SimulatedPodState::Failed(failure));
        return;
    }
    let now = context.now;
    match run.next_step {
        Some((at, _)) if at > now => {}
        None => {
            write_status(context, key, SimulatedPodState::Exited(failure));
            pod_events::started(context, pod, run.start_takes);
            run.next_step = Some((now + FIRST_CRASH, FailingPodStep::BackOff));
        }
        Some((_, FailingPodStep::Restart | FailingPodStep::Pull)) => {
            run.restarts += 1;
            write_status(context, key, SimulatedPodState::Restarted { failure, restarts: run.restarts });
            // later back-offs, which a kubelet tells all the time, use up what may be told
            if run.restarts <= TOLD_RESTARTS {
                pod_events::restarted(context, pod);
            }
            run.next_step = Some((now + NEXT_CRASH, FailingPodStep::BackOff));
        }
        Some((_, FailingPodStep::BackOff)) => {
            run.restarts = run.restarts.max(1);
            let wait = back_off(run.restarts - 1);
            write_status(context, key, SimulatedPodState::Crashed { failure, restarts: run.restarts, wait });
            pod_events::restart_backs_off(context, pod);
            run.next_step = Some((now + wait, FailingPodStep::Restart));
        }
    }
    run.ready_since = None;
    if let Some((at, _)) = run.next_step {
        context.requeue_at(key, at);
    }
    save_run(context, pod, run);
}

/// A deleted pod runs through its grace period and is then removed.
pub(super) fn terminate_pod(context: &mut ControllerContext<'_>, key: &StoreKey, pod: &Value) {
    let grace = object::seconds(pod, &["metadata", "deletionGracePeriodSeconds"]);
    let takes = if pod_failure::uses_full_grace_period(pod) {
        grace
    } else {
        context.state.options.pod_stop.min(grace)
    };
    let now = context.now;
    let (mut run, _) = begin(context, pod);
    if run.stops_at.is_none() && super::pods::is_ready(pod) {
        pod_events::killing(context, pod);
    }
    // a shorter grace period takes effect also later
    let stops = run.stops_at.map_or(now + takes, |at| at.min(now + grace));
    run.stops_at = Some(stops);
    save_run(context, pod, run);
    if now < stops {
        return context.requeue_at(key, stops);
    }
    context.delete(key, &RequestDeleteOptions { grace_seconds: Some(0), ..RequestDeleteOptions::default() });
}

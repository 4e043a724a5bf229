//! The kubelets: run a pod from bound to Ready and until its end.

use std::time::Duration;

use serde_json::Value;
use tokio::time::Instant;

use super::context::Context;
use super::failure::{self, Failure};
use super::pod_events as tell;
use super::pod_status::{Phase, write_status};
use crate::object;
use crate::store::Key;
use crate::verbs::DeleteOptions;

/// The state of a pod on its node.
#[derive(Debug, Clone)]
pub(super) struct Run {
    started: Instant,
    start_takes: Duration,
    stops: Option<Instant>,
    restarts: u32,
    /// The next step of a failing pod, and its time.
    next: Option<(Instant, Step)>,
    /// The failure that the pod has had often enough.
    overcome: Option<Failure>,
    /// Since when the pod is ready.
    pub(super) ready_since: Option<Instant>,
}

#[derive(Debug, Clone, Copy, PartialEq)]
enum Step {
    BackOff,
    Restart,
    Pull,
}

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

pub(super) fn run(context: &mut Context<'_>, key: &Key, pod: &Value) {
    let (mut run, is_new) = begin(context, pod);
    if is_new {
        tell::pulling(context, pod);
    }
    let (now, ready_at) = (context.now, run.started + run.start_takes);
    let failure = present_failure(context, key, pod, &mut run);
    if failure == Some(Failure::ImagePull) && object::text(pod, &["status", "phase"]) != Some("Running") {
        return fail_to_pull(context, key, pod, run);
    }
    if now < ready_at {
        write_status(context, key, Phase::Creating);
        return context.again_at(key, ready_at);
    }
    match failure {
        Some(failure @ (Failure::CrashLoop | Failure::OutOfMemory)) => {
            crash(context, key, pod, failure, run);
        }
        Some(Failure::Init) if !object::list(pod, &["spec", "initContainers"]).is_empty() => {
            crash(context, key, pod, Failure::Init, run);
        }
        // a pod that is made anew each time would be so without end in one instant
        Some(Failure::Evict) if now < run.started + FIRST_EVICTION => {
            write_status(context, key, Phase::Ready);
            context.again_at(key, run.started + FIRST_EVICTION);
        }
        Some(Failure::Evict) => {
            tell::evicted(context, pod);
            write_status(context, key, Phase::Evicted);
        }
        Some(Failure::Unknown | Failure::ConfigError) => {
            write_status(context, key, Phase::ConfigError);
        }
        Some(Failure::Readiness) => {
            if write_status(context, key, Phase::Unready) {
                tell::started(context, pod, run.start_takes);
                tell::unhealthy(context, pod);
            }
            forget_ready(context, pod);
        }
        _ => succeed(context, key, pod, run, ready_at),
    }
}

/// How the pod fails now: perhaps later only, perhaps no more.
fn present_failure(context: &mut Context<'_>, key: &Key, pod: &Value, run: &mut Run) -> Option<Failure> {
    let failure = Failure::of(pod).filter(|failure| run.overcome != Some(*failure))?;
    let (now, begins) = (context.now, run.started + run.start_takes + Failure::begins_after(pod));
    if begins > run.started + run.start_takes && now < begins {
        context.again_at(key, begins);
        return None;
    }
    let Some(count) = Failure::count(pod) else { return Some(failure) };
    if failure == Failure::Readiness {
        let heals = begins + PROBE_EVERY * count;
        if now < heals {
            context.again_at(key, heals);
        }
        return (now < heals).then_some(failure);
    }
    let enough = match run.next.filter(|(at, _)| *at <= now) {
        Some((_, Step::BackOff)) if failure != Failure::ImagePull => run.restarts == 0 && count <= 1,
        Some((_, Step::Restart)) => run.restarts + 1 >= count,
        Some((_, Step::Pull)) => run.restarts >= count,
        _ => count == 0,
    };
    if !enough {
        return Some(failure);
    }
    if failure != Failure::ImagePull && run.next.is_some() {
        run.restarts += 1;
        write_status(context, key, Phase::Restarted { failure, restarts: run.restarts });
        tell::restarted(context, pod);
    }
    run.next = None;
    run.overcome = Some(failure);
    keep(context, pod, run.clone());
    None
}

fn begin(context: &mut Context<'_>, pod: &Value) -> (Run, bool) {
    let uid = object::uid(pod);
    if let Some(run) = context.memory.pods.get(uid) {
        return (run.clone(), false);
    }
    let (shortest, longest) = context.state.options.pod_start;
    let drawn = context.state.seed.duration(shortest, longest);
    let run = Run {
        started: context.now,
        start_takes: failure::start_takes(pod).unwrap_or(drawn),
        stops: None,
        restarts: 0,
        next: None,
        overcome: None,
        ready_since: None,
    };
    context.memory.pods.insert(uid.to_owned(), run.clone());
    (run, true)
}

fn keep(context: &mut Context<'_>, pod: &Value, run: Run) {
    context.memory.pods.insert(object::uid(pod).to_owned(), run);
}

fn forget_ready(context: &mut Context<'_>, pod: &Value) {
    if let Some(run) = context.memory.pods.get_mut(object::uid(pod)) {
        run.ready_since = None;
    }
}

fn succeed(context: &mut Context<'_>, key: &Key, pod: &Value, mut run: Run, ready_at: Instant) {
    let since = *run.ready_since.get_or_insert(context.now);
    let start_takes = run.start_takes;
    keep(context, pod, run);
    if object::text(pod, &["spec", "restartPolicy"]) != Some("Always") {
        let done_at = since.max(ready_at) + context.state.options.job_run;
        if context.now >= done_at {
            if object::text(pod, &["status", "phase"]) == Some("Pending") {
                tell::started(context, pod, start_takes);
            }
            write_status(context, key, Phase::Succeeded);
            return;
        }
        context.again_at(key, done_at);
    }
    if write_status(context, key, Phase::Ready) {
        tell::started(context, pod, start_takes);
    }
}

/// `ErrImagePull`, then permanently `ImagePullBackOff`; only events show the retries.
fn fail_to_pull(context: &mut Context<'_>, key: &Key, pod: &Value, mut run: Run) {
    let now = context.now;
    let fails_at = run.started + run.start_takes / 2;
    if now < fails_at {
        write_status(context, key, Phase::Creating);
        return context.again_at(key, fails_at);
    }
    let (at, step) = *run.next.get_or_insert((fails_at, Step::Pull));
    if at <= now {
        run.next = match step {
            Step::BackOff => {
                write_status(context, key, Phase::PullBackOff);
                tell::pull_backs_off(context, pod);
                run.restarts += 1;
                Some((now + back_off(run.restarts - 1), Step::Pull))
            }
            Step::Pull | Step::Restart => {
                if run.restarts == 0 {
                    write_status(context, key, Phase::PullFailed);
                } else {
                    tell::pulling(context, pod);
                }
                tell::pull_failed(context, pod);
                Some((now + PULL_RETRY, Step::BackOff))
            }
        };
    }
    if let Some((at, _)) = run.next {
        context.again_at(key, at);
    }
    keep(context, pod, run);
}

fn crash(context: &mut Context<'_>, key: &Key, pod: &Value, failure: Failure, mut run: Run) {
    if object::text(pod, &["spec", "restartPolicy"]) == Some("Never") {
        tell::started(context, pod, run.start_takes);
        write_status(context, key, Phase::Failed(failure));
        return;
    }
    let now = context.now;
    match run.next {
        Some((at, _)) if at > now => {}
        None => {
            write_status(context, key, Phase::Exited(failure));
            tell::started(context, pod, run.start_takes);
            run.next = Some((now + FIRST_CRASH, Step::BackOff));
        }
        Some((_, Step::Restart | Step::Pull)) => {
            run.restarts += 1;
            write_status(context, key, Phase::Restarted { failure, restarts: run.restarts });
            // later back-offs, which a kubelet tells all the time, use up what may be told
            if run.restarts <= TOLD_RESTARTS {
                tell::restarted(context, pod);
            }
            run.next = Some((now + NEXT_CRASH, Step::BackOff));
        }
        Some((_, Step::BackOff)) => {
            run.restarts = run.restarts.max(1);
            let wait = back_off(run.restarts - 1);
            write_status(context, key, Phase::Crashed { failure, restarts: run.restarts, wait });
            tell::restart_backs_off(context, pod);
            run.next = Some((now + wait, Step::Restart));
        }
    }
    run.ready_since = None;
    if let Some((at, _)) = run.next {
        context.again_at(key, at);
    }
    keep(context, pod, run);
}

/// A deleted pod runs through its grace period and is then removed.
pub(super) fn end(context: &mut Context<'_>, key: &Key, pod: &Value) {
    let grace = object::seconds(pod, &["metadata", "deletionGracePeriodSeconds"]);
    let takes = if failure::ends_slowly(pod) { grace } else { context.state.options.pod_stop.min(grace) };
    let now = context.now;
    let (mut run, _) = begin(context, pod);
    if run.stops.is_none() && super::pods::is_ready(pod) {
        tell::killing(context, pod);
    }
    // a shorter grace period takes effect also later
    let stops = run.stops.map_or(now + takes, |at| at.min(now + grace));
    run.stops = Some(stops);
    keep(context, pod, run);
    if now < stops {
        return context.again_at(key, stops);
    }
    context.delete(key, &DeleteOptions { grace_seconds: Some(0), ..DeleteOptions::default() });
}

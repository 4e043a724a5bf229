//! The last log line of crashed containers. It is read once for each crash, so that a status shows the reason of the crash.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use super::state::ControllerState;
use crate::cluster::ContainerLogRef;
use crate::fleet::Target;
use crate::health::{ContainerCrash, LOG_BYTES, PodCause, last_line};
use crate::model::{Digest, ObjectId, RenderedTarget, SecretValues};

/// A crash that was not seen for so long counts as new. The kubelet resets its backoff after that time too.
const CRASH_EXPIRY: Duration = Duration::from_secs(600);
/// Crashes of one workload that are kept at the same time. Further ones are reported without a log line.
const MAX_CRASHES: usize = 8;

/// The log lines of one app on one cluster.
#[derive(Debug, Default)]
pub struct CrashLogLines {
    known: Vec<KnownCrash>,
}

#[derive(Debug)]
struct KnownCrash {
    workload: ObjectId,
    crash: ContainerCrash,
    /// `None`: the log could not be read.
    line: Option<Arc<str>>,
    seen_at: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum CrashLogLookup {
    Known(Option<Arc<str>>),
    /// The log was not requested yet.
    New,
    /// The log is not requested.
    TooMany,
}

impl CrashLogLines {
    pub fn crashes(&self, workload: &ObjectId) -> Vec<ContainerCrash> {
        self.known.iter().filter(|it| it.workload == *workload).map(|it| it.crash.clone()).collect()
    }

    /// Records a crash that is present now.
    pub fn look_up(&mut self, workload: &ObjectId, crash: &ContainerCrash, now: Instant) -> CrashLogLookup {
        self.known.retain(|it| now - it.seen_at < CRASH_EXPIRY);
        let mut own = self.known.iter_mut().filter(|it| it.workload == *workload);
        if let Some(known) = own.find(|it| it.crash.is_same(crash)) {
            known.seen_at = now;
            return CrashLogLookup::Known(known.line.clone());
        }
        let count = self.known.iter().filter(|it| it.workload == *workload).count();
        if count < MAX_CRASHES { CrashLogLookup::New } else { CrashLogLookup::TooMany }
    }

    fn record(&mut self, workload: ObjectId, crash: ContainerCrash, line: Option<Arc<str>>, now: Instant) {
        self.known.push(KnownCrash { workload, crash, line, seen_at: now });
    }

    pub fn clear(&mut self) {
        self.known.clear();
    }
}

/// The result of a search: why the pods of a workload are not ready.
#[derive(Clone, Debug)]
pub struct CauseSearchResult {
    pub target: Target,
    /// Digest of the render at the time of the search.
    pub rendered: Digest,
    pub workload: ObjectId,
    pub cause: Option<PodCause>,
    /// The pod whose crash was reported still exists.
    pub pod_exists: bool,
}

impl ControllerState {
    /// Handles the result of a pod list. A new crash is reported together with its log line, or without it after a short delay.
    pub(super) fn handle_search_result(&mut self, told: CauseSearchResult) {
        let (target, workload) = (told.target.clone(), told.workload.clone());
        let now = Instant::now();
        if !self.defers_for_crash_log(told, now) {
            self.searches.mark_answered(&target, &workload, now);
        }
    }

    /// Stores the cause, unless its log line must be read first.
    fn defers_for_crash_log(&mut self, mut told: CauseSearchResult, now: Instant) -> bool {
        let entry = self.targets.get_mut(&told.target);
        // A result for an earlier revision says nothing about this one.
        let Some(entry) = entry.filter(|entry| entry.has_render(told.rendered)) else { return false };
        if entry.causes.is_retained(&told.workload, told.cause.as_ref(), told.pod_exists) {
            return false;
        }
        let crash = told.cause.as_ref().and_then(|cause| cause.crash.clone());
        if let (Some(cause), Some(crash)) = (told.cause.as_mut(), crash) {
            match entry.crash_logs.look_up(&told.workload, &crash, now) {
                CrashLogLookup::Known(line) => cause.log_line = line,
                CrashLogLookup::New if self.request_crash_log(&told, crash, now) => return true,
                CrashLogLookup::New | CrashLogLookup::TooMany => {}
            }
        }
        if let Some(entry) = self.targets.get_mut(&told.target) {
            entry.causes.update(told.workload, told.cause);
            self.rollout_apps.touch(&told.target);
        }
        false
    }

    /// Returns whether the log was requested. The wait for it is bounded.
    fn request_crash_log(&mut self, told: &CauseSearchResult, crash: ContainerCrash, now: Instant) -> bool {
        let Some(cluster) = self.clusters.get(&told.target.cluster).filter(|cluster| cluster.is_ready())
        else {
            return false;
        };
        let (Some(client), None, Some(namespace)) =
            (cluster.client.clone(), cluster.throttled_until(now), told.workload.namespace.clone())
        else {
            return false;
        };
        let on_cluster = self.targets.entries_on(&told.target.cluster);
        let renders: Option<Vec<Arc<RenderedTarget>>> =
            on_cluster.map(|(_, entry)| entry.render.as_ref().ok().map(Arc::clone)).collect();
        // Without a render the secret values are unknown. An earlier render may be in the pod, so no log line is shown rather
        // than a password.
        let Some(renders) = renders else { return false };
        let (events, told) = (self.events.clone(), told.clone());
        tokio::spawn(async move {
            let log = ContainerLogRef {
                namespace: &namespace,
                pod: &crash.pod,
                container: &crash.container,
                previous: crash.has_restarted,
            };
            let line = match client.last_log_line(log, LOG_BYTES).await {
                Ok(log) => last_line(&log, &secret_values_for(&told, &namespace, &renders)),
                Err(error) => {
                    tracing::debug!(%error, "the log could not be read");
                    None
                }
            };
            let event = Event::CrashLogRead { told: Box::new(told), crash, line: line.map(Arc::from) };
            // The send fails only when the controller has stopped.
            let _ = events.send(event).await;
        });
        true
    }

    /// Stores the result, so that the log is not requested again.
    pub(super) fn handle_crash_log(
        &mut self,
        told: CauseSearchResult,
        crash: ContainerCrash,
        line: Option<Arc<str>>,
    ) {
        if let Some(entry) = self.targets.get_mut(&told.target)
            && entry.has_render(told.rendered)
        {
            entry.crash_logs.record(told.workload.clone(), crash, line, Instant::now());
        }
        self.handle_search_result(told);
    }
}

/// Secret values that the log line must not show: those of its app, and those of other apps in the same namespace.
fn secret_values_for(
    told: &CauseSearchResult,
    namespace: &str,
    renders: &[Arc<RenderedTarget>],
) -> SecretValues {
    let objects = renders.iter().flat_map(|rendered| {
        let is_own = rendered.app == told.target.app;
        let is_near = move |place: Option<&str>| is_own || place == Some(namespace);
        rendered.objects.iter().filter(move |object| is_near(object.id.namespace.as_deref()))
    });
    SecretValues::of(objects)
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::health::find_pod_cause;

    fn crash(pod: &str, uid: &str, code: u32, restarts: u32) -> ContainerCrash {
        let status: Value = json!({"containerStatuses": [{"name": "app", "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": code}}}]});
        let pod = json!({"metadata": {"name": pod, "uid": uid}, "status": status});
        find_pod_cause(None, &[pod], &[]).and_then(|cause| cause.crash).expect("a crash")
    }

    #[test]
    fn crash_is_new_once() {
        let (web, other) = (
            ObjectId::new("apps", "Deployment", Some("shop"), "web"),
            ObjectId::new("apps", "Deployment", Some("shop"), "other"),
        );
        let (mut lines, start) = (CrashLogLines::default(), Instant::now());
        let first = crash("web-1", "u1", 1, 1);
        assert_eq!(lines.look_up(&web, &first, start), CrashLogLookup::New);
        lines.record(web.clone(), first.clone(), Some("no such table".into()), start);
        let known = CrashLogLookup::Known(Some("no such table".into()));
        // The count does not matter, and slow repetition does not either.
        for (restarts, seconds) in [(2, 5), (7, 599), (9, 1_190)] {
            let again = crash("web-1", "u1", 1, restarts);
            assert_eq!(lines.look_up(&web, &again, start + Duration::from_secs(seconds)), known, "{seconds}");
        }
        for other in [crash("web-1", "u1", 2, 1), crash("web-1", "u2", 1, 1), crash("web-2", "u1", 1, 1)] {
            assert_eq!(lines.look_up(&web, &other, start), CrashLogLookup::New, "{other:?}");
        }
        assert_eq!(lines.look_up(&other, &first, start), CrashLogLookup::New);
        // The container was healthy for long.
        assert_eq!(lines.look_up(&web, &first, start + Duration::from_secs(1_790)), CrashLogLookup::New);
    }

    #[test]
    fn changing_crashes_request_few_logs() {
        let web = ObjectId::new("apps", "Deployment", Some("shop"), "web");
        let (mut lines, start) = (CrashLogLines::default(), Instant::now());
        let mut asked = 0;
        for code in 1..100 {
            let crash = crash("web-1", "u1", code, code);
            let now = start + Duration::from_secs(5 * u64::from(code));
            if lines.look_up(&web, &crash, now) == CrashLogLookup::New {
                lines.record(web.clone(), crash, None, now);
                asked += 1;
            }
        }
        assert_eq!(asked, MAX_CRASHES);
        let now = start + Duration::from_secs(600);
        assert_eq!(lines.look_up(&web, &crash("web-1", "u1", 200, 1), now), CrashLogLookup::TooMany);
        let later = start + Duration::from_secs(700);
        assert_eq!(lines.look_up(&web, &crash("web-1", "u1", 200, 1), later), CrashLogLookup::New);
    }
}

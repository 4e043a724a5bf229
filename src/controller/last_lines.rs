//! The last log line of crashed containers. It is read once for each crash, so that a status shows the reason of the crash.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::event::Event;
use super::world::World;
use crate::cluster::LogOf;
use crate::fleet::Target;
use crate::health::{Cause, Crash, LOG_BYTES, last_line};
use crate::model::{Digest, ObjectId, Rendered, SecretValues};

/// A crash that was not seen for so long counts as new. The kubelet resets its backoff after that time too.
const FORGOTTEN: Duration = Duration::from_secs(600);
/// Crashes of one workload that are kept at the same time. Further ones are reported without a log line.
const MOST: usize = 8;

/// The log lines of one app on one cluster.
#[derive(Debug, Default)]
pub struct LastLines {
    known: Vec<Known>,
}

#[derive(Debug)]
struct Known {
    workload: ObjectId,
    crash: Crash,
    /// `None`: the log could not be read.
    line: Option<Arc<str>>,
    seen: Instant,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LastLine {
    Known(Option<Arc<str>>),
    /// The log was not requested yet.
    New,
    /// The log is not requested.
    TooMany,
}

impl LastLines {
    pub fn crashes(&self, workload: &ObjectId) -> Vec<Crash> {
        self.known.iter().filter(|it| it.workload == *workload).map(|it| it.crash.clone()).collect()
    }

    /// Records a crash that is present now.
    pub fn see(&mut self, workload: &ObjectId, crash: &Crash, now: Instant) -> LastLine {
        self.known.retain(|it| now - it.seen < FORGOTTEN);
        let mut own = self.known.iter_mut().filter(|it| it.workload == *workload);
        if let Some(known) = own.find(|it| it.crash.is(crash)) {
            known.seen = now;
            return LastLine::Known(known.line.clone());
        }
        let count = self.known.iter().filter(|it| it.workload == *workload).count();
        if count < MOST { LastLine::New } else { LastLine::TooMany }
    }

    fn learn(&mut self, workload: ObjectId, crash: Crash, line: Option<Arc<str>>, now: Instant) {
        self.known.push(Known { workload, crash, line, seen: now });
    }

    pub fn clear(&mut self) {
        self.known.clear();
    }
}

/// The result of a search: why the pods of a workload are not ready.
#[derive(Clone, Debug)]
pub struct Explanation {
    pub target: Target,
    /// Digest of the render at the time of the search.
    pub rendered: Digest,
    pub workload: ObjectId,
    pub cause: Option<Cause>,
    /// The pod whose crash was reported still exists.
    pub pod_stays: bool,
}

impl World {
    /// Handles the result of a pod list. A new crash is reported together with its log line, or without it after a short delay.
    pub(super) fn explained(&mut self, told: Explanation) {
        let (target, workload) = (told.target.clone(), told.workload.clone());
        let now = Instant::now();
        if !self.waits_for_last_line(told, now) {
            self.searches.answered(&target, &workload, now);
        }
    }

    /// Stores the cause, unless its log line must be read first.
    fn waits_for_last_line(&mut self, mut told: Explanation, now: Instant) -> bool {
        let entry = self.targets.get_mut(&told.target);
        // A result for an earlier revision says nothing about this one.
        let Some(entry) = entry.filter(|entry| entry.renders(told.rendered)) else { return false };
        if entry.causes.holds(&told.workload, told.cause.as_ref(), told.pod_stays) {
            return false;
        }
        let crash = told.cause.as_ref().and_then(|cause| cause.crash.clone());
        if let (Some(cause), Some(crash)) = (told.cause.as_mut(), crash) {
            match entry.last_lines.see(&told.workload, &crash, now) {
                LastLine::Known(line) => cause.line = line,
                LastLine::New if self.ask_last_line(&told, crash, now) => return true,
                LastLine::New | LastLine::TooMany => {}
            }
        }
        if let Some(entry) = self.targets.get_mut(&told.target) {
            entry.causes.learn(told.workload, told.cause);
            self.apps.touch(&told.target);
        }
        false
    }

    /// Returns whether the log was requested. The wait for it is bounded.
    fn ask_last_line(&mut self, told: &Explanation, crash: Crash, now: Instant) -> bool {
        let Some(cluster) = self.clusters.get(&told.target.cluster).filter(|cluster| cluster.is_ready())
        else {
            return false;
        };
        let (Some(client), None, Some(namespace)) =
            (cluster.client.clone(), cluster.held_off(now), told.workload.namespace.clone())
        else {
            return false;
        };
        let on_cluster = self.targets.on(&told.target.cluster);
        let renders: Option<Vec<Arc<Rendered>>> =
            on_cluster.map(|(_, entry)| entry.render.as_ref().ok().map(Arc::clone)).collect();
        // Without a render the secret values are unknown. An earlier render may be in the pod, so no log line is shown rather
        // than a password.
        let Some(renders) = renders else { return false };
        let (events, told) = (self.events.clone(), told.clone());
        tokio::spawn(async move {
            let log = LogOf {
                namespace: &namespace,
                pod: &crash.pod,
                container: &crash.container,
                previous: crash.ended_before,
            };
            let line = match client.end_of_log(log, LOG_BYTES).await {
                Ok(log) => last_line(&log, &secrets_near(&told, &namespace, &renders)),
                Err(error) => {
                    tracing::debug!(%error, "the log could not be read");
                    None
                }
            };
            let event = Event::LastLine { told: Box::new(told), crash, line: line.map(Arc::from) };
            // The send fails only when the controller has stopped.
            let _ = events.send(event).await;
        });
        true
    }

    /// Stores the result, so that the log is not requested again.
    pub(super) fn last_line_read(&mut self, told: Explanation, crash: Crash, line: Option<Arc<str>>) {
        if let Some(entry) = self.targets.get_mut(&told.target)
            && entry.renders(told.rendered)
        {
            entry.last_lines.learn(told.workload.clone(), crash, line, Instant::now());
        }
        self.explained(told);
    }
}

/// Secret values that the log line must not show: those of its app, and those of other apps in the same namespace.
fn secrets_near(told: &Explanation, namespace: &str, renders: &[Arc<Rendered>]) -> SecretValues {
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
    use crate::health::pods_cause;

    fn crash(pod: &str, uid: &str, code: u32, restarts: u32) -> Crash {
        let status: Value = json!({"containerStatuses": [{"name": "app", "restartCount": restarts,
            "state": {"waiting": {"reason": "CrashLoopBackOff"}}, "lastState": {"terminated": {"exitCode": code}}}]});
        let pod = json!({"metadata": {"name": pod, "uid": uid}, "status": status});
        pods_cause(None, &[pod], &[]).and_then(|cause| cause.crash).expect("a crash")
    }

    #[test]
    fn crash_is_new_once() {
        let (web, other) = (
            ObjectId::new("apps", "Deployment", Some("shop"), "web"),
            ObjectId::new("apps", "Deployment", Some("shop"), "other"),
        );
        let (mut lines, start) = (LastLines::default(), Instant::now());
        let first = crash("web-1", "u1", 1, 1);
        assert_eq!(lines.see(&web, &first, start), LastLine::New);
        lines.learn(web.clone(), first.clone(), Some("no such table".into()), start);
        let known = LastLine::Known(Some("no such table".into()));
        // The count does not matter, and slow repetition does not either.
        for (restarts, seconds) in [(2, 5), (7, 599), (9, 1_190)] {
            let again = crash("web-1", "u1", 1, restarts);
            assert_eq!(lines.see(&web, &again, start + Duration::from_secs(seconds)), known, "{seconds}");
        }
        for other in [crash("web-1", "u1", 2, 1), crash("web-1", "u2", 1, 1), crash("web-2", "u1", 1, 1)] {
            assert_eq!(lines.see(&web, &other, start), LastLine::New, "{other:?}");
        }
        assert_eq!(lines.see(&other, &first, start), LastLine::New);
        // The container was healthy for long.
        assert_eq!(lines.see(&web, &first, start + Duration::from_secs(1_790)), LastLine::New);
    }

    #[test]
    fn changing_crashes_request_few_logs() {
        let web = ObjectId::new("apps", "Deployment", Some("shop"), "web");
        let (mut lines, start) = (LastLines::default(), Instant::now());
        let mut asked = 0;
        for code in 1..100 {
            let crash = crash("web-1", "u1", code, code);
            let now = start + Duration::from_secs(5 * u64::from(code));
            if lines.see(&web, &crash, now) == LastLine::New {
                lines.learn(web.clone(), crash, None, now);
                asked += 1;
            }
        }
        assert_eq!(asked, MOST);
        let now = start + Duration::from_secs(600);
        assert_eq!(lines.see(&web, &crash("web-1", "u1", 200, 1), now), LastLine::TooMany);
        let later = start + Duration::from_secs(700);
        assert_eq!(lines.see(&web, &crash("web-1", "u1", 200, 1), later), LastLine::New);
    }
}

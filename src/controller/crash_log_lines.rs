//! The known log lines of crashed containers.

use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use crate::health::ContainerCrash;
use crate::model::ObjectId;

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

    pub fn record(
        &mut self,
        workload: ObjectId,
        crash: ContainerCrash,
        line: Option<Arc<str>>,
        now: Instant,
    ) {
        self.known.push(KnownCrash { workload, crash, line, seen_at: now });
    }

    pub fn clear(&mut self) {
        self.known.clear();
    }
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

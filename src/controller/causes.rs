//! Why the pods of an app on a cluster are not ready: one cause per workload, and the one that is shown.

use std::collections::BTreeMap;

use crate::health::PodCause;
use crate::model::ObjectId;

/// The causes at one revision.
#[derive(Debug, Default)]
pub struct WorkloadCauses {
    known: BTreeMap<ObjectId, PodCause>,
    /// The workload with the shown decisive cause. It stays when others become known, because each changed text is posted.
    decisive: Option<ObjectId>,
}

impl WorkloadCauses {
    pub fn of(&self, workload: &ObjectId) -> Option<&PodCause> {
        self.known.get(workload)
    }

    /// The decisive cause for the whole app: only a new revision helps.
    pub fn decisive(&self) -> Option<&PodCause> {
        self.known.get(self.decisive.as_ref()?)
    }

    /// Whether the known cause of a workload stays. A decisive cause stays for its revision, because a pod looks less broken
    /// between two attempts. A crash keeps its text while its pod exists (`pod_stays`), because a pod looks different between two
    /// crashes and may end in another way.
    pub fn is_retained(&self, workload: &ObjectId, now: Option<&PodCause>, pod_stays: bool) -> bool {
        let Some(known) = self.known.get(workload).filter(|known| known.is_decisive) else { return false };
        match now.filter(|now| now.is_decisive) {
            Some(now) => known.crash.is_some() && pod_stays && !is_same_crash(known, now),
            None => true,
        }
    }

    /// Stores the current cause, unless the known one [stays](Self::is_retained).
    pub fn update(&mut self, workload: ObjectId, cause: Option<PodCause>) {
        match (self.known.get_mut(&workload), cause) {
            (Some(known), Some(cause)) if known.is_decisive && is_same_crash(known, &cause) => {
                // It may have been reported before its last log line was read.
                known.log_line = known.log_line.take().or(cause.log_line);
            }
            (_, Some(cause)) => {
                self.known.insert(workload, cause);
            }
            (_, None) => {
                self.known.remove(&workload);
            }
        }
        self.choose_decisive();
    }

    /// Removes the causes of healthy workloads, except decisive ones.
    pub fn remove_healthy(&mut self, is_unwell: impl Fn(&ObjectId) -> bool) {
        self.known.retain(|workload, cause| cause.is_decisive || is_unwell(workload));
        self.choose_decisive();
    }

    pub fn clear(&mut self) {
        *self = Self::default();
    }

    fn choose_decisive(&mut self) {
        if self.decisive().is_none_or(|told| !told.is_decisive) {
            let mut decisive = self.known.iter().filter(|(_, cause)| cause.is_decisive);
            self.decisive = decisive.next().map(|(workload, _)| workload.clone());
        }
    }
}

fn is_same_crash(one: &PodCause, other: &PodCause) -> bool {
    one.crash.as_ref().zip(other.crash.as_ref()).is_some_and(|(one, other)| one.is_same(other))
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;
    use crate::health::find_pod_cause;

    fn workload(name: &str) -> ObjectId {
        ObjectId::new("apps", "Deployment", Some("shop"), name)
    }

    fn cause(pod: &str, status: &Value) -> PodCause {
        let status = json!({"phase": "Running", "containerStatuses": [status],
            "conditions": [{"type": "Ready", "status": "False", "lastTransitionTime": "2026-11-20T00:00:30Z"}]});
        let pod = json!({"metadata": {"name": pod, "uid": format!("uid of {pod}")}, "status": status});
        find_pod_cause(None, &[pod], &[]).expect("a cause")
    }

    fn waits(pod: &str, reason: &str) -> PodCause {
        cause(pod, &json!({"name": "app", "image": "web:1", "state": {"waiting": {"reason": reason}}}))
    }

    fn ends(pod: &str, code: u32, state: &Value, restarts: u32) -> PodCause {
        let end = json!({"exitCode": code, "startedAt": "2026-11-20T00:00:10Z", "finishedAt": "2026-11-20T00:00:29Z"});
        let last = json!({"terminated": end});
        cause(pod, &json!({"name": "app", "restartCount": restarts, "state": state, "lastState": last}))
    }

    fn looping(pod: &str, code: u32) -> PodCause {
        ends(pod, code, &json!({"waiting": {"reason": "CrashLoopBackOff"}}), 9)
    }

    /// Between two crashes.
    fn runs(pod: &str, code: u32) -> PodCause {
        ends(pod, code, &json!({"running": {}}), 9)
    }

    /// Does what the controller does with a result.
    fn see(
        causes: &mut WorkloadCauses,
        name: &str,
        seen: Option<PodCause>,
        pod_stays: bool,
    ) -> Option<String> {
        let workload = workload(name);
        if !causes.is_retained(&workload, seen.as_ref(), pod_stays) {
            causes.update(workload.clone(), seen);
        }
        causes.of(&workload).map(ToString::to_string)
    }

    #[test]
    fn each_workload_has_own_cause() {
        let mut causes = WorkloadCauses::default();
        let pull = || waits("web-1", "ErrImagePull");
        assert_eq!(
            see(&mut causes, "web", Some(pull()), true).as_deref(),
            Some("ErrImagePull web-1 (web:1)")
        );
        assert_eq!(see(&mut causes, "api", None, true), None);
        assert!(causes.of(&workload("web")).is_some() && causes.decisive().is_none());
        assert_eq!(
            see(&mut causes, "web", None, true),
            None,
            "its pods are there, and nothing is the matter"
        );
        see(&mut causes, "web", Some(pull()), true);
        see(&mut causes, "api", Some(waits("api-1", "ErrImagePull")), true);
        causes.remove_healthy(|id| *id == workload("web"));
        assert!(causes.of(&workload("web")).is_some() && causes.of(&workload("api")).is_none());
    }

    #[test]
    fn first_decisive_cause_stays() {
        let told = |causes: &WorkloadCauses| causes.decisive().map(|cause| cause.pod.clone());
        let mut causes = WorkloadCauses::default();
        for (name, expected) in [("web", "web-1"), ("api", "web-1"), ("zoo", "web-1")] {
            see(&mut causes, name, Some(waits(&format!("{name}-1"), "ImagePullBackOff")), true);
            assert_eq!(told(&causes).as_deref(), Some(expected));
        }
        // A milder cause, no cause, and a healthy moment change nothing.
        for seen in [Some(waits("web-1", "ErrImagePull")), None] {
            see(&mut causes, "web", seen, true);
        }
        causes.remove_healthy(|_| false);
        assert_eq!(told(&causes).as_deref(), Some("web-1"));
        // The image exists now, and the pod fails in another way: the first of the others is shown.
        causes.update(workload("web"), None);
        assert_eq!(told(&causes).as_deref(), Some("api-1"));
        causes.clear();
        assert_eq!(told(&causes), None);
    }

    #[test]
    fn crash_keeps_its_text() {
        let words = "CrashLoopBackOff web-1 (exit 1)";
        let mut causes = WorkloadCauses::default();
        for seen in [looping("web-1", 1), runs("web-1", 1), looping("web-1", 2), looping("web-2", 1)] {
            assert_eq!(see(&mut causes, "web", Some(seen), true).as_deref(), Some(words));
        }
        let read = |line: &str| PodCause { log_line: Some(line.into()), ..runs("web-1", 1) };
        let with_line = "CrashLoopBackOff web-1 (exit 1: \"no such table\")";
        assert_eq!(see(&mut causes, "web", Some(read("no such table")), true).as_deref(), Some(with_line));
        assert_eq!(see(&mut causes, "web", Some(read("other")), true).as_deref(), Some(with_line));
        // The pod is gone.
        let now = see(&mut causes, "web", Some(runs("web-2", 1)), false);
        assert_eq!(now.as_deref(), Some("Restarted web-2 (exit 1, more than 3 restarts)"));
    }
}

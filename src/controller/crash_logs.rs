//! The last log line of crashed containers. It is read once for each crash, so that a status shows the reason of the crash.

use std::sync::Arc;

use tokio::time::Instant;

use super::cause_results::CauseSearchResult;
use super::crash_log_lines::CrashLogLookup;
use super::event::Event;
use super::state::ControllerState;
use crate::cluster::ContainerLogRef;
use crate::health::{ContainerCrash, LOG_BYTES, last_line};
use crate::model::{RenderedTarget, SecretValues};

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

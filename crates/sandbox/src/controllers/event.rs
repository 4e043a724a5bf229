//! Events, as client-go's recorders write them. Repeated events are counted, similar ones combined, frequent ones
//! rate-limited. Each expires an hour after its last occurrence.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use serde_json::{Value, json};
use tokio::time::Instant;

use super::controller_context::ControllerContext;
use super::virtual_pods;
use crate::object;
use crate::store::{NamespacedName, StoreKey};
use crate::verbs::{RequestDeleteOptions, WriteCaller};

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventComponent {
    CronJob,
    DaemonSet,
    Deployment,
    Disruption,
    HorizontalPodAutoscaler,
    Job,
    Kubelet,
    ReplicaSet,
    Scheduler,
    StatefulSet,
    Volumes,
}

impl EventComponent {
    fn name(self) -> &'static str {
        match self {
            Self::CronJob => "cronjob-controller",
            Self::DaemonSet => "daemonset-controller",
            Self::Deployment => "deployment-controller",
            Self::Disruption => "controllermanager",
            Self::HorizontalPodAutoscaler => "horizontal-pod-autoscaler",
            Self::Job => "job-controller",
            Self::Kubelet => "kubelet",
            Self::ReplicaSet => "replicaset-controller",
            Self::Scheduler => "default-scheduler",
            Self::StatefulSet => "statefulset-controller",
            Self::Volumes => "persistentvolume-controller",
        }
    }

    fn caller(self) -> WriteCaller {
        match self {
            Self::Kubelet => WriteCaller::kubelet(),
            Self::Scheduler => WriteCaller::scheduler(),
            _ => WriteCaller::controller(),
        }
    }
}

/// How long the server keeps an event.
const EVENT_TTL: Duration = Duration::from_secs(3600);
/// More different messages than this in one window are combined.
const MAX_SIMILAR: usize = 10;
const WINDOW: Duration = Duration::from_secs(600);
/// Events about one object from one source: this many at once, then one in five minutes.
const BURST: f64 = 25.0;
const REFILL: f64 = 1.0 / 300.0;

/// The memory of all event recorders.
#[derive(Debug, Default)]
pub(super) struct EventRecorderState {
    names_by_content: BTreeMap<Arc<str>, NamespacedName>,
    /// The other way round.
    content_by_name: BTreeMap<NamespacedName, Arc<str>>,
    similar_messages: BTreeMap<String, (Instant, Vec<String>)>,
    rate_limits: BTreeMap<(String, EventComponent), (Instant, f64)>,
    number: u64,
}

impl EventRecorderState {
    fn allows_event(&mut self, source: EventComponent, uid: &str, now: Instant) -> bool {
        let (since, left) = self.rate_limits.entry((uid.to_owned(), source)).or_insert((now, BURST));
        *left = (*left + (now - *since).as_secs_f64() * REFILL).min(BURST);
        *since = now;
        if *left < 1.0 {
            return false;
        }
        *left -= 1.0;
        true
    }

    /// The message to tell, and whether it stands for many.
    fn combine_similar(&mut self, group: &str, message: &str, now: Instant) -> (String, bool) {
        let (since, messages) = self.similar_messages.entry(group.to_owned()).or_insert((now, Vec::new()));
        if now - *since > WINDOW {
            messages.clear();
        }
        *since = now;
        if !messages.iter().any(|one| one == message) {
            messages.push(message.to_owned());
        }
        if messages.len() < MAX_SIMILAR {
            return (message.to_owned(), false);
        }
        messages.remove(0);
        (format!("(combined from similar events): {message}"), true)
    }

    /// Drops the memory of a deleted object.
    pub(super) fn forget(&mut self, uid: &str) {
        let prefix = format!("{uid} ");
        let groups = self.similar_messages.range(prefix.clone()..).map(|(group, _)| group.clone());
        for group in groups.take_while(|group| group.starts_with(&prefix)).collect::<Vec<_>>() {
            self.similar_messages.remove(&group);
        }
        let first = (uid.to_owned(), EventComponent::CronJob);
        let budgets = self.rate_limits.range(first..).map(|(budget, _)| budget.clone());
        for budget in budgets.take_while(|(about, _)| about == uid).collect::<Vec<_>>() {
            self.rate_limits.remove(&budget);
        }
    }

    fn remember(&mut self, told: String, name: NamespacedName) {
        let told: Arc<str> = told.into();
        self.content_by_name.insert(name.clone(), told.clone());
        self.names_by_content.insert(told, name);
    }

    /// Forgets a deleted event, so that the next one is recorded as new.
    fn forget_event(&mut self, name: &NamespacedName) {
        if let Some(told) = self.content_by_name.remove(name)
            && self.names_by_content.get(&told) == Some(name)
        {
            self.names_by_content.remove(&told);
        }
    }
}

impl ControllerContext<'_> {
    pub(super) fn event(
        &mut self,
        about: &Value,
        source: EventComponent,
        kind: &str,
        reason: &str,
        message: &str,
    ) {
        self.event_at(about, "", source, kind, reason, message);
    }

    /// An event about one field, such as `spec.containers{main}`.
    pub(super) fn event_at(
        &mut self,
        about: &Value,
        field: &str,
        source: EventComponent,
        kind: &str,
        reason: &str,
        message: &str,
    ) {
        let about_pods = about["kind"] == "Pod" || matches!(reason, "SuccessfulCreate" | "SuccessfulDelete");
        if about_pods && virtual_pods::is_virtual(self.state, "pods") {
            return;
        }
        let (uid, now) = (object::uid(about).to_owned(), self.now);
        let group = format!("{uid} {} {kind} {reason} {field}", source.name());
        let (message, combined) = self.memory.events.combine_similar(&group, message, now);
        let told = if combined { group } else { format!("{group} {message}") };
        if !self.memory.events.allows_event(source, &uid, now) {
            return;
        }
        if let Some(name) = self.memory.events.names_by_content.get(told.as_str()).cloned()
            && self.count_repeated_event(source, &name, &message)
        {
            return;
        }
        let host = object::text(about, &["spec", "nodeName"]).unwrap_or("").to_owned();
        let said = EventContent { about, field, source, kind, reason, message: &message, host: &host };
        let name = self.event_name(object::name(about));
        let event = said.event(&self.state.clock, &name);
        let namespace = match object::namespace(about) {
            "" => "default",
            namespace => namespace,
        }
        .to_owned();
        if let Some(event) = self.create_as(&source.caller(), "events", &namespace, event) {
            let key = super::controller_context::key_of("events", &event);
            self.memory.events.remember(told, key.name);
        }
    }

    /// Increments the count of an existing event; false when it was deleted.
    fn count_repeated_event(&mut self, source: EventComponent, name: &NamespacedName, message: &str) -> bool {
        let key = StoreKey { resource: "events".to_owned(), name: name.clone() };
        let now = self.state.clock.timestamp();
        self.write(&key, "", &source.caller(), |event| {
            let count = object::integer(event, &["count"]) + 1;
            event["count"] = json!(count);
            event["lastTimestamp"] = json!(now);
            event["message"] = json!(message);
        })
        .is_some()
    }

    /// Ends in a number that looks like the nanoseconds of the real ones, and is never the same.
    fn event_name(&mut self, about: &str) -> String {
        self.memory.events.number += 1;
        let since = self.state.clock.seconds_since("1970-01-01T00:00:00Z").unwrap_or(0).unsigned_abs();
        format!("{about}.{:x}", since * 1_000_000_000 + self.memory.events.number)
    }
}

struct EventContent<'t> {
    about: &'t Value,
    field: &'t str,
    source: EventComponent,
    kind: &'t str,
    reason: &'t str,
    message: &'t str,
    host: &'t str,
}

impl EventContent<'_> {
    fn event(&self, clock: &crate::clock::SandboxClock, name: &str) -> Value {
        let about = self.about;
        let mut involved = json!({"kind": about["kind"], "namespace": object::namespace(about),
            "name": object::name(about), "uid": object::uid(about), "apiVersion": about["apiVersion"],
            "resourceVersion": about["metadata"]["resourceVersion"]});
        if !self.field.is_empty() {
            involved["fieldPath"] = json!(self.field);
        }
        let (now, component) = (clock.timestamp(), self.source.name());
        let mut event = json!({"metadata": {"name": name}, "involvedObject": involved,
            "reason": self.reason, "message": self.message, "type": self.kind});
        if self.source == EventComponent::Scheduler {
            // the scheduler writes events of the newer API, which look like this in the older one
            event["source"] = json!({});
            event["eventTime"] = json!(now.replace('Z', ".000000Z"));
            event["action"] = json!(if self.reason == "Scheduled" { "Binding" } else { "Scheduling" });
            event["reportingInstance"] = json!(format!("{component}-control-plane"));
        } else {
            event["source"] = json!({"component": component});
            if self.source == EventComponent::Kubelet {
                event["source"]["host"] = json!(self.host);
            }
            event["firstTimestamp"] = json!(now);
            event["lastTimestamp"] = json!(now);
            event["count"] = json!(1);
            event["reportingInstance"] = json!(self.host);
        }
        event["reportingComponent"] = json!(component);
        event
    }
}

/// The server's time to live.
pub(super) fn expire(context: &mut ControllerContext<'_>, key: &StoreKey, event: &Value) {
    let told = ["lastTimestamp", "eventTime"].iter().find_map(|field| object::text(event, &[field]));
    let age = told.and_then(|told| context.state.clock.seconds_since(told)).unwrap_or(0).max(0);
    let age = Duration::from_secs(age.unsigned_abs());
    if age < EVENT_TTL {
        return context.requeue_once(key, EVENT_TTL.saturating_sub(age));
    }
    context.memory.events.forget_event(&key.name);
    context.delete(key, &RequestDeleteOptions::default());
}

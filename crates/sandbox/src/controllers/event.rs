//! Events, as client-go's recorders write them. Repeated events are counted, similar ones combined, frequent ones
//! rate-limited. Each expires an hour after its last occurrence.

use std::time::Duration;

use serde_json::{Value, json};

use super::controller_context::ControllerContext;
use super::event_component::EventComponent;
use super::virtual_pods;
use crate::object;
use crate::store::{NamespacedName, StoreKey};
use crate::verbs::RequestDeleteOptions;

/// How long the server keeps an event.
const EVENT_TTL: Duration = Duration::from_secs(3600);

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

//! The memory of event recorders: it counts repeated events, combines similar ones and limits frequent ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::time::Instant;

use super::event_component::EventComponent;
use crate::store::NamespacedName;

/// More different messages than this in one window are combined.
const MAX_SIMILAR: usize = 10;
const WINDOW: Duration = Duration::from_secs(600);
/// Events about one object from one source: this many at once, then one in five minutes.
const BURST: f64 = 25.0;
const REFILL: f64 = 1.0 / 300.0;

/// The memory of all event recorders.
#[derive(Debug, Default)]
pub(super) struct EventRecorderState {
    pub(super) names_by_content: BTreeMap<Arc<str>, NamespacedName>,
    /// The other way round.
    content_by_name: BTreeMap<NamespacedName, Arc<str>>,
    similar_messages: BTreeMap<String, (Instant, Vec<String>)>,
    rate_limits: BTreeMap<(String, EventComponent), (Instant, f64)>,
    pub(super) number: u64,
}

impl EventRecorderState {
    pub(super) fn allows_event(&mut self, source: EventComponent, uid: &str, now: Instant) -> bool {
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
    pub(super) fn combine_similar(&mut self, group: &str, message: &str, now: Instant) -> (String, bool) {
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

    pub(super) fn remember(&mut self, told: String, name: NamespacedName) {
        let told: Arc<str> = told.into();
        self.content_by_name.insert(name.clone(), told.clone());
        self.names_by_content.insert(told, name);
    }

    /// Forgets a deleted event, so that the next one is recorded as new.
    pub(super) fn forget_event(&mut self, name: &NamespacedName) {
        if let Some(told) = self.content_by_name.remove(name)
            && self.names_by_content.get(&told) == Some(name)
        {
            self.names_by_content.remove(&told);
        }
    }
}

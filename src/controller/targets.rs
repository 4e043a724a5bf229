//! The known targets, indexed by app and cluster, and the work queue of targets.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::target_entry::TargetEntry;
use crate::fleet::Target;
use crate::model::{App, AppId, ClusterName};
use crate::plan::ApplySettings;
use crate::render::TargetRender;

#[derive(Debug, Default)]
pub struct Targets {
    entries: BTreeMap<Target, TargetEntry>,
    by_cluster: BTreeMap<ClusterName, BTreeSet<AppId>>,
    /// Targets that could not be rendered.
    broken: BTreeSet<Target>,
}

impl Targets {
    pub fn len(&self) -> usize {
        self.entries.len()
    }

    pub fn get(&self, id: &Target) -> Option<&TargetEntry> {
        self.entries.get(id)
    }

    pub fn get_mut(&mut self, id: &Target) -> Option<&mut TargetEntry> {
        self.entries.get_mut(id)
    }

    /// Sets the head of a target. Returns whether it changed. The effective render follows the head; in an app with waves it
    /// needs a decision.
    pub fn update(
        &mut self,
        id: &Target,
        app: Arc<App>,
        settings: Arc<ApplySettings>,
        render: TargetRender,
        in_waves: bool,
    ) -> bool {
        if render.1.is_err() {
            self.broken.insert(id.clone());
        } else {
            self.broken.remove(id);
        }
        if let Some(entry) = self.entries.get_mut(id) {
            return match in_waves {
                true => entry.update_head(app, settings, render),
                false => entry.update(app, settings, render),
            };
        }
        self.by_cluster.entry(id.cluster.clone()).or_default().insert(id.app.clone());
        let mut entry = TargetEntry::new(app, settings, render);
        entry.is_undecided = in_waves;
        self.entries.insert(id.clone(), entry);
        true
    }

    pub fn broken(&self) -> &BTreeSet<Target> {
        &self.broken
    }

    pub fn retain(&mut self, mut stays: impl FnMut(&Target, &TargetEntry) -> bool) {
        let Self { by_cluster, broken, .. } = self;
        self.entries.retain(|id, entry| {
            let stays = stays(id, entry);
            if !stays {
                broken.remove(id);
                if let Some(apps) = by_cluster.get_mut(&id.cluster) {
                    apps.remove(&id.app);
                }
            }
            stays
        });
        self.by_cluster.retain(|_, apps| !apps.is_empty());
    }

    pub fn clear(&mut self) {
        self.retain(|_, _| false);
    }

    /// Sorted by app, then by cluster.
    pub fn iter(&self) -> impl Iterator<Item = (&Target, &TargetEntry)> {
        self.entries.iter()
    }

    pub fn keys(&self) -> impl Iterator<Item = &Target> {
        self.entries.keys()
    }

    pub fn of_app(&self, app: &AppId) -> impl Iterator<Item = (&Target, &TargetEntry)> + use<'_> {
        let app = app.clone();
        let first = Target { app: app.clone(), cluster: ClusterName::from("") };
        self.entries.range(first..).take_while(move |(id, _)| id.app == app)
    }

    pub fn targets_on(&self, cluster: &ClusterName) -> Vec<Target> {
        let apps = self.by_cluster.get(cluster).into_iter().flatten();
        apps.map(|app| Target { app: app.clone(), cluster: cluster.clone() }).collect()
    }

    pub fn entries_on(&self, cluster: &ClusterName) -> impl Iterator<Item = (&AppId, &TargetEntry)> {
        let apps = self.by_cluster.get(cluster).into_iter().flatten();
        let cluster = cluster.clone();
        apps.filter_map(move |app| {
            let entry = self.entries.get(&Target { app: app.clone(), cluster: cluster.clone() })?;
            Some((app, entry))
        })
    }
}

/// The work queue of targets. A target that is in none of its lists is not processed before an event, so a turn costs the number
/// of events and not the number of targets.
#[derive(Debug, Default)]
pub struct TargetWorkQueue {
    /// Targets with events.
    due: BTreeSet<Target>,
    deadlines: BTreeSet<(Instant, Target)>,
    deadline_of: BTreeMap<Target, Instant>,
    /// Targets with work, while their cluster has no free slot.
    queues: BTreeMap<ClusterName, UniqueQueue<Target>>,
    /// Clusters that may have a free slot; the other queues are not visited.
    open: BTreeSet<ClusterName>,
}

/// First in, first out; each item once.
#[derive(Debug)]
struct UniqueQueue<T> {
    order: VecDeque<T>,
    /// The same items as a set: each event checks whether an item waits, and that must not cost more in a long queue.
    waiting: BTreeSet<T>,
}

impl<T> Default for UniqueQueue<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), waiting: BTreeSet::new() }
    }
}

impl<T: Clone + Ord> UniqueQueue<T> {
    fn push(&mut self, item: &T) {
        if self.waiting.insert(item.clone()) {
            self.order.push_back(item.clone());
        }
    }

    fn pop(&mut self) -> Option<T> {
        let item = self.order.pop_front()?;
        self.waiting.remove(&item);
        Some(item)
    }
}

impl TargetWorkQueue {
    pub fn mark_due(&mut self, id: Target) {
        self.due.insert(id);
    }

    /// Sets the time of the next processing. It replaces the previous time.
    pub fn set_deadline(&mut self, id: &Target, at: Option<Instant>) {
        if let Some(before) = self.deadline_of.remove(id) {
            self.deadlines.remove(&(before, id.clone()));
        }
        if let Some(at) = at {
            self.deadline_of.insert(id.clone(), at);
            self.deadlines.insert((at, id.clone()));
        }
    }

    /// Processes it when its cluster has a free slot.
    pub fn enqueue(&mut self, id: &Target) {
        self.queues.entry(id.cluster.clone()).or_default().push(id);
    }

    /// The next target to process.
    pub fn next(&mut self, now: Instant, has_room: impl Fn(&ClusterName) -> bool) -> Option<Target> {
        while let Some((at, _)) = self.deadlines.first()
            && *at <= now
            && let Some((_, id)) = self.deadlines.pop_first()
        {
            self.deadline_of.remove(&id);
            self.due.insert(id);
        }
        if let Some(id) = self.due.pop_first() {
            return Some(id);
        }
        while let Some(cluster) = self.open.first().cloned() {
            let queue = self.queues.get_mut(&cluster).filter(|_| has_room(&cluster));
            let next = queue.and_then(UniqueQueue::pop);
            if self.queues.get(&cluster).is_some_and(|queue| queue.order.is_empty()) {
                self.queues.remove(&cluster);
            }
            if next.is_some() {
                return next;
            }
            self.open.remove(&cluster);
        }
        None
    }

    /// A cluster may have a free slot.
    pub fn open(&mut self, cluster: &ClusterName) {
        if self.queues.contains_key(cluster) {
            self.open.insert(cluster.clone());
        }
    }

    pub fn free_all_slots(&mut self) {
        self.open.extend(self.queues.keys().cloned());
    }

    pub fn next_deadline(&self) -> Option<Instant> {
        self.deadlines.first().map(|(at, _)| *at)
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn target(app: &str, cluster: &str) -> Target {
        Target { app: AppId::new("shop", app), cluster: ClusterName::from(cluster) }
    }

    #[tokio::test(start_paused = true)]
    async fn only_targets_with_events_are_processed() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let everywhere = |_: &ClusterName| true;
        let mut agenda = TargetWorkQueue::default();
        assert_eq!(agenda.next(now, everywhere), None);
        agenda.mark_due(target("pay", "one"));
        agenda.mark_due(target("pay", "one"));
        agenda.set_deadline(&target("cart", "one"), Some(now + Duration::from_secs(9)));
        agenda.set_deadline(&target("cart", "one"), Some(later));
        assert_eq!(agenda.next(now, everywhere), Some(target("pay", "one")));
        assert_eq!(agenda.next(now, everywhere), None);
        assert_eq!(agenda.next_deadline(), Some(later));
        assert_eq!(agenda.next(later, everywhere), Some(target("cart", "one")));
        assert_eq!((agenda.next(later, everywhere), agenda.next_deadline()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn queued_targets_run_in_order_per_cluster() {
        let now = Instant::now();
        let mut agenda = TargetWorkQueue::default();
        for id in [target("b", "full"), target("b", "free"), target("a", "free"), target("b", "free")] {
            agenda.enqueue(&id);
        }
        let has_room = |cluster: &ClusterName| cluster.as_str() == "free";
        assert_eq!(agenda.next(now, has_room), None, "nobody has said that there is a place");
        agenda.free_all_slots();
        let order: Vec<_> = std::iter::from_fn(|| agenda.next(now, has_room)).collect();
        assert_eq!(order, [target("b", "free"), target("a", "free")]);
        assert_eq!(agenda.next(now, |_| true), None);
        agenda.open(&ClusterName::from("full"));
        agenda.open(&ClusterName::from("free"));
        assert_eq!(agenda.next(now, |_| true), Some(target("b", "full")));
    }

    #[tokio::test(start_paused = true)]
    async fn target_is_queued_once() {
        let now = Instant::now();
        let mut agenda = TargetWorkQueue::default();
        for app in ["a", "b", "a", "b"] {
            agenda.enqueue(&target(app, "one"));
        }
        agenda.free_all_slots();
        assert_eq!(agenda.next(now, |_| true), Some(target("a", "one")));
        // It was processed: it is queued again behind the one that waited longer.
        agenda.enqueue(&target("a", "one"));
        let order: Vec<_> = std::iter::from_fn(|| agenda.next(now, |_| true)).collect();
        assert_eq!(order, [target("b", "one"), target("a", "one")]);
    }

    /// A thousand full clusters: an event of another cluster visits none of their queues.
    #[tokio::test(start_paused = true)]
    async fn full_clusters_cost_nothing_for_other_events() {
        let now = Instant::now();
        let mut agenda = TargetWorkQueue::default();
        for number in 0..1_000 {
            agenda.enqueue(&target("a", &format!("cluster-{number}")));
        }
        let asked = std::cell::Cell::new(0);
        let has_room = |cluster: &ClusterName| {
            asked.set(asked.get() + 1);
            cluster.as_str() == "cluster-500"
        };
        agenda.open(&ClusterName::from("cluster-500"));
        assert_eq!(agenda.next(now, has_room), Some(target("a", "cluster-500")));
        assert_eq!(agenda.next(now, has_room), None);
        assert!(asked.get() <= 2, "{} clusters were asked", asked.get());
    }

    thread_local! {
        static COMPARED: std::cell::Cell<usize> = const { std::cell::Cell::new(0) };
    }

    #[derive(Clone, Debug)]
    struct Counted(usize);

    impl Ord for Counted {
        fn cmp(&self, other: &Self) -> std::cmp::Ordering {
            COMPARED.set(COMPARED.get() + 1);
            self.0.cmp(&other.0)
        }
    }

    impl PartialOrd for Counted {
        fn partial_cmp(&self, other: &Self) -> Option<std::cmp::Ordering> {
            Some(self.cmp(other))
        }
    }

    impl PartialEq for Counted {
        fn eq(&self, other: &Self) -> bool {
            self.cmp(other).is_eq()
        }
    }

    impl Eq for Counted {}

    #[test]
    fn long_queue_costs_same_per_entry() {
        const WAITING: usize = 10_000;
        let mut queue = UniqueQueue::default();
        // Each is queued twice, as by the events that affect it.
        for number in (0..WAITING).chain(0..WAITING) {
            queue.push(&Counted(number));
        }
        let taken = std::iter::from_fn(|| queue.pop()).count();
        assert_eq!(taken, WAITING);
        let per_entry = COMPARED.get() / WAITING;
        assert!((1..=300).contains(&per_entry), "{per_entry} comparisons for each entry");
    }
}

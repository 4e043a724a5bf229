//! The targets that are known, found by app, by cluster, and by when they are to be looked at.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::sync::Arc;

use tokio::time::Instant;

use super::target::TargetEntry;
use crate::fleet::Target;
use crate::model::{App, AppId, ClusterName};
use crate::plan::ApplySettings;
use crate::render::Render;

#[derive(Debug, Default)]
pub struct Targets {
    entries: BTreeMap<Target, TargetEntry>,
    by_cluster: BTreeMap<ClusterName, BTreeSet<AppId>>,
    /// Those that could not be rendered.
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

    /// What a target is at the head; whether it is something else than before. What it shall be now is that too, but for an app in
    /// waves, of which it is decided.
    pub fn take_over(
        &mut self,
        id: &Target,
        app: Arc<App>,
        settings: Arc<ApplySettings>,
        render: Render,
        in_waves: bool,
    ) -> bool {
        if render.1.is_err() {
            self.broken.insert(id.clone());
        } else {
            self.broken.remove(id);
        }
        if let Some(entry) = self.entries.get_mut(id) {
            return match in_waves {
                true => entry.take_head(app, settings, render),
                false => entry.take_over(app, settings, render),
            };
        }
        self.by_cluster.entry(id.cluster.clone()).or_default().insert(id.app.clone());
        let mut entry = TargetEntry::new(app, settings, render);
        entry.is_undecided = in_waves;
        self.entries.insert(id.clone(), entry);
        true
    }

    /// Those that could not be rendered.
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

    /// By app, then by cluster.
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

    /// The names of the targets of a cluster.
    pub fn names_on(&self, cluster: &ClusterName) -> Vec<Target> {
        let apps = self.by_cluster.get(cluster).into_iter().flatten();
        apps.map(|app| Target { app: app.clone(), cluster: cluster.clone() }).collect()
    }

    pub fn on(&self, cluster: &ClusterName) -> impl Iterator<Item = (&AppId, &TargetEntry)> {
        let apps = self.by_cluster.get(cluster).into_iter().flatten();
        let cluster = cluster.clone();
        apps.filter_map(move |app| {
            let entry = self.entries.get(&Target { app: app.clone(), cluster: cluster.clone() })?;
            Some((app, entry))
        })
    }
}

/// Which targets are looked at next. A target that is in none of its lists is not looked at before something happens to it,
/// so that a turn costs what has happened, and not what is known.
#[derive(Debug, Default)]
pub struct Agenda {
    /// Something happened to them.
    marked: BTreeSet<Target>,
    deadlines: BTreeSet<(Instant, Target)>,
    deadline_of: BTreeMap<Target, Instant>,
    /// They have something to do, and enough is under way on their cluster.
    queues: BTreeMap<ClusterName, Queue<Target>>,
    /// Those of them that may have room: nobody looks through the others.
    open: BTreeSet<ClusterName>,
}

/// First come, first served; each once.
#[derive(Debug)]
struct Queue<T> {
    order: VecDeque<T>,
    /// The same: whether one waits already is asked at each event, and must not cost more where more wait.
    waiting: BTreeSet<T>,
}

impl<T> Default for Queue<T> {
    fn default() -> Self {
        Self { order: VecDeque::new(), waiting: BTreeSet::new() }
    }
}

impl<T: Clone + Ord> Queue<T> {
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

impl Agenda {
    pub fn mark(&mut self, id: Target) {
        self.marked.insert(id);
    }

    /// Looks at it again then, and not at the moment that was set before.
    pub fn remind(&mut self, id: &Target, at: Option<Instant>) {
        if let Some(before) = self.deadline_of.remove(id) {
            self.deadlines.remove(&(before, id.clone()));
        }
        if let Some(at) = at {
            self.deadline_of.insert(id.clone(), at);
            self.deadlines.insert((at, id.clone()));
        }
    }

    /// Looks at it again when a place on its cluster is free.
    pub fn queue(&mut self, id: &Target) {
        self.queues.entry(id.cluster.clone()).or_default().push(id);
    }

    /// The next one to look at.
    pub fn next(&mut self, now: Instant, has_room: impl Fn(&ClusterName) -> bool) -> Option<Target> {
        while let Some((at, _)) = self.deadlines.first()
            && *at <= now
            && let Some((_, id)) = self.deadlines.pop_first()
        {
            self.deadline_of.remove(&id);
            self.marked.insert(id);
        }
        if let Some(id) = self.marked.pop_first() {
            return Some(id);
        }
        while let Some(cluster) = self.open.first().cloned() {
            let queue = self.queues.get_mut(&cluster).filter(|_| has_room(&cluster));
            let next = queue.and_then(Queue::pop);
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

    /// A place may have become free on a cluster.
    pub fn open(&mut self, cluster: &ClusterName) {
        if self.queues.contains_key(cluster) {
            self.open.insert(cluster.clone());
        }
    }

    /// Or on any cluster.
    pub fn open_all(&mut self) {
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
    async fn only_what_something_happened_to_is_looked_at() {
        let now = Instant::now();
        let later = now + Duration::from_secs(1);
        let everywhere = |_: &ClusterName| true;
        let mut agenda = Agenda::default();
        assert_eq!(agenda.next(now, everywhere), None);
        agenda.mark(target("pay", "one"));
        agenda.mark(target("pay", "one"));
        agenda.remind(&target("cart", "one"), Some(now + Duration::from_secs(9)));
        agenda.remind(&target("cart", "one"), Some(later));
        assert_eq!(agenda.next(now, everywhere), Some(target("pay", "one")));
        assert_eq!(agenda.next(now, everywhere), None);
        assert_eq!(agenda.next_deadline(), Some(later));
        assert_eq!(agenda.next(later, everywhere), Some(target("cart", "one")));
        assert_eq!((agenda.next(later, everywhere), agenda.next_deadline()), (None, None));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_for_a_place_comes_in_turn_and_on_its_own_cluster() {
        let now = Instant::now();
        let mut agenda = Agenda::default();
        for id in [target("b", "full"), target("b", "free"), target("a", "free"), target("b", "free")] {
            agenda.queue(&id);
        }
        let has_room = |cluster: &ClusterName| cluster.as_str() == "free";
        assert_eq!(agenda.next(now, has_room), None, "nobody has said that there is a place");
        agenda.open_all();
        let order: Vec<_> = std::iter::from_fn(|| agenda.next(now, has_room)).collect();
        assert_eq!(order, [target("b", "free"), target("a", "free")]);
        assert_eq!(agenda.next(now, |_| true), None);
        agenda.open(&ClusterName::from("full"));
        agenda.open(&ClusterName::from("free"));
        assert_eq!(agenda.next(now, |_| true), Some(target("b", "full")));
    }

    #[tokio::test(start_paused = true)]
    async fn who_waits_is_queued_once_until_its_turn() {
        let now = Instant::now();
        let mut agenda = Agenda::default();
        for app in ["a", "b", "a", "b"] {
            agenda.queue(&target(app, "one"));
        }
        agenda.open_all();
        assert_eq!(agenda.next(now, |_| true), Some(target("a", "one")));
        // Its turn was taken: it comes again behind the one that waited longer.
        agenda.queue(&target("a", "one"));
        let order: Vec<_> = std::iter::from_fn(|| agenda.next(now, |_| true)).collect();
        assert_eq!(order, [target("b", "one"), target("a", "one")]);
    }

    /// Queues of a thousand clusters that have no place: none of them is asked at an event of another one.
    #[tokio::test(start_paused = true)]
    async fn full_clusters_cost_nothing_at_an_event_of_another() {
        let now = Instant::now();
        let mut agenda = Agenda::default();
        for number in 0..1_000 {
            agenda.queue(&target("a", &format!("cluster-{number}")));
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
    fn a_long_queue_costs_no_more_per_entry() {
        const WAITING: usize = 10_000;
        let mut queue = Queue::default();
        // Each is queued twice, as it is at each event that concerns it.
        for number in (0..WAITING).chain(0..WAITING) {
            queue.push(&Counted(number));
        }
        let taken = std::iter::from_fn(|| queue.pop()).count();
        assert_eq!(taken, WAITING);
        let per_entry = COMPARED.get() / WAITING;
        assert!((1..=300).contains(&per_entry), "{per_entry} comparisons for each entry");
    }
}

//! Progress of a cluster with `state: Removed`: which of its objects are still there.

use super::cluster_entry::ClusterEntry;
use super::world::World;
use crate::plan::{Decided, Reason};
use crate::report::words::count;

impl World {
    /// The state of a cluster that is being removed, and its remaining objects. Its file may be deleted when only objects remain
    /// that stay for good.
    pub(super) fn removal(&self, entry: &ClusterEntry) -> (&'static str, String) {
        let decision = &self.prune.decision;
        let here = |decided: &&Decided| decided.candidate.cluster == *entry.name();
        let waiting = || decision.waiting.iter().filter(here);
        let (staying, left) = (self.staying(entry), self.left_to_go(entry));
        let is_current = self.head == self.rendered_head && entry.is_whole();
        if left == 0 && is_current {
            let stays = if staying > 0 {
                format!("{} left on purpose, ", count(staying, "object"))
            } else {
                String::new()
            };
            return ("Removed", format!("{stays}nothing else is there any more: its file may go"));
        }
        let waiting: Vec<&Decided> = waiting().filter(|it| it.reason != Reason::Unmanaged).collect();
        let detail = match waiting.first() {
            Some(first) if is_current => {
                format!("{} to go, {} of them wait: {}", count(left, "object"), waiting.len(), first.reason)
            }
            _ => {
                let refused = decision.deletes.iter().filter(here).find_map(|it| {
                    self.prune.refusal(&(it.candidate.cluster.clone(), it.candidate.object.clone()))
                });
                let to_go = count(left, "object");
                entry.trouble().unwrap_or_else(|| match refused {
                    Some(words) => format!("{to_go} to go: {words}"),
                    None => format!("{to_go} to go"),
                })
            }
        };
        ("Removing", detail)
    }

    /// Objects of this instance that remain, without those that stay for good.
    pub(super) fn left_to_go(&self, entry: &ClusterEntry) -> usize {
        entry.observation.objects.len().saturating_sub(self.staying(entry))
    }

    fn staying(&self, entry: &ClusterEntry) -> usize {
        let decision = &self.prune.decision;
        let here = |decided: &&Decided| decided.candidate.cluster == *entry.name();
        let unmanaged = decision.waiting.iter().filter(|it| it.reason == Reason::Unmanaged);
        decision.orphans.iter().filter(here).count() + unmanaged.filter(here).count()
    }
}

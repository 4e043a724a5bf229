//! Progress of a cluster with `state: Removed`: which of its objects are still there.

use super::cluster_entry::ClusterEntry;
use super::state::ControllerState;
use crate::plan::{CandidateDecision, StepReason};
use crate::report::status_text::count_noun;

impl ControllerState {
    /// The state of a cluster that is being removed, and its remaining objects. Its file may be deleted when only objects remain
    /// that stay for good.
    pub(super) fn removal_progress(&self, entry: &ClusterEntry) -> (&'static str, String) {
        let decision = &self.prune.decision;
        let here = |decided: &&CandidateDecision| decided.candidate.cluster == *entry.name();
        let waiting = || decision.waiting.iter().filter(here);
        let (staying, left) = (self.retained_object_count(entry), self.remaining_objects(entry));
        let is_current = self.head == self.rendered_head && entry.is_whole();
        if left == 0 && is_current {
            let stays = if staying > 0 {
                format!("{} kept on purpose, ", count_noun(staying, "object"))
            } else {
                String::new()
            };
            return ("Removed", format!("{stays}no other object remains: delete its file"));
        }
        let waiting: Vec<&CandidateDecision> =
            waiting().filter(|it| it.reason != StepReason::Unmanaged).collect();
        let detail = match waiting.first() {
            Some(first) if is_current => {
                format!(
                    "{} to delete, {} of them wait: {}",
                    count_noun(left, "object"),
                    waiting.len(),
                    first.reason
                )
            }
            _ => {
                let refused = decision.deletes.iter().filter(here).find_map(|it| {
                    self.prune.refusal(&(it.candidate.cluster.clone(), it.candidate.object.clone()))
                });
                let to_go = count_noun(left, "object");
                entry.watch_error().unwrap_or_else(|| match refused {
                    Some(words) => format!("{to_go} to delete: {words}"),
                    None => format!("{to_go} to delete"),
                })
            }
        };
        ("Removing", detail)
    }

    /// Objects of this instance that remain, without those that stay for good.
    pub(super) fn remaining_objects(&self, entry: &ClusterEntry) -> usize {
        entry.observation.objects.len().saturating_sub(self.retained_object_count(entry))
    }

    fn retained_object_count(&self, entry: &ClusterEntry) -> usize {
        let decision = &self.prune.decision;
        let here = |decided: &&CandidateDecision| decided.candidate.cluster == *entry.name();
        let unmanaged = decision.waiting.iter().filter(|it| it.reason == StepReason::Unmanaged);
        decision.orphans.iter().filter(here).count() + unmanaged.filter(here).count()
    }
}

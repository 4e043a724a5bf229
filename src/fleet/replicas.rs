//! Divides the replicas of an AppSet among its podSets.

use crate::model::{AppSet, PodSet, Replicas};

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ReplicaDivision {
    /// In file order, over all clusters. `None` if neither the podSet nor the total gives a number: the layers decide.
    Divided(Vec<Option<u32>>),
    /// The podSets sum to another number than `spec.replicas`.
    Mismatch { total: u32, sum: u64 },
    /// A percentage without `spec.replicas`. Holds the index of the podSet in file order.
    PercentWithoutTotal(usize),
}

/// Absolute counts stay. Percentages of the total are rounded down; the remainder goes one by one, in file order, to the
/// rounded ones. What is left is divided evenly among podSets without a number; the first of them get one more each.
///
/// If every podSet has a number, the sum must be the total (`replicas-mismatch`).
pub fn divide_replicas(app_set: &AppSet) -> ReplicaDivision {
    let pod_sets: Vec<&PodSet> = app_set.clusters.iter().flat_map(|cluster| &cluster.pod_sets).collect();
    let Some(total) = app_set.replicas else {
        return without_total(&pod_sets);
    };
    let mut shares: Vec<Option<u64>> = pod_sets
        .iter()
        .map(|pod_set| match pod_set.replicas? {
            Replicas::Count(count) => Some(u64::from(count)),
            Replicas::Percent(percent) => Some(u64::from(total) * u64::from(percent) / 100),
        })
        .collect();
    let sum: u64 = shares.iter().flatten().sum();
    let Some(mut left) = u64::from(total).checked_sub(sum) else {
        return ReplicaDivision::Mismatch { total, sum };
    };
    let silent = shares.iter().filter(|share| share.is_none()).count() as u64;
    match left.checked_div(silent) {
        Some(each) => {
            let mut more = left % silent;
            for share in shares.iter_mut().filter(|share| share.is_none()) {
                *share = Some(each + u64::from(more > 0));
                more = more.saturating_sub(1);
            }
        }
        None => {
            for (share, pod_set) in shares.iter_mut().zip(&pod_sets) {
                if left > 0 && was_rounded(pod_set, total) {
                    *share = share.map(|share| share + 1);
                    left -= 1;
                }
            }
            if left > 0 {
                return ReplicaDivision::Mismatch { total, sum: u64::from(total) - left };
            }
        }
    }
    // Each share is at most the total, which is a u32.
    ReplicaDivision::Divided(
        shares.into_iter().map(|share| share.and_then(|share| u32::try_from(share).ok())).collect(),
    )
}

fn without_total(pod_sets: &[&PodSet]) -> ReplicaDivision {
    let percent = |pod_set: &&PodSet| matches!(pod_set.replicas, Some(Replicas::Percent(_)));
    if let Some(index) = pod_sets.iter().position(percent) {
        return ReplicaDivision::PercentWithoutTotal(index);
    }
    let count = |pod_set: &&PodSet| match pod_set.replicas {
        Some(Replicas::Count(count)) => Some(count),
        Some(Replicas::Percent(_)) | None => None,
    };
    ReplicaDivision::Divided(pod_sets.iter().map(count).collect())
}

fn was_rounded(pod_set: &PodSet, total: u32) -> bool {
    match pod_set.replicas {
        Some(Replicas::Percent(percent)) => !(u64::from(total) * u64::from(percent)).is_multiple_of(100),
        Some(Replicas::Count(_)) | None => false,
    }
}

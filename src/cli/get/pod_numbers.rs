//! Pods and version of an app, as far as known.

use serde::Serialize;

use crate::model::PodCount;
use crate::report::{PodSetReport, TargetPhase, TargetReport, version};

/// On one cluster or several; empty when the cluster does not answer, or nothing is there.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct PodNumbers {
    desired: Option<u32>,
    available: Option<u32>,
    unavailable: Option<u32>,
    version: Option<String>,
}

impl PodNumbers {
    pub fn new(pods: PodCount, version: &str) -> Self {
        Self {
            desired: Some(pods.desired),
            available: Some(pods.available),
            unavailable: Some(pods.desired.saturating_sub(pods.available)),
            version: Some(version.to_owned()),
        }
    }

    pub fn of(target: &TargetReport) -> Self {
        if is_observed(target) { Self::new(target.pods, &target.version) } else { Self::default() }
    }

    pub fn of_pod_set(target: &TargetReport, pod_set: &PodSetReport) -> Self {
        if is_observed(target) { Self::new(pod_set.pods, &pod_set.version) } else { Self::default() }
    }

    /// Sum of the known ones.
    pub fn sum(all: &[&Self]) -> Self {
        let sum = |number: fn(&Self) -> Option<u32>| {
            all.iter().copied().filter_map(number).reduce(|sum, it| sum + it)
        };
        let mut versions = all.iter().filter_map(|it| it.version.as_deref()).peekable();
        Self {
            desired: sum(|it| it.desired),
            available: sum(|it| it.available),
            unavailable: sum(|it| it.unavailable),
            version: versions.peek().is_some().then(|| version::merge_versions(versions)),
        }
    }

    /// DESIRED, AVAILABLE, UNAVAILABLE, VERSION.
    pub fn cells(&self) -> [String; 4] {
        let number = |number: Option<u32>| number.map_or_else(|| "-".to_owned(), |it| it.to_string());
        let version = self.version.clone().unwrap_or_else(|| "-".to_owned());
        [number(self.desired), number(self.available), number(self.unavailable), version]
    }
}

/// Its objects were observed, and its manifest is valid.
fn is_observed(target: &TargetReport) -> bool {
    !matches!(target.phase, TargetPhase::Unreachable | TargetPhase::Invalid) && target.created.is_some()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn unknown_numbers_are_not_counted() {
        let known = |desired, version| PodNumbers::new(PodCount { desired, available: 1 }, version);
        let check = |all: &[PodNumbers], expected: [&str; 4]| {
            assert_eq!(PodNumbers::sum(&all.iter().collect::<Vec<_>>()).cells(), expected);
        };
        check(&[], ["-", "-", "-", "-"]);
        check(&[PodNumbers::default()], ["-", "-", "-", "-"]);
        check(&[known(2, "v1"), PodNumbers::default()], ["2", "1", "1", "v1"]);
        check(&[known(2, "v1"), known(3, "v2")], ["5", "2", "3", "v1/v2"]);
        check(&[known(1, "")], ["1", "1", "0", ""]);
    }
}

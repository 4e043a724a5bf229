//! Rollout annotations on the objects of a unit. They are excluded from the object's hash.

use jiff::Timestamp;

use super::{Digest, Revision, labels};

/// Of one unit, or of one of its objects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct UnitRolloutAnnotations {
    /// When the unit took its content.
    pub since: Option<Timestamp>,
    /// What it ran before.
    pub previous: Option<PreviousContent>,
    /// A version that it was taken back from.
    pub refused: Option<RefusedVersion>,
}

/// The commit and content that the unit ran before.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PreviousContent {
    pub revision: Revision,
    pub content: Digest,
}

/// A digest of the app, and the head at which it failed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RefusedVersion {
    pub digest: Digest,
    pub head: Revision,
}

/// The rollout annotations of one object.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectRolloutAnnotations {
    /// The content digest without scale; `None` without the annotation.
    pub content: Option<Digest>,
    /// The commit of that content, when the apply does not change it.
    pub revision: Option<Revision>,
    pub unit: UnitRolloutAnnotations,
}

impl ObjectRolloutAnnotations {
    pub fn read<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Self {
        let content = annotation(labels::CONTENT).and_then(Digest::parse);
        Self { content, revision: None, unit: UnitRolloutAnnotations::read(annotation) }
    }

    /// The annotations that say it.
    pub fn annotations(&self) -> impl Iterator<Item = (&'static str, String)> {
        let content = self.content.map(|content| (labels::CONTENT, content.to_string()));
        let revision = self.revision.as_ref().map(|revision| (labels::REVISION, revision.to_string()));
        content.into_iter().chain(revision).chain(self.unit.annotations())
    }
}

impl UnitRolloutAnnotations {
    /// Parses the annotations. An invalid one counts as missing.
    pub fn read<'a>(annotation: impl Fn(&str) -> Option<&'a str>) -> Self {
        let pair = |name: &str| annotation(name)?.split_once(' ');
        let previous = pair(labels::PREVIOUS).and_then(|(revision, content)| {
            Some(PreviousContent { revision: Revision::from(revision), content: Digest::parse(content)? })
        });
        let refused = pair(labels::REFUSED).and_then(|(digest, head)| {
            Some(RefusedVersion { digest: Digest::parse(digest)?, head: Revision::from(head) })
        });
        Self { since: annotation(labels::SINCE).and_then(|text| text.parse().ok()), previous, refused }
    }

    /// The annotations that say it.
    pub fn annotations(&self) -> impl Iterator<Item = (&'static str, String)> {
        let since = self.since.map(|since| (labels::SINCE, format!("{since:.0}")));
        let previous =
            self.previous.as_ref().map(|it| (labels::PREVIOUS, format!("{} {}", it.revision, it.content)));
        let refused = self.refused.as_ref().map(|it| (labels::REFUSED, format!("{} {}", it.digest, it.head)));
        [since, previous, refused].into_iter().flatten()
    }

    pub fn is_empty(&self) -> bool {
        *self == Self::default()
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;

    #[test]
    fn annotations_are_read_back() {
        let mark = UnitRolloutAnnotations {
            since: Some("2026-11-26T08:00:00Z".parse().expect("a time")),
            previous: Some(PreviousContent {
                revision: Revision::from("c0ffee"),
                content: Digest::of(b"one"),
            }),
            refused: Some(RefusedVersion { digest: Digest::of(b"two"), head: Revision::from("beef") }),
        };
        let texts: BTreeMap<&str, String> = mark.annotations().collect();
        assert_eq!(UnitRolloutAnnotations::read(|name| texts.get(name).map(String::as_str)), mark);
        assert_eq!(texts.len(), 3);
        let none = UnitRolloutAnnotations::read(|_| Some("what somebody wrote"));
        assert!(none.is_empty(), "{none:?}");
    }
}

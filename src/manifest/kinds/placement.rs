//! Placement and cluster selectors.

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use super::taint;
use crate::model::glob::{self, SeparatorMatching};
use crate::model::{ClusterSelector, LabelOperator, LabelRequirement, LabelSelector, Placement};

/// `placement: {clusters: selector, tolerations}`.
pub fn read(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Placement> {
    let mut fields = ManifestFields::of(value, reading)?;
    let clusters = fields.required("clusters", reading);
    let tolerations = fields.optional("tolerations", reading);
    let tolerations = tolerations.map(|list| taint::tolerations(&list, reading));
    fields.refuse_planned(&["replicas", "spread"], reading);
    let clusters = clusters.and_then(|clusters| selector(&clusters, true, reading));
    fields.finish(reading);
    let tolerations = all_read(tolerations)?.unwrap_or_default();
    Some(Placement { clusters: clusters?, tolerations, location: Some(reading.location(value.node)) })
}

/// `by_ring`: whether it may name a ring.
pub fn selector(
    value: &ManifestValue<'_>,
    by_ring: bool,
    reading: &mut ReadContext<'_>,
) -> Option<ClusterSelector> {
    let mut fields = ManifestFields::of(value, reading)?;
    let names = fields.optional_selector("names", reading).map(|names| patterns(&names, reading));
    let match_labels = fields.optional_selector("matchLabels", reading).map(|labels| reading.labels(&labels));
    let match_expressions =
        fields.optional_selector("matchExpressions", reading).map(|list| requirements(&list, reading));
    let ring = if by_ring { fields.optional_selector("ring", reading) } else { None };
    let ring = ring.map(|ring| reading.word(&ring));
    fields.finish(reading);
    Some(ClusterSelector {
        names: all_read(names)?,
        match_labels: all_read(match_labels)?.unwrap_or_default(),
        match_expressions: all_read(match_expressions)?.unwrap_or_default(),
        ring: all_read(ring)?,
    })
}

/// As Kubernetes selects objects and namespaces.
pub fn label_selector(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<LabelSelector> {
    let mut fields = ManifestFields::of(value, reading)?;
    let match_labels = fields.optional("matchLabels", reading).map(|labels| reading.labels(&labels));
    let match_expressions =
        fields.optional("matchExpressions", reading).map(|list| requirements(&list, reading));
    fields.finish(reading);
    Some(LabelSelector {
        match_labels: all_read(match_labels)?.unwrap_or_default(),
        match_expressions: all_read(match_expressions)?.unwrap_or_default(),
    })
}

/// Absent stays absent; present and wrong gives up.
#[expect(clippy::option_option, reason = "absent and wrong are not the same")]
fn all_read<T>(field: Option<Option<T>>) -> Option<Option<T>> {
    field.map_or(Some(None), |read| read.map(Some))
}

fn patterns(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<String>> {
    let items = reading.list(value)?;
    let mut patterns = Vec::new();
    for item in &items {
        let Some(text) = reading.word(item) else { continue };
        if let Err(error) = glob::compile(&text, SeparatorMatching::Matched) {
            let location = reading.location(item.node);
            let message = format!("{text:?} is not a pattern: {}", error);
            reading
                .mistake(codes::BAD_PATTERN, message, location, &item.path)
                .help("a cluster's name, or a shell pattern such as gz*");
            continue;
        }
        patterns.push(text);
    }
    (patterns.len() == items.len()).then_some(patterns)
}

fn requirements(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<LabelRequirement>> {
    let items = reading.list(value)?;
    let read: Vec<_> = items.iter().map(|item| requirement(item, reading)).collect();
    read.into_iter().collect()
}

fn requirement(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<LabelRequirement> {
    let mut fields = ManifestFields::of(value, reading)?;
    let key = fields.required("key", reading).and_then(|key| reading.word(&key));
    let operator = fields.required("operator", reading);
    let operator = operator.and_then(|operator| {
        let operators = [
            ("In", LabelOperator::In),
            ("NotIn", LabelOperator::NotIn),
            ("Exists", LabelOperator::Exists),
            ("DoesNotExist", LabelOperator::DoesNotExist),
        ];
        reading.choice(&operator, &operators, &[], false)
    });
    let values = fields.optional("values", reading);
    let written = values.as_ref().map(|values| values.node.as_seq().map_or(1, <[_]>::len)).unwrap_or(0);
    let takes_values = operator.map(|operator| matches!(operator, LabelOperator::In | LabelOperator::NotIn));
    if takes_values == Some(true) && written == 0 {
        let (place, path) = (fields.location().clone(), fields.path_of("values"));
        reading
            .mistake(codes::MISSING_FIELD, "`values` is missing", place, &path)
            .help("the operators In and NotIn compare with at least one value");
    }
    if let (Some(false), Some(values)) = (takes_values, values.as_ref().filter(|_| written > 0)) {
        reading.bad_value(
            values,
            "`values` must be empty",
            "the operators Exists and DoesNotExist take no values",
        );
    }
    let values = values.map_or(Some(Vec::new()), |values| reading.texts(&values));
    fields.finish(reading);
    Some(LabelRequirement { key: key?, operator: operator?, values: values? })
}

//! Placement and cluster selectors.

use super::super::codes;
use super::super::read::{Fields, Reading, Value};
use super::taint;
use crate::model::glob::{self, Separator};
use crate::model::{LabelSelector, Operator, Placement, Requirement, Selector};

/// `placement: {clusters: selector, tolerations}`.
pub fn read(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<Placement> {
    let mut fields = Fields::of(value, reading)?;
    let clusters = fields.required("clusters", reading);
    let tolerations = fields.optional("tolerations", reading);
    let tolerations = tolerations.map(|list| taint::tolerations(&list, reading));
    fields.later(&["replicas", "spread"], reading);
    let clusters = clusters.and_then(|clusters| selector(&clusters, true, reading));
    fields.finish(reading);
    let tolerations = all_read(tolerations)?.unwrap_or_default();
    Some(Placement { clusters: clusters?, tolerations, location: Some(reading.location(value.node)) })
}

/// `by_ring`: whether it may name a ring.
pub fn selector(value: &Value<'_>, by_ring: bool, reading: &mut Reading<'_>) -> Option<Selector> {
    let mut fields = Fields::of(value, reading)?;
    let names = fields.narrowing("names", reading).map(|names| patterns(&names, reading));
    let match_labels = fields.narrowing("matchLabels", reading).map(|labels| reading.labels(&labels));
    let match_expressions =
        fields.narrowing("matchExpressions", reading).map(|list| requirements(&list, reading));
    let ring = if by_ring { fields.narrowing("ring", reading) } else { None };
    let ring = ring.map(|ring| reading.word(&ring));
    fields.finish(reading);
    Some(Selector {
        names: all_read(names)?,
        match_labels: all_read(match_labels)?.unwrap_or_default(),
        match_expressions: all_read(match_expressions)?.unwrap_or_default(),
        ring: all_read(ring)?,
    })
}

/// As Kubernetes selects objects and namespaces.
pub fn label_selector(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<LabelSelector> {
    let mut fields = Fields::of(value, reading)?;
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

fn patterns(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<Vec<String>> {
    let items = reading.list(value)?;
    let mut patterns = Vec::new();
    for item in &items {
        let Some(text) = reading.word(item) else { continue };
        if let Err(error) = glob::compile(&text, Separator::Fits) {
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

fn requirements(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<Vec<Requirement>> {
    let items = reading.list(value)?;
    let read: Vec<_> = items.iter().map(|item| requirement(item, reading)).collect();
    read.into_iter().collect()
}

fn requirement(value: &Value<'_>, reading: &mut Reading<'_>) -> Option<Requirement> {
    let mut fields = Fields::of(value, reading)?;
    let key = fields.required("key", reading).and_then(|key| reading.word(&key));
    let operator = fields.required("operator", reading);
    let operator = operator.and_then(|operator| {
        let operators = [
            ("In", Operator::In),
            ("NotIn", Operator::NotIn),
            ("Exists", Operator::Exists),
            ("DoesNotExist", Operator::DoesNotExist),
        ];
        reading.choice(&operator, &operators, &[], false)
    });
    let values = fields.optional("values", reading);
    let written = values.as_ref().map(|values| values.node.as_seq().map_or(1, <[_]>::len)).unwrap_or(0);
    let takes_values = operator.map(|operator| matches!(operator, Operator::In | Operator::NotIn));
    if takes_values == Some(true) && written == 0 {
        let (place, path) = (fields.place().clone(), fields.path_of("values"));
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
    Some(Requirement { key: key?, operator: operator?, values: values? })
}

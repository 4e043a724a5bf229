//! Taints of clusters and the tolerations of apps.

use super::super::read::{ManifestFields, ManifestValue, ReadContext};
use crate::model::{Taint, TaintEffect, Toleration};

const EFFECTS: &[(&str, TaintEffect)] =
    &[("NoSchedule", TaintEffect::NoSchedule), ("NoExecute", TaintEffect::NoExecute)];
/// A wish that placements do not know yet.
const LATER_EFFECTS: &[&str] = &["PreferNoSchedule"];

#[derive(Clone, Copy, PartialEq, Eq)]
enum TolerationOperator {
    Equal,
    Exists,
}

/// Each key and effect once.
pub fn taints(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<Taint>> {
    let mut found: Vec<(Taint, ManifestValue<'_>)> = Vec::new();
    let items = reading.list(value)?;
    for item in &items {
        let Some(taint) = taint(item, reading) else { continue };
        let same =
            |(known, _): &&(Taint, ManifestValue<'_>)| known.key == taint.key && known.effect == taint.effect;
        if let Some((_, first)) = found.iter().find(same) {
            reading.duplicate(&taint.key, item, first);
        }
        found.push((taint, item.clone()));
    }
    (found.len() == items.len()).then(|| found.into_iter().map(|(taint, _)| taint).collect())
}

fn taint(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Taint> {
    let mut fields = ManifestFields::of(value, reading)?;
    let key = fields.required("key", reading).and_then(|key| key_of(&key, reading));
    let text = fields.optional("value", reading).map(|value| reading.label_value(&value));
    let effect = fields.required("effect", reading).and_then(|effect| effect_of(&effect, reading));
    fields.refuse_planned(&["timeAdded"], reading);
    fields.finish(reading);
    Some(Taint { key: key?, value: text.map_or(Some(String::new()), |text| text)?, effect: effect? })
}

pub fn tolerations(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<Toleration>> {
    let read: Vec<_> = reading.list(value)?.iter().map(|item| toleration(item, reading)).collect();
    read.into_iter().collect()
}

fn toleration(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Toleration> {
    let mut fields = ManifestFields::of(value, reading)?;
    let help = "name a key, or remove the field: without it, taints of every key are tolerated";
    let key = fields.optional_with_value("key", help, reading);
    let operator = fields.optional("operator", reading);
    let written = fields.optional("value", reading);
    let help = "name an effect, or remove the field: without it, every effect is tolerated";
    let effect = fields.optional_with_value("effect", help, reading);
    fields.refuse_planned(&["tolerationSeconds"], reading);
    fields.finish(reading);
    let operator = match operator {
        Some(operator) => {
            let operators = [("Equal", TolerationOperator::Equal), ("Exists", TolerationOperator::Exists)];
            reading.choice(&operator, &operators, &[], false)?
        }
        None => TolerationOperator::Equal,
    };
    if key.is_none() && operator == TolerationOperator::Equal {
        // One without a key and an operator would tolerate everything by an oversight.
        let help = "name a key, or write `operator: Exists` to tolerate every taint";
        reading.bad_value(value, "a toleration without a key must have the operator Exists", help);
        return None;
    }
    if let Some(written) = written.as_ref().filter(|_| operator == TolerationOperator::Exists) {
        reading.bad_value(written, "`value` must be empty", "the operator Exists takes no value");
        return None;
    }
    let key = key.map(|key| key_of(&key, reading));
    let text = written.map(|written| reading.label_value(&written));
    let effect = effect.map(|effect| effect_of(&effect, reading));
    let key = key.map_or(Some(None), |key| key.map(Some))?;
    let text = text.map_or(Some(String::new()), |text| text)?;
    Some(Toleration {
        key,
        value: (operator == TolerationOperator::Equal).then_some(text),
        effect: effect.map_or(Some(None), |effect| effect.map(Some))?,
    })
}

fn key_of(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<String> {
    let key = reading.text(value)?;
    let before = reading.mistakes.len();
    reading.label_key(&key, value);
    (reading.mistakes.len() == before).then_some(key)
}

fn effect_of(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<TaintEffect> {
    reading.choice(value, EFFECTS, LATER_EFFECTS, false)
}

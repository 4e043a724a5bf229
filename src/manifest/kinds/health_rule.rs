//! Kind HealthRule: when objects of a kind are healthy, as expressions over the object.
//!
//! It is found by its folder, `health/<group>/<Kind>.yaml`: its path says which kind it is for. Whether the
//! expressions can be used is found when they are compiled.

use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::super::{OWN_VERSION, codes};
use super::{expression, metadata, spec_fields};
use crate::model::CelExpression;

/// Where the health rules of a repository are.
pub const FOLDER: &str = "health/";

/// As written.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HealthRule {
    pub in_progress: Option<CelExpression>,
    pub failed: Option<CelExpression>,
    pub current: CelExpression,
}

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<HealthRule> {
    is_rule(root, reading)?;
    let mut fields = ManifestFields::of(&ManifestValue::root(root), reading)?;
    for name in ["apiVersion", "kind"] {
        fields.optional(name, reading);
    }
    if let Some(value) = fields.optional("metadata", reading) {
        metadata::read(&value, NameRule::Subdomain, false, reading);
    }
    let spec = fields.optional("spec", reading);
    fields.finish(reading);
    let mut fields = spec_fields(root, spec, reading)?;
    let in_progress = fields.optional("inProgress", reading).map(|value| expression::read(&value, reading));
    let failed = fields.optional("failed", reading).map(|value| expression::read(&value, reading));
    let current = fields.required("current", reading).and_then(|value| expression::read(&value, reading));
    fields.finish(reading);
    Some(HealthRule { in_progress: all_read(in_progress)?, failed: all_read(failed)?, current: current? })
}

/// Given and wrong is not the same as not given.
fn all_read<T>(given: Option<Option<T>>) -> Option<Option<T>> {
    match given {
        Some(read) => Some(Some(read?)),
        None => Some(None),
    }
}

fn is_rule(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<()> {
    let is = |key, wanted| root.get(key).and_then(YamlNode::as_str) == Some(wanted);
    if is("apiVersion", OWN_VERSION) && is("kind", "HealthRule") {
        return Some(());
    }
    let place =
        root.entry("kind").map_or_else(|| reading.location(root), |entry| entry.location(reading.file));
    reading
        .mistake(
            codes::NOT_A_MANIFEST,
            format!("{FOLDER} holds health rules, and this is not one"),
            place,
            "kind",
        )
        .help(format!("a health rule has `apiVersion: {OWN_VERSION}` and `kind: HealthRule`"));
    None
}

//! `metadata`, the same for every kind.

use std::collections::BTreeMap;

use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNodeKind;
use crate::model::labels::{COMPONENT_UNMANAGED, UNMANAGED};
use crate::model::{AppId, Location};

pub struct Metadata {
    pub name: String,
    /// As written.
    pub namespace: Option<String>,
    pub labels: BTreeMap<String, String>,
    pub annotations: BTreeMap<String, String>,
    pub unmanaged: bool,
    /// Of the name.
    pub location: Location,
}

impl Metadata {
    pub fn app_id(&self, default_namespace: &str) -> AppId {
        AppId::new(self.namespace_or(default_namespace), &self.name)
    }

    pub fn namespace_or<'n>(&'n self, default: &'n str) -> &'n str {
        self.namespace.as_deref().unwrap_or(default)
    }
}

pub fn read(
    value: &ManifestValue<'_>,
    rule: NameRule,
    namespaced: bool,
    reading: &mut ReadContext<'_>,
) -> Option<Metadata> {
    let mut fields = ManifestFields::of(value, reading)?;
    let name = fields.required("name", reading);
    let location = name.as_ref().map(|name| reading.location(name.node));
    let name = name.and_then(|name| reading.name(&name, rule));
    let namespace = if namespaced { fields.optional("namespace", reading) } else { None };
    let namespace = namespace.map(|namespace| reading.name(&namespace, NameRule::Label));
    let labels = fields.optional("labels", reading).map(|labels| reading.labels(&labels));
    let (annotations, unmanaged) = match fields.optional("annotations", reading) {
        Some(annotations) => read_annotations(&annotations, reading)?,
        None => Default::default(),
    };
    fields.finish(reading);
    Some(Metadata {
        name: name?,
        namespace: namespace.map_or(Some(None), |namespace| namespace.map(Some))?,
        labels: labels.unwrap_or_else(|| Some(BTreeMap::new()))?,
        annotations,
        unmanaged,
        location: location?,
    })
}

/// The annotations, and whether one of them marks the app as unmanaged. Boolean and text values are accepted, because both are in use.
fn read_annotations(
    value: &ManifestValue<'_>,
    reading: &mut ReadContext<'_>,
) -> Option<(BTreeMap<String, String>, bool)> {
    let mut annotations = BTreeMap::new();
    let mut unmanaged = false;
    for (key, value) in reading.entries(value)? {
        reading.label_key(key, &value);
        if key == UNMANAGED || key == COMPONENT_UNMANAGED {
            let says = match &value.node.kind {
                YamlNodeKind::Bool(says, _) => Some(*says),
                _ => reading.choice(&value, &[("true", true), ("false", false)], &[], false),
            };
            unmanaged |= says == Some(true);
            annotations.insert(key.to_owned(), (says == Some(true)).to_string());
        } else if let Some(text) = reading.text(&value) {
            annotations.insert(key.to_owned(), text);
        }
    }
    Some((annotations, unmanaged))
}

//! Kind Rings: the rings of clusters, first to last.

use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::{placement, read_envelope, spec_fields, wave};
use crate::model::{PromotionMode, Ring, RingPromotion, Rings};

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<Rings> {
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let list = fields.required("rings", reading).and_then(|list| reading.list(&list));
    fields.finish(reading);
    let mut rings: Vec<(Ring, ManifestValue<'_>)> = Vec::new();
    for item in list? {
        let Some((ring, name)) = read_ring(&item, reading) else { continue };
        if let Some((_, first)) = rings.iter().find(|(known, _)| known.name == ring.name) {
            reading.duplicate(&ring.name, &name, first);
        }
        rings.push((ring, name));
    }
    metadata?;
    Some(Rings { rings: rings.into_iter().map(|(ring, _)| ring).collect(), location: reading.location(root) })
}

fn read_ring<'v>(
    value: &ManifestValue<'v>,
    reading: &mut ReadContext<'_>,
) -> Option<(Ring, ManifestValue<'v>)> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("name", reading);
    let name = place.as_ref().and_then(|name| reading.name(name, NameRule::Label));
    // A ring cannot select clusters by ring.
    let clusters = fields
        .required("clusters", reading)
        .and_then(|clusters| placement::selector(&clusters, false, reading));
    let limits = wave::limits(&mut fields, reading);
    let promotion = fields.optional("promotion", reading);
    let promotion = promotion.map(|it| read_promotion(&it, reading)).unwrap_or_default();
    for (name, help) in FOREIGN_LIMITS {
        fields.refuse(name, help, reading);
    }
    fields.finish(reading);
    Some((Ring { name: name?, clusters: clusters?, limits, promotion }, place?))
}

/// Fields of rings in other systems, with the equivalent in tutti.
const FOREIGN_LIMITS: [(&str, &str); 2] = [
    ("window", "a Window below policies/ selects rings, with `select: {rings: [NAME]}`"),
    ("gates", "a ring has soak, confirm, analysis and statuses; a Window below policies/ selects rings"),
];

const MODES: &[(&str, PromotionMode)] =
    &[("auto", PromotionMode::Auto), ("propose", PromotionMode::Propose), ("manual", PromotionMode::Manual)];

fn read_promotion(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> RingPromotion {
    let Some(mut fields) = ManifestFields::of(value, reading) else { return RingPromotion::default() };
    let mode = fields.optional("mode", reading).and_then(|it| reading.choice(&it, MODES, &[], false));
    let statuses = fields.optional("statuses", reading);
    let statuses = statuses.and_then(|list| wave::names(&list, |reading, name| reading.word(name), reading));
    fields.finish(reading);
    RingPromotion { mode: mode.unwrap_or_default(), statuses: statuses.unwrap_or_default() }
}

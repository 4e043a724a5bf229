//! Kind Conversion: the differences between a foreign version of a kind and the native one.

use super::super::codes;
use super::super::hub::rules::{Conversion, ConversionAction, ConversionRule, LIST_ITEMS, parse_field};
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::{ManifestKind, OWN_VERSION, read_envelope, spec_fields};

/// Where the conversions of a repository are.
pub const FOLDER: &str = "plugins/conversion/";

/// Kinds of which there are versions.
const KINDS: &[(&str, ManifestKind)] =
    &[("AppSet", ManifestKind::AppSet), ("Component", ManifestKind::Component)];

/// `name`: of its folder.
pub fn read(root: &YamlNode, name: &str, reading: &mut ReadContext<'_>) -> Option<Conversion> {
    is_conversion(root, reading)?;
    let (metadata, spec) = read_envelope(root, NameRule::Label, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let kind = fields.required("kind", reading).and_then(|kind| reading.choice(&kind, KINDS, &[], false));
    let versions = fields.required("versions", reading).and_then(|list| read_versions(&list, reading));
    let rules = match fields.optional("rules", reading) {
        Some(list) => read_rules(&list, reading),
        None => Some(Vec::new()),
    };
    fields.finish(reading);
    let metadata = metadata?;
    if metadata.name != name {
        let message = format!("the conversion is called {:?}, and its folder {name:?}", metadata.name);
        let help = "give both the same name: it selects the shipped conversion that is replaced";
        reading
            .mistake(codes::BAD_CONVERSION, message, metadata.location.clone(), "metadata.name")
            .help(help);
    }
    Some(Conversion {
        name: metadata.name,
        kind: kind?,
        versions: versions?,
        rules: rules?,
        location: metadata.location,
    })
}

fn is_conversion(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<()> {
    let is = |key, wanted| root.get(key).and_then(YamlNode::as_str) == Some(wanted);
    if is("apiVersion", OWN_VERSION) && is("kind", "Conversion") {
        return Some(());
    }
    let message = format!("{FOLDER} holds conversions, and this is not one");
    let place =
        root.entry("kind").map_or_else(|| reading.location(root), |entry| entry.location(reading.file));
    reading
        .mistake(codes::BAD_CONVERSION, message, place, "kind")
        .help(format!("a conversion has `apiVersion: {OWN_VERSION}` and `kind: Conversion`"));
    None
}

fn read_versions(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<String>> {
    let mut versions = Vec::new();
    for item in reading.list(value)? {
        let version = reading.word(&item)?;
        if version == OWN_VERSION {
            let help = "the other versions are converted to the native version";
            reading.bad_value(&item, format!("{version} is converted to nothing"), help);
        }
        versions.push(version);
    }
    if versions.is_empty() {
        reading.bad_value(value, "`versions` is empty", "name at least one apiVersion");
    }
    Some(versions)
}

fn read_rules(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<ConversionRule>> {
    let items = reading.list(value)?;
    let rules: Vec<_> = items.iter().map(|item| read_rule(item, reading)).collect();
    rules.into_iter().collect()
}

fn read_rule(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ConversionRule> {
    let mut fields = ManifestFields::of(value, reading)?;
    let place = fields.required("field", reading);
    let path = place.as_ref().and_then(|place| read_field(place, reading));
    let rename =
        fields.optional("rename", reading).map(|name| reading.word(&name).map(ConversionAction::Rename));
    let values = fields.optional("values", reading).map(|values| read_words(&values, reading));
    let absent = fields.optional("absent", reading).map(|absent| {
        let absent_is = reading.boolean(&absent)?;
        if !absent_is {
            reading.bad_value(&absent, "`absent` is true, or not there", "remove it");
        }
        Some(ConversionAction::Absent)
    });
    let at = fields.location().clone();
    fields.finish(reading);
    let mut given = [rename, values, absent].into_iter().flatten();
    let (Some(say), None) = (given.next(), given.next()) else {
        reading
            .mistake(
                codes::NOT_EXACTLY_ONE,
                "a rule has exactly one of rename, values and absent",
                at,
                &value.path,
            )
            .help("give a field with another name and other values two rules");
        return None;
    };
    let (field, say, location) = (path?, say?, reading.location(place?.node));
    if matches!(say, ConversionAction::Rename(_)) && field.last().is_some_and(|last| last == LIST_ITEMS) {
        let help = "name the field itself, without [] at the end";
        reading.bad_value(value, "the items of a list have no name", help);
    }
    Some(ConversionRule { field, action: say, location })
}

fn read_field(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<String>> {
    let text = reading.text(value)?;
    let path =
        parse_field(&text).filter(|path| path.first().is_some_and(|first| first == "spec") && path.len() > 1);
    if path.is_none() {
        let help = "write it as spec.svc.type, and spec.clusters[].name for the fields of a list's items";
        reading.bad_value(value, format!("{text:?} is not a field of a spec"), help);
    }
    path
}

/// Words of the version, each with the hub's; one to one, or there would be no way back.
fn read_words(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ConversionAction> {
    let mut words: Vec<(String, String)> = Vec::new();
    for (word, value) in reading.entries(value)? {
        let hub = reading.text(&value)?;
        if let Some((first, _)) = words.iter().find(|(_, known)| *known == hub) {
            let message = format!("{first:?} and {word:?} both become {hub:?}");
            reading.bad_value(&value, message, "each word needs one of its own, or there is no way back");
        }
        words.push((word.to_owned(), hub));
    }
    Some(ConversionAction::Values(words))
}

//! The table of derived labels: `{labels: {NAME: FACT}, env: {NAME: FACT}}`, over the default table.

use std::collections::BTreeMap;

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, ReadContext, suggest};
use crate::model::{DerivedFact, DerivedLabels};

pub fn read(value: &ManifestValue<'_>, table: &mut DerivedLabels, reading: &mut ReadContext<'_>) {
    let Some(mut fields) = ManifestFields::of(value, reading) else { return };
    if let Some(labels) = fields.optional("labels", reading) {
        rows(&labels, &mut table.labels, |key, value, reading| reading.label_key(key, value), reading);
    }
    if let Some(env) = fields.optional("env", reading) {
        rows(&env, &mut table.env, check_variable, reading);
    }
    fields.finish(reading);
}

fn check_variable(name: &str, value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) {
    let fits = |byte: u8| byte.is_ascii_alphanumeric() || b"-_.".contains(&byte);
    if name.is_empty() || name.starts_with(|letter: char| letter.is_ascii_digit()) || !name.bytes().all(fits)
    {
        let place = value.name_location.clone().unwrap_or_else(|| reading.location(value.node));
        reading
            .mistake(codes::BAD_NAME, format!("{name:?} is not the name of a variable"), place, &value.path)
            .help("letters, digits, `_`, `-` and `.`, no digit first");
    }
}

/// A null takes a row out.
fn rows(
    value: &ManifestValue<'_>,
    table: &mut BTreeMap<String, DerivedFact>,
    check: impl Fn(&str, &ManifestValue<'_>, &mut ReadContext<'_>),
    reading: &mut ReadContext<'_>,
) {
    for (name, value) in reading.entries(value).unwrap_or_default() {
        check(name, &value, reading);
        if value.node.is_null() {
            table.remove(name);
            continue;
        }
        let Some(text) = reading.text(&value) else { continue };
        match DerivedFact::parse(&text) {
            Some(fact) => {
                table.insert(name.to_owned(), fact);
            }
            None => {
                let place = reading.location(value.node);
                let words = DerivedFact::names();
                reading
                    .mistake(
                        codes::UNKNOWN_VALUE,
                        format!("{text:?} is not a fact of an app"),
                        place,
                        &value.path,
                    )
                    .help(suggest(&text, &words, &words));
            }
        }
    }
}

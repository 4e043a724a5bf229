//! The table of derived labels: `{labels: {NAME: FACT}, env: {NAME: FACT}}`, over the default table.

use std::collections::BTreeMap;

use super::super::codes;
use super::super::read::{Fields, Reading, Value, suggest};
use crate::model::{Derived, Fact};

pub fn read(value: &Value<'_>, table: &mut Derived, reading: &mut Reading<'_>) {
    let Some(mut fields) = Fields::of(value, reading) else { return };
    if let Some(labels) = fields.optional("labels", reading) {
        rows(&labels, &mut table.labels, |key, value, reading| reading.label_key(key, value), reading);
    }
    if let Some(env) = fields.optional("env", reading) {
        rows(&env, &mut table.env, check_variable, reading);
    }
    fields.finish(reading);
}

fn check_variable(name: &str, value: &Value<'_>, reading: &mut Reading<'_>) {
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
    value: &Value<'_>,
    table: &mut BTreeMap<String, Fact>,
    check: impl Fn(&str, &Value<'_>, &mut Reading<'_>),
    reading: &mut Reading<'_>,
) {
    for (name, value) in reading.entries(value).unwrap_or_default() {
        check(name, &value, reading);
        if value.node.is_null() {
            table.remove(name);
            continue;
        }
        let Some(text) = reading.text(&value) else { continue };
        match Fact::parse(&text) {
            Some(fact) => {
                table.insert(name.to_owned(), fact);
            }
            None => {
                let place = reading.location(value.node);
                let words = Fact::words();
                reading
                    .mistake(
                        codes::UNKNOWN_VALUE,
                        format!("{text:?} is no fact of an app"),
                        place,
                        &value.path,
                    )
                    .help(suggest(&text, &words, &words));
            }
        }
    }
}

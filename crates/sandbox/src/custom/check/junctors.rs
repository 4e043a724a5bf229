//! Validates `anyOf`, `oneOf`, `allOf` and `not`.

use serde_json::Value;

use super::super::schema::list;
use super::findings::{FindingPath, SchemaFindings};

/// `run` validates the value at `place` against one of the schemas.
pub(super) fn check(
    place: FindingPath<'_>,
    schema: &Value,
    run: &dyn Fn(&Value) -> SchemaFindings,
) -> SchemaFindings {
    let mut found = SchemaFindings::default();
    any_of(place, list(schema, "anyOf"), run, &mut found);
    one_of(place, list(schema, "oneOf"), run, &mut found);
    all_of(place, list(schema, "allOf"), run, &mut found);
    if let Some(below) = schema.get("not").filter(|below| below.is_object())
        && run(below).is_valid()
    {
        found.add(place.general(&format!("{:?} must not validate the schema (not)", place.name)));
    }
    found.matches += 1;
    found
}

fn any_of(
    place: FindingPath<'_>,
    all: &[Value],
    run: &dyn Fn(&Value) -> SchemaFindings,
    found: &mut SchemaFindings,
) {
    if all.is_empty() {
        return;
    }
    let mut best: Option<SchemaFindings> = None;
    for below in all {
        let result = run(below);
        if result.is_valid() {
            return found.merge(result);
        }
        if best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    found.add(place.general(&format!("{:?} must validate at least one schema (anyOf)", place.name)));
    found.merge(best.unwrap_or_default());
}

fn one_of(
    place: FindingPath<'_>,
    all: &[Value],
    run: &dyn Fn(&Value) -> SchemaFindings,
    found: &mut SchemaFindings,
) {
    if all.is_empty() {
        return;
    }
    let mut best: Option<SchemaFindings> = None;
    let mut first: Option<SchemaFindings> = None;
    let mut valid = 0;
    for below in all {
        let result = run(below);
        if result.is_valid() {
            valid += 1;
            first = first.or(Some(result));
            best = None;
        } else if valid == 0 && best.as_ref().is_none_or(|best| result.matches > best.matches) {
            best = Some(result);
        }
    }
    if valid == 1 {
        return found.merge(first.unwrap_or_default());
    }
    let how_many =
        if valid == 0 { "Found none valid".to_owned() } else { format!("Found {valid} valid alternatives") };
    let why = format!("{:?} must validate one and only one schema (oneOf). {how_many}", place.name);
    found.add(place.general(&why));
    found.merge(best.unwrap_or_default());
}

fn all_of(
    place: FindingPath<'_>,
    all: &[Value],
    run: &dyn Fn(&Value) -> SchemaFindings,
    found: &mut SchemaFindings,
) {
    let mut valid = 0;
    for below in all {
        let result = run(below);
        valid += usize::from(result.is_valid());
        found.merge(result);
    }
    if valid < all.len() {
        let none = if valid == 0 { ". None validated" } else { "" };
        found.add(place.general(&format!("{:?} must validate all the schemas (allOf){none}", place.name)));
    }
}

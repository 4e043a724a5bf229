//! Fields that a manager applied before and dropped now: they go, unless somebody else owns them.

use serde_json::Value;

use super::fieldset::FieldSet;
use super::merge::remove;
use super::schema::Schema;

/// `last` is what the manager owned, `owned` what anybody owns after this apply (the new set of
/// the applying manager included).
pub(super) fn prune(merged: &Value, last: &FieldSet, owned: &FieldSet, schema: Schema<'_>) -> Value {
    if last.is_empty() {
        return merged.clone();
    }
    let named = |set: &FieldSet| set.with_named_parents(schema);
    let present = named(&FieldSet::of(merged, schema));
    let last = named(last);

    let pruned = remove(merged, &last, schema);
    // owned items that went with a parent come back
    let kept = named(&FieldSet::of(&pruned, schema));
    let pruned = remove(merged, &present.difference(&kept).difference(&named(owned)), schema);
    // and so do items that the manager never owned
    let kept = named(&FieldSet::of(&pruned, schema));
    remove(merged, &present.difference(&kept).intersection(&last), schema)
}

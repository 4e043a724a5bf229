//! The schema of one field; callers walk from it to fields, items and values.

use serde_json::{Map, Value};

use super::reference::reference;

/// The declared schema of one field of an object.
#[derive(Debug, Clone, Copy)]
pub(crate) struct FieldDeclaration<'d> {
    /// Every definition by its name.
    definitions: &'d Map<String, Value>,
    /// As it stands at the place: with its marks and its default.
    field_schema: &'d Value,
    /// The schema that the field refers to, or else its own.
    schema: &'d Value,
    definition: Option<&'d str>,
}

impl<'d> FieldDeclaration<'d> {
    pub(super) fn of(definitions: &'d Map<String, Value>, declared: &'d Value) -> Self {
        let mut found = Self { definitions, field_schema: declared, schema: declared, definition: None };
        while let Some(name) = reference(found.schema) {
            found.definition = Some(name);
            match definitions.get(name) {
                Some(schema) => found.schema = schema,
                None => break,
            }
        }
        found
    }

    /// A definition itself.
    pub(super) fn definition_of(
        definitions: &'d Map<String, Value>,
        name: &'d str,
        schema: &'d Value,
    ) -> Self {
        let found = Self::of(definitions, schema);
        Self { definition: found.definition.or(Some(name)), ..found }
    }

    fn with_field_schema(self, declared: &'d Value) -> Self {
        Self::of(self.definitions, declared)
    }

    /// A field of a struct; `None` where it is not declared.
    pub(crate) fn field(self, name: &str) -> Option<Self> {
        self.fields()?.get(name).map(|field| self.with_field_schema(field))
    }

    /// The declared fields; `None` for what is no struct.
    pub(crate) fn fields(self) -> Option<&'d Map<String, Value>> {
        self.schema.get("properties")?.as_object()
    }

    /// The items of a list.
    pub(crate) fn item(self) -> Option<Self> {
        self.schema.get("items").map(|items| self.with_field_schema(items))
    }

    /// The values of a map with free keys.
    pub(crate) fn value(self) -> Option<Self> {
        let values = self.schema.get("additionalProperties").filter(|values| values.is_object());
        values.map(|values| self.with_field_schema(values))
    }

    /// The name of the definition that the place refers to.
    pub(crate) fn definition(self) -> Option<&'d str> {
        self.definition
    }

    /// `object`, `array`, `string`, `integer`, `number` or `boolean`; `None` for what may be several.
    pub(crate) fn json_type(self) -> Option<&'d str> {
        self.schema.get("type")?.as_str()
    }

    pub(crate) fn format(self) -> Option<&'d str> {
        self.schema.get("format")?.as_str()
    }

    /// The default of the field.
    #[allow(dead_code, reason = "no reader but tests yet")]
    pub(crate) fn default(self) -> Option<&'d Value> {
        self.field_schema.get("default").or_else(|| self.schema.get("default"))
    }

    #[allow(dead_code, reason = "no reader but tests yet")]
    pub(crate) fn requires(self, field: &str) -> bool {
        self.schema["required"].as_array().into_iter().flatten().any(|one| one == field)
    }

    /// The field by which strategic merge patches know the items of a list.
    pub(crate) fn patch_merge_key(self) -> Option<&'d str> {
        self.field_schema.get("x-kubernetes-patch-merge-key")?.as_str()
    }

    /// Is `merge` or `retainKeys` a strategy of patches here?
    pub(crate) fn has_patch_strategy(self, strategy: &str) -> bool {
        let strategies = self.field_schema["x-kubernetes-patch-strategy"].as_str().unwrap_or_default();
        strategies.split(',').any(|one| one == strategy)
    }
}

//! Writes an object as the server's Go types do, whatever the client sent.
//!
//! Zero values of `omitempty` fields are left out, some fields are always written, quantities get their canonical
//! form, and unknown fields are dropped. The definitions of the kinds describe the fields. Which field keeps a zero
//! stands in a second embedded file, which `tools/vectors/fields` writes from the Go types.

use std::collections::HashMap;
use std::io::Read as _;
use std::sync::LazyLock;

use flate2::read::GzDecoder;
use serde_json::{Map, Value};

use crate::quantity::{Quantity, QuantityError};
use crate::registry::ResourceKind;
use crate::schema::{FieldDeclaration, built_in};

static FILE: &[u8] = include_bytes!("../../schema/fields-1.36.json.gz");
static SHAPES: LazyLock<TypeShapes> = LazyLock::new(TypeShapes::read);

/// A text that its type cannot read.
#[derive(Debug, Clone, Copy, PartialEq, thiserror::Error)]
pub(super) enum ShapeError {
    #[error(transparent)]
    Quantity(#[from] QuantityError),
    #[error("illegal base64 data at input byte {0}")]
    Bytes(usize),
}

#[derive(Debug, Default)]
struct TypeShapes {
    structs: Vec<StructShape>,
    names: HashMap<String, usize>,
    /// Facts that OpenAPI lacks, by the name of the definition.
    extra_facts: Map<String, Value>,
}

#[derive(Debug, Default)]
struct StructShape {
    fields: HashMap<String, FieldShape>,
    /// Fields that are always written, in order.
    written: Vec<(String, Value)>,
}

#[derive(Debug)]
struct FieldShape {
    shape: ValueShape,
    /// A zero value is kept.
    is_kept: bool,
    /// A struct that is left out when nothing is in it.
    is_dropped: bool,
    /// The value that is always written.
    written: Option<Value>,
}

#[derive(Debug, Clone)]
enum ValueShape {
    Struct(usize),
    List(Box<ValueShape>),
    Map(Box<ValueShape>),
    Quantity,
    /// The quantities of resources are whole milli.
    Resources,
    /// Base64.
    Bytes,
    Scalar,
    Any,
}

const QUANTITY: &str = "io.k8s.apimachinery.pkg.api.resource.Quantity";

/// Writes the object as the server's types do. Kinds without a type stay as they are.
pub(super) fn apply_type_shape(kind: &ResourceKind, object: &mut Value) -> Result<(), ShapeError> {
    let Some(definition) = definition_of(kind) else { return Ok(()) };
    match SHAPES.names.get(definition) {
        Some(at) => SHAPES.write_struct(*at, object),
        None => Ok(()),
    }
}

fn definition_of(kind: &ResourceKind) -> Option<&'static str> {
    if kind.is_custom() || kind.group == "apiextensions.k8s.io" {
        return None;
    }
    built_in().name_of(&kind.group, &kind.version, &kind.kind)
}

impl TypeShapes {
    fn read() -> Self {
        let mut text = Vec::new();
        let told = GzDecoder::new(FILE)
            .read_to_end(&mut text)
            .ok()
            .and_then(|_| serde_json::from_slice(&text).ok())
            .unwrap_or_default();
        let mut shapes = Self { extra_facts: told, ..Self::default() };
        for name in built_in().all().keys() {
            if let Some(declaration) = built_in().named(name)
                && let Some(fields) = declaration.fields().filter(|_| shapes.extra_facts.contains_key(name))
            {
                shapes.struct_shape(name, declaration, fields);
            }
        }
        shapes
    }

    fn shape_of(&mut self, declaration: FieldDeclaration<'_>) -> ValueShape {
        let name = declaration.definition();
        if name == Some(QUANTITY) {
            return ValueShape::Quantity;
        }
        if let Some(fields) = declaration.fields() {
            let Some(name) = name.filter(|name| self.extra_facts.contains_key(*name)) else {
                return ValueShape::Any;
            };
            return ValueShape::Struct(self.struct_shape(name, declaration, fields));
        }
        if let Some(item) = declaration.item() {
            return ValueShape::List(Box::new(self.shape_of(item)));
        }
        if let Some(value) = declaration.value() {
            return ValueShape::Map(Box::new(match self.shape_of(value) {
                ValueShape::Quantity => ValueShape::Resources,
                other => other,
            }));
        }
        match declaration.json_type() {
            Some("string") if declaration.format() == Some("byte") => ValueShape::Bytes,
            Some("string" | "integer" | "number" | "boolean") => ValueShape::Scalar,
            _ => ValueShape::Any,
        }
    }

    fn struct_shape(
        &mut self,
        name: &str,
        declaration: FieldDeclaration<'_>,
        fields: &Map<String, Value>,
    ) -> usize {
        if let Some(at) = self.names.get(name) {
            return *at;
        }
        let at = self.structs.len();
        self.structs.push(StructShape::default());
        self.names.insert(name.to_owned(), at);
        let told = self.extra_facts.get(name).cloned().unwrap_or_default();
        let lists = |list: &str, field: &str| {
            told[list].as_array().is_some_and(|names| names.iter().any(|one| one == field))
        };
        let mut shapes = HashMap::new();
        for field in fields.keys() {
            let Some(below) = declaration.field(field) else { continue };
            let shape = self.shape_of(below);
            shapes.insert(
                field.clone(),
                FieldShape {
                    shape,
                    is_kept: lists("kept", field),
                    is_dropped: lists("dropped", field),
                    written: told["written"].get(field).cloned(),
                },
            );
        }
        let written = shapes.iter().filter_map(|(name, field)| Some((name.clone(), field.written.clone()?)));
        let mut written: Vec<(String, Value)> = written.collect();
        written.sort_by(|(left, _), (right, _)| left.cmp(right));
        self.structs[at] = StructShape { fields: shapes, written };
        at
    }

    fn write_struct(&self, at: usize, value: &mut Value) -> Result<(), ShapeError> {
        let Some(StructShape { fields, written }) = self.structs.get(at) else { return Ok(()) };
        let Some(said) = value.as_object_mut() else { return Ok(()) };
        said.retain(|name, value| match fields.get(name) {
            Some(field) => !field.leaves_out(value),
            None => false,
        });
        for (name, value) in written {
            if !said.contains_key(name) {
                said.insert(name.clone(), value.clone());
            }
        }
        for (name, value) in said {
            if let Some(field) = fields.get(name) {
                if field.written == Some(Value::Null) && *value == Value::Array(Vec::new()) {
                    *value = Value::Null;
                }
                self.write(&field.shape, value)?;
            }
        }
        Ok(())
    }

    fn write(&self, shape: &ValueShape, value: &mut Value) -> Result<(), ShapeError> {
        match (shape, &mut *value) {
            (ValueShape::Struct(at), _) => self.write_struct(*at, value),
            (ValueShape::List(item), Value::Array(items)) => {
                items.iter_mut().try_for_each(|value| self.write(item, value))
            }
            (ValueShape::Map(item), Value::Object(fields)) => {
                fields.values_mut().try_for_each(|value| self.write(item, value))
            }
            (ValueShape::Bytes, Value::String(text)) => check_bytes(text),
            (ValueShape::Quantity | ValueShape::Resources, _) => {
                write_quantity(value, matches!(shape, ValueShape::Resources))
            }
            _ => Ok(()),
        }
    }
}

impl FieldShape {
    /// A missing value, or a zero of an `omitempty` field.
    fn leaves_out(&self, value: &Value) -> bool {
        let is_zero = match (value, &self.shape) {
            (Value::Null, _) => return self.written.is_none(),
            (Value::Array(items), _) => items.is_empty(),
            (Value::Object(fields), ValueShape::Map(_)) => fields.is_empty(),
            (Value::Object(fields), _) => return self.is_dropped && fields.is_empty(),
            (Value::String(text), ValueShape::Scalar | ValueShape::Bytes) => text.is_empty(),
            (Value::Bool(flag), ValueShape::Scalar) => !flag,
            (Value::Number(number), ValueShape::Scalar) => number.as_f64() == Some(0.0),
            _ => false,
        };
        is_zero && !self.is_kept && self.written.is_none()
    }
}

fn write_quantity(value: &mut Value, is_resource: bool) -> Result<(), ShapeError> {
    let text = match &*value {
        Value::String(text) => text.trim().to_owned(),
        // YAML writes whole numbers without quotes
        Value::Number(number) => number.to_string(),
        _ => return Ok(()),
    };
    let quantity = Quantity::parse(&text)?;
    let quantity = if is_resource { quantity.rounded_to_milli() } else { quantity };
    *value = Value::String(quantity.canonical());
    Ok(())
}

/// Base64 in groups of four; the error has the offset of the first mistake.
fn check_bytes(text: &str) -> Result<(), ShapeError> {
    let bytes = text.as_bytes();
    let is_digit = |one: u8| one.is_ascii_alphanumeric() || b"+/".contains(&one);
    let mut letters = bytes.iter().enumerate().filter(|(_, one)| !b"\r\n".contains(one));
    let (mut in_group, mut group_at) = (0, 0);
    while let Some((at, one)) = letters.next() {
        if in_group == 0 {
            group_at = at;
        }
        match *one {
            b'=' if in_group < 2 => return Err(ShapeError::Bytes(at)),
            b'=' => {
                if in_group == 2 {
                    match letters.next() {
                        Some((_, b'=')) => {}
                        Some((at, _)) => return Err(ShapeError::Bytes(at)),
                        None => return Err(ShapeError::Bytes(bytes.len())),
                    }
                }
                return letters.next().map_or(Ok(()), |(at, _)| Err(ShapeError::Bytes(at)));
            }
            other if !is_digit(other) => return Err(ShapeError::Bytes(at)),
            _ => in_group = (in_group + 1) % 4,
        }
    }
    if in_group == 0 { Ok(()) } else { Err(ShapeError::Bytes(group_at)) }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::registry::KindRegistry;

    fn check(resource: &str, mut object: Value, expected: &Value) {
        let registry = KindRegistry::built_in();
        apply_type_shape(registry.resource(resource).unwrap(), &mut object).unwrap();
        assert_eq!(&object, expected);
    }

    #[test]
    fn zeros_stay_only_where_they_carry_meaning() {
        check(
            "services",
            json!({"metadata": {"labels": {}, "name": ""}, "spec": {"ports": [{"port": 80, "targetPort": 0,
                "nodePort": 0, "appProtocol": ""}], "publishNotReadyAddresses": false,
                "allocateLoadBalancerNodePorts": false, "unknown": 1}}),
            &json!({"metadata": {}, "spec": {"ports": [{"port": 80, "targetPort": 0, "appProtocol": ""}],
                "allocateLoadBalancerNodePorts": false}, "status": {"loadBalancer": {}}}),
        );
    }

    #[test]
    fn quantities_are_canonical_everywhere() {
        check(
            "pods",
            json!({"spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": 2, "memory": "1024Mi"}}}],
                "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "0.0000001"}}]}}),
            &json!({"metadata": {}, "spec": {"containers": [{"name": "c", "resources": {"limits": {"cpu": "2",
                "memory": "1Gi"}}}], "volumes": [{"name": "v", "emptyDir": {"sizeLimit": "100n"}}]},
                "status": {}}),
        );
    }

    #[test]
    fn bytes_are_base64() {
        for (text, expected) in [
            ("", Ok(())),
            ("YQ==", Ok(())),
            ("v", Err(0)),
            ("bad value!", Err(3)),
            ("YQ=", Err(3)),
            ("YQ==YQ==", Err(4)),
            ("=", Err(0)),
        ] {
            assert_eq!(check_bytes(text), expected.map_err(ShapeError::Bytes), "{text}");
        }
    }

    #[test]
    fn unset_fields_with_fixed_output_are_written() {
        check("roles.rbac.authorization.k8s.io", json!({}), &json!({"metadata": {}, "rules": null}));
    }
}

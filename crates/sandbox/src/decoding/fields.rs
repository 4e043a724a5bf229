//! A document of a built-in kind, field by field.

use serde_json::{Map, Value};

use super::document::{RequestDocument, complain, number, step, unknown_field};
use super::go_type_names;
use super::scalar;
use crate::schema::FieldDeclaration;

const QUANTITY: &str = "Quantity";
const TIMES: &[&str] = &["Time", "MicroTime"];

/// The two forms that the server decodes: JSON, or a map that a strategic merge patch changed. Their error messages
/// differ.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum MistakeFormat {
    Json,
    Map,
}

/// A decoded document.
#[derive(Debug)]
pub(crate) struct DecodedObject {
    /// Only with declared fields, and without nulls.
    pub(crate) value: Value,
    /// Unknown and duplicate fields.
    pub(crate) warnings: Vec<String>,
}

/// Reads a document by its declaration; an error is a value of a wrong type.
pub(crate) fn decode(
    document: RequestDocument,
    declared: FieldDeclaration<'_>,
    dialect: MistakeFormat,
) -> Result<DecodedObject, String> {
    let mut reader = FieldReader {
        dialect,
        path: String::new(),
        fields: Vec::new(),
        structure: None,
        type_name: None,
        complaints: Vec::new(),
        mistake: None,
    };
    let value = reader.read(document, declared)?.unwrap_or_else(|| Value::Object(Map::new()));
    if let Some(mistake) = reader.mistake {
        return Err(mistake);
    }
    if dialect == MistakeFormat::Map {
        reader.complaints.sort();
    }
    Ok(DecodedObject { value, warnings: reader.complaints })
}

struct FieldReader<'d> {
    dialect: MistakeFormat,
    /// As complaints name the place, with indices.
    path: String,
    /// As mistakes name the place: fields of structs only.
    fields: Vec<String>,
    structure: Option<&'d str>,
    /// The name of the type at the place, where the field's type has one of its own.
    type_name: Option<&'static str>,
    complaints: Vec<String>,
    /// The first value of a wrong type; decoding continues after it.
    mistake: Option<String>,
}

/// The value, `None` for null; an error ends the reading.
type FieldResult = Result<Option<Value>, String>;

impl<'d> FieldReader<'d> {
    fn read(&mut self, document: RequestDocument, at: FieldDeclaration<'d>) -> FieldResult {
        if document == RequestDocument::Null {
            return Ok(None);
        }
        match at.definition().map(go_type_names::short) {
            Some(QUANTITY) => return quantity(&document).map(Some),
            Some(time) if TIMES.contains(&time) => return self.time(document, time).map(Some),
            Some("IntOrString") => return self.number_or_text(document).map(Some),
            _ => {}
        }
        match at.json_type() {
            Some("object") => match (at.fields(), at.value()) {
                (Some(_), _) => self.structure(document, at),
                (None, Some(values)) => self.map(document, at, values),
                (None, None) => Ok(Some(document.into_value())),
            },
            Some("array") => self.list(document, at),
            Some("string") => self.text(document, at),
            Some("integer") => self.integer(&document, at),
            Some("number") => match document {
                RequestDocument::Number(text) => Ok(Some(number(&text))),
                other => self.wrong(&other, at),
            },
            Some("boolean") => match document {
                RequestDocument::Boolean(value) => Ok(Some(value.into())),
                other => self.wrong(&other, at),
            },
            _ => Ok(Some(document.into_value())),
        }
    }

    fn structure(&mut self, document: RequestDocument, at: FieldDeclaration<'d>) -> FieldResult {
        let RequestDocument::Map(entries) = document else {
            return self.wrong_part(&document, at, "struct from:");
        };
        let definition = at.definition().unwrap_or_default();
        let mut fields = Map::new();
        let mut seen: Vec<String> = Vec::new();
        for (name, value) in entries {
            let Some(field) = at.field(&name) else {
                let mut path = self.path.clone();
                step(&mut path, &name);
                complain(&mut self.complaints, unknown_field(&path));
                continue;
            };
            let (path, depth) = (self.path.len(), self.fields.len());
            let outer = (self.structure, self.type_name);
            step(&mut self.path, &name);
            if seen.contains(&name) {
                complain(&mut self.complaints, format!("duplicate field \"{}\"", self.path));
            }
            self.fields.extend(go_type_names::embedded(definition, &name).map(str::to_owned));
            self.fields.push(name.clone());
            self.structure = Some(definition);
            self.type_name = go_type_names::named_type(definition, &name);
            let read = self.read(value, field)?;
            self.path.truncate(path);
            self.fields.truncate(depth);
            (self.structure, self.type_name) = outer;
            match (read, fields.get_mut(&name)) {
                // a struct or map that comes twice is read into the same place
                (Some(Value::Object(more)), Some(Value::Object(known))) => known.extend(more),
                (Some(read), _) => {
                    fields.insert(name.clone(), read);
                }
                (None, _) => {}
            }
            seen.push(name);
        }
        Ok(Some(Value::Object(fields)))
    }

    fn map(
        &mut self,
        document: RequestDocument,
        at: FieldDeclaration<'d>,
        values: FieldDeclaration<'d>,
    ) -> FieldResult {
        let RequestDocument::Map(entries) = document else {
            return self.wrong_part(&document, at, "map from");
        };
        let outer = self.type_name.take();
        let mut fields = Map::new();
        for (name, value) in entries {
            let path = self.path.len();
            step(&mut self.path, &name);
            if fields.contains_key(&name) {
                complain(&mut self.complaints, format!("duplicate field \"{}\"", self.path));
            }
            let read = self.read(value, values)?;
            self.path.truncate(path);
            fields.insert(name, read.unwrap_or_else(|| zero(values)));
        }
        self.type_name = outer;
        Ok(Some(Value::Object(fields)))
    }

    fn list(&mut self, document: RequestDocument, at: FieldDeclaration<'d>) -> FieldResult {
        let RequestDocument::List(items) = document else {
            return self.wrong_part(&document, at, "slice from");
        };
        let Some(item) = at.item() else { return Ok(Some(RequestDocument::List(items).into_value())) };
        let outer = self.type_name;
        self.type_name = outer.and_then(|name| name.strip_prefix("[]"));
        let mut values = Vec::with_capacity(items.len());
        for (index, document) in items.into_iter().enumerate() {
            let path = self.path.len();
            self.path.push_str(&format!("[{index}]"));
            let read = self.read(document, item)?;
            self.path.truncate(path);
            values.push(read.unwrap_or_else(|| zero(item)));
        }
        self.type_name = outer;
        Ok(Some(Value::Array(values)))
    }

    fn text(&mut self, document: RequestDocument, at: FieldDeclaration<'d>) -> FieldResult {
        let RequestDocument::Text(text) = document else { return self.wrong(&document, at) };
        let is_bytes = at.format() == Some("byte");
        match scalar::bytes_mistake(&text).filter(|_| is_bytes) {
            None if is_bytes => Ok(Some(scalar::canonical_bytes(text).into())),
            None => Ok(Some(text.into())),
            Some(mistake) if self.dialect == MistakeFormat::Map => {
                Err(format!("error decoding from json: {mistake}"))
            }
            Some(mistake) => {
                self.mistake.get_or_insert(mistake);
                Ok(None)
            }
        }
    }

    fn integer(&mut self, document: &RequestDocument, at: FieldDeclaration<'d>) -> FieldResult {
        let RequestDocument::Number(text) = document else { return self.wrong(document, at) };
        let fits = match at.format() {
            Some("int32") => text.parse::<i32>().is_ok(),
            _ => text.parse::<i64>().is_ok(),
        };
        if fits {
            return Ok(Some(number(text)));
        }
        let whole = || text.parse::<f64>().ok().filter(|number| number.fract() == 0.0);
        match (self.dialect, whole()) {
            // a map holds numbers, not their spelling
            (MistakeFormat::Map, Some(whole)) => Ok(Some(Value::from(whole as i64))),
            _ => self.wrong(document, at),
        }
    }

    fn time(&mut self, document: RequestDocument, name: &str) -> Result<Value, String> {
        let RequestDocument::Text(text) = document else { return Err(self.inner(&document, "string")) };
        let is_micro = name == "MicroTime";
        match scalar::time_mistake(&text, is_micro) {
            None => Ok(scalar::canonical_time(text, is_micro).into()),
            Some(mistake) => Err(mistake),
        }
    }

    fn number_or_text(&mut self, document: RequestDocument) -> Result<Value, String> {
        match document {
            RequestDocument::Text(text) => Ok(text.into()),
            RequestDocument::Number(text) if text.parse::<i32>().is_ok() => Ok(number(&text)),
            other => Err(self.inner(&other, "int32")),
        }
    }

    /// The error of a type with its own decoder.
    fn inner(&self, document: &RequestDocument, wanted: &str) -> String {
        match self.dialect {
            MistakeFormat::Json => self.mismatch(document, wanted),
            MistakeFormat::Map => {
                let found = spelled(document, wanted);
                format!("json: cannot unmarshal {found} into Go value of type {wanted}")
            }
        }
    }

    /// Notes a value of a wrong type.
    fn wrong(&mut self, document: &RequestDocument, at: FieldDeclaration<'d>) -> FieldResult {
        let wanted = self.type_name.map_or_else(|| go_type_names::type_of(at), str::to_owned);
        if self.dialect == MistakeFormat::Map {
            let convertible = match (document, at.json_type()) {
                (RequestDocument::Number(text), Some("string")) => text.parse::<i64>().is_ok(),
                (RequestDocument::Number(_), Some("integer")) => true,
                _ => false,
            };
            if at.format() == Some("byte") {
                return Err(format!("cannot restore slice from {}", kind_of(document)));
            }
            return Err(match convertible {
                true => format!("cannot convert {} to {wanted}", kind_of(document)),
                false => format!("unrecognized type: {}", go_type_names::type_of(at)),
            });
        }
        let mistake = self.mismatch(document, &wanted);
        self.mistake.get_or_insert(mistake);
        Ok(None)
    }

    fn wrong_part(
        &mut self,
        document: &RequestDocument,
        at: FieldDeclaration<'d>,
        wanted: &str,
    ) -> FieldResult {
        match self.dialect {
            MistakeFormat::Map => Err(format!("cannot restore {wanted} {}", kind_of(document))),
            MistakeFormat::Json => self.wrong(document, at),
        }
    }

    fn mismatch(&self, document: &RequestDocument, wanted: &str) -> String {
        let found = spelled(document, wanted);
        let structure = self.structure.map_or("", go_type_names::short);
        format!(
            "json: cannot unmarshal {found} into Go struct field {structure}.{} of type {wanted}",
            self.fields.join(".")
        )
    }
}

/// Error messages show the digits of a number where a number is expected.
fn spelled(document: &RequestDocument, wanted: &str) -> String {
    match document {
        RequestDocument::Number(text) if matches!(wanted, "int32" | "int64" | "float64") => {
            format!("number {text}")
        }
        other => other.noun().to_owned(),
    }
}

/// The Go name of a map's value.
fn kind_of(document: &RequestDocument) -> &'static str {
    match document {
        RequestDocument::Null => "invalid",
        RequestDocument::Boolean(_) => "bool",
        RequestDocument::Number(text) if text.parse::<i64>().is_ok() => "int64",
        RequestDocument::Number(_) => "float64",
        RequestDocument::Text(_) => "string",
        RequestDocument::List(_) => "slice",
        RequestDocument::Map(_) => "map",
    }
}

fn quantity(document: &RequestDocument) -> Result<Value, String> {
    let text = match document {
        RequestDocument::Text(text) | RequestDocument::Number(text) => Some(text.trim()),
        _ => None,
    };
    match (scalar::quantity_mistake(text), text) {
        (None, Some(text)) => Ok(text.into()),
        (mistake, _) => Err(mistake.unwrap_or_default().to_owned()),
    }
}

/// The value of a null in a list or map: the zero value of its type.
fn zero(at: FieldDeclaration<'_>) -> Value {
    match (at.definition().map(go_type_names::short), at.json_type()) {
        (Some(QUANTITY), _) => "0".into(),
        (_, Some("string")) => "".into(),
        (_, Some("integer" | "number")) => 0.into(),
        (_, Some("boolean")) => false.into(),
        (_, Some("object")) if at.fields().is_some() => Value::Object(Map::new()),
        _ => Value::Null,
    }
}

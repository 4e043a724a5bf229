//! Writes the file of definitions.

use std::collections::BTreeMap;
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use anyhow::Context;
use flate2::{Compression, GzBuilder};
use serde_json::{Value, json};

/// Where the sandbox looks.
pub fn folder() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../crates/sandbox/schema")
}

/// Writes the file: sorted, without a time. Answers its size.
pub fn compressed(
    file: &Path,
    version: &Value,
    definitions: &BTreeMap<String, Value>,
    parameters: &Value,
) -> anyhow::Result<usize> {
    let server = json!({
        "gitVersion": version["gitVersion"],
        "major": version["major"],
        "minor": version["minor"],
    });
    let content = sorted(json!({"server": server, "parameters": parameters, "definitions": definitions}));
    let mut encoder = GzBuilder::new().mtime(0).write(Vec::new(), Compression::best());
    serde_json::to_writer(&mut encoder, &content)?;
    encoder.flush()?;
    let bytes = encoder.finish()?;
    fs::write(file, &bytes).with_context(|| format!("failed to write {}", file.display()))?;
    Ok(bytes.len())
}

fn sorted(value: Value) -> Value {
    match value {
        Value::Object(fields) => {
            let fields: BTreeMap<String, Value> =
                fields.into_iter().map(|(name, field)| (name, sorted(field))).collect();
            Value::Object(fields.into_iter().collect())
        }
        Value::Array(items) => items.into_iter().map(sorted).collect(),
        other => other,
    }
}

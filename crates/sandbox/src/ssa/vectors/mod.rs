//! Compares thousands of seeded writes with the answers of the upstream implementation.
//!
//! `cargo xtask vectors` writes the answers; `tools/vectors/README.md` describes their format.

mod case;
mod merge_schema;
mod steps;

use std::collections::BTreeMap;
use std::io::Read as _;

use serde_json::Value;

use case::VectorCase;
use merge_schema::VectorSchema;

const FILE: &[u8] = include_bytes!("../../../tests/vectors/ssa.jsonl.gz");

#[test]
fn every_vector_has_upstreams_answer() {
    let mut text = String::new();
    flate2::read::GzDecoder::new(FILE).read_to_string(&mut text).unwrap();
    let mut schemas: BTreeMap<String, VectorSchema> = BTreeMap::new();
    let (mut wanted, mut cases, mut steps) = (0, 0, 0);
    let mut failures = Vec::new();
    for line in text.lines() {
        let line: Value = serde_json::from_str(line).unwrap();
        if let Some(header) = line.get("header") {
            wanted = header["cases"].as_u64().unwrap();
        } else if let Some(schema) = line.get("schema").filter(|schema| schema.is_object()) {
            schemas.insert(schema["name"].as_str().unwrap().to_owned(), VectorSchema::of(schema));
        } else {
            cases += 1;
            match VectorCase::of(&line, &schemas).run() {
                Ok(count) => steps += count,
                Err(why) => failures.push(why),
            }
        }
    }
    println!("{} of {cases} vectors, {steps} steps", cases - failures.len() as u64);
    assert_eq!(cases, wanted);
    let some: Vec<&str> = failures.iter().take(5).map(String::as_str).collect();
    assert!(failures.is_empty(), "{} vectors differ:\n{}", failures.len(), some.join("\n\n"));
}

//! Rows that a real server printed: the same objects give the same cells.

use std::io::Read;

use flate2::read::GzDecoder;
use serde_json::Value;

use super::{IncludeObject, table_of};
use crate::clock::SandboxClock;
use crate::registry::KindRegistry;

const ROWS: &[u8] = include_bytes!("../../tests/tables/rows-1.36.jsonl.gz");

fn rows() -> Vec<Value> {
    let mut text = String::new();
    GzDecoder::new(ROWS).read_to_string(&mut text).unwrap();
    text.lines().map(|line| serde_json::from_str(line).unwrap()).collect()
}

/// The row at a time; the server's clock may have been a second further.
fn row(registry: &KindRegistry, recorded: &Value, later: i64) -> Value {
    let text = |field: &str| recorded[field].as_str().unwrap();
    let kind = registry.find(text("group"), text("version"), text("resource")).unwrap();
    let at: jiff::Timestamp = text("at").parse().unwrap();
    let clock = SandboxClock::starting_at((at + jiff::SignedDuration::from_secs(later)).into());
    table_of(&clock, kind, &recorded["object"], IncludeObject::None)["rows"][0].clone()
}

#[tokio::test(start_paused = true)]
async fn rows_match_a_real_server() {
    let registry = KindRegistry::built_in();
    let recorded = rows();
    assert!(recorded.len() > 100);
    for one in &recorded {
        let same = |later: i64| {
            let row = row(&registry, one, later);
            row["cells"] == one["cells"] && row.get("conditions") == one.get("conditions")
        };
        if !(same(0) || same(1)) {
            let name = &one["object"]["metadata"]["name"];
            assert_eq!(row(&registry, one, 0)["cells"], one["cells"], "{} {name}", one["resource"]);
        }
    }
}

//! Whether the tier runs here.

use std::env;
use std::io::{self, Write};

use crate::{Error, TierPrograms};

/// The answer to `TUTTI_LIVE` and the cache.
#[derive(Debug)]
pub enum Tier {
    /// The programs are there.
    Ready(TierPrograms),
    /// They are not, and nobody insisted. The caller must print the line: a tier that is skipped in silence rots.
    Absent(String),
}

impl Tier {
    /// `TUTTI_LIVE=1`: mandatory, what is missing is built. Unset: used when everything is in the cache already.
    /// `TUTTI_LIVE=0`: not used. Blocks, for minutes when it builds; progress goes to standard error.
    pub fn from_env() -> Result<Self, Error> {
        match env::var("TUTTI_LIVE").unwrap_or_default().as_str() {
            "1" => TierPrograms::ensure(&|line| print_uncaptured(line)).map(Self::Ready),
            "" => Ok(match TierPrograms::find()? {
                Some(programs) => Self::Ready(programs),
                None => Self::Absent(skipped_line(
                    "its programs are not built: run `cargo xtask live build`, or set TUTTI_LIVE=1",
                )),
            }),
            "0" => Ok(Self::Absent(skipped_line("TUTTI_LIVE=0"))),
            other => Err(Error::Variable {
                variable: "TUTTI_LIVE",
                value: other.to_owned(),
                reason: "expected 1 (mandatory), 0 (off) or nothing (when built)".to_owned(),
            }),
        }
    }
}

fn skipped_line(why: &str) -> String {
    format!("##### THE LIVE TIER DID NOT RUN: {why} #####")
}

/// Straight to standard error: the test runner would keep a captured line to itself for minutes.
pub(crate) fn print_uncaptured(line: &str) {
    let _ = writeln!(io::stderr(), "live tier: {line}");
}

//! `cargo xtask vectors`: records the answers of upstream's server-side apply to generated cases.

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use anyhow::{Context, bail};
use clap::Args;

/// How many cases are checked in, and from which seed.
const CASES: u32 = 3200;
const SEED: u64 = 1;

#[derive(Args)]
pub struct VectorOptions {
    /// Number of test cases
    #[arg(long, default_value_t = CASES)]
    cases: u32,
    /// Seed of the generator; the same seed gives the same cases
    #[arg(long, default_value_t = SEED)]
    seed: u64,
    /// File to write, compressed if its name ends in .gz; default: the file that the tests read
    #[arg(long)]
    out: Option<PathBuf>,
}

pub fn run(options: &VectorOptions) -> anyhow::Result<()> {
    let out = match &options.out {
        Some(out) => std::path::absolute(out).context("failed to find the folder of --out")?,
        None => repository().join("crates/sandbox/tests/vectors/ssa.jsonl.gz"),
    };
    let started = Command::new("go")
        .current_dir(generator_module())
        .env("GOWORK", "off")
        .args(["run", ".", "-cases", &options.cases.to_string(), "-seed", &options.seed.to_string(), "-out"])
        .arg(&out)
        .status();
    match started {
        Ok(status) if status.success() => println!("wrote {}", out.display()),
        Ok(status) => bail!("the generator in tools/vectors ended with {status}"),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            bail!(
                "Go is not installed: upstream's code is Go (https://go.dev/doc/install, version in tools/vectors/go.mod)"
            )
        }
        Err(error) => return Err(error).context("failed to start Go"),
    }
    Ok(())
}

fn repository() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

fn generator_module() -> PathBuf {
    repository().join("tools/vectors")
}

#[cfg(test)]
mod tests {
    use std::fs::{self, File};
    use std::io::{BufRead, BufReader};

    use flate2::read::GzDecoder;
    use serde_json::Value;

    use super::*;

    /// The checked-in lines: a header, the schemas, the cases.
    fn checked_in() -> impl Iterator<Item = Value> {
        let file = File::open(repository().join("crates/sandbox/tests/vectors/ssa.jsonl.gz")).unwrap();
        let lines = BufReader::new(GzDecoder::new(file)).lines();
        lines.map(|line| serde_json::from_str(&line.unwrap()).unwrap())
    }

    fn header() -> Value {
        checked_in().next().unwrap()["header"].take()
    }

    #[test]
    fn the_header_counts_the_lines() {
        let (header, rest) = (header(), checked_in().skip(1));
        let (schemas, cases): (Vec<_>, Vec<_>) = rest.partition(|line| line["schema"].is_object());
        let steps: usize = cases.iter().map(|case| case["steps"].as_array().unwrap().len()).sum();
        let of_level = |level: &str| cases.iter().filter(|case| case["level"] == level).count();
        assert_eq!(header["schemas"], schemas.len());
        assert_eq!(header["cases"], cases.len());
        assert_eq!(header["steps"], steps);
        assert_eq!(header["levels"]["updater"], of_level("updater"));
        assert_eq!(header["levels"]["manager"], of_level("manager"));
    }

    #[test]
    fn vector_file_matches_the_default_options() {
        let header = header();
        assert_eq!(header["seed"], SEED);
        assert_eq!(header["cases"], CASES);
        assert!(header["levels"]["manager"].as_u64() >= Some(500), "{header}");
    }

    #[test]
    fn vectors_match_the_generator_versions() {
        let header = header();
        let manifest = fs::read_to_string(generator_module().join("go.mod")).unwrap();
        let upstream = header["upstream"].as_object().unwrap();
        assert_eq!(upstream.len(), 3);
        for (name, version) in upstream {
            let wanted = format!("{name} {}", version.as_str().unwrap());
            assert!(manifest.lines().any(|line| line.trim() == wanted), "{wanted} in {manifest}");
        }
    }

    #[test]
    fn vectors_match_the_live_kubernetes_version() {
        let of = |folder: &str| fs::read_to_string(repository().join(folder).join("go.mod")).unwrap();
        let version = |manifest: &str| {
            let line = manifest.lines().find(|line| line.trim().starts_with("k8s.io/apimachinery v"));
            line.unwrap().split_whitespace().nth(1).unwrap().to_owned()
        };
        assert_eq!(version(&of("tools/vectors")), version(&of("tools/live/k8s")));
    }
}

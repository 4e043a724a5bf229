//! `tutti read`: prints a YAML file as tutti parses it.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::Context as _;
use clap::Args;
use serde_json::Value;

use super::diagnostics;
use super::exit::Exit;
use super::output::{self, OutputFormat};
use crate::manifest::yaml;

#[derive(Args, Debug)]
pub struct ReadArgs {
    /// File with YAML documents; `-` reads standard input
    #[arg(value_name = "FILE")]
    file: PathBuf,
    /// Output format; `table` prints YAML documents
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// Prints every document. One with a mistake is skipped and reported.
pub fn run(args: &ReadArgs) -> anyhow::Result<Exit> {
    let name = args.file.display().to_string();
    let text = read_text(&args.file).with_context(|| format!("failed to read {name}"))?;
    let stream = yaml::read(&name, &text);
    let mut mistakes = stream.mistakes;
    let mut values: Vec<Value> = Vec::new();
    for document in stream.documents {
        if document.mistakes.is_empty() {
            values.push(document.root.to_json());
        }
        mistakes.extend(document.mistakes);
    }
    match args.output {
        OutputFormat::Table => {
            for value in &values {
                output::write_text(format_args!("---\n{}", serde_yaml::to_string(value)?));
            }
        }
        format => output::write_value(format, &values)?,
    }
    diagnostics::print_from(&mistakes, &|_| Some(text.clone()));
    Ok(if mistakes.is_empty() { Exit::Ok } else { Exit::Configuration })
}

fn read_text(file: &Path) -> std::io::Result<String> {
    if file == Path::new("-") {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text)?;
        return Ok(text);
    }
    std::fs::read_to_string(file)
}

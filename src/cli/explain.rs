//! `tutti explain`: the meaning of an error code, and what to do.

use anyhow::bail;
use clap::Args;
use serde::Serialize;

use super::exit::Exit;
use super::output::{self, OutputFormat, say};

/// The documentation page is the data, so both are equal.
const PAGE: &str = include_str!("../../docs/reference/errors.md");

#[derive(Args, Debug)]
pub struct ExplainArgs {
    /// Error code such as E1104; without it, all codes are listed
    code: Option<String>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

/// One section of the page.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
struct Explanation {
    code: &'static str,
    title: &'static str,
    text: &'static str,
}

fn explanations() -> impl Iterator<Item = Explanation> {
    let mut sections = PAGE.split("\n## ");
    sections.next();
    sections.filter_map(|section| {
        let (heading, text) = section.split_once('\n')?;
        let (code, title) = heading.split_once(' ')?;
        Some(Explanation { code, title, text: text.trim_end() })
    })
}

pub fn run(args: &ExplainArgs) -> anyhow::Result<Exit> {
    let Some(wanted) = &args.code else {
        return list(args.output);
    };
    let Some(found) = explanations().find(|one| one.code.eq_ignore_ascii_case(wanted)) else {
        bail!("no error has the code {wanted}; `tutti explain` lists them");
    };
    match args.output {
        OutputFormat::Table => say!("{}: {}\n\n{}", found.code, found.title, found.text),
        format => output::write_value(format, &found)?,
    }
    Ok(Exit::Ok)
}

fn list(format: OutputFormat) -> anyhow::Result<Exit> {
    if format != OutputFormat::Table {
        output::write_value(format, &explanations().collect::<Vec<_>>())?;
        return Ok(Exit::Ok);
    }
    let mut table = output::table(&["CODE", "TITLE"]);
    for one in explanations() {
        table.add_row([one.code, one.title]);
    }
    output::write_table(&table);
    Ok(Exit::Ok)
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    /// Every code of the sources is explained once, in order, and no other.
    #[test]
    fn every_code_is_explained() {
        let sources = [
            include_str!("../manifest/codes.rs"),
            include_str!("../fleet/codes.rs"),
            include_str!("../render/codes.rs"),
            include_str!("../sops/codes.rs"),
            include_str!("../controller/load.rs"),
        ];
        let of_source = |text: &'static str| {
            let quoted = text.split('"').filter(|part| part.len() == 5 && part.starts_with('E'));
            quoted.filter(|part| part[1..].bytes().all(|digit| digit.is_ascii_digit()))
        };
        let used: BTreeSet<&str> = sources.into_iter().flat_map(of_source).collect();
        let explained: Vec<&str> = explanations().map(|one| one.code).collect();
        assert_eq!(explained, used.into_iter().collect::<Vec<_>>());
        assert!(explanations().all(|one| one.text.len() > 30 && !one.title.is_empty()));
    }
}

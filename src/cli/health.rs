//! `tutti health -f FILE|-`: health of each object in a dump, by shipped rules or a repository's.

use std::io::Read as _;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use comfy_table::Table;
use serde_json::{Value, json};

use super::exit::Exit;
use super::output::{self, OutputFormat, table, write_table};
use super::{diagnostics, repository};
use crate::health::HealthRules;
use crate::manifest::health_rule::FOLDER as HEALTH_RULES;
use crate::manifest::yaml;
use crate::model::{Diagnostic, Health, HealthStatus, ObjectId, short_line};

/// In characters, of a cell.
const MAX_TEXT_CHARS: usize = 2048;

#[derive(Args, Debug)]
pub struct HealthArgs {
    /// JSON or YAML file with objects, a List or an array of objects; `-` reads standard input
    #[arg(short, long, value_name = "FILE|-")]
    file: PathBuf,
    /// Config repository whose health rules apply; without it, only the shipped rules apply
    #[arg(long, value_name = "PATH")]
    repo: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn run(args: HealthArgs) -> anyhow::Result<Exit> {
    let name = args.file.display().to_string();
    let text = if name == "-" {
        let mut text = String::new();
        std::io::stdin().read_to_string(&mut text).context("failed to read standard input")?;
        text
    } else {
        std::fs::read_to_string(&args.file).with_context(|| format!("failed to read {name}"))?
    };
    let objects = read_objects(&name, &text)?;
    let rules = match &args.repo {
        Some(path) => repository_rules(path).await?,
        None => Arc::default(),
    };
    let healths: Vec<_> = objects
        .iter()
        .map(|object| {
            let id = ObjectId::of(object).map_or_else(|| "-".to_owned(), |id| id.to_string());
            (id, rules.health_of(object))
        })
        .collect();
    match args.output {
        OutputFormat::Table => {
            write_table(&health_table(&healths));
        }
        format => {
            let values: Vec<Value> = healths
                .iter()
                .map(|(object, health)| json!({"object": object, "status": health.status, "reason": health.reason}))
                .collect();
            output::write_value(format, &values)?;
        }
    }
    let worst = |status: HealthStatus| healths.iter().any(|(_, health)| health.status == status);
    Ok(if worst(HealthStatus::Failed) {
        Exit::Failed
    } else if healths.iter().all(|(_, health)| health.is_settled_well()) {
        Exit::Ok
    } else {
        Exit::Differences
    })
}

/// Names in a dump are untrusted: no line breaks, no control characters.
fn health_table(healths: &[(String, Health)]) -> Table {
    let shown = |text: &str| short_line(text, MAX_TEXT_CHARS);
    let mut lines = table(&["OBJECT", "STATUS", "REASON"]);
    for (object, health) in healths {
        lines.add_row([&shown(object), health.status.as_str(), &shown(&health.reason)]);
    }
    lines
}

/// The health rules of a repository. Objects of a rule with a mistake are Unknown.
async fn repository_rules(path: &Path) -> anyhow::Result<Arc<HealthRules>> {
    let snapshot = repository::snapshot(path, None).await?;
    let fleet = repository::fleet(&snapshot);
    let of_rules = |mistake: &&Diagnostic| {
        mistake.location.as_ref().is_some_and(|location| location.file.starts_with(HEALTH_RULES))
    };
    let mistakes: Vec<Diagnostic> = fleet.diagnostics.iter().filter(of_rules).cloned().collect();
    diagnostics::print_from(&mistakes, &|file| snapshot.text(file).map(ToOwned::to_owned));
    Ok(fleet.health)
}

/// JSON first: it parses many times faster than YAML.
fn read_objects(name: &str, text: &str) -> anyhow::Result<Vec<Value>> {
    let mut objects = Vec::new();
    if let Ok(value) = serde_json::from_str::<Value>(text) {
        objects.extend(crate::health::read_dump(value));
    } else {
        let (documents, mistakes) = yaml::parse(name, text);
        if mistakes.iter().any(Diagnostic::is_error) {
            diagnostics::print_from(&mistakes, &|_| Some(text.to_owned()));
            bail!("{name} could not be read");
        }
        for document in documents {
            objects.extend(crate::health::read_dump(document.root.to_json()));
        }
    }
    if objects.is_empty() {
        bail!("{name} holds no object");
    }
    Ok(objects)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dump_names_are_shown_on_one_line() {
        let health = Health::new(HealthStatus::Failed, "it\u{1b}[31m has\nended");
        let text =
            health_table(&[("ConfigMap a\nPod b\u{1b}[31;40m\u{202e}".to_owned(), health)]).to_string();
        let text: Vec<&str> = text.lines().map(str::trim_end).collect();
        assert_eq!(text, ["OBJECT             STATUS  REASON", "ConfigMap a Pod b  Failed  it has ended"]);
    }
}

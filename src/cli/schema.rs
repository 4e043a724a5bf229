//! `tutti schema`: writes JSON Schemas of the native kinds, for editors.

use std::path::PathBuf;

use anyhow::{anyhow, bail};
use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::output::{self, say};
use super::{files, repository};
use crate::manifest::hub::Hub;
use crate::manifest::kinds::ManifestKind;
use crate::manifest::{read::nearest, schema};
use crate::model::Snapshot;

#[derive(Args, Debug)]
pub struct SchemaArgs {
    /// Kind of manifest such as AppSet, in upper or lower case; without it, the kinds are listed
    kind: Option<String>,
    /// Folder to write the schemas into, one file for each kind or only for KIND
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Folder of a config repository whose conversions add accepted versions
    #[arg(long, value_name = "PATH")]
    repo: Option<PathBuf>,
}

pub async fn run(args: SchemaArgs) -> anyhow::Result<Exit> {
    let snapshot = match &args.repo {
        Some(path) => repository::snapshot(path, None).await?,
        None => Snapshot::of_texts([]),
    };
    let (hub, mistakes) = Hub::of(&snapshot);
    if !mistakes.is_empty() {
        bail!("a conversion of the repository has an error; `tutti lint` shows it");
    }
    let wanted: Vec<ManifestKind> = match &args.kind {
        Some(kind) => vec![kind_named(kind)?],
        None => schema::kinds().collect(),
    };
    match (&args.out, args.kind.is_some()) {
        (Some(folder), _) => {
            for kind in wanted {
                let path = schema::path(kind);
                let text = format!("{}\n", serde_json::to_string_pretty(&schema_of(kind, &hub)?)?);
                files::write(folder, &path, &text)?;
                say!("{}", folder.join(path).display());
            }
        }
        (None, true) => {
            for kind in wanted {
                say!("{}", serde_json::to_string_pretty(&schema_of(kind, &hub)?)?);
            }
        }
        (None, false) => {
            let mut table = output::table(&["KIND", "FILE", "VERSIONS"]);
            for kind in wanted {
                let versions = schema::versions(kind, &hub).join(", ");
                table.add_row([kind.name().to_owned(), schema::path(kind), versions]);
            }
            output::write_table(&table);
        }
    }
    Ok(Exit::Ok)
}

fn kind_named(kind: &str) -> anyhow::Result<ManifestKind> {
    let names: Vec<&str> = schema::kinds().map(ManifestKind::name).collect();
    if let Some(found) = schema::kinds().find(|known| known.name().eq_ignore_ascii_case(kind)) {
        return Ok(found);
    }
    match nearest(kind, &names) {
        Some(meant) => bail!("there is no schema of {kind}; did you mean {meant}?"),
        None => bail!("there is no schema of {kind}; there is one of {}", names.join(", ")),
    }
}

fn schema_of(kind: ManifestKind, hub: &Hub) -> anyhow::Result<Value> {
    match schema::schema_of(kind, hub) {
        Ok(Some(schema)) => Ok(schema),
        Ok(None) => bail!("there is no schema of {}", kind.name()),
        // Unreachable in a correct build.
        Err(mistakes) => Err(anyhow!("the schema of {} is broken: {mistakes:?}", kind.name())),
    }
}

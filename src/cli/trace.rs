//! `tutti trace`: the objects that a file or a line contributes to.

use std::collections::BTreeSet;
use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde_json::json;

use super::exit::Exit;
use super::keys::KeyArgs;
use super::output::{self, OutputFormat, say, tell};
use super::repository;
use crate::chart::ChartHosts;
use crate::fleet::layers::shipped_files;
use crate::fleet::{Fleet, Target, Waves};
use crate::model::{AppId, AppSpec};
use crate::render::trace::touched_objects::{TouchedLine, touched_objects};
use crate::render::{FleetRenderer, RenderCache};
use crate::schedule::assign;

#[derive(Args, Debug)]
pub struct TraceArgs {
    /// File of the config repository, optionally with a line number; `shipped/…` is a file that is shipped with tutti
    #[arg(value_name = "FILE[:LINE]")]
    place: String,
    /// Folder of the config repository; its files are read from disk, including uncommitted changes
    #[arg(long, default_value = ".", value_name = "PATH")]
    repo: PathBuf,
    /// Commit, branch or tag to read instead of the files on disk
    #[arg(long)]
    revision: Option<String>,
    #[command(flatten)]
    keys: KeyArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn run(args: TraceArgs) -> anyhow::Result<Exit> {
    let touch = parse_place(&args.place);
    let mut snapshot = repository::snapshot(&args.repo, args.revision.as_deref()).await?;
    snapshot.keys = args.keys.resolve_flags().await?;
    let shipped = touch.file.strip_prefix("shipped/").unwrap_or(&touch.file);
    if !snapshot.files.contains_key(&touch.file) && !shipped_files(shipped).any(|(path, _)| path == shipped) {
        bail!("no file {} here, and none that is shipped", touch.file);
    }
    let fleet = repository::fleet(&snapshot);
    let charts = repository::fetched_charts(&fleet, ChartHosts::from_environment()).await;
    let mut renderer = FleetRenderer::new(&fleet, &snapshot, &charts);
    renderer.render_all(&mut RenderCache::default());
    let (mut rows, mut unknown) = (Vec::new(), 0_usize);
    for target in fleet.targets() {
        match touched_objects(&renderer, &target, &touch) {
            Some(objects) => rows.extend(objects.into_iter().map(|object| (target.clone(), object))),
            None => unknown += 1,
        }
    }
    if args.output == OutputFormat::Table {
        let mut table = output::table(&["CLUSTER", "APP", "OBJECT"]);
        for (target, object) in &rows {
            table.add_row([target.cluster.to_string(), target.app.to_string(), object.to_string()]);
        }
        if rows.is_empty() {
            say!("{} reaches no object", args.place);
        } else {
            output::write_table(&table);
        }
        let apps: BTreeSet<_> = rows.iter().map(|(target, _)| &target.app).collect();
        for app in apps {
            write_waves(&fleet, app);
        }
    } else {
        let values: Vec<_> = rows
            .iter()
            .map(|(target, object)| json!({"app": target.app, "cluster": target.cluster, "object": object}))
            .collect();
        output::write_value(args.output, &values)?;
    }
    if unknown > 0 {
        tell!(
            "{unknown} of the targets do not render: the files that reach them are not known (`tutti lint`)"
        );
        return Ok(Exit::Configuration);
    }
    Ok(Exit::Ok)
}

/// Names the waves, as a change does not reach all objects at once.
fn write_waves(fleet: &Fleet, app: &AppId) {
    let Some(app) = fleet.apps.get(app) else { return };
    let waves = Waves::of(fleet, app);
    let groups = |cluster| match app.spec {
        AppSpec::AppSet(_) => assign(app, cluster).into_iter().map(|pod_set| pod_set.group).collect(),
        _ => vec![String::new()],
    };
    let mut used = BTreeSet::new();
    for Target { cluster, .. } in fleet.targets().iter().filter(|target| target.app == app.id) {
        used.extend(groups(cluster).iter().map(|group| waves.wave_of(fleet, cluster, group)));
    }
    if used.len() > 1 {
        let names: Vec<&str> =
            used.iter().filter_map(|wave| Some(waves.list().get(*wave)?.name.as_str())).collect();
        say!("{} takes a change in waves: {}", app.id, names.join(", "));
    }
}

/// File names may contain colons; a line is a number after the last one.
fn parse_place(place: &str) -> TouchedLine {
    match place.rsplit_once(':').map(|(file, line)| (file, line.parse())) {
        Some((file, Ok(line))) => TouchedLine { file: file.to_owned(), line: Some(line) },
        _ => TouchedLine { file: place.to_owned(), line: None },
    }
}

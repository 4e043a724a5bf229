//! `tutti render`: prints the rendered objects of apps.

use std::path::PathBuf;

use anyhow::bail;
use clap::Args;
use serde_json::Value;

use super::exit::Exit;
use super::field_origins::{self, ObjectSelector};
use super::keys::KeyArgs;
use super::output::{self, OutputFormat, say};
use super::{diagnostics, repository};
use crate::chart::ChartHosts;
use crate::model::{Diagnostic, DiagnosticScope, masked_body};
use crate::render::{FleetRenderer, RenderCache, policy_verdicts};

#[derive(Args, Debug)]
pub struct RenderArgs {
    /// App to show, as NAMESPACE/NAME or NAME; without it, all apps
    app: Option<String>,
    /// Folder of the config repository; its files are read from disk, including uncommitted changes
    #[arg(long, default_value = ".", value_name = "PATH")]
    repo: PathBuf,
    /// Commit, branch or tag to read instead of the files on disk
    #[arg(long)]
    revision: Option<String>,
    /// Cluster to show; without it, all clusters
    #[arg(long)]
    cluster: Option<String>,
    /// Print the origin of the field at this path and of all fields below it; `.` is the whole object
    #[arg(long, value_name = "PATH")]
    explain: Option<String>,
    /// With --explain: show only objects of this kind, or only the object KIND/NAME
    #[arg(long, value_name = "KIND[/NAME]", requires = "explain")]
    object: Option<ObjectSelector>,
    /// Print the values of Secrets and the values that are encrypted in the config repository, instead of masking
    /// them
    #[arg(long)]
    show_secrets: bool,
    #[command(flatten)]
    keys: KeyArgs,
    /// Output format; `table` prints YAML documents, each with a comment that names its source file
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn run(args: RenderArgs) -> anyhow::Result<Exit> {
    let mut snapshot = repository::snapshot(&args.repo, args.revision.as_deref()).await?;
    snapshot.keys = args.keys.resolve_flags().await?;
    let fleet = repository::fleet(&snapshot);
    if let Some(name) = &args.cluster
        && !fleet.clusters.contains_key(name.as_str())
    {
        let known: Vec<&str> = fleet.clusters.keys().map(|cluster| cluster.as_str()).collect();
        bail!("no cluster {name}; there are {}", known.join(", "));
    }
    let charts = repository::fetched_charts(&fleet, ChartHosts::from_environment()).await;
    let mut renderer = FleetRenderer::new(&fleet, &snapshot, &charts);
    let renders = renderer.render_all(&mut RenderCache::default());
    let wanted = |app: &crate::model::AppId| {
        args.app.as_ref().is_none_or(|name| *name == app.to_string() || *name == *app.name)
    };
    let mut mistakes: Vec<Diagnostic> =
        fleet.diagnostics.iter().filter(|it| it.is_error()).cloned().collect();
    let mut objects: Vec<Value> = Vec::new();
    let mut explained = Vec::new();
    let mut shown = Vec::new();
    let mut found = false;
    for (id, (_, render)) in renders.iter() {
        if !wanted(&id.app) || args.cluster.as_deref().is_some_and(|name| name != id.cluster.as_str()) {
            continue;
        }
        found = true;
        shown.extend(render.as_deref().ok());
        match render {
            Err(errors) => mistakes.extend(errors.iter().cloned()),
            Ok(_) if args.explain.is_some() => explained.push(id),
            Ok(rendered) => {
                for object in &*rendered.objects {
                    let body = if args.show_secrets { object.body.fields() } else { masked_body(object) };
                    if args.output == OutputFormat::Table {
                        say!("---\n# {} {}, from {}", id.cluster, id.app, object.source);
                        output::write_text(format_args!("{}", serde_yaml::to_string(&body)?));
                    } else {
                        objects.push(body);
                    }
                }
            }
        }
    }
    if let (false, Some(name)) = (found, &args.app)
        && mistakes.is_empty()
    {
        let known: Vec<String> = fleet.apps.keys().map(ToString::to_string).collect();
        bail!("no app {name} here; there are {}", known.join(", "));
    }
    if let Some(path) = &args.explain
        && !explained.is_empty()
    {
        field_origins::print_fields(
            &renderer,
            &explained.iter().collect::<Vec<_>>(),
            path,
            args.object.as_ref(),
            args.output,
        )?;
    } else if args.output != OutputFormat::Table {
        output::write_value(args.output, &objects)?;
    }
    let of_policies = policy_verdicts(&renderer, &renders, None, &|| true, &|| true).all;
    let is_shown = |scope: &DiagnosticScope| match scope {
        DiagnosticScope::Target(app, cluster) => {
            shown.iter().any(|it| it.app == *app && it.cluster == *cluster)
        }
        _ => true,
    };
    mistakes.extend(of_policies.into_iter().filter(|it| is_shown(&it.scope)));
    repository::note_assumed_versions(&fleet, shown.into_iter());
    diagnostics::print_from(&mistakes, &|file| snapshot.text(file).map(ToOwned::to_owned));
    Ok(if mistakes.iter().any(Diagnostic::is_error) { Exit::Configuration } else { Exit::Ok })
}

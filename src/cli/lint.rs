//! `tutti lint`: lists every mistake of a config repository, without any cluster.

use std::path::PathBuf;
use std::sync::Arc;

use clap::Args;

use super::exit::Exit;
use super::keys::KeyArgs;
use super::output::{self, OutputFormat, say};
use super::{diagnostics, repository};
use crate::chart::ChartHosts;
use crate::chart::{ChartLint, RequestRecorder};
use crate::controller::approvals_of_other_versions;
use crate::fleet::misplaced_manifests;
use crate::manifest::codes::NOT_A_MANIFEST;
use crate::model::{Diagnostic, DiagnosticScope, Location};
use crate::render::codes;
use crate::render::{
    FleetRenderer, RenderCache, objects_in_two_apps, policy_verdicts, shared_by_waves, unknown_charts,
};
use crate::report::merge_diagnostics;
use crate::report::status_text::count_noun;
use crate::sops::downgrade_missing_identity;

#[derive(Args, Debug)]
pub struct LintArgs {
    /// Folder of the config repository; its files are read from disk, including uncommitted changes
    #[arg(default_value = ".", value_name = "PATH")]
    path: PathBuf,
    /// Commit, branch or tag to read instead of the files on disk
    #[arg(long)]
    revision: Option<String>,
    /// Treat warnings as errors
    #[arg(long)]
    strict: bool,
    #[command(flatten)]
    keys: KeyArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn run(args: LintArgs) -> anyhow::Result<Exit> {
    let mut snapshot = repository::snapshot(&args.path, args.revision.as_deref()).await?;
    snapshot.keys = args.keys.resolve_flags().await?;
    let fleet = repository::fleet(&snapshot);
    let charts = repository::fetched_charts(&fleet, ChartHosts::from_environment()).await;
    let (renders, of_policies, remarks) = {
        let recorder = RequestRecorder::new(&charts);
        let mut renderer = FleetRenderer::new(&fleet, &snapshot, &recorder);
        let renders = renderer.render_all(&mut RenderCache::default());
        let of_policies = policy_verdicts(&renderer, &renders, None, &|| true, &|| true).all;
        (renders, of_policies, recorder.lint())
    };
    // A file that cannot be read is reported once.
    let hidden = |mistake: &Diagnostic| fleet.diagnostics.iter().any(|known| is_cause_of(known, mistake));
    let of_renders = renders.results().filter_map(|render| render.as_ref().err()).flatten();
    let warnings = renders.results().flatten().flat_map(|rendered| rendered.warnings.iter());
    let of_renders = of_renders.filter(|mistake| !hidden(mistake)).chain(warnings);
    let rendered = || renders.results().flatten().map(Arc::as_ref);
    let of_claims = objects_in_two_apps(&fleet, &snapshot, rendered());
    let of_waves = shared_by_waves(&fleet, rendered());
    let of_approvals = approvals_of_other_versions(&fleet, &snapshot, &charts, &renders);
    let of_names = unknown_charts(&fleet, &snapshot, &charts);
    let of_places = misplaced_manifests(&fleet);
    let found = fleet
        .diagnostics
        .iter()
        .chain(of_renders)
        .chain(&of_policies)
        .chain(&of_claims)
        .chain(&of_waves)
        .chain(&of_approvals)
        .chain(&of_names)
        .chain(&of_places);
    let mut mistakes = merge_diagnostics(found, |app| renders.of_app(app).count());
    if snapshot.keys.is_empty() {
        mistakes.iter_mut().for_each(downgrade_missing_identity);
    }
    mistakes.extend(remarks.iter().map(remark_warning));
    let errors = mistakes.iter().filter(|mistake| mistake.is_error()).count();
    match args.output {
        OutputFormat::Table => {
            diagnostics::print_from(&mistakes, &|file| snapshot.text(file).map(ToOwned::to_owned));
            if mistakes.is_empty() {
                let objects: usize = renders.results().flatten().map(|rendered| rendered.objects.len()).sum();
                say!(
                    "{} on {} render to {}: no errors",
                    count_noun(fleet.apps.len(), "app"),
                    count_noun(fleet.clusters.len(), "cluster"),
                    count_noun(objects, "object")
                );
            }
        }
        format => output::write_value(format, &mistakes)?,
    }
    let failed = errors > 0 || (args.strict && !mistakes.is_empty());
    Ok(if failed { Exit::Configuration } else { Exit::Ok })
}

/// A document that cannot be read hides the mistakes that follow from it.
fn is_cause_of(known: &Diagnostic, mistake: &Diagnostic) -> bool {
    let start = |of: &Diagnostic| of.location.as_ref().map(|at| (at.file.clone(), at.start));
    known.is_error() && known.code == NOT_A_MANIFEST && start(known) == start(mistake)
}

fn remark_warning(remark: &ChartLint) -> Diagnostic {
    match remark {
        ChartLint::Lookup { file, line } => {
            let message = format!("{file} calls lookup, which returns nothing in tutti");
            Diagnostic::warning(codes::CHART_LOOKUP, message, DiagnosticScope::File(file.clone()))
                .at(Location::new(file, *line, 1))
                .help("give the value that it looks for under values")
        }
        ChartLint::UnstableObject { file, object } => {
            let message = format!("{object} of {file} changes with each render");
            Diagnostic::warning(codes::CHART_CHANGES, message, DiagnosticScope::File(file.clone()))
                .at(Location::new(file, 1, 1))
                .help("look for now, rand…, gen… or uuidv4, and replace it by a value")
        }
    }
}

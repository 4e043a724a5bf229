//! `tutti plan --base A --head B`: compares renders of two commits. No cluster is asked; `--pr N` asks the forge for the two
//! commits.

use anyhow::Context as _;
use clap::{Args, ValueEnum};

use super::exit::Exit;
use super::forge_repository::ForgeRepository;
use super::output::{self, OutputFormat, say, tell};
use super::process::ProcessSettings;
use super::session::SourceError;
use super::{diagnostics, repository};
use crate::compare::{
    self, AppChange, AppPresence, ComparedRevision, Comparison, FieldChange, ObjectChange,
    ObjectChangeAction, PlacementTransition, RemovalOutcome,
};
use crate::fleet::Fleet;
use crate::fleet::charts::remote_sources;
use crate::forge::PullState;
use crate::manifest;
use crate::model::{ClusterName, DecryptionKeys, Instance, Revision};
use crate::render::DiscoveredCapabilities;
use crate::report::status_text::count_noun;
use crate::report::{PlanCommentContext, merge_diagnostics, plan_comment};
use crate::source::{ConfigRepository, MergePreview, is_local};

const DEFAULT_PREFIX: &str = "tutti";
const MAX_NAMED_CLUSTERS: usize = 6;

/// Flags of `tutti plan` that compare two commits instead of a commit and the clusters.
#[derive(Args, Debug)]
pub struct RevisionArgs {
    /// With --head: commit, branch or tag that the head is merged into; default: the deployed branch
    #[arg(long, value_name = "REVISION", requires = "head")]
    base: Option<String>,
    /// Commit, branch or tag to merge into the base and to compare with the base; no cluster is contacted
    #[arg(long, value_name = "REVISION", conflicts_with_all = ["worktree", "all", "explain", "app"])]
    head: Option<String>,
    /// Pull request to merge into its base branch and to compare with it; read from the forge in tutti.yaml
    #[arg(long, value_name = "NUMBER", conflicts_with_all = ["base", "head", "worktree", "all", "explain", "app"])]
    pr: Option<u64>,
}

#[derive(Clone, Copy, Debug)]
pub enum ComparisonRequest<'a> {
    Commits { base: Option<&'a str>, head: &'a str },
    Pull(u64),
}

impl RevisionArgs {
    pub fn comparison_request(&self) -> Option<ComparisonRequest<'_>> {
        match (self.pr, &self.head) {
            (Some(number), _) => Some(ComparisonRequest::Pull(number)),
            (None, Some(head)) => Some(ComparisonRequest::Commits { base: self.base.as_deref(), head }),
            (None, None) => None,
        }
    }
}

/// Two fetched commits, and their names.
struct ComparedCommits {
    repository: ConfigRepository,
    base: Revision,
    head: Revision,
    names: PlanCommentContext,
    keys: DecryptionKeys,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, ValueEnum)]
pub enum PlanFormat {
    #[default]
    Table,
    Json,
    Yaml,
    /// Comment for a pull request, with --head or --pr
    Markdown,
}

impl PlanFormat {
    pub fn plain(self) -> Option<OutputFormat> {
        match self {
            Self::Table => Some(OutputFormat::Table),
            Self::Json => Some(OutputFormat::Json),
            Self::Yaml => Some(OutputFormat::Yaml),
            Self::Markdown => None,
        }
    }
}

pub async fn run(
    process: &ProcessSettings,
    asked: ComparisonRequest<'_>,
    format: PlanFormat,
    exit_code: bool,
) -> anyhow::Result<Exit> {
    let sides = match asked {
        ComparisonRequest::Commits { base, head } => resolve_commits(process, base, head).await?,
        ComparisonRequest::Pull(number) => resolve_pull(process, number).await?,
    };
    let ComparedCommits { repository, base, head, names, keys } = &sides;
    let compared = compare_revisions(repository, [base, head], keys, process).await?;
    let plan = &compared.plan;
    match format.plain() {
        None => output::write_text(format_args!("{}", plan_comment(plan, names))),
        Some(OutputFormat::Table) => write_comparison(plan, names),
        Some(format) => output::write_value(format, plan)?,
    }
    Ok(match compared.report_mistakes() {
        Exit::Ok if exit_code && plan.has_changes() => Exit::Differences,
        exit => exit,
    })
}

pub struct RevisionComparison {
    pub plan: Comparison,
    pub fleet: Fleet,
    merged: MergePreview,
}

impl RevisionComparison {
    /// Prints the head's new mistakes; returns the exit code.
    pub fn report_mistakes(&self) -> Exit {
        let Self { plan, merged: texts, .. } = self;
        let mistakes: Vec<_> = plan.errors.iter().chain(&plan.warnings).cloned().collect();
        let shown = merge_diagnostics(&mistakes, |_| 0);
        diagnostics::print_from(&shown, &|file| texts.snapshot.text(file).map(ToOwned::to_owned));
        if !plan.known_errors.is_empty() {
            tell!("note: {} that the base has too", count_noun(plan.known_errors.len(), "error"));
        }
        match () {
            () if !plan.errors.is_empty() => Exit::Configuration,
            () if plan.awaited > 0 => Exit::Unreachable,
            () => Exit::Ok,
        }
    }
}

async fn resolve_commits(
    process: &ProcessSettings,
    base: Option<&str>,
    head: &str,
) -> anyhow::Result<ComparedCommits> {
    let repository = ConfigRepository::open(process.source.clone()).await.map_err(SourceError)?;
    let base_revision = match base {
        Some(name) => resolve_revision(&repository, process, name).await?,
        None => repository.fetch().await.map_err(SourceError)?,
    };
    let head_revision = resolve_revision(&repository, process, head).await?;
    let deployed = || process.source.branch.clone().unwrap_or_else(|| base_revision.short().to_owned());
    let names = PlanCommentContext {
        prefix: DEFAULT_PREFIX.to_owned(),
        base: base.map_or_else(deployed, ToOwned::to_owned),
        head: head.to_owned(),
        url: None,
    };
    Ok(ComparedCommits {
        repository,
        base: base_revision,
        head: head_revision,
        names,
        keys: process.keys.clone(),
    })
}

/// The user asked, so forks are rendered too; encrypted files of a fork stay closed.
async fn resolve_pull(process: &ProcessSettings, number: u64) -> anyhow::Result<ComparedCommits> {
    let site = ForgeRepository::open(process).await?;
    let pull = site.pull(number).await?;
    let repository = ConfigRepository::open(site.process.source.clone()).await.map_err(SourceError)?;
    let branch = format!("refs/heads/{}", pull.base.reference);
    let base = repository.fetch_reference(&branch).await.map_err(SourceError)?;
    let head = repository.fetch_reference(&pull.head_reference()).await.map_err(SourceError)?;
    match pull.state {
        PullState::Open => {}
        PullState::Merged => {
            tell!("note: #{number} is merged: its changes are in {}", pull.base.reference)
        }
        PullState::Closed => tell!("note: #{number} is closed"),
    }
    let keys = if pull.head.is_fork {
        tell!("note: #{number} is of a fork: encrypted files are not opened");
        DecryptionKeys::default()
    } else {
        process.keys.clone()
    };
    let Instance { status_prefix, page_url, .. } = site.instance;
    let names = PlanCommentContext {
        prefix: status_prefix,
        base: pull.base.reference,
        head: pull.head.reference,
        url: page_url,
    };
    Ok(ComparedCommits { repository, base, head, names, keys })
}

/// Resolves a commit, branch or tag. From a remote, missing ones are fetched.
pub async fn resolve_revision(
    repository: &ConfigRepository,
    process: &ProcessSettings,
    name: &str,
) -> anyhow::Result<Revision> {
    if is_local(&process.source.url) {
        return Ok(repository.resolve(name).await.map_err(SourceError)?);
    }
    // An earlier fetch may be outdated.
    let candidates = [name.to_owned(), format!("refs/heads/{name}"), format!("refs/tags/{name}")];
    for reference in candidates.iter().filter(|reference| reference.starts_with("refs/")) {
        match repository.fetch_reference(reference).await {
            Ok(revision) => {
                return repository
                    .resolve(revision.as_str())
                    .await
                    .map_err(|error| SourceError(error).into());
            }
            Err(crate::source::Error::MissingReference { .. }) => {}
            Err(error) => return Err(SourceError(error).into()),
        }
    }
    repository.fetch().await.map_err(SourceError)?;
    Ok(repository.resolve(name).await.map_err(SourceError)?)
}

pub async fn compare_revisions(
    repository: &ConfigRepository,
    [base, head]: [&Revision; 2],
    keys: &DecryptionKeys,
    process: &ProcessSettings,
) -> anyhow::Result<RevisionComparison> {
    let mut before = repository.snapshot(base).await.map_err(SourceError)?;
    let mut merged = repository.preview_merge(base, head).await.map_err(SourceError)?;
    before.keys = keys.clone();
    merged.snapshot.keys = keys.clone();
    let charts = repository::chart_service(process.chart_sites.clone());
    let mut reading = manifest::ManifestCache::default();
    let fleets = {
        let base = compare::fleet_after(&before, &mut reading, None);
        let head = compare::fleet_after(&merged.snapshot, &mut reading, Some(&base));
        (base, head)
    };
    for fleet in [&fleets.0, &fleets.1] {
        charts.fetch_all(&remote_sources(fleet)).await;
    }
    let compared = tokio::task::spawn_blocking(move || {
        let side = |fleet, snapshot| ComparedRevision {
            fleet,
            snapshot,
            charts: &charts,
            discovered: DiscoveredCapabilities::new(),
        };
        let (base, head) = (side(&fleets.0, &before), side(&fleets.1, &merged.snapshot));
        let plan = compare::compare(&base, &head, &mut compare::ComparisonCache::default(), None);
        RevisionComparison { plan, fleet: fleets.1, merged }
    });
    compared
        .await
        .context("the comparison ended unexpectedly, which is a fault of tutti: report it with the log")
}

fn write_comparison(plan: &Comparison, names: &PlanCommentContext) {
    say!("{} ← {} @ {}", names.base, names.head, plan.head.short());
    for app in &plan.apps {
        say!("{}", app_title(app));
        for place in &app.placement {
            let words = match place.kind {
                PlacementTransition::Comes => "comes".to_owned(),
                PlacementTransition::Goes => "goes".to_owned(),
                PlacementTransition::Stays => {
                    format!("{} → {} replicas", number_text(place.before), number_text(place.after))
                }
            };
            say!("    {}: {words} ({})", place.cluster, place.why);
        }
        app.objects.iter().for_each(write_object);
        for (clusters, words) in [
            (&app.broken, "not rendered"),
            (&app.mended, "the base was not rendered: the changes are not known"),
            (&app.remaining, "no longer placed there; its objects stay"),
        ] {
            if !clusters.is_empty() {
                say!("  ! {} {words}", on_clusters(clusters));
            }
        }
        if !app.waves.is_empty() {
            let waves = app.waves.iter().map(|wave| {
                let soak = wave.soak.map(|seconds| format!(", soak {seconds}s")).unwrap_or_default();
                let confirm = if wave.confirm { ", somebody confirms" } else { "" };
                let names: Vec<&str> = wave.clusters.iter().map(ClusterName::as_str).collect();
                format!("{} ({}{soak}{confirm})", names.join(", "), wave.name)
            });
            say!("    order: {}", waves.collect::<Vec<_>>().join(" → "));
        }
    }
    let counts = plan.counts();
    let summary = match counts.is_none() {
        true if plan.has_changes() => "no object to write".to_owned(),
        true => "no changes".to_owned(),
        false => {
            let apps = plan.apps.iter().filter(|app| !app.on.is_empty()).count();
            format!(
                "{}, {}: {counts}",
                count_noun(apps, "app"),
                count_noun(plan.changed_clusters().len(), "cluster")
            )
        }
    };
    say!("{}{summary}", if plan.apps.is_empty() { "" } else { "\n" });
}

fn app_title(app: &AppChange) -> String {
    let state = match app.state {
        AppPresence::New => " new",
        AppPresence::Removed => " removed",
        AppPresence::Changed => "",
    };
    let version = app.versions.first().map(|version| match (&version.before, &version.after) {
        (Some(before), Some(after)) => format!(" {before} → {after}"),
        (before, after) => format!(" {}", before.as_ref().or(after.as_ref()).map_or("", String::as_str)),
    });
    let held = app.held.map(|held| format!(" ({held}: nothing is applied)")).unwrap_or_default();
    format!("{}{state}{}{held}", app.app, version.unwrap_or_default())
}

fn write_object(change: &ObjectChange) {
    let sign = match change.action {
        ObjectChangeAction::Create => '+',
        ObjectChangeAction::Delete => '-',
        ObjectChangeAction::Orphan => ' ',
        ObjectChangeAction::Change | ObjectChangeAction::Rename | ObjectChangeAction::Move => '~',
    };
    let also = match (&change.was, &change.from, &change.fate) {
        (Some(was), ..) => format!(", was {}", was.name),
        (_, Some(from), _) => format!(", moves from {from}"),
        (_, _, Some(RemovalOutcome::WaitsForApproval(why))) => format!(": waits for an approval, {why}"),
        (_, _, Some(RemovalOutcome::Kept(why))) => format!(": stays, {why}"),
        _ => String::new(),
    };
    say!("  {sign} {} {}{also}", change.object, on_clusters(&change.clusters));
    for group in &change.fields {
        if group.clusters != change.clusters {
            say!("    only {}", on_clusters(&group.clusters));
        }
        group.fields.iter().for_each(write_field);
    }
    if change.more > 0 {
        say!("      and {}", count_noun(change.more, "more field"));
    }
}

fn write_field(field: &FieldChange) {
    let origin = field.set_by.as_ref().map(|place| format!("  {place}")).unwrap_or_default();
    match (&field.before, &field.after) {
        (Some(before), Some(after)) => say!("      {}: {before} → {after}{origin}", field.path),
        (None, Some(after)) => say!("      {}: {after} is new{origin}", field.path),
        (Some(before), None) => say!("      {}: {before} goes{origin}", field.path),
        (None, None) => {
            say!("      {}:{origin}", field.path);
            field.lines.iter().for_each(|line| say!("        {line}"));
        }
    }
}

fn on_clusters(clusters: &[ClusterName]) -> String {
    let names: Vec<&str> = clusters.iter().take(MAX_NAMED_CLUSTERS).map(ClusterName::as_str).collect();
    match clusters.len().saturating_sub(MAX_NAMED_CLUSTERS) {
        0 => format!("on {}", names.join(", ")),
        more => format!("on {} and {more} more", names.join(", ")),
    }
}

fn number_text(number: Option<i64>) -> String {
    number.map_or_else(|| "-".to_owned(), |number| number.to_string())
}

//! `tutti import`: writes manifests that render to the same objects as live workloads.
//!
//! [`group`] finds the apps of a namespace, [`clean`] keeps what authors set, [`write`](mod@write) writes manifests, and
//! [`check`] verifies them by a render and dry runs. An app that cannot be reproduced exactly is refused, and no file of it is
//! written. Secrets are named and never read.
//!
//! A workload becomes a template without changes: selectors are immutable, and a derived label would restart its pods.

pub mod check;
mod clean;
mod group;
mod write;
mod yaml_text;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;
use serde::Serialize;

use super::connections::{ClusterConnections, WorkTree, default_kubeconfigs};
use super::exit::Exit;
use super::files;
use super::output::{self, OutputFormat, say};
use super::repository;
use crate::cluster::{Client, ClusterLink, HomeCluster};
use crate::fleet::Fleet;
use crate::manifest;
use crate::model::{
    AppId, ChartProvider, ClusterName, Diagnostic, DiagnosticScope, GroupVersionKind, Snapshot, TemplatesOnly,
};
use crate::source;
use crate::worker::WorkerPool;
use check::ImportCluster;
use write::AppDrafts;
pub use write::ManifestForm;
pub(super) use yaml_text::scalar;

#[derive(Args, Debug)]
pub struct ImportArgs {
    /// Names of the workloads to import; without names, all workloads of the namespace
    names: Vec<String>,
    /// Namespace of the live workloads
    #[arg(short, long, default_value = "default")]
    namespace: String,
    /// Cluster to read, as NAME=FILE[#CONTEXT], repeatable; without it, all clusters of the config repository
    #[arg(long = "cluster", value_delimiter = ',', value_name = "NAME=WAY")]
    clusters: Vec<String>,
    /// Folder that relative kubeconfig paths start from; default: `tutti/clusters` in the user's configuration folder
    #[arg(long, env = "TUTTI_KUBECONFIGS", value_name = "DIR")]
    kubeconfigs: Option<PathBuf>,
    /// Kind of the manifests to write
    #[arg(long = "as", value_enum, default_value = "appset", ignore_case = true)]
    form: ManifestForm,
    /// Folder of the config repository to write into; if a file exists, nothing is written
    #[arg(long, default_value = ".", value_name = "DIR")]
    out: PathBuf,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

#[derive(Debug)]
pub struct ImportRequest {
    pub clusters: BTreeMap<ClusterName, ClusterLink>,
    pub namespace: String,
    /// Empty means all.
    pub names: Vec<String>,
    pub form: ManifestForm,
    /// Paths in Cluster files are relative to it.
    pub kubeconfigs: PathBuf,
}

/// The result, before files are written.
#[derive(Debug, Default, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportResult {
    #[serde(skip)]
    pub files: BTreeMap<String, String>,
    pub apps: Vec<ImportedApp>,
    /// New Cluster files, by cluster.
    pub new_clusters: BTreeMap<ClusterName, String>,
    /// Skipped objects, and why.
    pub left: BTreeSet<String>,
}

#[derive(Debug, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ImportedApp {
    pub app: AppId,
    pub files: Vec<String>,
    pub same: Vec<String>,
    pub refused: Vec<String>,
    /// Objects that its pods name and that are not imported.
    pub needs: BTreeSet<String>,
}

/// Reads, writes and verifies. `base`: the current config repository. `charts`: renders the new manifests.
pub async fn import(
    request: &ImportRequest,
    base: &Snapshot,
    charts: &dyn ChartProvider,
) -> anyhow::Result<ImportResult> {
    let fleet = repository::fleet(base);
    if let Some(mistake) = blocking_error(&fleet, request) {
        bail!("fix this error before the import: {mistake}");
    }
    let mut imported = ImportResult::default();
    let mut members = BTreeMap::new();
    let mut found: BTreeMap<(String, String), AppDrafts> = BTreeMap::new();
    for (name, link) in &request.clusters {
        let member = connect(name, link).await?;
        let group = group::group_objects(&list_objects(&member, &request.namespace).await?);
        members.insert(name.clone(), member);
        imported.left.extend(group.skipped.into_iter().map(|line| format!("{name} {line}")));
        for draft in group.drafts {
            if request.names.is_empty() || request.names.contains(&draft.name) {
                let key = (draft.name.clone(), draft.kind.clone());
                found.entry(key).or_default().insert(name.clone(), draft);
            }
        }
    }
    if let Some(unknown) = request.names.iter().find(|name| !found.keys().any(|(known, _)| known == *name)) {
        let names = members.keys().map(ClusterName::as_str).collect::<Vec<_>>().join(", ");
        bail!(
            "no Deployment, StatefulSet or DaemonSet {unknown} in namespace {} of {names}",
            request.namespace
        );
    }
    let known: BTreeSet<&ClusterName> = fleet.clusters.keys().collect();
    for name in members.keys().filter(|name| !known.contains(name)) {
        let file = format!("clusters/{name}.yaml");
        let text = cluster_file(name, request.clusters.get(name), &request.kubeconfigs);
        imported.files.insert(file.clone(), text);
        imported.new_clusters.insert(name.clone(), file);
    }
    let base = repository::with_files(base, &imported.files);
    for ((name, kind), drafts) in &found {
        let twice = found.keys().any(|(other, other_kind)| other == name && other_kind < kind);
        let app_name = if twice { format!("{name}-{}", kind.to_lowercase()) } else { name.clone() };
        let app = AppId::new(&request.namespace, &app_name);
        let needs = drafts.values().flat_map(|draft| draft.needs.iter().cloned()).collect();
        let result =
            check::check_app((&base, charts), &members, &fleet.instance.name, (request.form, &app), drafts)
                .await;
        let mut one = ImportedApp { app, files: Vec::new(), same: Vec::new(), refused: Vec::new(), needs };
        match result {
            Ok((files, same)) => {
                one.files = files.keys().cloned().collect();
                one.same = same;
                imported.files.extend(files);
            }
            Err(why) => one.refused = why,
        }
        imported.apps.push(one);
    }
    if imported.apps.iter().all(|app| app.files.is_empty()) {
        imported.files.clear();
        imported.new_clusters.clear();
    }
    Ok(imported)
}

/// A mistake that blocks every app on the clusters: reported once instead of for each app.
fn blocking_error<'f>(fleet: &'f Fleet, request: &ImportRequest) -> Option<&'f Diagnostic> {
    let is_read = |name: &ClusterName| request.clusters.contains_key(name);
    let files: BTreeSet<String> =
        request.clusters.keys().map(|name| format!("clusters/{name}.yaml")).collect();
    fleet.diagnostics.iter().filter(|it| it.is_error()).find(|it| match &it.scope {
        DiagnosticScope::Instance => true,
        DiagnosticScope::Cluster(name) => is_read(name),
        // A mistake in a Cluster file's path.
        _ => it.location.as_ref().is_some_and(|location| files.contains(&*location.file)),
    })
}

async fn connect(name: &ClusterName, link: &ClusterLink) -> anyhow::Result<ImportCluster> {
    let client = Client::connect(name.clone(), link).await?;
    let catalog = client.discover().await?;
    Ok(ImportCluster { client, catalog: Arc::new(catalog) })
}

async fn list_objects(member: &ImportCluster, namespace: &str) -> anyhow::Result<Vec<serde_json::Value>> {
    let mut objects = Vec::new();
    for (api_version, kind) in group::KINDS {
        // An old cluster may not serve the version: the kind is skipped.
        if let Some(resource) = member.catalog.get(&GroupVersionKind::from_api_version(api_version, kind)) {
            objects.extend(member.client.list(resource, namespace).await?);
        }
    }
    Ok(objects)
}

fn cluster_file(name: &ClusterName, link: Option<&ClusterLink>, kubeconfigs: &Path) -> String {
    let connection = match link {
        Some(ClusterLink::Kubeconfig { path, context }) => {
            let context = context
                .as_ref()
                .map_or(String::new(), |context| format!(", context: {}", json_string(context)));
            let file = path.strip_prefix(kubeconfigs).unwrap_or(path).to_string_lossy().into_owned();
            format!("kubeconfig: {{path: {}{context}}}", json_string(&file))
        }
        Some(ClusterLink::InCluster) => "inCluster: {}".to_owned(),
        _ => "sandbox: {}".to_owned(),
    };
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {name}}}\nspec:\n  \
         # A path is relative to --kubeconfigs.\n  connection: {{{connection}}}\n"
    )
}

fn json_string(text: &str) -> String {
    serde_json::Value::String(text.to_owned()).to_string()
}

pub async fn run(args: ImportArgs) -> anyhow::Result<Exit> {
    let base = read_base(&args.out)?;
    let kubeconfigs = args.kubeconfigs.clone().unwrap_or_else(default_kubeconfigs);
    let work_tree = WorkTree::of(&args.out.to_string_lossy());
    let ways =
        ClusterConnections::parse(HomeCluster::here(), kubeconfigs.clone(), &args.clusters, work_tree)?;
    let links = ways.links();
    let fleet = repository::fleet(&base);
    let clusters: BTreeMap<ClusterName, ClusterLink> = if args.clusters.is_empty() {
        fleet.clusters.iter().map(|(name, cluster)| (name.clone(), links(cluster))).collect()
    } else {
        ways.named_links()
    };
    if clusters.is_empty() {
        bail!(
            "no Cluster file in {}: give --cluster NAME=KUBECONFIG[#CONTEXT], and the file is written too",
            args.out.display()
        );
    }
    let request = ImportRequest {
        clusters,
        namespace: args.namespace.clone(),
        names: args.names.clone(),
        form: args.form,
        kubeconfigs,
    };
    let imported = import(&request, &base, &TemplatesOnly::<WorkerPool>::default()).await?;
    files::write_new(&args.out, &imported.files)?;
    if args.output == OutputFormat::Table {
        print_result(&args, &imported);
    } else {
        output::write_value(args.output, &imported)?;
    }
    let refused = imported.apps.iter().any(|app| !app.refused.is_empty());
    Ok(if refused { Exit::Failed } else { Exit::Ok })
}

/// Reads the folder; a missing one is empty.
fn read_base(out: &Path) -> anyhow::Result<Snapshot> {
    if !out.exists() {
        return Ok(Snapshot::of_texts([]));
    }
    source::read_folder(out, manifest::listed_beside)
        .with_context(|| format!("failed to read {}", out.display()))
}

fn print_result(args: &ImportArgs, imported: &ImportResult) {
    for app in &imported.apps {
        let verdict = if app.refused.is_empty() { args.form.kind() } else { "not imported" };
        say!("{}: {verdict}", app.app);
        app.files.iter().for_each(|file| say!("  wrote {file}"));
        app.same.iter().for_each(|line| say!("  {line}"));
        app.refused.iter().for_each(|line| say!("  ! {line}"));
        for need in app.needs.iter().filter(|_| app.refused.is_empty()) {
            say!("  needs {need}: not imported and not changed");
        }
    }
    for (name, file) in &imported.new_clusters {
        say!("cluster {name} had no Cluster file: wrote {file}, check its connection");
    }
    imported.left.iter().for_each(|line| say!("not imported: {line}"));
    if imported.apps.is_empty() {
        say!("nothing to import in namespace {}", args.namespace);
    }
    if !imported.files.is_empty() {
        let out = args.out.display();
        say!("\ncheck it, then: tutti lint {out} && tutti plan --worktree --repo {out}");
    }
}

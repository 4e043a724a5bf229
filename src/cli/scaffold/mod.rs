//! `tutti init` and `tutti new`: write files to begin with.
//!
//! [`texts`] has their content. Before anything is written the future repository is read and rendered: a new mistake refuses the
//! command. Existing files are never overwritten.

mod install;
mod policies;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand, ValueEnum};

use super::exit::Exit;
use super::output::say;
use super::{diagnostics, files, repository};
use crate::fleet::layers::{TEMPLATES_FOLDER, shipped_files};
use crate::manifest;
use crate::manifest::read::NameRule;
use crate::model::{Diagnostic, Snapshot, TemplatesOnly};
use crate::render::{FleetRenderer, RenderCache};
use crate::source;
use crate::worker::WorkerPool;

#[derive(Args, Debug)]
pub struct InitArgs {
    /// The folder; made when it is not there
    #[arg(default_value = ".", value_name = "DIR")]
    folder: PathBuf,
    /// Of the instance: it signs what it applies with this name
    #[arg(long, default_value = "main")]
    name: String,
    /// Of apps whose manifest names none
    #[arg(long, default_value = "default")]
    namespace: String,
    /// Plan and report only: the way to begin on a fleet that exists
    #[arg(long)]
    observe: bool,
    /// Address of the Gitea or Forgejo that gets commit statuses
    #[arg(long, value_name = "URL", requires = "forge_repository")]
    forge: Option<String>,
    /// The repository there: OWNER/NAME
    #[arg(long, value_name = "OWNER/NAME", requires = "forge")]
    forge_repository: Option<String>,
    /// Also what runs tutti by itself, in a repository that is begun already too: its home cluster, and an app with the manifests;
    /// URL is where tutti reads this repository
    #[arg(long, value_name = "URL")]
    install: Option<String>,
}

#[derive(Args, Debug)]
pub struct NewArgs {
    #[command(subcommand)]
    what: NewCommand,
    /// The config repository
    #[arg(long, default_value = ".", value_name = "PATH", global = true)]
    repo: PathBuf,
}

#[derive(Subcommand, Debug)]
enum NewCommand {
    /// An app: a workload, groups of pods on clusters, or plain Kubernetes objects
    App(NewAppArgs),
    /// A cluster and the way to it
    Cluster(NewClusterArgs),
    /// A layer of values and templates: base, workload/NAME, language/NAME, runType/NAME, cluster/NAME or app/NAME
    Template(NewTemplateArgs),
    /// A route of notifications: which messages go to which chat or mailbox
    Notification(NewNotificationArgs),
    /// A machine of the inventory, and until when it is paid
    Server(NewServerArgs),
    /// A policy of those that tutti ships; without a name, lists them
    Policy(NewPolicyArgs),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
#[value(rename_all = "lower")]
enum NewAppKind {
    Component,
    AppSet,
    Objects,
}

#[derive(Args, Debug)]
struct NewAppArgs {
    name: String,
    #[arg(long, value_enum, default_value = "component", ignore_case = true)]
    kind: NewAppKind,
    /// By default that of tutti.yaml
    #[arg(long)]
    namespace: Option<String>,
    /// By default registry.example.com/NAME:1.0.0
    #[arg(long)]
    image: Option<String>,
    /// That the container listens on; by default 8080 of a server
    #[arg(long)]
    port: Option<u16>,
    /// For each cluster
    #[arg(long)]
    replicas: Option<u32>,
    /// Deployment, StatefulSet, DaemonSet, Job, CronJob, InPlaceSet
    #[arg(long, default_value = "Deployment")]
    workload: String,
    /// The language layer
    #[arg(long, default_value = "generic")]
    language: String,
    /// The run type layer
    #[arg(long, default_value = "server")]
    run_type: String,
    /// Of a CronJob, for example '0 3 * * *'
    #[arg(long)]
    schedule: Option<String>,
    /// Take over what is there already
    #[arg(long)]
    adopt: bool,
}

#[derive(Args, Debug, Default)]
struct NewClusterArgs {
    name: String,
    /// Path below --kubeconfigs; by default NAME.kubeconfig
    #[arg(long, value_name = "PATH", conflicts_with_all = ["in_cluster", "sandbox"])]
    kubeconfig: Option<String>,
    #[arg(long, conflicts_with_all = ["in_cluster", "sandbox"])]
    context: Option<String>,
    /// The cluster that tutti runs in
    #[arg(long, conflicts_with = "sandbox")]
    in_cluster: bool,
    /// An embedded cluster in the process: to try things out
    #[arg(long)]
    sandbox: bool,
    /// For selectors of rings, layers and apps; several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
}

#[derive(Args, Debug)]
struct NewTemplateArgs {
    /// base, workload/NAME, language/NAME, runType/NAME, cluster/NAME or app/NAME
    layer: String,
    /// Also a template that extends the lower one of this name, for example deployment.yaml.j2
    #[arg(long, value_name = "FILE")]
    extend: Option<String>,
    /// Of a cluster layer: the labels of its clusters; without one, the cluster of this name
    #[arg(long = "label", value_name = "KEY=VALUE")]
    labels: Vec<String>,
}

#[derive(Args, Debug)]
struct NewNotificationArgs {
    name: String,
    /// feishu, dingtalk, wecom, slack, teams, generic, email
    #[arg(long)]
    service: String,
    /// Of the messages: en or zh
    #[arg(long, default_value = "en")]
    language: String,
}

#[derive(Args, Debug)]
struct NewServerArgs {
    name: String,
    /// The last day, as 2027-01-31
    #[arg(long, value_name = "DATE")]
    expires: String,
    /// A name or an address of it
    #[arg(long)]
    address: Option<String>,
    /// Whom it is rented from
    #[arg(long)]
    provider: Option<String>,
    /// The cluster that it is a node of
    #[arg(long)]
    cluster: Option<String>,
}

#[derive(Args, Debug)]
struct NewPolicyArgs {
    /// Of the policy
    #[arg(value_parser = policies::names())]
    name: Option<String>,
}

pub fn init(args: &InitArgs) -> anyhow::Result<Exit> {
    let address = args.install.as_deref().map(install::RepositoryAddress::of).transpose()?;
    let mut made = BTreeMap::new();
    let is_begun = address.is_some() && args.folder.join("tutti.yaml").exists();
    if !is_begun {
        made.insert("tutti.yaml".to_owned(), texts::instance(args));
        made.insert(".gitignore".to_owned(), texts::GITIGNORE.to_owned());
        made.insert("README.md".to_owned(), texts::README.to_owned());
    }
    let folder = args.folder.display().to_string();
    let next = match &address {
        Some(address) => {
            let fleet = repository::fleet(&read_snapshot(&args.folder)?);
            let home = install::home_cluster(&fleet);
            made.extend(install::install_files(address, home));
            address.next_steps(&folder, home.unwrap_or(install::NAME))
        }
        None => format!("next: tutti new cluster NAME --repo {folder}, tutti new app NAME --repo {folder}"),
    };
    let exit = write_checked(&args.folder, &made)?;
    if exit == Exit::Ok {
        say!("\n{next}");
    }
    Ok(exit)
}

pub fn new(args: &NewArgs) -> anyhow::Result<Exit> {
    // Names become paths, so they are checked first.
    if let NewCommand::App(NewAppArgs { name, .. })
    | NewCommand::Cluster(NewClusterArgs { name, .. })
    | NewCommand::Notification(NewNotificationArgs { name, .. })
    | NewCommand::Server(NewServerArgs { name, .. }) = &args.what
        && !NameRule::Subdomain.fits(name)
    {
        bail!("{name:?} is not a valid name: {}", NameRule::Subdomain.description());
    }
    let made = match &args.what {
        NewCommand::App(app) => app_files(args, app)?,
        NewCommand::Cluster(cluster) => BTreeMap::from([(
            format!("clusters/{}.yaml", cluster.name),
            texts::cluster(cluster, &parse_labels(&cluster.labels)?),
        )]),
        NewCommand::Template(template) => template_files(template)?,
        NewCommand::Notification(route) => {
            BTreeMap::from([(format!("notifications/{}.yaml", route.name), texts::notification(route))])
        }
        NewCommand::Server(server) => {
            BTreeMap::from([(format!("servers/{}.yaml", server.name), texts::server(server))])
        }
        NewCommand::Policy(NewPolicyArgs { name: Some(name) }) => policies::file(name)?,
        NewCommand::Policy(NewPolicyArgs { name: None }) => return Ok(policies::list()),
    };
    write_checked(&args.repo, &made)
}

fn app_files(args: &NewArgs, app: &NewAppArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let path = |rest: &str| format!("apps/{}/{rest}", app.name);
    let mut made = BTreeMap::new();
    match app.kind {
        NewAppKind::Component => {
            made.insert(path("app.yaml"), texts::component(app));
        }
        NewAppKind::AppSet => {
            let fleet = repository::fleet(&read_snapshot(&args.repo)?);
            let clusters: Vec<&str> = fleet.clusters.keys().map(|cluster| cluster.as_str()).collect();
            if clusters.is_empty() {
                bail!("an AppSet names its clusters, and there is none yet: tutti new cluster NAME");
            }
            made.insert(path("app.yaml"), texts::app_set(app, &clusters));
        }
        NewAppKind::Objects => {
            made.insert(path("app.yaml"), texts::objects(app));
            made.insert(path("objects/settings.yaml"), texts::settings(app));
        }
    }
    Ok(made)
}

fn template_files(template: &NewTemplateArgs) -> anyhow::Result<BTreeMap<String, String>> {
    let layer = template.layer.trim_end_matches('/');
    let (level, name) = layer.split_once('/').unwrap_or((layer, ""));
    let folder = match (level, name) {
        ("base", "") => "templates/base".to_owned(),
        ("workload" | "language" | "runType" | "cluster", name) if is_name(name) => {
            format!("templates/{layer}")
        }
        ("app", name) if is_name(name) => format!("apps/{name}/layer"),
        _ => bail!(
            "there is no layer {layer}: it is base, workload/NAME, language/NAME, runType/NAME, cluster/NAME or app/NAME"
        ),
    };
    if level != "cluster" && !template.labels.is_empty() {
        bail!("--label is for cluster layers");
    }
    let mut made = BTreeMap::new();
    let path = format!("{folder}/values.yaml");
    // A repository's file replaces the shipped one completely: start with a copy.
    let shipped = shipped_files(TEMPLATES_FOLDER).find(|(shipped, _)| *shipped == path).map(|(_, text)| text);
    made.insert(path, texts::values(layer, shipped));
    if level == "cluster" {
        made.insert(format!("{folder}/layer.yaml"), texts::layer(name, &parse_labels(&template.labels)?));
    }
    if let Some(file) = &template.extend {
        if !file.ends_with(".yaml.j2") || file.contains('/') {
            bail!(
                "--extend {file}: a template is FILE.yaml.j2; `tutti templates list` shows those that are shipped"
            );
        }
        made.insert(format!("{folder}/{file}"), texts::template(file));
    }
    Ok(made)
}

fn is_name(name: &str) -> bool {
    NameRule::Subdomain.fits(&name.to_lowercase())
}

fn parse_labels(labels: &[String]) -> anyhow::Result<BTreeMap<&str, &str>> {
    let pair =
        |label: &'_ String| label.split_once('=').map(|(key, value)| (key.to_owned(), value.to_owned()));
    if let Some(wrong) = labels.iter().find(|label| pair(label).is_none()) {
        bail!("--label {wrong}: expected KEY=VALUE");
    }
    Ok(labels.iter().filter_map(|label| label.split_once('=')).collect())
}

/// Writes new files, unless they add a mistake.
fn write_checked(root: &Path, made: &BTreeMap<String, String>) -> anyhow::Result<Exit> {
    let before = read_snapshot(root)?;
    let after = repository::with_files(&before, made);
    let known: BTreeSet<String> = repository_errors(&before).iter().map(ToString::to_string).collect();
    let mut fresh = repository_errors(&after);
    fresh.retain(|mistake| !known.contains(&mistake.to_string()));
    if !fresh.is_empty() {
        // Existing files are the most frequent cause: reported first.
        files::refuse_existing(root, made)?;
        diagnostics::print_from(&fresh, &|file| after.text(file).map(ToOwned::to_owned));
        return Ok(Exit::Configuration);
    }
    files::write_new(root, made)?;
    let root = if root == Path::new(".") { Path::new("") } else { root };
    made.keys().for_each(|path| say!("wrote {}", root.join(path).display()));
    Ok(Exit::Ok)
}

fn repository_errors(snapshot: &Snapshot) -> Vec<Diagnostic> {
    let fleet = repository::fleet(snapshot);
    let templates = TemplatesOnly::<WorkerPool>::default();
    let renders = FleetRenderer::new(&fleet, snapshot, &templates).render_all(&mut RenderCache::default());
    let mut found: Vec<Diagnostic> = fleet.diagnostics.iter().filter(|it| it.is_error()).cloned().collect();
    for render in renders.results() {
        found.extend(render.as_ref().err().into_iter().flatten().cloned());
    }
    found
}

fn read_snapshot(root: &Path) -> anyhow::Result<Snapshot> {
    if !root.exists() {
        return Ok(Snapshot::of_texts([]));
    }
    source::read_folder(root, manifest::listed_beside)
        .with_context(|| format!("failed to read {}", root.display()))
}

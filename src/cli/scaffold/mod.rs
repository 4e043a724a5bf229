//! `tutti init` and `tutti new`: write files to begin with.
//!
//! [`texts`] has their content. Before anything is written the future repository is read and rendered: a new mistake refuses the
//! command. Existing files are never overwritten.

mod arguments;
mod install;
mod policies;
mod texts;

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use anyhow::{Context as _, bail};

pub use arguments::{InitArgs, NewArgs};
use arguments::{
    NewAppArgs, NewAppKind, NewClusterArgs, NewCommand, NewNotificationArgs, NewPolicyArgs, NewServerArgs,
    NewTemplateArgs,
};

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

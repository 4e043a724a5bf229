//! `tutti cluster rbac`: prints the roles that tutti needs on a cluster.

use std::path::PathBuf;
use std::str::FromStr;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::exit::Exit;
use super::keys::KeyArgs;
use super::leadership::LEASE;
use super::output::{self, tell};
use super::{diagnostics, repository};
use crate::access::{self, LeaseName, RbacScope, ServiceAccountName};
use crate::chart::ChartHosts;
use crate::fleet::Fleet;
use crate::model::{App, ClusterName, ClusterState, Diagnostic, DiagnosticScope, RenderedTarget, Snapshot};
use crate::render::FleetRenderer;

#[derive(Args, Debug)]
pub struct ClusterArgs {
    #[command(subcommand)]
    command: ClusterCommand,
}

#[derive(Debug, Subcommand)]
enum ClusterCommand {
    /// Print the minimal ClusterRole and Roles that tutti needs on a cluster
    Rbac(RbacArgs),
}

#[derive(Args, Debug)]
struct RbacArgs {
    /// Name of the cluster, as in its Cluster file
    #[arg(required_unless_present = "home")]
    name: Option<String>,
    /// Print the rights in the home cluster instead: Secrets, ConfigMaps that register clusters, and the Lease if its
    /// namespace is known
    #[arg(long, conflicts_with_all = ["name", "namespaces_exist"])]
    home: bool,
    /// Folder of the config repository; its files are read from disk, including uncommitted changes
    #[arg(long, default_value = ".", value_name = "PATH")]
    repo: PathBuf,
    /// Folder in the config repository that contains the manifests
    #[arg(long, default_value = ".", value_name = "PATH")]
    path: PathBuf,
    /// Commit, branch or tag to read instead of the files on disk
    #[arg(long)]
    revision: Option<String>,
    /// Service account to print too, with bindings of the roles to it
    #[arg(long, value_name = "NAMESPACE/NAME")]
    service_account: Option<ServiceAccountName>,
    /// With --home: Lease of the leader, as in `tutti run --lease`; without NAMESPACE, it is in the namespace of the
    /// service account
    #[arg(long, default_value = LEASE, value_name = "[NAMESPACE/]NAME")]
    lease: String,
    /// Print Roles instead of rights in every namespace; all namespaces must exist, also those that are rendered
    #[arg(long)]
    namespaces_exist: bool,
    #[command(flatten)]
    keys: KeyArgs,
}

impl FromStr for ServiceAccountName {
    type Err = String;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        match text.split_once('/') {
            Some((namespace, name)) if !namespace.is_empty() && !name.is_empty() && !name.contains('/') => {
                Ok(Self { namespace: namespace.to_owned(), name: name.to_owned() })
            }
            _ => Err("expected NAMESPACE/NAME".to_owned()),
        }
    }
}

pub async fn run(args: ClusterArgs) -> anyhow::Result<Exit> {
    match args.command {
        ClusterCommand::Rbac(args) => print_rbac(args).await,
    }
}

async fn print_rbac(args: RbacArgs) -> anyhow::Result<Exit> {
    let mut snapshot = match &args.revision {
        Some(_) if args.path.as_os_str() != "." => bail!("give --path or --revision, not both"),
        revision => repository::snapshot(&args.repo.join(&args.path), revision.as_deref()).await?,
    };
    snapshot.keys = args.keys.resolve_flags().await?;
    let fleet = repository::fleet(&snapshot);
    let Some(name) = &args.name else { return Ok(print_home_rbac(&args, &fleet, &snapshot)) };
    let cluster = cluster_named(&fleet, name)?;
    let is_leaving = is_removed(&fleet, &cluster);
    let fleet = if is_leaving { fleet.before_removal(&cluster) } else { fleet };
    let charts = repository::fetched_charts(&fleet, ChartHosts::from_environment()).await;
    let renderer = FleetRenderer::new(&fleet, &snapshot, &charts);
    let (renders, mut mistakes) = render_cluster(&fleet, &renderer, &cluster);
    mistakes.extend(fleet.diagnostics.iter().filter(|it| it.is_error()).cloned());
    if !mistakes.is_empty() {
        // A partial role would lack rights.
        diagnostics::print_from(&mistakes, &|file| snapshot.text(file).map(ToOwned::to_owned));
        return Ok(Exit::Configuration);
    }
    let needs = access::required_rights(&access::AccessInput {
        instance: &fleet.instance,
        renders: &renders,
        known_plural: &|_| None,
        namespaces_exist: args.namespaces_exist,
        removal_approvals: is_leaving.then_some(&fleet.approvals),
    });
    let text = access::rbac_manifest(
        if is_leaving { RbacScope::RemovedCluster(&cluster) } else { RbacScope::Cluster(&cluster) },
        &fleet.instance.name,
        &needs,
        args.service_account.as_ref(),
    );
    output::write_text(format_args!("{text}"));
    repository::note_assumed_versions(&fleet, renders.iter().map(|(_, rendered)| rendered));
    Ok(Exit::Ok)
}

fn print_home_rbac(args: &RbacArgs, fleet: &Fleet, snapshot: &Snapshot) -> Exit {
    let is_of_all = |it: &&Diagnostic| {
        it.is_error()
            && matches!(
                it.scope,
                DiagnosticScope::Instance | DiagnosticScope::Cluster(_) | DiagnosticScope::File(_)
            )
    };
    let mistakes: Vec<Diagnostic> = fleet.diagnostics.iter().filter(is_of_all).cloned().collect();
    if !mistakes.is_empty() {
        // A partial role would lack rights.
        diagnostics::print_from(&mistakes, &|file| snapshot.text(file).map(ToOwned::to_owned));
        return Exit::Configuration;
    }
    let namespace = args.service_account.as_ref().map(|account| account.namespace.as_str());
    let lease = match args.lease.split_once('/') {
        Some((namespace, name)) => Some(LeaseName { namespace, name }),
        None => namespace.map(|namespace| LeaseName { namespace, name: &args.lease }),
    };
    let is_without_lease = lease.is_none();
    let needs = access::home_rights(&fleet.instance, fleet.clusters.values(), lease);
    if is_without_lease {
        tell!(
            "note: the rights on the Lease of the leader are not printed: give its namespace with \
             --service-account NAMESPACE/NAME, or with --lease NAMESPACE/NAME"
        );
    } else if needs.rights.is_empty() {
        tell!("note: the repository refers to nothing in the home cluster: tutti needs no rights there");
    }
    let text =
        access::rbac_manifest(RbacScope::Home, &fleet.instance.name, &needs, args.service_account.as_ref());
    output::write_text(format_args!("{text}"));
    Exit::Ok
}

pub fn cluster_named(fleet: &Fleet, name: &str) -> anyhow::Result<ClusterName> {
    match fleet.clusters.get_key_value(name) {
        Some((name, _)) => Ok(name.clone()),
        None => {
            let known: Vec<&str> = fleet.clusters.keys().map(|cluster| cluster.as_str()).collect();
            bail!("no cluster {name}; there are {}", known.join(", "))
        }
    }
}

/// Whether the cluster has `state: Removed`: nothing is rendered for it.
pub fn is_removed(fleet: &Fleet, cluster: &ClusterName) -> bool {
    fleet.clusters.get(cluster).is_some_and(|it| it.state == ClusterState::Removed)
}

/// Renders of one cluster, and the mistakes of those that fail.
pub fn render_cluster<'f>(
    fleet: &'f Fleet,
    renderer: &FleetRenderer<'_>,
    cluster: &ClusterName,
) -> (Vec<(&'f App, RenderedTarget)>, Vec<Diagnostic>) {
    let (mut renders, mut mistakes) = (Vec::new(), Vec::new());
    for target in fleet.targets().into_iter().filter(|target| target.cluster == *cluster) {
        let Some(app) = fleet.apps.get(&target.app) else { continue };
        match renderer.render(&target) {
            Ok(rendered) => renders.push((&**app, rendered)),
            Err(errors) => mistakes.extend(errors),
        }
    }
    (renders, mistakes)
}

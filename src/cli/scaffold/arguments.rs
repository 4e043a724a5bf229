//! Arguments of `tutti init` and `tutti new`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::policies;

#[derive(Args, Debug)]
pub struct InitArgs {
    /// The folder; made when it is not there
    #[arg(default_value = ".", value_name = "DIR")]
    pub folder: PathBuf,
    /// Of the instance: it signs what it applies with this name
    #[arg(long, default_value = "main")]
    pub name: String,
    /// Of apps whose manifest names none
    #[arg(long, default_value = "default")]
    pub namespace: String,
    /// Plan and report only: the way to begin on a fleet that exists
    #[arg(long)]
    pub observe: bool,
    /// Address of the Gitea or Forgejo that gets commit statuses
    #[arg(long, value_name = "URL", requires = "forge_repository")]
    pub forge: Option<String>,
    /// The repository there: OWNER/NAME
    #[arg(long, value_name = "OWNER/NAME", requires = "forge")]
    pub forge_repository: Option<String>,
    /// Also what runs tutti by itself, in a repository that is begun already too: its home cluster, and an app with the manifests;
    /// URL is where tutti reads this repository
    #[arg(long, value_name = "URL")]
    pub install: Option<String>,
}

#[derive(Args, Debug)]
pub struct NewArgs {
    #[command(subcommand)]
    pub what: NewCommand,
    /// The config repository
    #[arg(long, default_value = ".", value_name = "PATH", global = true)]
    pub repo: PathBuf,
}

#[derive(Subcommand, Debug)]
pub enum NewCommand {
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
pub enum NewAppKind {
    Component,
    AppSet,
    Objects,
}

#[derive(Args, Debug)]
pub struct NewAppArgs {
    pub name: String,
    #[arg(long, value_enum, default_value = "component", ignore_case = true)]
    pub kind: NewAppKind,
    /// By default that of tutti.yaml
    #[arg(long)]
    pub namespace: Option<String>,
    /// By default registry.example.com/NAME:1.0.0
    #[arg(long)]
    pub image: Option<String>,
    /// That the container listens on; by default 8080 of a server
    #[arg(long)]
    pub port: Option<u16>,
    /// For each cluster
    #[arg(long)]
    pub replicas: Option<u32>,
    /// Deployment, StatefulSet, DaemonSet, Job, CronJob, InPlaceSet
    #[arg(long, default_value = "Deployment")]
    pub workload: String,
    /// The language layer
    #[arg(long, default_value = "generic")]
    pub language: String,
    /// The run type layer
    #[arg(long, default_value = "server")]
    pub run_type: String,
    /// Of a CronJob, for example '0 3 * * *'
    #[arg(long)]
    pub schedule: Option<String>,
    /// Take over what is there already
    #[arg(long)]
    pub adopt: bool,
}

#[derive(Args, Debug, Default)]
pub struct NewClusterArgs {
    pub name: String,
    /// Path below --kubeconfigs; by default NAME.kubeconfig
    #[arg(long, value_name = "PATH", conflicts_with_all = ["in_cluster", "sandbox"])]
    pub kubeconfig: Option<String>,
    #[arg(long, conflicts_with_all = ["in_cluster", "sandbox"])]
    pub context: Option<String>,
    /// The cluster that tutti runs in
    #[arg(long, conflicts_with = "sandbox")]
    pub in_cluster: bool,
    /// An embedded cluster in the process: to try things out
    #[arg(long)]
    pub sandbox: bool,
    /// For selectors of rings, layers and apps; several times
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
}

#[derive(Args, Debug)]
pub struct NewTemplateArgs {
    /// base, workload/NAME, language/NAME, runType/NAME, cluster/NAME or app/NAME
    pub layer: String,
    /// Also a template that extends the lower one of this name, for example deployment.yaml.j2
    #[arg(long, value_name = "FILE")]
    pub extend: Option<String>,
    /// Of a cluster layer: the labels of its clusters; without one, the cluster of this name
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
}

#[derive(Args, Debug)]
pub struct NewNotificationArgs {
    pub name: String,
    /// feishu, dingtalk, wecom, slack, teams, generic, email
    #[arg(long)]
    pub service: String,
    /// Of the messages: en or zh
    #[arg(long, default_value = "en")]
    pub language: String,
}

#[derive(Args, Debug)]
pub struct NewServerArgs {
    pub name: String,
    /// The last day, as 2027-01-31
    #[arg(long, value_name = "DATE")]
    pub expires: String,
    /// A name or an address of it
    #[arg(long)]
    pub address: Option<String>,
    /// Whom it is rented from
    #[arg(long)]
    pub provider: Option<String>,
    /// The cluster that it is a node of
    #[arg(long)]
    pub cluster: Option<String>,
}

#[derive(Args, Debug)]
pub struct NewPolicyArgs {
    /// Of the policy
    #[arg(value_parser = policies::names())]
    pub name: Option<String>,
}

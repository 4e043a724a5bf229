//! Arguments of `tutti init` and `tutti new`.

use std::path::PathBuf;

use clap::{Args, Subcommand, ValueEnum};

use super::policies;

#[derive(Args, Debug)]
pub struct InitArgs {
    /// Folder of the config repository; it is created if it does not exist
    #[arg(default_value = ".", value_name = "DIR")]
    pub folder: PathBuf,
    /// Name of the instance, for the label tutti.dev/managed-by and the field manager tutti-NAME of applied objects
    #[arg(long, default_value = "main")]
    pub name: String,
    /// Namespace of apps whose manifest has none
    #[arg(long, default_value = "default")]
    pub namespace: String,
    /// Set mode `observe`: plan and report only, as a first step with existing clusters
    #[arg(long)]
    pub observe: bool,
    /// URL of the Gitea or Forgejo that receives commit statuses
    #[arg(long, value_name = "URL", requires = "forge_repository")]
    pub forge: Option<String>,
    /// Name of the config repository at the forge, as OWNER/NAME
    #[arg(long, value_name = "OWNER/NAME", requires = "forge")]
    pub forge_repository: Option<String>,
    /// Also write the app that runs tutti, and its home cluster; allowed for an existing repository. tutti reads the
    /// repository from URL
    #[arg(long, value_name = "URL")]
    pub install: Option<String>,
}

#[derive(Args, Debug)]
pub struct NewArgs {
    #[command(subcommand)]
    pub what: NewCommand,
    /// Folder of the config repository
    #[arg(long, default_value = ".", value_name = "PATH", global = true)]
    pub repo: PathBuf,
}

#[derive(Subcommand, Debug)]
pub enum NewCommand {
    /// Write an app: a workload, groups of pods on clusters, or plain Kubernetes objects
    App(NewAppArgs),
    /// Write a cluster with its connection
    Cluster(NewClusterArgs),
    /// Write a layer of values and templates: base, workload/NAME, language/NAME, runType/NAME, cluster/NAME or
    /// app/NAME
    Template(NewTemplateArgs),
    /// Write a notification route: which messages go to which chat, mailbox or program
    Notification(NewNotificationArgs),
    /// Write a server of the inventory, with the last day that it is paid for
    Server(NewServerArgs),
    /// Write a policy that is shipped with tutti; without NAME, list the shipped policies
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
    /// Name of the app; its files are in the folder apps/NAME
    pub name: String,
    /// Kind of the manifest
    #[arg(long, value_enum, default_value = "component", ignore_case = true)]
    pub kind: NewAppKind,
    /// Namespace of the app; default: the namespace in tutti.yaml
    #[arg(long)]
    pub namespace: Option<String>,
    /// Image of the container; default: registry.example.com/NAME:1.0.0
    #[arg(long)]
    pub image: Option<String>,
    /// Port that the container listens on; default: 8080 for run type `server`, otherwise none
    #[arg(long)]
    pub port: Option<u16>,
    /// Number of replicas on each cluster; default: 2 for an AppSet, otherwise the value of the layers
    #[arg(long)]
    pub replicas: Option<u32>,
    /// Workload type: Deployment, StatefulSet, DaemonSet, Job, CronJob or InPlaceSet
    #[arg(long, default_value = "Deployment")]
    pub workload: String,
    /// Name of the language layer, such as generic, go, java or python
    #[arg(long, default_value = "generic")]
    pub language: String,
    /// Name of the run type layer, such as server, worker or task
    #[arg(long, default_value = "server")]
    pub run_type: String,
    /// Schedule in cron format; default of a CronJob: '0 3 * * *'
    #[arg(long)]
    pub schedule: Option<String>,
    /// Set `adopt: true`: objects that exist already on the clusters are adopted
    #[arg(long)]
    pub adopt: bool,
}

#[derive(Args, Debug, Default)]
pub struct NewClusterArgs {
    /// Name of the cluster; the file is clusters/NAME.yaml
    pub name: String,
    /// Path of the kubeconfig, relative to the folder of --kubeconfigs; default: NAME.kubeconfig
    #[arg(long, value_name = "PATH", conflicts_with_all = ["in_cluster", "sandbox"])]
    pub kubeconfig: Option<String>,
    /// Context in the kubeconfig; default: its current context
    #[arg(long, conflicts_with_all = ["in_cluster", "sandbox"])]
    pub context: Option<String>,
    /// Connect to the cluster that tutti runs in
    #[arg(long, conflicts_with = "sandbox")]
    pub in_cluster: bool,
    /// Use an embedded cluster in the tutti process, for tests
    #[arg(long)]
    pub sandbox: bool,
    /// Label of the cluster, for selectors of rings, layers and apps; repeatable
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
}

#[derive(Args, Debug)]
pub struct NewTemplateArgs {
    /// Layer to write: base, workload/NAME, language/NAME, runType/NAME, cluster/NAME or app/NAME
    pub layer: String,
    /// Template to write too, which extends the template of this name in a lower layer, for example
    /// deployment.yaml.j2
    #[arg(long, value_name = "FILE")]
    pub extend: Option<String>,
    /// Label that selects the clusters of a cluster layer, repeatable; default: the cluster with the name of the
    /// layer
    #[arg(long = "label", value_name = "KEY=VALUE")]
    pub labels: Vec<String>,
}

#[derive(Args, Debug)]
pub struct NewNotificationArgs {
    /// Name of the route; the file is notifications/NAME.yaml
    pub name: String,
    /// Service that receives the messages: feishu, dingtalk, wecom, slack, teams, generic or email
    #[arg(long)]
    pub service: String,
    /// Language of the messages: en or zh
    #[arg(long, default_value = "en")]
    pub language: String,
}

#[derive(Args, Debug)]
pub struct NewServerArgs {
    /// Name of the server; the file is servers/NAME.yaml
    pub name: String,
    /// Last day that the server is paid for, such as 2027-01-31
    #[arg(long, value_name = "DATE")]
    pub expires: String,
    /// Host name or address of the server
    #[arg(long)]
    pub address: Option<String>,
    /// Provider of the server
    #[arg(long)]
    pub provider: Option<String>,
    /// Cluster that the server is a node of
    #[arg(long)]
    pub cluster: Option<String>,
}

#[derive(Args, Debug)]
pub struct NewPolicyArgs {
    /// Name of the shipped policy; without it, the shipped policies are listed
    #[arg(value_parser = policies::names())]
    pub name: Option<String>,
}

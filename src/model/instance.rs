//! The instance: `tutti.yaml`.

use std::fmt;
use std::time::Duration;

use serde::Serialize;

use super::{ConfigMapRegistry, DataKeyRef, DerivedLabels, Location, Revision};

/// A secret is always a reference; the value is read where it is used.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum SecretRef {
    Env(String),
    File(String),
    /// Of the home cluster.
    Secret(DataKeyRef),
}

/// A location for messages that comparisons ignore.
#[derive(Clone, Debug, Default)]
pub struct UncomparedLocation(pub Option<Location>);

impl PartialEq for UncomparedLocation {
    fn eq(&self, _: &Self) -> bool {
        true
    }
}

impl Eq for UncomparedLocation {}

impl fmt::Display for UncomparedLocation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.as_ref().map_or(Ok(()), |location| location.fmt(f))
    }
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum InstanceMode {
    #[default]
    Enforce,
    /// Plan and report; write to no cluster.
    Observe,
}

#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum PruneMode {
    Never,
    /// What is no longer rendered goes when what replaces it is healthy.
    #[default]
    WhenHealthy,
    Always,
}

/// What happens when somebody else changes what is applied.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DriftMode {
    /// The drift is reverted at once.
    #[default]
    Repair,
    /// The drift is reported and stays.
    Report,
    /// The drift stays until the object changes in Git.
    Ignore,
}

/// How a change of an app without an order of its own reaches its clusters.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum DefaultRollout {
    /// Ring after ring, where there are rings.
    #[default]
    Rings,
    /// All clusters at once.
    Together,
}

/// The forge that the config repository lives on; only Gitea yet (Forgejo speaks the same).
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct ForgeSettings {
    /// Base address, for example `https://gitea.example.com`.
    pub url: String,
    /// `owner/name`.
    pub repository: String,
    pub token: Option<SecretRef>,
    #[serde(skip)]
    pub written: UncomparedLocation,
}

impl ForgeSettings {
    /// The page of a commit, for people.
    pub fn commit_url(&self, revision: &Revision) -> String {
        format!("{}/{}/commit/{revision}", self.url.trim_end_matches('/'), self.repository)
    }
}

/// The sender of webhooks, which decides signature and format.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum WebhookReceiverKind {
    #[default]
    Gitea,
    Forgejo,
    Drone,
    /// A step of a pipeline: Woodpecker itself sends nothing.
    Woodpecker,
    /// JSON with an HMAC in a header.
    Generic,
    StandardWebhooks,
}

impl WebhookReceiverKind {
    /// As `tutti.yaml` names them.
    pub const NAMES: [(&'static str, Self); 6] = [
        ("gitea", Self::Gitea),
        ("forgejo", Self::Forgejo),
        ("drone", Self::Drone),
        ("woodpecker", Self::Woodpecker),
        ("generic", Self::Generic),
        ("standard-webhooks", Self::StandardWebhooks),
    ];

    pub fn as_str(self) -> &'static str {
        Self::NAMES.iter().find(|(_, kind)| *kind == self).map_or("", |(name, _)| name)
    }
}

/// One webhook receiver, `POST /hooks/v1/{name}`. Without secrets it is disabled, never open.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct WebhookReceiver {
    pub name: String,
    pub kind: WebhookReceiverKind,
    /// One or, during rotation, two.
    pub secrets: Vec<SecretRef>,
    #[serde(skip)]
    pub written: UncomparedLocation,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct InstanceDefaults {
    pub namespace: String,
    pub prune: PruneMode,
    pub drift: DriftMode,
    /// Fields that others have are taken from them.
    pub force: bool,
    /// Namespaces of apps are made where they are missing.
    pub create_namespace: bool,
    pub rollout: DefaultRollout,
}

impl Default for InstanceDefaults {
    fn default() -> Self {
        Self {
            namespace: "default".to_owned(),
            prune: PruneMode::default(),
            drift: DriftMode::default(),
            force: false,
            create_namespace: false,
            rollout: DefaultRollout::default(),
        }
    }
}

/// How many objects one revision may delete without an approval, over the whole instance: the
/// smaller of the two, but at least [`DeleteCaps::FLOOR`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct DeleteCaps {
    pub deletes: u32,
    /// Of the managed objects.
    pub delete_percent: u32,
}

impl DeleteCaps {
    pub const FLOOR: u32 = 3;
}

impl Default for DeleteCaps {
    fn default() -> Self {
        Self { deletes: 10, delete_percent: 20 }
    }
}

/// The chart repository behind `name` of `name/chart` in a chartUrl.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct ChartRepository {
    pub name: String,
    /// `https://…`, `oci://…`, or `charts/`: the folder of this repository.
    pub url: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct Instance {
    pub name: String,
    pub mode: InstanceMode,
    pub forge: Option<ForgeSettings>,
    pub receivers: Vec<WebhookReceiver>,
    pub poll: Duration,
    pub status_prefix: String,
    /// Base address of the page, for the links in statuses.
    pub page_url: Option<String>,
    pub defaults: InstanceDefaults,
    pub caps: DeleteCaps,
    pub charts: Vec<ChartRepository>,
    /// The labels and variables that AppSets get.
    pub labels: DerivedLabels,
    /// Patterns of files that hold no manifests.
    pub ignore: Vec<String>,
    /// Clusters are registered in the home cluster too.
    pub registry: Option<ConfigMapRegistry>,
    #[serde(skip)]
    pub location: Option<Location>,
}

impl Default for Instance {
    /// A repository without `tutti.yaml` is valid: everything has a default.
    fn default() -> Self {
        Self {
            name: "main".to_owned(),
            mode: InstanceMode::default(),
            forge: None,
            receivers: Vec::new(),
            poll: Duration::from_secs(60),
            status_prefix: "tutti".to_owned(),
            page_url: None,
            defaults: InstanceDefaults::default(),
            caps: DeleteCaps::default(),
            charts: Vec::new(),
            labels: DerivedLabels::default(),
            ignore: Vec::new(),
            registry: None,
            location: None,
        }
    }
}

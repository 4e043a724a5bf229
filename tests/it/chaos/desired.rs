//! The desired state of the repository at one commit, kept by the generator without reading Git.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::object::{ChaosKind, ChaosObjectId, object_body};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DriftMode {
    Repair,
    Report,
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PruneMode {
    WhenHealthy,
    Always,
    Never,
}

/// A mistake in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ManifestMistake {
    UnknownField,
    InvalidYaml,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ChaosAppKind {
    /// Objects by name, with their version.
    Objects(BTreeMap<ChaosObjectId, u64>),
    Component {
        version: u64,
        replicas: u64,
    },
}

/// The state in the file of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ClusterLifecycle {
    Ready,
    /// Nothing is written to the cluster.
    Maintaining,
    /// No app is placed there, and its objects are deleted.
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChaosApp {
    pub kind: ChaosAppKind,
    pub clusters: BTreeSet<String>,
    pub paused: bool,
    pub drift: DriftMode,
    pub prune: PruneMode,
    pub mistake: Option<ManifestMistake>,
    /// Its images cannot be pulled.
    pub broken_image: bool,
}

/// The whole repository at one commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DesiredRepository {
    pub clusters: BTreeMap<String, ClusterLifecycle>,
    pub apps: BTreeMap<String, ChaosApp>,
    pub observe_mode: bool,
    /// The repository has a file of no known kind.
    pub has_stray_file: bool,
    /// Approval files by name.
    pub approvals: BTreeMap<String, String>,
    /// Approved deletes: cluster and uid.
    pub approved_deletes: BTreeSet<(String, String)>,
    /// The content of a file that nothing uses.
    pub unused_text: u64,
}

impl DesiredRepository {
    pub fn is_valid(&self) -> bool {
        !self.has_stray_file && self.apps.values().all(|app| app.mistake.is_none())
    }

    /// The apps that render an object on a cluster; several are in conflict.
    pub fn owners<'a>(
        &'a self,
        cluster: &'a str,
        name: &'a ChaosObjectId,
    ) -> impl Iterator<Item = (&'a String, &'a ChaosApp)> {
        self.apps.iter().filter(move |(id, app)| self.is_placed_on(app, cluster) && app.has_object(id, name))
    }

    pub fn is_placed_on(&self, app: &ChaosApp, cluster: &str) -> bool {
        app.clusters.contains(cluster) && self.clusters.get(cluster) != Some(&ClusterLifecycle::Removed)
    }

    /// The desired objects of a cluster, with their apps. Apps with a mistake are left out.
    pub fn objects_on<'a>(
        &'a self,
        cluster: &'a str,
    ) -> impl Iterator<Item = (&'a str, &'a ChaosApp, ChaosObjectId, Value)> {
        let here =
            self.apps.iter().filter(move |(_, app)| self.is_placed_on(app, cluster) && app.mistake.is_none());
        here.flat_map(|(id, app)| {
            app.objects(id).into_iter().map(move |(name, body)| (id.as_str(), app, name, body))
        })
    }

    /// All files of the repository.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mode = if self.observe_mode { "mode: observe" } else { "" };
        let instance = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {{{mode}}}\n"
        );
        let mut files = BTreeMap::from([("tutti.yaml".to_owned(), instance)]);
        for (cluster, standing) in &self.clusters {
            let state = match standing {
                ClusterLifecycle::Ready => String::new(),
                other => format!(", state: {other:?}"),
            };
            let text = format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {{name: {cluster}}}\n\
                 spec: {{connection: {{kubeconfig: {{path: {cluster}.kubeconfig}}}}{state}}}\n"
            );
            files.insert(format!("clusters/{cluster}.yaml"), text);
        }
        for (id, app) in &self.apps {
            files.extend(app.files(id));
        }
        for (name, text) in &self.approvals {
            files.insert(format!("approvals/{name}.yaml"), text.clone());
        }
        if self.has_stray_file {
            files.insert("notes/list.yaml".to_owned(), "just: a list\n".to_owned());
        }
        files.insert("README.md".to_owned(), format!("Words {}.\n", self.unused_text));
        files
    }
}

impl ChaosApp {
    fn has_object(&self, id: &str, name: &ChaosObjectId) -> bool {
        match &self.kind {
            ChaosAppKind::Objects(objects) => objects.contains_key(name),
            ChaosAppKind::Component { .. } => {
                name.name == id && matches!(name.kind, ChaosKind::Service | ChaosKind::Deployment)
            }
        }
    }

    /// The objects that the author writes.
    pub fn objects(&self, id: &str) -> Vec<(ChaosObjectId, Value)> {
        match &self.kind {
            ChaosAppKind::Objects(objects) => objects
                .iter()
                .map(|(name, version)| (name.clone(), self.object_body(id, name, *version)))
                .collect(),
            ChaosAppKind::Component { version, replicas } => {
                let image = self.image(id, *version);
                let deployment = json!({"spec": {
                    "replicas": replicas,
                    "template": {"spec": {"containers": [{"image": image, "ports": [{"containerPort": 8080}]}]}},
                }});
                let service = json!({"spec": {"ports": [{"port": 8080}]}});
                vec![
                    (ChaosObjectId::new(ChaosKind::Deployment, id), deployment),
                    (ChaosObjectId::new(ChaosKind::Service, id), service),
                ]
            }
        }
    }

    /// A third of the apps have sync waves.
    fn object_body(&self, id: &str, name: &ChaosObjectId, version: u64) -> Value {
        let mut object = object_body(name, version, self.broken_image);
        if id.bytes().map(u64::from).sum::<u64>().is_multiple_of(3) {
            let wave = name.name.bytes().map(i64::from).sum::<i64>() % 3 - 1;
            object["metadata"]["annotations"]["tutti.dev/sync-wave"] = json!(wave.to_string());
        }
        object
    }

    fn image(&self, id: &str, version: u64) -> String {
        let tag = if self.broken_image { format!("broken-{version}") } else { version.to_string() };
        format!("registry.example.com/{id}:{tag}")
    }

    fn files(&self, id: &str) -> BTreeMap<String, String> {
        let folder = format!("apps/{id}");
        let mut spec = json!({"placement": {"clusters": {"names": self.clusters}}});
        if self.paused {
            spec["paused"] = json!(true);
        }
        match self.drift {
            DriftMode::Repair => {}
            DriftMode::Report => spec["drift"] = json!("report"),
            DriftMode::Ignore => spec["drift"] = json!("ignore"),
        }
        match self.prune {
            PruneMode::WhenHealthy => {}
            PruneMode::Always => spec["prune"] = json!("always"),
            PruneMode::Never => spec["prune"] = json!("never"),
        }
        if self.mistake == Some(ManifestMistake::UnknownField) {
            spec["colour"] = json!("red");
        }
        let mut files = BTreeMap::new();
        let kind = match &self.kind {
            ChaosAppKind::Objects(objects) => {
                spec["files"] = json!(["objects/*.yaml"]);
                for (name, version) in objects {
                    let file = format!("{folder}/objects/{:?}-{}.yaml", name.kind, name.name);
                    files.insert(file, format!("{:#}\n", self.object_body(id, name, *version)));
                }
                "Objects"
            }
            ChaosAppKind::Component { version, replicas } => {
                spec["workloadType"] = json!("Deployment");
                spec["developLanguage"] = json!("python");
                spec["runType"] = json!("server");
                spec["image"] = json!(self.image(id, *version));
                spec["replicas"] = json!(replicas);
                spec["port"] = json!(8080);
                "Component"
            }
        };
        let manifest =
            json!({"apiVersion": "tutti.dev/v1alpha1", "kind": kind, "metadata": {"name": id}, "spec": spec});
        let text = if self.mistake == Some(ManifestMistake::InvalidYaml) {
            "kind: [Objects\n".to_owned()
        } else {
            format!("{manifest:#}\n")
        };
        files.insert(format!("{folder}/app.yaml"), text);
        files
    }
}

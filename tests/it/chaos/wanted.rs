//! The desired state of the repository at one commit, kept by the generator without reading Git.

use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::object::{Kind, Name, body};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Drift {
    Repair,
    Report,
    Ignore,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Prune {
    WhenHealthy,
    Always,
    Never,
}

/// A mistake in a commit.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mistake {
    Field,
    Syntax,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Sort {
    /// Objects by name, with their version.
    Objects(BTreeMap<Name, u64>),
    Component {
        version: u64,
        replicas: u64,
    },
}

/// The state in the file of a cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Standing {
    Ready,
    /// Nothing is written to the cluster.
    Maintaining,
    /// No app is placed there, and its objects are deleted.
    Removed,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct App {
    pub sort: Sort,
    pub clusters: BTreeSet<String>,
    pub paused: bool,
    pub drift: Drift,
    pub prune: Prune,
    pub mistake: Option<Mistake>,
    /// Its images cannot be pulled.
    pub broken_image: bool,
}

/// The whole repository at one commit.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Wanted {
    pub clusters: BTreeMap<String, Standing>,
    pub apps: BTreeMap<String, App>,
    pub observes: bool,
    /// The repository has a file of no known kind.
    pub stray: bool,
    /// Approval files by name.
    pub approvals: BTreeMap<String, String>,
    /// Approved deletes: cluster and uid.
    pub approved: BTreeSet<(String, String)>,
    /// The content of a file that nothing uses.
    pub words: u64,
}

impl Wanted {
    pub fn is_valid(&self) -> bool {
        !self.stray && self.apps.values().all(|app| app.mistake.is_none())
    }

    /// The apps that render an object on a cluster; several are in conflict.
    pub fn owners<'a>(
        &'a self,
        cluster: &'a str,
        name: &'a Name,
    ) -> impl Iterator<Item = (&'a String, &'a App)> {
        self.apps.iter().filter(move |(id, app)| self.places(app, cluster) && app.holds(id, name))
    }

    pub fn places(&self, app: &App, cluster: &str) -> bool {
        app.clusters.contains(cluster) && self.clusters.get(cluster) != Some(&Standing::Removed)
    }

    /// The desired objects of a cluster, with their apps. Apps with a mistake are left out.
    pub fn on<'a>(&'a self, cluster: &'a str) -> impl Iterator<Item = (&'a str, &'a App, Name, Value)> {
        let here =
            self.apps.iter().filter(move |(_, app)| self.places(app, cluster) && app.mistake.is_none());
        here.flat_map(|(id, app)| {
            app.objects(id).into_iter().map(move |(name, body)| (id.as_str(), app, name, body))
        })
    }

    /// All files of the repository.
    pub fn files(&self) -> BTreeMap<String, String> {
        let mode = if self.observes { "mode: observe" } else { "" };
        let instance = format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Instance\nmetadata: {{name: main}}\nspec: {{{mode}}}\n"
        );
        let mut files = BTreeMap::from([("tutti.yaml".to_owned(), instance)]);
        for (cluster, standing) in &self.clusters {
            let state = match standing {
                Standing::Ready => String::new(),
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
        if self.stray {
            files.insert("notes/list.yaml".to_owned(), "just: a list\n".to_owned());
        }
        files.insert("README.md".to_owned(), format!("Words {}.\n", self.words));
        files
    }
}

impl App {
    fn holds(&self, id: &str, name: &Name) -> bool {
        match &self.sort {
            Sort::Objects(objects) => objects.contains_key(name),
            Sort::Component { .. } => {
                name.name == id && matches!(name.kind, Kind::Service | Kind::Deployment)
            }
        }
    }

    /// The objects that the author writes.
    pub fn objects(&self, id: &str) -> Vec<(Name, Value)> {
        match &self.sort {
            Sort::Objects(objects) => objects
                .iter()
                .map(|(name, version)| (name.clone(), self.object(id, name, *version)))
                .collect(),
            Sort::Component { version, replicas } => {
                let image = self.image(id, *version);
                let deployment = json!({"spec": {
                    "replicas": replicas,
                    "template": {"spec": {"containers": [{"image": image, "ports": [{"containerPort": 8080}]}]}},
                }});
                let service = json!({"spec": {"ports": [{"port": 8080}]}});
                vec![(Name::new(Kind::Deployment, id), deployment), (Name::new(Kind::Service, id), service)]
            }
        }
    }

    /// A third of the apps have sync waves.
    fn object(&self, id: &str, name: &Name, version: u64) -> Value {
        let mut object = body(name, version, self.broken_image);
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
            Drift::Repair => {}
            Drift::Report => spec["drift"] = json!("report"),
            Drift::Ignore => spec["drift"] = json!("ignore"),
        }
        match self.prune {
            Prune::WhenHealthy => {}
            Prune::Always => spec["prune"] = json!("always"),
            Prune::Never => spec["prune"] = json!("never"),
        }
        if self.mistake == Some(Mistake::Field) {
            spec["colour"] = json!("red");
        }
        let mut files = BTreeMap::new();
        let kind = match &self.sort {
            Sort::Objects(objects) => {
                spec["files"] = json!(["objects/*.yaml"]);
                for (name, version) in objects {
                    let file = format!("{folder}/objects/{:?}-{}.yaml", name.kind, name.name);
                    files.insert(file, format!("{:#}\n", self.object(id, name, *version)));
                }
                "Objects"
            }
            Sort::Component { version, replicas } => {
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
        let text = if self.mistake == Some(Mistake::Syntax) {
            "kind: [Objects\n".to_owned()
        } else {
            format!("{manifest:#}\n")
        };
        files.insert(format!("{folder}/app.yaml"), text);
        files
    }
}

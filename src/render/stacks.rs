//! Reads layers once for all targets with the same ones, and keeps their merged values, patches and templates.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::clusters::{self, ClusterLayer};
use super::layers::{self, Layers};
use super::patches::{self, Patches};
use super::templates::Templates;
use super::{Job, values};
use crate::model::{AppSpec, ClusterName, Diagnostic, Digest, Snapshot};

/// The layers of a target with their merged values, patches and templates.
#[derive(Debug)]
pub struct Stack {
    pub layers: Layers,
    /// Digest of the paths and contents of their files.
    pub id: Digest,
    values: OnceLock<Result<Map<String, Value>, Vec<Diagnostic>>>,
    patches: OnceLock<Result<Patches, Vec<Diagnostic>>>,
    templates: OnceLock<Templates>,
    looks_at_ring: OnceLock<bool>,
    newest: OnceLock<Option<usize>>,
}

/// The layers that an app names: all but cluster layers and its own.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Shape {
    pub workload: Option<&'static str>,
    pub language: Option<String>,
    pub run_type: Option<String>,
}

/// All stacks of a revision, each built on first use.
#[derive(Debug, Default)]
pub struct Stacks {
    cluster_layers: OnceLock<Result<Vec<ClusterLayer>, Vec<Diagnostic>>>,
    by_folders: Mutex<HashMap<Vec<String>, Arc<Stack>>>,
    by_shape: Mutex<HashMap<Shape, BTreeMap<ClusterName, Arc<Stack>>>>,
}

impl Shape {
    pub fn of(spec: &AppSpec) -> Self {
        match spec {
            AppSpec::AppSet(app_set) => Self {
                workload: app_set.deploy_type.layer(),
                language: app_set.language.clone(),
                run_type: app_set.run_type.clone(),
            },
            AppSpec::Component(component) => Self {
                workload: component.workload_type.layer(),
                language: Some(component.language.clone()),
                run_type: Some(component.run_type.clone()),
            },
            AppSpec::Objects(_) | AppSpec::Project(_) => {
                Self { workload: None, language: None, run_type: None }
            }
        }
    }
}

impl Stacks {
    /// The stack of a target. Mistakes are not kept: each target reports them anew.
    pub fn of(&self, job: &Job<'_>) -> Result<Arc<Stack>, Vec<Diagnostic>> {
        if let AppSpec::Project(_) = job.app.spec {
            return Ok(Arc::new(Stack::of(Layers::none())));
        }
        let own = job.inputs.own_layer.clone();
        if own.is_none()
            && let Some(known) =
                self.by_shape.lock().get(&job.inputs.shape).and_then(|of| of.get(&job.target.cluster))
        {
            return Ok(Arc::clone(known));
        }
        let selected = clusters::select(job, self.cluster_layers(job)?);
        let folders = layers::folders(&job.inputs.shape, &selected, own.as_deref());
        let known = self.by_folders.lock().get(&folders).cloned();
        let stack = match known {
            Some(stack) => stack,
            None => {
                let stack = Arc::new(Stack::of(layers::read(job, &folders, &selected)?));
                clusters::no_ties(job, &selected.layers, &stack.layers)?;
                self.by_folders.lock().insert(folders, Arc::clone(&stack));
                stack
            }
        };
        if own.is_none() {
            let mut by_shape = self.by_shape.lock();
            let of_shape = by_shape.entry(job.inputs.shape.clone()).or_default();
            of_shape.insert(job.target.cluster.clone(), Arc::clone(&stack));
        }
        Ok(stack)
    }

    fn cluster_layers(&self, job: &Job<'_>) -> Result<&[ClusterLayer], Vec<Diagnostic>> {
        let read = self.cluster_layers.get_or_init(|| clusters::read_all(job));
        read.as_deref().map_err(|mistakes| job.rescoped(mistakes))
    }
}

impl Stack {
    fn of(layers: Layers) -> Self {
        let mut files = String::new();
        for layer in &layers.list {
            let _ = writeln!(files, "{} {:?}", layer.folder, layer.charts);
            for source in layer.sources() {
                let _ = writeln!(files, "{} {}", source.path, source.blob);
            }
        }
        let id = Digest::of(files.as_bytes());
        Self {
            layers,
            id,
            values: OnceLock::new(),
            patches: OnceLock::new(),
            templates: OnceLock::new(),
            looks_at_ring: OnceLock::new(),
            newest: OnceLock::new(),
        }
    }

    pub fn looks_at_ring(&self) -> bool {
        *self.looks_at_ring.get_or_init(|| self.layers.look_at_ring())
    }

    /// The index of the last commit that changed a layer.
    pub fn newest(&self, snapshot: &Snapshot) -> Option<usize> {
        *self.newest.get_or_init(|| snapshot.history.newest(self.layers.folders()))
    }

    pub fn values(&self, job: &Job<'_>) -> Result<&Map<String, Value>, Vec<Diagnostic>> {
        let merged = self.values.get_or_init(|| values::of_layers(job, &self.layers));
        merged.as_ref().map_err(|mistakes| job.rescoped(mistakes))
    }

    pub fn patches(&self, job: &Job<'_>) -> Result<&Patches, Vec<Diagnostic>> {
        let read = self.patches.get_or_init(|| patches::of_layers(job, &self.layers));
        read.as_ref().map_err(|mistakes| job.rescoped(mistakes))
    }

    pub fn templates(&self, job: &Job<'_>) -> &Templates {
        self.templates.get_or_init(|| Templates::new(job, &[self.layers.chains()]))
    }
}

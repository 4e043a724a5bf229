//! Reads layers once for all targets with the same ones, and keeps their merged values, patches and templates.

use std::collections::{BTreeMap, HashMap};
use std::fmt::Write as _;
use std::sync::{Arc, OnceLock};

use parking_lot::Mutex;
use serde_json::{Map, Value};

use super::app_layer_names::AppLayerNames;
use super::cluster_layers::{self, ClusterLayer};
use super::layer_values;
use super::layers;
use super::patches::{self, Patches};
use super::render_job::RenderJob;
use super::template_layers::TemplateLayers;
use super::templates::Templates;
use crate::model::{AppSpec, ClusterName, Diagnostic, Digest, Snapshot};

/// The layers of a target with their merged values, patches and templates.
#[derive(Debug)]
pub struct LayerStack {
    pub layers: TemplateLayers,
    /// Digest of the paths and contents of their files.
    pub digest: Digest,
    values: OnceLock<Result<Map<String, Value>, Vec<Diagnostic>>>,
    patches: OnceLock<Result<Patches, Vec<Diagnostic>>>,
    templates: OnceLock<Templates>,
    uses_ring: OnceLock<bool>,
    newest_commit: OnceLock<Option<usize>>,
}

/// All stacks of a revision, each built on first use.
#[derive(Debug, Default)]
pub struct LayerStacks {
    cluster_layers: OnceLock<Result<Vec<ClusterLayer>, Vec<Diagnostic>>>,
    by_folders: Mutex<HashMap<Vec<String>, Arc<LayerStack>>>,
    by_layer_names: Mutex<HashMap<AppLayerNames, BTreeMap<ClusterName, Arc<LayerStack>>>>,
}

impl LayerStacks {
    /// The stack of a target. Mistakes are not kept: each target reports them anew.
    pub fn stack_of(&self, job: &RenderJob<'_>) -> Result<Arc<LayerStack>, Vec<Diagnostic>> {
        if let AppSpec::Project(_) = job.app.spec {
            return Ok(Arc::new(LayerStack::of(TemplateLayers::empty())));
        }
        let own = job.inputs.own_layer.clone();
        if own.is_none()
            && let Some(known) = self
                .by_layer_names
                .lock()
                .get(&job.inputs.layer_names)
                .and_then(|of| of.get(&job.target.cluster))
        {
            return Ok(Arc::clone(known));
        }
        let selected = cluster_layers::select(job, self.cluster_layers(job)?);
        let folders = layers::folders(&job.inputs.layer_names, &selected, own.as_deref());
        let known = self.by_folders.lock().get(&folders).cloned();
        let stack = match known {
            Some(stack) => stack,
            None => {
                let stack = Arc::new(LayerStack::of(layers::read(job, &folders, &selected)?));
                cluster_layers::check_ties(job, &selected.layers, &stack.layers)?;
                self.by_folders.lock().insert(folders, Arc::clone(&stack));
                stack
            }
        };
        if own.is_none() {
            let mut by_shape = self.by_layer_names.lock();
            let of_shape = by_shape.entry(job.inputs.layer_names.clone()).or_default();
            of_shape.insert(job.target.cluster.clone(), Arc::clone(&stack));
        }
        Ok(stack)
    }

    fn cluster_layers(&self, job: &RenderJob<'_>) -> Result<&[ClusterLayer], Vec<Diagnostic>> {
        let read = self.cluster_layers.get_or_init(|| cluster_layers::read_all(job));
        read.as_deref().map_err(|mistakes| job.rescoped(mistakes))
    }
}

impl LayerStack {
    fn of(layers: TemplateLayers) -> Self {
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
            digest: id,
            values: OnceLock::new(),
            patches: OnceLock::new(),
            templates: OnceLock::new(),
            uses_ring: OnceLock::new(),
            newest_commit: OnceLock::new(),
        }
    }

    pub fn uses_ring(&self) -> bool {
        *self.uses_ring.get_or_init(|| self.layers.uses_ring())
    }

    /// The index of the last commit that changed a layer.
    pub fn newest_commit(&self, snapshot: &Snapshot) -> Option<usize> {
        *self.newest_commit.get_or_init(|| snapshot.history.newest(self.layers.folders()))
    }

    pub fn values(&self, job: &RenderJob<'_>) -> Result<&Map<String, Value>, Vec<Diagnostic>> {
        let merged = self.values.get_or_init(|| layer_values::values_of_layers(job, &self.layers));
        merged.as_ref().map_err(|mistakes| job.rescoped(mistakes))
    }

    pub fn patches(&self, job: &RenderJob<'_>) -> Result<&Patches, Vec<Diagnostic>> {
        let read = self.patches.get_or_init(|| patches::patches_of_layers(job, &self.layers));
        read.as_ref().map_err(|mistakes| job.rescoped(mistakes))
    }

    pub fn templates(&self, job: &RenderJob<'_>) -> &Templates {
        self.templates.get_or_init(|| Templates::new(job, &[self.layers.chains()]))
    }
}

//! The layers of a target with their files.

use std::collections::BTreeMap;

use super::engine;
use super::layer_chart_scope::LayerChartScope;
use super::layer_source::LayerSource;

/// One layer, for example `language/python`.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateLayer {
    /// With a final `/`.
    pub folder: String,
    pub values: Option<LayerSource>,
    /// By file name, lowest source first. A shipped file stays beside its replacement, which can extend it.
    pub templates: BTreeMap<String, Vec<LayerSource>>,
    /// By file name.
    pub patches: Vec<LayerSource>,
    /// The charts that its values reach.
    pub charts: LayerChartScope,
}

/// The layers of a target, lowest first.
#[derive(Clone, Debug, PartialEq)]
pub struct TemplateLayers {
    pub list: Vec<TemplateLayer>,
    pub selected_by_ring: bool,
}

impl TemplateLayer {
    pub fn sources(&self) -> impl Iterator<Item = &LayerSource> {
        self.values.iter().chain(self.templates.values().flatten()).chain(&self.patches)
    }
}

impl TemplateLayers {
    pub fn empty() -> Self {
        Self { list: Vec::new(), selected_by_ring: false }
    }

    pub fn folders(&self) -> impl Iterator<Item = &str> {
        self.list.iter().map(|layer| layer.folder.as_str())
    }

    pub fn of_folder(&self, folder: &str) -> Option<&TemplateLayer> {
        self.list.iter().find(|layer| layer.folder == folder)
    }

    /// All templates by name, lowest first.
    pub fn chains(&self) -> BTreeMap<&str, Vec<&LayerSource>> {
        let mut chains: BTreeMap<&str, Vec<&LayerSource>> = BTreeMap::new();
        for layer in &self.list {
            for (name, sources) in &layer.templates {
                chains.entry(name).or_default().extend(sources);
            }
        }
        chains
    }

    /// Whether a selector or a template reads the ring of the cluster.
    pub fn uses_ring(&self) -> bool {
        let mut sources = self.list.iter().flat_map(|layer| layer.templates.values().flatten());
        self.selected_by_ring || sources.any(|source| engine::reads_variable(&source.text, "ring"))
    }
}

//! Renders templates inside a worker process, with the same engine and recording as the main process. `worker` calls it for
//! each request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Error;

use super::cluster_facts::SharedCapabilities;
pub use super::engine::ReportLine;
use super::engine::{Engine, InvalidTemplate, TemplateMode};
use super::layer_source::LayerSource;
use super::template_context;
use super::templates::{
    RenderAnswer, WorkerRenderRequest, WorkerTemplateGroup, build_engines, entry_templates,
};

/// Compiled templates and capabilities, by digest.
#[derive(Debug, Default)]
pub struct WorkerTemplates {
    templates: BTreeMap<String, CompiledTemplates>,
    capabilities: BTreeMap<String, Arc<SharedCapabilities>>,
}

/// A text that the worker keeps, with its digest.
#[derive(Clone, Copy, Debug)]
pub struct DigestedText<'a> {
    pub digest: &'a str,
    pub text: &'a str,
}

#[derive(Debug)]
struct CompiledTemplates {
    engines: Vec<Result<Engine, Vec<InvalidTemplate>>>,
    /// The paths that each group renders.
    entry_paths: Vec<Vec<String>>,
}

impl WorkerTemplates {
    /// `report` receives each line before it runs. An error means an invalid request.
    pub fn render(
        &mut self,
        templates: DigestedText<'_>,
        capabilities: DigestedText<'_>,
        body: &str,
        report: Option<ReportLine>,
    ) -> Result<String, Error> {
        let WorkerRenderRequest { variables, facts, first_mark } = serde_json::from_str(body)?;
        let notebook = facts.into_recorder(self.capabilities(capabilities)?);
        let mode = TemplateMode { marks: first_mark, lines: report.map(|report| (0, report)) };
        let made;
        let ready = if mode.is_plain() {
            self.compiled_templates(templates)?
        } else {
            made = CompiledTemplates::new(templates.text, mode)?;
            &made
        };
        let variables = template_context::variables_in_worker(variables, notebook.clone());
        let groups = ready.engines.iter().zip(&ready.entry_paths).map(|(engine, paths)| match engine {
            Ok(engine) => {
                let result = |path: &String| {
                    let result = engine.render(path, variables.clone());
                    // Instrumentation keeps lines and shifts columns.
                    result
                        .map_err(|error| if mode.is_plain() { error } else { Box::new(error.without_text()) })
                };
                Ok(paths.iter().map(result).collect())
            }
            Err(unread) => Err(unread.clone()),
        });
        let groups = groups.collect();
        serde_json::to_string(&RenderAnswer { groups, asked: notebook.question_set() })
    }

    fn capabilities(&mut self, told: DigestedText<'_>) -> Result<Arc<SharedCapabilities>, Error> {
        if let Some(known) = self.capabilities.get(told.digest) {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(SharedCapabilities::read(told.text)?);
        self.capabilities.insert(told.digest.to_owned(), Arc::clone(&read));
        Ok(read)
    }

    fn compiled_templates(&mut self, told: DigestedText<'_>) -> Result<&CompiledTemplates, Error> {
        use std::collections::btree_map::Entry;
        Ok(match self.templates.entry(told.digest.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(CompiledTemplates::new(told.text, TemplateMode::default())?),
        })
    }
}

impl CompiledTemplates {
    fn new(templates: &str, mode: TemplateMode) -> Result<Self, Error> {
        let told: Vec<WorkerTemplateGroup> = serde_json::from_str(templates)?;
        let source = |(path, text): (String, String)| LayerSource {
            path,
            blob: "".into(),
            text: text.into(),
            is_shipped: false,
        };
        let chain = |files: Vec<(String, String)>| files.into_iter().map(source).collect();
        let group = |group: WorkerTemplateGroup| {
            group.into_iter().map(|(name, files)| (name, chain(files))).collect()
        };
        let groups: Vec<BTreeMap<String, Vec<LayerSource>>> = told.into_iter().map(group).collect();
        let groups: Vec<BTreeMap<&str, Vec<&LayerSource>>> = groups.iter().map(borrowed).collect();
        let paths =
            groups.iter().map(|group| entry_templates(group).map(|source| source.path.clone()).collect());
        let rendered = paths.collect();
        Ok(Self { engines: build_engines(&groups, mode), entry_paths: rendered })
    }
}

fn borrowed(group: &BTreeMap<String, Vec<LayerSource>>) -> BTreeMap<&str, Vec<&LayerSource>> {
    group.iter().map(|(name, chain)| (name.as_str(), chain.iter().collect())).collect()
}

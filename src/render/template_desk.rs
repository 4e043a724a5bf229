//! Renders templates inside a worker process, with the same engine and recording as the main process. `worker` calls it for
//! each request.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::Error;

use super::context;
pub use super::engine::ReportLine;
use super::engine::{Engine, Mode, Unread};
use super::layers::Source;
use super::site::ToldCapabilities;
use super::templates::{RenderAnswer, ToldGroup, ToldRender, engines, rendered};

/// Compiled templates and capabilities, by digest.
#[derive(Debug, Default)]
pub struct TemplateDesk {
    templates: BTreeMap<String, Ready>,
    capabilities: BTreeMap<String, Arc<ToldCapabilities>>,
}

/// A text that the worker keeps, with its digest.
#[derive(Clone, Copy, Debug)]
pub struct Told<'a> {
    pub digest: &'a str,
    pub text: &'a str,
}

#[derive(Debug)]
struct Ready {
    engines: Vec<Result<Engine, Vec<Unread>>>,
    /// The paths that each group renders.
    rendered: Vec<Vec<String>>,
}

impl TemplateDesk {
    /// `report` receives each line before it runs. An error means an invalid request.
    pub fn render(
        &mut self,
        templates: Told<'_>,
        capabilities: Told<'_>,
        body: &str,
        report: Option<ReportLine>,
    ) -> Result<String, Error> {
        let ToldRender { variables, facts, first_mark } = serde_json::from_str(body)?;
        let notebook = facts.with(self.capabilities(capabilities)?);
        let mode = Mode { marks: first_mark, lines: report.map(|report| (0, report)) };
        let made;
        let ready = if mode.is_plain() {
            self.ready(templates)?
        } else {
            made = Ready::new(templates.text, mode)?;
            &made
        };
        let variables = context::read(variables, notebook.clone());
        let groups = ready.engines.iter().zip(&ready.rendered).map(|(engine, paths)| match engine {
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
        serde_json::to_string(&RenderAnswer { groups, asked: notebook.asked() })
    }

    fn capabilities(&mut self, told: Told<'_>) -> Result<Arc<ToldCapabilities>, Error> {
        if let Some(known) = self.capabilities.get(told.digest) {
            return Ok(Arc::clone(known));
        }
        let read = Arc::new(ToldCapabilities::read(told.text)?);
        self.capabilities.insert(told.digest.to_owned(), Arc::clone(&read));
        Ok(read)
    }

    fn ready(&mut self, told: Told<'_>) -> Result<&Ready, Error> {
        use std::collections::btree_map::Entry;
        Ok(match self.templates.entry(told.digest.to_owned()) {
            Entry::Occupied(known) => known.into_mut(),
            Entry::Vacant(place) => place.insert(Ready::new(told.text, Mode::default())?),
        })
    }
}

impl Ready {
    fn new(templates: &str, mode: Mode) -> Result<Self, Error> {
        let told: Vec<ToldGroup> = serde_json::from_str(templates)?;
        let source = |(path, text): (String, String)| Source {
            path,
            blob: "".into(),
            text: text.into(),
            is_shipped: false,
        };
        let chain = |files: Vec<(String, String)>| files.into_iter().map(source).collect();
        let group = |group: ToldGroup| group.into_iter().map(|(name, files)| (name, chain(files))).collect();
        let groups: Vec<BTreeMap<String, Vec<Source>>> = told.into_iter().map(group).collect();
        let groups: Vec<BTreeMap<&str, Vec<&Source>>> = groups.iter().map(borrowed).collect();
        let paths = groups.iter().map(|group| rendered(group).map(|source| source.path.clone()).collect());
        let rendered = paths.collect();
        Ok(Self { engines: engines(&groups, mode), rendered })
    }
}

fn borrowed(group: &BTreeMap<String, Vec<Source>>) -> BTreeMap<&str, Vec<&Source>> {
    group.iter().map(|(name, chain)| (name.as_str(), chain.iter().collect())).collect()
}

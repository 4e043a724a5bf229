//! Renders charts in a pool of child processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::Instant;

use parking_lot::Mutex;

use super::child::{RendererChild, RendererChildEnd};
use super::program::{RENDERER_PROGRAM, RENDERER_VARIABLE, RendererProgram};
use super::protocol::{self, HelmRenderAnswer};
use super::render_limits::{ChartRenderLimits, timeout_failure};
use super::{MIB, helm_messages, helm_template, output, render_results, values_schema};
use crate::child::{ChildPool, PoolSlot};
use crate::model::{
    ChartFailure, ChartFailureKind, ChartObject, ChartOutput, ChartRequest, RenderWait, TemplateWorkers,
};

/// Bounds of the kept definitions, in bytes of memory and in charts; over them all are dropped.
const MOST_BYTES: usize = 128 * MIB;
const MOST_DEFINITIONS: usize = 64;

/// Shared by threads: each call takes its own child, and waits while all are busy.
#[derive(Debug)]
pub struct ChartRenderer {
    program: RendererProgram,
    limits: ChartRenderLimits,
    children: ChildPool<RendererChild>,
    workers: Option<Arc<dyn TemplateWorkers>>,
    /// By chart key.
    definitions: Mutex<BTreeMap<String, ChartDefinitions>>,
}

/// The definitions of a chart, with their size in bytes.
#[derive(Debug)]
struct ChartDefinitions {
    objects: Arc<[ChartObject]>,
    bytes: usize,
}

impl ChartRenderer {
    pub fn new(program: RendererProgram, limits: ChartRenderLimits) -> Self {
        let children = ChildPool::new(limits.children);
        Self { program, children, workers: None, limits, definitions: Mutex::default() }
    }

    /// Workers check values against schemas. Without workers this process does, without limits.
    pub fn with_workers(self, workers: Arc<dyn TemplateWorkers>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    pub fn workers(&self) -> Option<&dyn TemplateWorkers> {
        self.workers.as_deref()
    }

    pub fn program(&self) -> &RendererProgram {
        &self.program
    }

    pub fn limits(&self) -> &ChartRenderLimits {
        &self.limits
    }

    /// Blocks, up to the limits.
    pub fn render(&self, request: &ChartRequest) -> Result<ChartOutput, ChartFailure> {
        self.render_within(request, RenderWait::UNLIMITED)
    }

    /// Blocks, up to the limits and `wait`.
    pub fn render_within(
        &self,
        request: &ChartRequest,
        wait: RenderWait<'_>,
    ) -> Result<ChartOutput, ChartFailure> {
        self.check_size(request)?;
        match &self.program {
            RendererProgram::HelmRender(program) => self.render_in_child(program, request, wait),
            RendererProgram::Helm(helm) => {
                values_schema::refuse_outside_references(&request.chart)?;
                let _place = self.children.acquire();
                helm_template::render(helm, request, &self.limits)
            }
            RendererProgram::Missing(why) => Err(no_renderer_failure(why.as_deref())),
        }
    }

    fn check_size(&self, request: &ChartRequest) -> Result<(), ChartFailure> {
        let size: usize = request.values.iter().map(json_size).sum();
        if size <= self.limits.values {
            return Ok(());
        }
        let limit = self.limits.values;
        let message = format!("the values have about {size} bytes, more than the limit of {limit}");
        Err(ChartFailure::new(ChartFailureKind::Limit, message))
    }

    fn render_in_child(
        &self,
        program: &Path,
        request: &ChartRequest,
        wait: RenderWait<'_>,
    ) -> Result<ChartOutput, ChartFailure> {
        let mut place = self.children.acquire();
        let fresh = place.child.is_none();
        let name = protocol::chart_key(&request.chart);
        let definitions = self.definitions.lock().get(&name).map(|known| Arc::clone(&known.objects));
        let is_hurried = || wait.time < self.limits.deadline || !(wait.is_wanted)();
        let explain = |ended| match ended {
            RendererChildEnd::Late if is_hurried() => {
                ChartFailure::new(ChartFailureKind::Awaited, format!("{} is being rendered", request.release))
            }
            ended => self.child_end_failure(ended, program),
        };
        let (begun, time) = (Instant::now(), wait.time.min(self.limits.deadline));
        // All parts of a render share its time.
        let rest = || RenderWait { time: time.saturating_sub(begun.elapsed()), ..wait };
        let ask = |place: &mut PoolSlot<'_, RendererChild>| {
            let known = definitions.is_some();
            self.with_child(place, program, |child| child.ask(request, known, &self.limits, rest()))
        };
        let mut answer = ask(&mut place);
        // An idle child may have been ended from outside.
        if !fresh && matches!(answer, Err(RendererChildEnd::Died(ref words)) if words.trim().is_empty()) {
            answer = ask(&mut place);
        }
        let answer = answer.map_err(explain)?;
        // Checked first: an invalid value may have caused the template failure.
        if let Some(schemas) = &answer.schemas {
            let checked = values_schema::check(schemas.get(), self.workers(), rest());
            checked.map_err(|failure| match failure.fault {
                // A longer turn would not help.
                ChartFailureKind::Awaited if !is_hurried() => timeout_failure(self.limits.deadline),
                _ => failure,
            })?;
        }
        if let Some(failure) = answer.error {
            return Err(helm_messages::failure_of_helm(&answer.name, &failure));
        }
        let alone = answer.definitions_alone;
        let mut objects = definitions.filter(|_| alone).map_or_else(Vec::new, |known| known.to_vec());
        objects.extend(output::objects(&answer.name, answer.objects, |texts| {
            self.with_child(&mut place, program, |child| child.read_texts(texts, rest())).map_err(explain)
        })?);
        drop(place);
        if alone {
            self.keep_definitions(name, &objects);
        }
        Ok(ChartOutput { objects, notes: answer.notes })
    }

    /// Keeps definitions that do not depend on values.
    fn keep_definitions(&self, name: String, objects: &[ChartObject]) {
        let mut kept = self.definitions.lock();
        if !kept.contains_key(&name) {
            let objects: Arc<[ChartObject]> =
                objects.iter().filter(|object| object.definition).cloned().collect();
            let bytes = render_results::bytes_of(&objects);
            if bytes > MOST_BYTES {
                return;
            }
            let of_others: usize = kept.values().map(|known| known.bytes).sum();
            if kept.len() >= MOST_DEFINITIONS || of_others + bytes > MOST_BYTES {
                kept.clear();
            }
            kept.insert(name, ChartDefinitions { objects, bytes });
        }
    }

    /// A failed child does not return to the pool.
    fn with_child(
        &self,
        place: &mut PoolSlot<'_, RendererChild>,
        program: &Path,
        ask: impl FnOnce(&mut RendererChild) -> Result<HelmRenderAnswer, RendererChildEnd>,
    ) -> Result<HelmRenderAnswer, RendererChildEnd> {
        let mut child = match place.child.take() {
            Some(child) => child,
            None => RendererChild::start(program, &self.limits)?,
        };
        let answer = ask(&mut child)?;
        place.child = Some(child);
        Ok(answer)
    }

    fn child_end_failure(&self, ended: RendererChildEnd, program: &Path) -> ChartFailure {
        match ended {
            RendererChildEnd::Late => timeout_failure(self.limits.deadline),
            RendererChildEnd::TooMuch => {
                let limit = self.limits.answer;
                ChartFailure::new(ChartFailureKind::Limit, format!("the chart makes more than {limit} bytes"))
            }
            RendererChildEnd::Died(words)
                if helm_messages::is_out_of_memory(&words) || words.trim().is_empty() =>
            {
                let limit = self.limits.memory / (1024 * 1024);
                let message =
                    format!("the chart takes more than the {limit} MiB of memory that a render may have");
                ChartFailure::new(ChartFailureKind::Limit, message)
                    .help("look for a loop, a recursion or a text that doubles itself")
            }
            RendererChildEnd::Died(words) if helm_messages::is_out_of_stack(&words) => ChartFailure::new(
                ChartFailureKind::Limit,
                "the chart's templates call themselves without end",
            ),
            RendererChildEnd::Died(words) => {
                let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                ChartFailure::new(ChartFailureKind::Renderer, format!("the renderer ended: {first}"))
            }
            RendererChildEnd::NotStarted(error) => {
                let message = format!("failed to start {}: {error}", program.display());
                ChartFailure::new(ChartFailureKind::Renderer, message)
            }
        }
    }
}

fn no_renderer_failure(why: Option<&str>) -> ChartFailure {
    let message = why.map_or_else(|| "no renderer for Helm charts was found".to_owned(), str::to_owned);
    let help = format!(
        "build it with `cargo xtask helm-render` (needs Go), put `{RENDERER_PROGRAM}` beside tutti or on PATH, name it in \
         {RENDERER_VARIABLE}, or install helm 4"
    );
    ChartFailure::new(ChartFailureKind::NoRenderer, message).help(help)
}

/// The approximate size as JSON.
fn json_size(map: &serde_json::Map<String, serde_json::Value>) -> usize {
    use serde_json::Value;
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(of).sum::<usize>() + items.len() + 2,
            Value::Object(map) => json_size(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        }
    }
    map.iter().map(|(key, value)| key.len() + 4 + of(value)).sum::<usize>() + 2
}

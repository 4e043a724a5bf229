//! Renders charts in a pool of child processes.

use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant};

use parking_lot::Mutex;

use super::child::{Child, Ended};
use super::program::{Found, PROGRAM, VARIABLE};
use super::protocol::{self, Answer};
use super::{MIB, fallback, output, results, schema, words};
use crate::child::{Place, Pool};
use crate::model::{ChartFailure, ChartFault, ChartObject, ChartOutput, ChartRequest, TemplateWorkers, Wait};

/// Bounds of the kept definitions, in bytes of memory and in charts; over them all are dropped.
const MOST_BYTES: usize = 128 * MIB;
const MOST_DEFINITIONS: usize = 64;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Limits {
    pub deadline: Duration,
    /// Bytes of one child.
    pub memory: u64,
    /// Bytes of one answer.
    pub answer: usize,
    /// Bytes of the values of one request.
    pub values: usize,
    /// Parallel renders.
    pub children: usize,
}

impl Default for Limits {
    fn default() -> Self {
        Self {
            deadline: Duration::from_secs(30),
            memory: 1024 * 1024 * 1024,
            answer: 64 * 1024 * 1024,
            values: 4 * 1024 * 1024,
            children: std::thread::available_parallelism().map_or(2, usize::from),
        }
    }
}

/// Shared by threads: each call takes its own child, and waits while all are busy.
#[derive(Debug)]
pub struct Renderer {
    program: Found,
    limits: Limits,
    children: Pool<Child>,
    workers: Option<Arc<dyn TemplateWorkers>>,
    /// By chart key.
    definitions: Mutex<BTreeMap<String, Definitions>>,
}

/// The definitions of a chart, with their size in bytes.
#[derive(Debug)]
struct Definitions {
    objects: Arc<[ChartObject]>,
    bytes: usize,
}

impl Renderer {
    pub fn new(program: Found, limits: Limits) -> Self {
        let children = Pool::new(limits.children);
        Self { program, children, workers: None, limits, definitions: Mutex::default() }
    }

    /// Workers check values against schemas. Without workers this process does, without limits.
    pub fn with_workers(self, workers: Arc<dyn TemplateWorkers>) -> Self {
        Self { workers: Some(workers), ..self }
    }

    pub fn workers(&self) -> Option<&dyn TemplateWorkers> {
        self.workers.as_deref()
    }

    pub fn program(&self) -> &Found {
        &self.program
    }

    pub fn limits(&self) -> &Limits {
        &self.limits
    }

    /// Blocks, up to the limits.
    pub fn render(&self, request: &ChartRequest) -> Result<ChartOutput, ChartFailure> {
        self.render_within(request, Wait::TO_THE_END)
    }

    /// Blocks, up to the limits and `wait`.
    pub fn render_within(&self, request: &ChartRequest, wait: Wait<'_>) -> Result<ChartOutput, ChartFailure> {
        self.check_size(request)?;
        match &self.program {
            Found::Engine(program) => self.by_engine(program, request, wait),
            Found::Command(helm) => {
                schema::only_own_references(&request.chart)?;
                let _place = self.children.place();
                fallback::render(helm, request, &self.limits)
            }
            Found::Nothing(why) => Err(nothing(why.as_deref())),
        }
    }

    fn check_size(&self, request: &ChartRequest) -> Result<(), ChartFailure> {
        let size: usize = request.values.iter().map(size_of).sum();
        if size <= self.limits.values {
            return Ok(());
        }
        let limit = self.limits.values;
        let message = format!("the values have about {size} bytes, more than the limit of {limit}");
        Err(ChartFailure::new(ChartFault::Limit, message))
    }

    fn by_engine(
        &self,
        program: &Path,
        request: &ChartRequest,
        wait: Wait<'_>,
    ) -> Result<ChartOutput, ChartFailure> {
        let mut place = self.children.place();
        let fresh = place.child.is_none();
        let name = protocol::name_of(&request.chart);
        let definitions = self.definitions.lock().get(&name).map(|known| Arc::clone(&known.objects));
        let is_hurried = || wait.time < self.limits.deadline || !(wait.goes_on)();
        let explain = |ended| match ended {
            Ended::Late if is_hurried() => {
                ChartFailure::new(ChartFault::Awaited, format!("{} is being rendered", request.release))
            }
            ended => self.explain(ended, program),
        };
        let (begun, time) = (Instant::now(), wait.time.min(self.limits.deadline));
        // All parts of a render share its time.
        let rest = || Wait { time: time.saturating_sub(begun.elapsed()), ..wait };
        let ask = |place: &mut Place<'_, Child>| {
            let known = definitions.is_some();
            self.with_child(place, program, |child| child.ask(request, known, &self.limits, rest()))
        };
        let mut answer = ask(&mut place);
        // An idle child may have been ended from outside.
        if !fresh && matches!(answer, Err(Ended::Died(ref words)) if words.trim().is_empty()) {
            answer = ask(&mut place);
        }
        let answer = answer.map_err(explain)?;
        // Checked first: an invalid value may have caused the template failure.
        if let Some(schemas) = &answer.schemas {
            schema::check(schemas.get(), self.workers(), rest())?;
        }
        if let Some(failure) = answer.error {
            return Err(words::failure(&answer.name, &failure));
        }
        let alone = answer.definitions_alone;
        let mut objects = definitions.filter(|_| alone).map_or_else(Vec::new, |known| known.to_vec());
        objects.extend(output::objects(&answer.name, answer.objects, |texts| {
            self.with_child(&mut place, program, |child| child.understand(texts, rest())).map_err(explain)
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
            let bytes = results::bytes_of(&objects);
            if bytes > MOST_BYTES {
                return;
            }
            let of_others: usize = kept.values().map(|known| known.bytes).sum();
            if kept.len() >= MOST_DEFINITIONS || of_others + bytes > MOST_BYTES {
                kept.clear();
            }
            kept.insert(name, Definitions { objects, bytes });
        }
    }

    /// A failed child does not return to the pool.
    fn with_child(
        &self,
        place: &mut Place<'_, Child>,
        program: &Path,
        ask: impl FnOnce(&mut Child) -> Result<Answer, Ended>,
    ) -> Result<Answer, Ended> {
        let mut child = match place.child.take() {
            Some(child) => child,
            None => Child::start(program, &self.limits)?,
        };
        let answer = ask(&mut child)?;
        place.child = Some(child);
        Ok(answer)
    }

    fn explain(&self, ended: Ended, program: &Path) -> ChartFailure {
        match ended {
            Ended::Late => late(self.limits.deadline),
            Ended::TooMuch => {
                let limit = self.limits.answer;
                ChartFailure::new(ChartFault::Limit, format!("the chart makes more than {limit} bytes"))
            }
            Ended::Died(words) if words::is_out_of_memory(&words) || words.trim().is_empty() => {
                let limit = self.limits.memory / (1024 * 1024);
                let message =
                    format!("the chart takes more than the {limit} MiB of memory that a render may have");
                ChartFailure::new(ChartFault::Limit, message)
                    .help("look for a loop, a recursion or a text that doubles itself")
            }
            Ended::Died(words) if words::is_out_of_stack(&words) => {
                ChartFailure::new(ChartFault::Limit, "the chart's templates call themselves without end")
            }
            Ended::Died(words) => {
                let first = words.lines().find(|line| !line.trim().is_empty()).unwrap_or_default();
                ChartFailure::new(ChartFault::Renderer, format!("the renderer ended: {first}"))
            }
            Ended::NotStarted(error) => {
                let message = format!("failed to start {}: {error}", program.display());
                ChartFailure::new(ChartFault::Renderer, message)
            }
        }
    }
}

pub fn late(deadline: Duration) -> ChartFailure {
    let seconds = deadline.as_secs_f64();
    ChartFailure::new(ChartFault::Limit, format!("the chart takes longer than {seconds} s"))
        .help("look for a loop over too much, or one within another")
}

fn nothing(why: Option<&str>) -> ChartFailure {
    let message = why.map_or_else(|| "nothing here renders Helm charts".to_owned(), str::to_owned);
    let help = format!(
        "build it with `cargo xtask helm-render` (needs Go), put `{PROGRAM}` beside tutti or on PATH, name it in \
         {VARIABLE}, or install helm 4"
    );
    ChartFailure::new(ChartFault::NoRenderer, message).help(help)
}

/// The approximate size as JSON.
fn size_of(map: &serde_json::Map<String, serde_json::Value>) -> usize {
    use serde_json::Value;
    fn of(value: &Value) -> usize {
        match value {
            Value::String(text) => text.len() + 2,
            Value::Array(items) => items.iter().map(of).sum::<usize>() + items.len() + 2,
            Value::Object(map) => size_of(map),
            Value::Null | Value::Bool(_) | Value::Number(_) => 5,
        }
    }
    map.iter().map(|(key, value)| key.len() + 4 + of(value)).sum::<usize>() + 2
}

//! Renders groups of templates: shipped ones in this process, others in workers, because a template may end its process.
//!
//! A worker receives templates and capabilities once and keeps them. It answers with texts and with the questions about the
//! cluster, which `render::cluster_facts` records. A render that ended its worker is repeated once with tags that report their lines
//! (`trace/line_reports.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::cluster_facts::{QuestionSet, WorkerFacts};
use super::engine::{Engine, InvalidTemplate, TemplateMode};
use super::layer_source::LayerSource;
use super::render_job::RenderJob;
use super::template_context::TemplateContext;
use super::template_error::TemplateError;
use super::template_mistakes;
use crate::model::{
    CachedText, Diagnostic, RenderFailure, RenderFailureCause, TemplateRequest, TemplateWorkers, WorkerTask,
};
use crate::schedule::assign;

/// Templates that can include each other: chains of files by name, lowest first.
type TemplateGroup<'a> = BTreeMap<&'a str, Vec<&'a LayerSource>>;

/// A group in a worker request: path and text of each file.
pub type WorkerTemplateGroup = BTreeMap<String, Vec<(String, String)>>;

#[derive(Debug, Deserialize, Serialize)]
pub struct WorkerRenderRequest {
    pub variables: Map<String, Value>,
    pub facts: WorkerFacts,
    /// Adds marks to templates, numbered from here.
    pub first_mark: Option<usize>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct RenderAnswer {
    pub groups: Vec<GroupResult>,
    /// Questions about the cluster.
    pub asked: QuestionSet,
}

/// The texts of a group by name, or its invalid templates.
pub type GroupResult = Result<Vec<Result<String, Box<TemplateError>>>, Vec<InvalidTemplate>>;

/// The time limit for the templates of one target. Most need less than a hundredth.
const BASE_TIME: Duration = Duration::from_secs(2);
/// Added for each podSet, which renders all templates again.
const TIME_PER_POD_SET: Duration = Duration::from_millis(50);

fn time_limit(job: &RenderJob<'_>) -> Duration {
    let pod_sets = assign(job.app, &job.target.cluster).len();
    BASE_TIME.saturating_add(TIME_PER_POD_SET.saturating_mul(u32::try_from(pod_sets).unwrap_or(u32::MAX)))
}

/// Groups of templates that cannot include each other.
#[derive(Debug)]
pub struct Templates {
    /// The files that each group renders, by name.
    entry_files: Vec<Vec<LayerSource>>,
    /// The paths of all files by number.
    paths: Vec<String>,
    /// The number of the first file that is not shipped.
    first_own: Option<usize>,
    first_mark: Option<usize>,
    backend: TemplateBackend,
}

#[derive(Debug)]
enum TemplateBackend {
    InProcess(Vec<Result<Engine, Vec<InvalidTemplate>>>),
    Workers(CachedText),
}

impl Templates {
    pub fn new(job: &RenderJob<'_>, groups: &[TemplateGroup<'_>]) -> Self {
        let sources = || groups.iter().flat_map(BTreeMap::values).flatten();
        let paths: Vec<String> = sources().map(|source| source.path.clone()).collect();
        let first_mark = job
            .trace
            .filter(|notes| notes.marked)
            .map(|notes| notes.number_templates(paths.iter().map(String::as_str)));
        let own = sources().position(|source| !source.is_shipped);
        let by = if own.is_none() || job.charts.template_workers().is_none() {
            TemplateBackend::InProcess(build_engines(groups, TemplateMode { marks: first_mark, lines: None }))
        } else {
            TemplateBackend::Workers(CachedText::new(groups_for_worker(groups)))
        };
        let rendered = groups.iter().map(|group| entry_templates(group).cloned().collect()).collect();
        Self { entry_files: rendered, paths, first_own: own, first_mark, backend: by }
    }

    /// The texts with their files, and the mistakes.
    pub fn render<'s>(
        &'s self,
        job: &RenderJob<'_>,
        context: &TemplateContext<'_>,
    ) -> (Vec<(&'s LayerSource, String)>, Vec<Diagnostic>) {
        let answered = match &self.backend {
            TemplateBackend::InProcess(engines) => {
                let variables = context.variables();
                let groups = engines.iter().zip(&self.entry_files).map(|(engine, files)| match engine {
                    Ok(engine) => {
                        Ok(files.iter().map(|file| engine.render(&file.path, variables.clone())).collect())
                    }
                    Err(unread) => Err(unread.clone()),
                });
                Ok(groups.collect())
            }
            TemplateBackend::Workers(templates) => match job.charts.template_workers() {
                Some(workers) => self.ask_worker(job, context, templates, workers),
                None => Err(worker_crash("the template workers have stopped".to_owned())),
            },
        };
        let groups: Vec<GroupResult> = match answered {
            Ok(groups) => groups,
            Err(end) => return (Vec::new(), vec![self.worker_end(job, &end)]),
        };
        let (mut texts, mut wrong) = (Vec::new(), Vec::new());
        for (files, group) in self.entry_files.iter().zip(groups) {
            match group {
                Ok(results) => {
                    for (file, result) in files.iter().zip(results) {
                        match result {
                            Ok(text) => texts.push((file, text)),
                            Err(error) => {
                                wrong.push(template_mistakes::template_mistake(job, &error, &|| {
                                    context.to_json()
                                }));
                            }
                        }
                    }
                }
                Err(unread) => {
                    wrong.extend(unread.iter().map(|unread| template_mistakes::invalid_template(job, unread)))
                }
            }
        }
        (texts, wrong)
    }

    fn ask_worker(
        &self,
        job: &RenderJob<'_>,
        context: &TemplateContext<'_>,
        templates: &CachedText,
        workers: &dyn TemplateWorkers,
    ) -> Result<Vec<GroupResult>, RenderFailure> {
        let failed = |error: serde_json::Error| worker_crash(error.to_string());
        let (facts, capabilities) = job.cluster.worker_facts();
        let told =
            WorkerRenderRequest { variables: context.worker_variables(), facts, first_mark: self.first_mark };
        let body = serde_json::to_string(&told).map_err(failed)?;
        let time = job.time_left.get().unwrap_or_else(|| time_limit(job));
        // Without this check each podSet would start another request.
        if time.is_zero() {
            return Err(RenderFailure { cause: RenderFailureCause::Time, place: None });
        }
        let request = TemplateRequest {
            task: WorkerTask::RenderTemplates,
            cached: &[templates, capabilities],
            body,
            time,
        };
        let answer = job.time_slice.run_part(|wait| workers.run_task(&request, wait));
        // A render over its limit leaves no time for the next podSet.
        let took = answer.as_ref().map_or(time, |answer| answer.took);
        job.time_left.set(Some(time.saturating_sub(took)));
        let RenderAnswer { groups, asked } = serde_json::from_slice(&answer?.body).map_err(failed)?;
        job.cluster.record_questions(asked);
        Ok(groups)
    }

    /// At the last reported line, else at the first template of the repository.
    fn worker_end(&self, job: &RenderJob<'_>, end: &RenderFailure) -> Diagnostic {
        let reached = end.place.as_deref().and_then(|place| {
            let (number, line) = place.split_once(':')?;
            Some((self.paths.get(number.parse::<usize>().ok()?)?, line.parse().ok()?))
        });
        let first = || Some((self.paths.get(self.first_own?)?, 1));
        let (file, line) = reached.or_else(first).map_or(("(templates)", 1), |(file, line)| (file, line));
        template_mistakes::worker_end(job, &end.cause, time_limit(job), file, line)
    }
}

fn worker_crash(words: String) -> RenderFailure {
    RenderFailure { cause: RenderFailureCause::Crash(words), place: None }
}

/// The highest file of each name, without parts (`_*.j2`).
pub fn entry_templates<'a>(group: &TemplateGroup<'a>) -> impl Iterator<Item = &'a LayerSource> {
    let whole = group.iter().filter(|(name, _)| !name.starts_with('_'));
    whole.filter_map(|(_, chain)| chain.last().copied())
}

pub fn build_engines(
    groups: &[TemplateGroup<'_>],
    mode: TemplateMode,
) -> Vec<Result<Engine, Vec<InvalidTemplate>>> {
    let mut number = 0;
    let engine = |group: &TemplateGroup<'_>| {
        let mode = TemplateMode {
            marks: mode.marks.map(|first| first + number),
            lines: mode.lines.map(|(first, report)| (first + number, report)),
        };
        number += group.values().map(Vec::len).sum::<usize>();
        Engine::new(group, mode)
    };
    groups.iter().map(engine).collect()
}

fn groups_for_worker(groups: &[TemplateGroup<'_>]) -> String {
    let files =
        |chain: &Vec<&LayerSource>| chain.iter().map(|it| (it.path.clone(), it.text.to_string())).collect();
    let group = |group: &TemplateGroup<'_>| {
        group.iter().map(|(name, chain)| ((*name).to_owned(), files(chain))).collect()
    };
    let told: Vec<WorkerTemplateGroup> = groups.iter().map(group).collect();
    serde_json::json!(told).to_string()
}

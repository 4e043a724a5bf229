//! Renders groups of templates: shipped ones in this process, others in workers, because a template may end its process.
//!
//! A worker receives templates and capabilities once and keeps them. It answers with texts and with the questions about the
//! cluster, which `render::site` records. A render that ended its worker is repeated once with tags that report their lines
//! (`trace/lines.rs`).

use std::collections::BTreeMap;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::context::Context;
use super::engine::{Engine, Mode, Unread};
use super::layers::Source;
use super::site::{Asked, ToldFacts};
use super::template_error::TemplateError;
use super::{Job, mistakes};
use crate::model::{
    Diagnostic, KeptText, RenderEnd, RenderEndCause, TemplateRequest, TemplateWorkers, WorkerTask,
};
use crate::schedule::assign;

/// Templates that can include each other: chains of files by name, lowest first.
type Group<'a> = BTreeMap<&'a str, Vec<&'a Source>>;

/// A group in a worker request: path and text of each file.
pub type ToldGroup = BTreeMap<String, Vec<(String, String)>>;

#[derive(Debug, Deserialize, Serialize)]
pub struct ToldRender {
    pub variables: Map<String, Value>,
    pub facts: ToldFacts,
    /// Adds marks to templates, numbered from here.
    pub first_mark: Option<usize>,
}

#[derive(Debug, Deserialize, Serialize)]
pub struct RenderAnswer {
    pub groups: Vec<GroupResult>,
    /// Questions about the cluster.
    pub asked: Asked,
}

/// The texts of a group by name, or its invalid templates.
pub type GroupResult = Result<Vec<Result<String, Box<TemplateError>>>, Vec<Unread>>;

/// The time limit for the templates of one target. Most need less than a hundredth.
const TIME: Duration = Duration::from_secs(2);
/// Added for each podSet, which renders all templates again.
const TIME_OF_POD_SET: Duration = Duration::from_millis(50);

pub fn time_of(job: &Job<'_>) -> Duration {
    let pod_sets = assign(job.app, &job.target.cluster).len();
    TIME.saturating_add(TIME_OF_POD_SET.saturating_mul(u32::try_from(pod_sets).unwrap_or(u32::MAX)))
}

/// Groups of templates that cannot include each other.
#[derive(Debug)]
pub struct Templates {
    /// The files that each group renders, by name.
    rendered: Vec<Vec<Source>>,
    /// The paths of all files by number.
    paths: Vec<String>,
    /// The number of the first file that is not shipped.
    own: Option<usize>,
    first_mark: Option<usize>,
    by: By,
}

#[derive(Debug)]
enum By {
    Engines(Vec<Result<Engine, Vec<Unread>>>),
    Workers(KeptText),
}

impl Templates {
    pub fn new(job: &Job<'_>, groups: &[Group<'_>]) -> Self {
        let sources = || groups.iter().flat_map(BTreeMap::values).flatten();
        let paths: Vec<String> = sources().map(|source| source.path.clone()).collect();
        let first_mark = job
            .notes
            .filter(|notes| notes.marked)
            .map(|notes| notes.number(paths.iter().map(String::as_str)));
        let own = sources().position(|source| !source.is_shipped);
        let by = if own.is_none() || job.charts.template_workers().is_none() {
            By::Engines(engines(groups, Mode { marks: first_mark, lines: None }))
        } else {
            By::Workers(KeptText::new(told(groups)))
        };
        let rendered = groups.iter().map(|group| rendered(group).cloned().collect()).collect();
        Self { rendered, paths, own, first_mark, by }
    }

    /// The texts with their files, and the mistakes.
    pub fn render<'s>(
        &'s self,
        job: &Job<'_>,
        context: &Context<'_>,
    ) -> (Vec<(&'s Source, String)>, Vec<Diagnostic>) {
        let answered = match &self.by {
            By::Engines(engines) => {
                let variables = context.variables();
                let groups = engines.iter().zip(&self.rendered).map(|(engine, files)| match engine {
                    Ok(engine) => {
                        Ok(files.iter().map(|file| engine.render(&file.path, variables.clone())).collect())
                    }
                    Err(unread) => Err(unread.clone()),
                });
                Ok(groups.collect())
            }
            By::Workers(templates) => match job.charts.template_workers() {
                Some(workers) => self.ask(job, context, templates, workers),
                None => Err(crash("nobody renders templates any more".to_owned())),
            },
        };
        let groups: Vec<GroupResult> = match answered {
            Ok(groups) => groups,
            Err(end) => return (Vec::new(), vec![self.mistake(job, &end)]),
        };
        let (mut texts, mut wrong) = (Vec::new(), Vec::new());
        for (files, group) in self.rendered.iter().zip(groups) {
            match group {
                Ok(results) => {
                    for (file, result) in files.iter().zip(results) {
                        match result {
                            Ok(text) => texts.push((file, text)),
                            Err(error) => {
                                wrong.push(mistakes::of_template(job, &error, &|| context.to_json()));
                            }
                        }
                    }
                }
                Err(unread) => wrong.extend(unread.iter().map(|unread| mistakes::of_unread(job, unread))),
            }
        }
        (texts, wrong)
    }

    fn ask(
        &self,
        job: &Job<'_>,
        context: &Context<'_>,
        templates: &KeptText,
        workers: &dyn TemplateWorkers,
    ) -> Result<Vec<GroupResult>, RenderEnd> {
        let failed = |error: serde_json::Error| crash(error.to_string());
        let (facts, capabilities) = job.site.told();
        let told = ToldRender { variables: context.told(), facts, first_mark: self.first_mark };
        let body = serde_json::to_string(&told).map_err(failed)?;
        let time = job.time_left.get().unwrap_or_else(|| time_of(job));
        // Without this check each podSet would start another request.
        if time.is_zero() {
            return Err(RenderEnd { cause: RenderEndCause::Time, place: None });
        }
        let request = TemplateRequest {
            task: WorkerTask::RenderTemplates,
            kept: &[templates, capabilities],
            body,
            time,
        };
        let answer = job.turn.part(|wait| workers.ask(&request, wait));
        // A render over its limit leaves no time for the next podSet.
        let took = answer.as_ref().map_or(time, |answer| answer.took);
        job.time_left.set(Some(time.saturating_sub(took)));
        let RenderAnswer { groups, asked } = serde_json::from_slice(&answer?.body).map_err(failed)?;
        job.site.note_asked(asked);
        Ok(groups)
    }

    /// At the last reported line, else at the first template of the repository.
    fn mistake(&self, job: &Job<'_>, end: &RenderEnd) -> Diagnostic {
        let reached = end.place.as_deref().and_then(|place| {
            let (number, line) = place.split_once(':')?;
            Some((self.paths.get(number.parse::<usize>().ok()?)?, line.parse().ok()?))
        });
        let first = || Some((self.paths.get(self.own?)?, 1));
        let (file, line) = reached.or_else(first).map_or(("(templates)", 1), |(file, line)| (file, line));
        mistakes::of_end(job, &end.cause, file, line)
    }
}

fn crash(words: String) -> RenderEnd {
    RenderEnd { cause: RenderEndCause::Crash(words), place: None }
}

/// The highest file of each name, without parts (`_*.j2`).
pub fn rendered<'a>(group: &Group<'a>) -> impl Iterator<Item = &'a Source> {
    let whole = group.iter().filter(|(name, _)| !name.starts_with('_'));
    whole.filter_map(|(_, chain)| chain.last().copied())
}

pub fn engines(groups: &[Group<'_>], mode: Mode) -> Vec<Result<Engine, Vec<Unread>>> {
    let mut number = 0;
    let engine = |group: &Group<'_>| {
        let mode = Mode {
            marks: mode.marks.map(|first| first + number),
            lines: mode.lines.map(|(first, report)| (first + number, report)),
        };
        number += group.values().map(Vec::len).sum::<usize>();
        Engine::new(group, mode)
    };
    groups.iter().map(engine).collect()
}

fn told(groups: &[Group<'_>]) -> String {
    let files =
        |chain: &Vec<&Source>| chain.iter().map(|it| (it.path.clone(), it.text.to_string())).collect();
    let group =
        |group: &Group<'_>| group.iter().map(|(name, chain)| ((*name).to_owned(), files(chain))).collect();
    let told: Vec<ToldGroup> = groups.iter().map(group).collect();
    serde_json::json!(told).to_string()
}

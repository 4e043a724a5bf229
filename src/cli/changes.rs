//! `tutti plan --explain`: what is new in the objects that a plan writes, field by field, and where it is written.

use std::collections::BTreeMap;

use serde_json::Value;

use super::process::Process;
use super::repository;
use super::session::{Source, folder};
use crate::chart;
use crate::fleet::{Fleet, Target};
use crate::model::{ObjectId, RenderedObject, Revision, Snapshot};
use crate::render::Renderer;
use crate::render::trace::explain::{ExplainedObject, Field, Written, explain};
use crate::render::trace::reach;
use crate::source::{self, Repository};

/// More fields of one object than this are counted, not listed.
const MOST: usize = 20;

/// The config repository as it is planned.
#[derive(Debug)]
pub struct Changes {
    repository: Option<Repository>,
    now: State,
    /// Of the commits that the live objects were applied from; `None` where one cannot be read any more.
    earlier: BTreeMap<Revision, Option<State>>,
}

#[derive(Debug)]
struct State {
    snapshot: Snapshot,
    fleet: Fleet,
    charts: chart::Service,
}

impl State {
    async fn of(mut snapshot: Snapshot, process: &Process) -> Self {
        snapshot.keys = process.keys.clone();
        let fleet = repository::fleet(&snapshot);
        let charts = repository::charts(&fleet).await;
        Self { snapshot, fleet, charts }
    }

    fn object(&self, target: &Target, id: &ObjectId) -> Option<RenderedObject> {
        let rendered = Renderer::new(&self.fleet, &self.snapshot, &self.charts).render(target).ok()?;
        rendered.objects.iter().find(|object| object.id == *id).cloned()
    }
}

impl Changes {
    /// Of the folder as it stands on disk, or of a commit.
    pub async fn open(process: &Process, worktree: bool, revision: &Revision) -> anyhow::Result<Self> {
        let repository = Repository::open(process.source.clone()).await.map_err(Source);
        let (repository, snapshot) = match (repository, worktree) {
            (repository, true) => {
                // A folder need not be a repository.
                (repository.ok(), source::read_folder(&folder(&process.source)).map_err(Source)?)
            }
            (repository, false) => {
                let repository = repository?;
                let snapshot = repository.snapshot(revision).await.map_err(Source)?;
                (Some(repository), snapshot)
            }
        };
        Ok(Self { repository, now: State::of(snapshot, process).await, earlier: BTreeMap::new() })
    }

    /// The fields of an object that are others than in the commit that was applied, one on a line.
    pub async fn of(
        &mut self,
        process: &Process,
        target: &Target,
        id: &ObjectId,
        applied: Option<&Revision>,
    ) -> Vec<String> {
        let before = match applied {
            None => None,
            Some(applied) => match self.at(applied, process).await {
                Some(state) => state.object(target, id),
                None => return vec![format!("{} is not in the repository any more", applied.short())],
            },
        };
        let Some(after) = self.now.object(target, id) else { return Vec::new() };
        let State { snapshot, fleet, charts } = &self.now;
        let explained = explain(fleet, snapshot, charts, target).unwrap_or_default();
        let explained = explained.iter().find(|object| object.id == *id);
        lines(before.as_ref(), &after, explained)
    }

    async fn at(&mut self, revision: &Revision, process: &Process) -> Option<&State> {
        if !self.earlier.contains_key(revision) {
            let snapshot = match &self.repository {
                Some(repository) => repository.snapshot(revision).await.ok(),
                None => None,
            };
            let state = match snapshot {
                Some(snapshot) => Some(State::of(snapshot, process).await),
                None => None,
            };
            self.earlier.insert(revision.clone(), state);
        }
        self.earlier.get(revision)?.as_ref()
    }
}

fn lines(
    before: Option<&RenderedObject>,
    after: &RenderedObject,
    explained: Option<&ExplainedObject>,
) -> Vec<String> {
    let shown = |value: &Value| if after.holds_secrets() { "***".to_owned() } else { value.to_string() };
    let place = |path: &str| {
        let field = explained.and_then(|object| object.fields.iter().find(|field| field.path == path));
        field.map_or_else(String::new, |field| format!("  {}", written(field)))
    };
    let old: BTreeMap<String, &Value> =
        before.map(|before| reach::leaves(&before.body).collect()).unwrap_or_default();
    let new: BTreeMap<String, &Value> = reach::leaves(&after.body).collect();
    let mut lines: Vec<String> = Vec::new();
    for (path, value) in &new {
        match old.get(path) {
            Some(known) if known == value => {}
            Some(known) => lines.push(format!("{path}: {} → {}{}", shown(known), shown(value), place(path))),
            // Everything of a new object is new.
            None if before.is_none() => {}
            None => lines.push(format!("{path}: {} is new{}", shown(value), place(path))),
        }
    }
    lines.extend(old.keys().filter(|path| !new.contains_key(*path)).map(|path| format!("{path} goes")));
    if lines.len() > MOST {
        let more = lines.len() - MOST;
        lines.truncate(MOST);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The value that the field is, else what wrote it.
fn written(field: &Field) -> String {
    let place = match (field.from.first(), &field.written) {
        (Some(origin), _) => &origin.place,
        (
            None,
            Written::Template(place)
            | Written::File(place)
            | Written::Patch(place)
            | Written::Manifest(place),
        ) => place,
        (None, Written::Tutti) => return "(tutti itself)".to_owned(),
    };
    format!("{}:{} ({})", place.file, place.line, place.layer)
}

//! `tutti plan --explain`: the fields that change in the objects of a plan, and the files that set them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::process::Process;
use super::repository;
use super::session::{Source, folder};
use crate::chart;
use crate::fleet::{Fleet, Target};
use crate::manifest;
use crate::model::{ObjectId, Rendered, RenderedObject, Revision, Snapshot};
use crate::plan::Step;
use crate::render::trace::explain::{ExplainedObject, Field, explain};
use crate::render::trace::reach;
use crate::render::{Defined, Renderer};
use crate::source::{self, Repository};

/// More changed fields of an object are counted.
const MOST: usize = 20;

/// The planned revision, and the revisions that live objects were applied from.
#[derive(Debug)]
pub struct Changes {
    repository: Option<Repository>,
    now: State,
    /// By applied commit; `None`: the commit cannot be read.
    earlier: BTreeMap<Revision, Option<State>>,
}

#[derive(Debug)]
struct State {
    snapshot: Snapshot,
    fleet: Fleet,
    charts: chart::Service,
    /// Kinds that apps define, computed on demand.
    defined: OnceLock<Defined>,
}

impl State {
    async fn of(mut snapshot: Snapshot, process: &Process) -> Self {
        snapshot.keys = process.keys.clone();
        let fleet = repository::fleet(&snapshot);
        let charts = repository::charts(&fleet, process.sites.clone()).await;
        Self { snapshot, fleet, charts, defined: OnceLock::new() }
    }

    fn renderer(&self, target: &Target) -> Renderer<'_> {
        let mut renderer = Renderer::new(&self.fleet, &self.snapshot, &self.charts);
        if let Some(defined) = self.defined.get() {
            return renderer.defining(defined.clone());
        }
        if renderer.learn(target) {
            self.defined.get_or_init(|| renderer.defined().clone());
        }
        renderer
    }

    fn render(&self, target: &Target) -> Option<Rendered> {
        self.renderer(target).render(target).ok()
    }
}

impl Changes {
    /// Opens the folder on disk, or a commit.
    pub async fn open(process: &Process, worktree: bool, revision: &Revision) -> anyhow::Result<Self> {
        let repository = Repository::open(process.source.clone()).await.map_err(Source);
        let (repository, snapshot) = match (repository, worktree) {
            (repository, true) => {
                // The folder may be no repository.
                (
                    repository.ok(),
                    source::read_folder(&folder(&process.source), manifest::listed_beside).map_err(Source)?,
                )
            }
            (repository, false) => {
                let repository = repository?;
                let snapshot = repository.snapshot(revision).await.map_err(Source)?;
                (Some(repository), snapshot)
            }
        };
        Ok(Self { repository, now: State::of(snapshot, process).await, earlier: BTreeMap::new() })
    }

    /// Changed fields of some steps' objects, one line each, compared with the applied commits.
    pub async fn of(
        &mut self,
        process: &Process,
        target: &Target,
        steps: &[&Step],
    ) -> BTreeMap<ObjectId, Vec<String>> {
        let mut before: BTreeMap<&Revision, Option<Option<Rendered>>> = BTreeMap::new();
        for applied in steps.iter().filter_map(|step| step.applied.as_ref()) {
            if !before.contains_key(applied) {
                let state = self.at(applied, process).await;
                before.insert(applied, state.map(|state| state.render(target)));
            }
        }
        if steps.is_empty() {
            return BTreeMap::new();
        }
        let renderer = self.now.renderer(target);
        let Ok(after) = renderer.render(target) else { return BTreeMap::new() };
        let explained = explain(&renderer, target).unwrap_or_default();
        let mut changes = BTreeMap::new();
        for step in steps {
            let Some(new) = object(&after, &step.object) else { continue };
            let explained = explained.iter().find(|object| object.id == step.object);
            let told = match step.applied.as_ref().map(|applied| (applied, before.get(applied))) {
                Some((_, Some(Some(then)))) => {
                    lines(then.as_ref().and_then(|then| object(then, &step.object)), new, explained)
                }
                Some((applied, _)) => vec![format!("{} is not in the repository any more", applied.short())],
                None => lines(None, new, explained),
            };
            changes.insert(step.object.clone(), told);
        }
        changes
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

fn object<'r>(rendered: &'r Rendered, id: &ObjectId) -> Option<&'r RenderedObject> {
    rendered.objects.iter().find(|object| object.id == *id)
}

fn lines(
    before: Option<&RenderedObject>,
    after: &RenderedObject,
    explained: Option<&ExplainedObject>,
) -> Vec<String> {
    // A value that is encrypted in either revision is hidden in both.
    let is_hidden = after.holds_secrets() || before.is_some_and(RenderedObject::holds_secrets);
    let shown = |value: &Value| if is_hidden { "***".to_owned() } else { value.to_string() };
    let place = |path: &str| {
        let field = explained.and_then(|object| object.fields.iter().find(|field| field.path == path));
        field.map_or_else(String::new, |field| format!("  {}", written(field)))
    };
    let (was, is) = (before.map(|before| before.body.fields()), after.body.fields());
    let old: BTreeMap<String, &Value> = was.iter().flat_map(reach::leaves).collect();
    let new: BTreeMap<String, &Value> = reach::leaves(&is).collect();
    let mut lines: Vec<String> = Vec::new();
    for (path, value) in &new {
        match old.get(path) {
            Some(known) if known == value => {}
            Some(known) => lines.push(format!("{path}: {} → {}{}", shown(known), shown(value), place(path))),
            // A new object is listed without fields.
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

/// The file that gives the value, else the template or patch that writes the field.
fn written(field: &Field) -> String {
    let place = field.from.first().map(|origin| &origin.place).or(field.written.place());
    place.map_or_else(|| "(tutti itself)".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use serde_json::json;

    use super::*;
    use crate::model::Sealed;

    fn config_map(url: &str, is_sealed: bool) -> RenderedObject {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db", "namespace": "shop"},
                          "data": {"url": url}});
        let values = vec![("/data/url".to_owned(), SecretString::from(url))];
        RenderedObject::of_test(&body, is_sealed.then(|| Sealed::new(b"salt", values)))
    }

    #[test]
    fn values_encrypted_in_either_revision_are_hidden() {
        let check = |was_sealed: bool, is_sealed: bool, expected: &str| {
            let (before, after) = (config_map("db://hunter22", was_sealed), config_map("db://db", is_sealed));
            assert_eq!(lines(Some(&before), &after, None), [expected], "{was_sealed} {is_sealed}");
        };
        let hidden = "data.url: *** → ***";
        check(true, false, hidden);
        check(false, true, hidden);
        check(true, true, hidden);
        check(false, false, "data.url: \"db://hunter22\" → \"db://db\"");
    }
}

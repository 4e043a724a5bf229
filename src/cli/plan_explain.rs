//! `tutti plan --explain`: the fields that change in the objects of a plan, and the files that set them.

use std::collections::BTreeMap;
use std::sync::OnceLock;

use serde_json::Value;

use super::process::ProcessSettings;
use super::repository;
use super::session::SourceError;
use crate::chart;
use crate::fleet::{Fleet, Target};
use crate::manifest;
use crate::model::{ObjectId, RenderedObject, RenderedTarget, Revision, Snapshot};
use crate::plan::PlanStep;
use crate::render::trace::explain::{ExplainedField, ExplainedObject, explain};
use crate::render::trace::reach;
use crate::render::{DefinedKindsByCluster, FleetRenderer};
use crate::source::{self, ConfigRepository};

/// More changed fields of an object are counted.
const MAX_FIELDS: usize = 20;

/// The planned revision, and the revisions that live objects were applied from.
#[derive(Debug)]
pub struct PlanExplainer {
    repository: Option<ConfigRepository>,
    current: RepositoryState,
    /// By applied commit; `None`: the commit cannot be read.
    applied_commits: BTreeMap<Revision, Option<RepositoryState>>,
}

#[derive(Debug)]
struct RepositoryState {
    snapshot: Snapshot,
    fleet: Fleet,
    charts: chart::ChartService,
    /// Kinds that apps define, computed on demand.
    defined: OnceLock<DefinedKindsByCluster>,
}

impl RepositoryState {
    async fn of(mut snapshot: Snapshot, process: &ProcessSettings) -> Self {
        snapshot.keys = process.keys.clone();
        let fleet = repository::fleet(&snapshot);
        let charts = repository::fetched_charts(&fleet, process.chart_sites.clone()).await;
        Self { snapshot, fleet, charts, defined: OnceLock::new() }
    }

    fn renderer(&self, target: &Target) -> FleetRenderer<'_> {
        let mut renderer = FleetRenderer::new(&self.fleet, &self.snapshot, &self.charts);
        if let Some(defined) = self.defined.get() {
            return renderer.with_defined_kinds(defined.clone());
        }
        if renderer.discover_kinds(target) {
            self.defined.get_or_init(|| renderer.defined_kinds().clone());
        }
        renderer
    }

    fn render(&self, target: &Target) -> Option<RenderedTarget> {
        self.renderer(target).render(target).ok()
    }
}

impl PlanExplainer {
    /// Opens the folder on disk, or a commit.
    pub async fn open(
        process: &ProcessSettings,
        worktree: bool,
        revision: &Revision,
    ) -> anyhow::Result<Self> {
        let repository = ConfigRepository::open(process.source.clone()).await.map_err(SourceError);
        let (repository, snapshot) = match (repository, worktree) {
            (repository, true) => {
                // The folder may be no repository.
                (
                    repository.ok(),
                    source::read_folder(
                        &repository::manifest_folder(&process.source),
                        manifest::listed_beside,
                    )
                    .map_err(SourceError)?,
                )
            }
            (repository, false) => {
                let repository = repository?;
                let snapshot = repository.snapshot(revision).await.map_err(SourceError)?;
                (Some(repository), snapshot)
            }
        };
        Ok(Self {
            repository,
            current: RepositoryState::of(snapshot, process).await,
            applied_commits: BTreeMap::new(),
        })
    }

    /// Changed fields of some steps' objects, one line each, compared with the applied commits.
    pub async fn changed_fields(
        &mut self,
        process: &ProcessSettings,
        target: &Target,
        steps: &[&PlanStep],
    ) -> BTreeMap<ObjectId, Vec<String>> {
        let mut before: BTreeMap<&Revision, Option<Option<RenderedTarget>>> = BTreeMap::new();
        for applied in steps.iter().filter_map(|step| step.applied.as_ref()) {
            if !before.contains_key(applied) {
                let state = self.state_at(applied, process).await;
                before.insert(applied, state.map(|state| state.render(target)));
            }
        }
        if steps.is_empty() {
            return BTreeMap::new();
        }
        let renderer = self.current.renderer(target);
        let Ok(after) = renderer.render(target) else { return BTreeMap::new() };
        let explained = explain(&renderer, target).unwrap_or_default();
        let mut changes = BTreeMap::new();
        for step in steps {
            let Some(new) = find_object(&after, &step.object) else { continue };
            let explained = explained.iter().find(|object| object.id == step.object);
            let told = match step.applied.as_ref().map(|applied| (applied, before.get(applied))) {
                Some((_, Some(Some(then)))) => changed_lines(
                    then.as_ref().and_then(|then| find_object(then, &step.object)),
                    new,
                    explained,
                ),
                Some((applied, _)) => vec![format!("{} is not in the repository any more", applied.short())],
                None => changed_lines(None, new, explained),
            };
            changes.insert(step.object.clone(), told);
        }
        changes
    }

    async fn state_at(&mut self, revision: &Revision, process: &ProcessSettings) -> Option<&RepositoryState> {
        if !self.applied_commits.contains_key(revision) {
            let snapshot = match &self.repository {
                Some(repository) => repository.snapshot(revision).await.ok(),
                None => None,
            };
            let state = match snapshot {
                Some(snapshot) => Some(RepositoryState::of(snapshot, process).await),
                None => None,
            };
            self.applied_commits.insert(revision.clone(), state);
        }
        self.applied_commits.get(revision)?.as_ref()
    }
}

fn find_object<'r>(rendered: &'r RenderedTarget, id: &ObjectId) -> Option<&'r RenderedObject> {
    rendered.objects.iter().find(|object| object.id == *id)
}

fn changed_lines(
    before: Option<&RenderedObject>,
    after: &RenderedObject,
    explained: Option<&ExplainedObject>,
) -> Vec<String> {
    // A value that is encrypted in either revision is hidden in both.
    let is_hidden = after.holds_secrets() || before.is_some_and(RenderedObject::holds_secrets);
    let shown = |value: &Value| if is_hidden { "***".to_owned() } else { value.to_string() };
    let place = |path: &str| {
        let field = explained.and_then(|object| object.fields.iter().find(|field| field.path == path));
        field.map_or_else(String::new, |field| format!("  {}", written_at(field)))
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
    if lines.len() > MAX_FIELDS {
        let more = lines.len() - MAX_FIELDS;
        lines.truncate(MAX_FIELDS);
        lines.push(format!("and {more} more"));
    }
    lines
}

/// The file that gives the value, else the template or patch that writes the field.
fn written_at(field: &ExplainedField) -> String {
    let place = field.from.first().map(|origin| &origin.place).or(field.written.place());
    place.map_or_else(|| "(tutti itself)".to_owned(), ToString::to_string)
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;
    use serde_json::json;

    use super::*;
    use crate::model::EncryptedValues;

    fn config_map(url: &str, is_sealed: bool) -> RenderedObject {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "db", "namespace": "shop"},
                          "data": {"url": url}});
        let values = vec![("/data/url".to_owned(), SecretString::from(url))];
        RenderedObject::for_test(&body, is_sealed.then(|| EncryptedValues::new(b"salt", values)))
    }

    #[test]
    fn values_encrypted_in_either_revision_are_hidden() {
        let check = |was_sealed: bool, is_sealed: bool, expected: &str| {
            let (before, after) = (config_map("db://hunter22", was_sealed), config_map("db://db", is_sealed));
            assert_eq!(changed_lines(Some(&before), &after, None), [expected], "{was_sealed} {is_sealed}");
        };
        let hidden = "data.url: *** → ***";
        check(true, false, hidden);
        check(false, true, hidden);
        check(true, true, hidden);
        check(false, false, "data.url: \"db://hunter22\" → \"db://db\"");
    }
}

//! Verifies an import: the render must equal the live objects, and a dry run must change nothing.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::group::AppDraft;
use super::write::{self, AppDrafts, ManifestForm};
use crate::apply::takeover;
use crate::cluster::{Catalog, Client};
use crate::fleet::{Fleet, Target};
use crate::model::{AppId, ChartProvider, ClusterName, ObjectId, RenderedTarget, Snapshot, labels};
use crate::{cli::repository, render};

#[derive(Clone, Debug)]
pub struct ImportCluster {
    pub client: Client,
    pub catalog: Arc<Catalog>,
}

/// The app's render on each cluster, or all mistakes.
pub fn render_app(
    charts: &dyn ChartProvider,
    snapshot: &Snapshot,
    app: &AppId,
    drafts: &AppDrafts,
) -> Result<BTreeMap<ClusterName, RenderedTarget>, Vec<String>> {
    let fleet = repository::fleet(snapshot);
    let folder = write::app_folder(&app.name);
    let mine = |file: &str| file.starts_with(&folder);
    let mistakes: Vec<String> = fleet
        .diagnostics
        .iter()
        .filter(|it| it.is_error() && it.location.as_ref().is_some_and(|location| mine(&location.file)))
        .map(ToString::to_string)
        .collect();
    if !mistakes.is_empty() {
        return Err(mistakes);
    }
    let mut made = BTreeMap::new();
    let mut wrong = Vec::new();
    for cluster in drafts.keys() {
        let target = Target { app: app.clone(), cluster: cluster.clone() };
        match render_target(&fleet, snapshot, charts, &target) {
            Ok(rendered) => {
                made.insert(cluster.clone(), rendered);
            }
            Err(mut mistakes) => wrong.append(&mut mistakes),
        }
    }
    if wrong.is_empty() { Ok(made) } else { Err(wrong) }
}

fn render_target(
    fleet: &Fleet,
    snapshot: &Snapshot,
    charts: &dyn ChartProvider,
    target: &Target,
) -> Result<RenderedTarget, Vec<String>> {
    if !fleet.targets().contains(target) {
        return Err(vec![format!("{target}: the config repository does not allow it there")]);
    }
    let words = |mistakes: Vec<crate::model::Diagnostic>| mistakes.iter().map(ToString::to_string).collect();
    render::render(fleet, snapshot, charts, target).map_err(words)
}

/// Labels that an AppSet adds to its workload, and to its pods.
pub fn added_labels(draft: &AppDraft, rendered: &RenderedTarget) -> (Vec<String>, Vec<String>) {
    let workload = ObjectId::of(&draft.workload);
    let Some(object) = rendered.objects.iter().find(|object| Some(&object.id) == workload.as_ref()) else {
        return (Vec::new(), Vec::new());
    };
    let made = object.body.fields();
    let added = |pointer: &str| -> Vec<String> {
        let keys = |value: &Value| -> BTreeSet<String> {
            let entries = value.pointer(pointer).and_then(Value::as_object);
            entries.into_iter().flat_map(Map::keys).cloned().collect()
        };
        let wanted = keys(&draft.workload);
        keys(&made).into_iter().filter(|key| !wanted.contains(key) && !is_own_label(key)).collect()
    };
    (added("/metadata/labels"), added("/spec/template/metadata/labels"))
}

fn is_own_label(key: &str) -> bool {
    key.starts_with("tutti.dev/")
}

/// Differences between the render and the live objects.
pub fn render_differences(draft: &AppDraft, rendered: &RenderedTarget) -> Vec<String> {
    let wanted: BTreeMap<ObjectId, &Value> =
        draft.objects().filter_map(|object| Some((ObjectId::of(object)?, object))).collect();
    let mut found = Vec::new();
    for object in rendered.objects.iter() {
        match wanted.get(&object.id) {
            None => found.push(format!(
                "{}: the layers render it ({}), but it does not exist",
                object.id, object.source
            )),
            Some(wanted) => {
                let paths = takeover::changed_paths(wanted, &object.body.fields());
                found.extend(
                    paths.into_iter().map(|path| format!("{}: {path} is rendered differently", object.id)),
                );
            }
        }
    }
    let made: BTreeSet<&ObjectId> = rendered.objects.iter().map(|object| &object.id).collect();
    found.extend(wanted.keys().filter(|id| !made.contains(id)).map(|id| format!("{id}: is not rendered")));
    found
}

/// Dry runs: one line for each unchanged object, or for each that would change.
pub async fn dry_run_differences(
    member: &ImportCluster,
    instance: &str,
    rendered: &RenderedTarget,
) -> Result<Vec<String>, Vec<String>> {
    let manager = labels::field_manager(instance);
    let (mut same, mut wrong) = (Vec::new(), Vec::new());
    for object in rendered.objects.iter() {
        let title = format!("{} {}", rendered.cluster, object.id);
        let Some(resource) = member.catalog.get(&object.kind) else {
            wrong.push(format!("{title}: the cluster does not serve {}", object.kind));
            continue;
        };
        match takeover::preview_takeover(&member.client, resource, &manager, object, &rendered.revision).await
        {
            Ok(Ok(effect)) if effect.changes.is_empty() => same.push(match effect.replaces_pods {
                Some(_) => format!("{title}: the same, its pods stay"),
                None => format!("{title}: the same"),
            }),
            Ok(Ok(effect)) => wrong.push(format!("{title}: would change {}", effect.changes.join(", "))),
            Ok(Err(why)) => wrong.push(format!("{title}: {why}")),
            Err(error) => wrong.push(format!("{title}: {error}")),
        }
    }
    if wrong.is_empty() { Ok(same) } else { Err(wrong) }
}

/// Writes and verifies an app, first without fields that the API server defaults.
pub async fn check_app(
    (base, charts): (&Snapshot, &dyn ChartProvider),
    members: &BTreeMap<ClusterName, ImportCluster>,
    instance: &str,
    (form, app): (ManifestForm, &AppId),
    drafts: &AppDrafts,
) -> Result<(BTreeMap<String, String>, Vec<String>), Vec<String>> {
    let short = drafts.iter().map(|(cluster, draft)| (cluster.clone(), draft.without_defaults())).collect();
    match attempt((base, charts), members, instance, (form, app), &short).await {
        Ok(made) => Ok(made),
        Err(_) => attempt((base, charts), members, instance, (form, app), drafts).await,
    }
}

async fn attempt(
    (base, charts): (&Snapshot, &dyn ChartProvider),
    members: &BTreeMap<ClusterName, ImportCluster>,
    instance: &str,
    (form, app): (ManifestForm, &AppId),
    drafts: &AppDrafts,
) -> Result<(BTreeMap<String, String>, Vec<String>), Vec<String>> {
    let mut files = write::app_files(form, &app.namespace, &app.name, drafts)?;
    let mut made = render_app(charts, &repository::with_files(base, &files), app, drafts)?;
    if form == ManifestForm::AppSet {
        let (mut of_workload, mut of_pods) = (BTreeSet::new(), BTreeSet::new());
        for (cluster, draft) in drafts {
            let Some(rendered) = made.get(cluster) else { continue };
            let (workload, pods) = added_labels(draft, rendered);
            of_workload.extend(workload);
            of_pods.extend(pods);
        }
        if let (false, Some(draft)) = (of_workload.is_empty() && of_pods.is_empty(), drafts.values().next()) {
            let [workload, pods] = [of_workload, of_pods].map(|keys| keys.into_iter().collect::<Vec<_>>());
            let path = format!("{}layer/patches/labels.yaml", write::app_folder(&app.name));
            files.insert(path, write::labels_patch(draft, &workload, &pods));
            made = render_app(charts, &repository::with_files(base, &files), app, drafts)?;
        }
    }
    let mut wrong = Vec::new();
    let mut same = Vec::new();
    for (cluster, draft) in drafts {
        let Some(rendered) = made.get(cluster) else { continue };
        let unlike = render_differences(draft, rendered);
        if !unlike.is_empty() {
            wrong.extend(unlike.into_iter().map(|line| format!("{cluster} {line}")));
        } else if let Some(member) = members.get(cluster) {
            match dry_run_differences(member, instance, rendered).await {
                Ok(lines) => same.extend(lines),
                Err(lines) => wrong.extend(lines),
            }
        }
    }
    if wrong.is_empty() { Ok((files, same)) } else { Err(wrong) }
}

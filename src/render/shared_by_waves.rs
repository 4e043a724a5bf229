//! Warns of objects that podSets of several waves share, because they change with the first of these waves: mounted
//! ConfigMaps and Secrets, and definitions.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use serde_json::Value;

use super::codes;
use crate::fleet::{Fleet, Waves};
use crate::model::{
    App, AppId, Diagnostic, DiagnosticScope, ObjectId, RenderedObject, RenderedTarget, WaveOrder,
};
use crate::schedule::assign;

const POD_SPECS: [&str; 3] = ["/spec/template/spec", "/spec/jobTemplate/spec/template/spec", "/spec"];
/// The kind and the name in a volume or projected source.
const VOLUMES: [(&str, &str); 3] =
    [("ConfigMap", "/configMap/name"), ("Secret", "/secret/secretName"), ("Secret", "/secret/name")];
/// The kind and the name in an item of `envFrom` or `env`.
const VARIABLES: [(&str, &str); 4] = [
    ("ConfigMap", "/configMapRef/name"),
    ("Secret", "/secretRef/name"),
    ("ConfigMap", "/valueFrom/configMapKeyRef/name"),
    ("Secret", "/valueFrom/secretKeyRef/name"),
];

/// One warning for each shared object of an app.
pub fn shared_by_waves<'a>(
    fleet: &Fleet,
    renders: impl IntoIterator<Item = &'a RenderedTarget>,
) -> Vec<Diagnostic> {
    let mut found: BTreeMap<(&AppId, &ObjectId), Diagnostic> = BTreeMap::new();
    for render in renders {
        let app = fleet.apps.get(&render.app);
        // A wave of a ring contains whole clusters.
        let Some(app) = app.filter(|app| app.rollout.order != WaveOrder::Default) else { continue };
        let waves = Waves::of(fleet, app);
        let of_pod_set = wave_by_pod_set(fleet, app, &waves, render);
        let shared =
            mounted(&of_pod_set, render).into_iter().chain(definitions_with_waves(&of_pod_set, render));
        for (object, positions) in shared.filter(|(_, positions)| positions.len() > 1) {
            let warn = || warning(app, object, &waves, &positions);
            found.entry((&app.id, &object.id)).or_insert_with(warn);
        }
    }
    found.into_values().collect()
}

/// The wave index of each podSet of a render.
type WaveByPodSet = BTreeMap<String, usize>;

fn wave_by_pod_set(fleet: &Fleet, app: &App, waves: &Waves, render: &RenderedTarget) -> WaveByPodSet {
    let wave_of = |group: &str| waves.wave_of(fleet, &render.cluster, group);
    assign(app, &render.cluster).into_iter().map(|pod_set| (pod_set.name, wave_of(&pod_set.group))).collect()
}

/// Definitions with the wave indices that bring them.
fn definitions_with_waves<'a>(
    of_pod_set: &WaveByPodSet,
    render: &'a RenderedTarget,
) -> impl Iterator<Item = (&'a RenderedObject, BTreeSet<usize>)> {
    let definitions = render.objects.iter().filter(|object| object.defines.is_some());
    definitions.map(|object| {
        let waves = object.pod_sets.iter().filter_map(|name| of_pod_set.get(&**name).copied());
        (object, waves.collect())
    })
}

/// ConfigMaps and Secrets with the wave indices whose pods use them.
fn mounted<'a>(
    of_pod_set: &WaveByPodSet,
    render: &'a RenderedTarget,
) -> Vec<(&'a RenderedObject, BTreeSet<usize>)> {
    let mut taken: BTreeMap<ObjectId, BTreeSet<usize>> = BTreeMap::new();
    for object in &*render.objects {
        let [pod_set] = &*object.pod_sets else { continue };
        let Some(wave) = of_pod_set.get(&**pod_set) else { continue };
        for (kind, name) in configs_of_pods(object) {
            let id = ObjectId::new("", kind, object.id.namespace.as_deref(), &name);
            taken.entry(id).or_default().insert(*wave);
        }
    }
    taken.into_iter().filter_map(|(id, positions)| Some((render.object(&id)?, positions))).collect()
}

/// Kinds and names of the config that pods of an object use.
fn configs_of_pods(object: &RenderedObject) -> Vec<(&'static str, String)> {
    if !object.body.contains_text("containers") {
        return Vec::new();
    }
    let fields = object.body.fields();
    let Some(pod) =
        POD_SPECS.iter().filter_map(|path| fields.pointer(path)).find(|it| it.get("containers").is_some())
    else {
        return Vec::new();
    };
    let items = |of: &Value, list: &str| of.get(list).and_then(Value::as_array).cloned().unwrap_or_default();
    let mut found = Vec::new();
    let mut take = |item: &Value, paths: &[(&'static str, &str)]| {
        let name = |path: &str| item.pointer(path).and_then(Value::as_str).map(str::to_owned);
        found.extend(paths.iter().filter_map(|(kind, path)| Some((*kind, name(path)?))));
    };
    for volume in items(pod, "volumes") {
        take(&volume, &VOLUMES);
        let parts = volume.get("projected").map(|projected| items(projected, "sources"));
        parts.iter().flatten().for_each(|part| take(part, &VOLUMES));
    }
    for containers in ["initContainers", "containers"] {
        for container in items(pod, containers) {
            for list in ["envFrom", "env"] {
                items(&container, list).iter().for_each(|item| take(item, &VARIABLES));
            }
        }
    }
    found
}

fn warning(
    app: &Arc<App>,
    object: &RenderedObject,
    waves: &Waves,
    positions: &BTreeSet<usize>,
) -> Diagnostic {
    let names: Vec<&str> =
        positions.iter().filter_map(|it| waves.list().get(*it)).map(|wave| wave.name.as_str()).collect();
    let (names, title) = (names.join(", "), app.title());
    let (code, verb, help) = if object.defines.is_some() {
        let help = "it changes with the first of them, and the others may need the older one: put it into an app of its own, and \
                    name that in `after`";
        (codes::SHARED_DEFINITION, "comes with", help)
    } else {
        let help = "it changes with the first of them: name it after the podSet (`podSet.name`), so that each has its own";
        (codes::SHARED_CONFIG, "is mounted by", help)
    };
    let message = format!("{} {verb} podSets of several waves of {title}: {names}", object.id);
    Diagnostic::warning(code, message, DiagnosticScope::App(app.id.clone()))
        .at(object.source.clone())
        .help(help)
}

//! Renders Components and AppSets: every template once for each podSet.

use std::collections::btree_map::Entry;
use std::sync::Arc;

use serde_json::{Map, Value, json};

use super::definitions::AppDefinedKinds;
use super::layer_stacks::LayerStack;
use super::object_document::ObjectDocument;
use super::patches::{PatchUsage, Patches};
use super::render_job::RenderJob;
use super::render_output::ObjectsById;
use super::template_context::TemplateContext;
use super::templates::Templates;
use super::{app_set, charts, codes, documents, foreign_annotations, hooks, layer_values};
use crate::model::labels::PRUNE;
use crate::model::{
    App, AppSpec, Component, Diagnostic, Location, RenderedObject, image_tag, retag, with_version,
};
use crate::schedule::{AssignedPodSet, assign};

pub fn render(
    job: &RenderJob<'_>,
    stack: &LayerStack,
    used: &mut PatchUsage,
) -> Result<ObjectsById, Vec<Diagnostic>> {
    let of_layers = stack.values(job)?;
    let patches = stack.patches(job)?;
    used.append(&mut patches.as_unused(job.app));
    let templates = stack.templates(job);
    let mut found = ObjectsById::new();
    let mut mistakes = Vec::new();
    for (index, pod_set) in assign(job.app, &job.target.cluster).into_iter().enumerate() {
        if let Some(notes) = job.trace {
            notes.pod_set.set(index);
        }
        let of_chart = match charts::documents(job, &stack.layers, &pod_set) {
            Ok(documents) => documents,
            Err(of_chart) if job.time_slice.was_cut_off() => return Err(of_chart),
            Err(mut of_chart) => {
                mistakes.append(&mut of_chart);
                continue;
            }
        };
        let (pod_set, values) = complete_pod_set(job, &pod_set, of_layers.clone());
        let context = TemplateContext::new(job, values, Some(&pod_set));
        match render_pod_set(job, templates, &pod_set, &context, of_chart, patches, used) {
            Ok(objects) => {
                let pod_sets = unit_names(job.app, &pod_set.name);
                for (object, pod_set) in objects.into_values() {
                    let object = RenderedObject { pod_sets: Arc::clone(&pod_sets), ..object };
                    mistakes.extend(add_object(job, &mut found, object, &pod_set));
                }
            }
            Err(of_pod_set) if job.time_slice.was_cut_off() => return Err(of_pod_set),
            Err(mut of_pod_set) => {
                let ended = of_pod_set.iter().any(codes::is_worker_end);
                mistakes.append(&mut of_pod_set);
                // Other podSets would end their worker too.
                if ended {
                    break;
                }
            }
        }
    }
    if mistakes.is_empty() { Ok(found) } else { Err(mistakes) }
}

/// The podSet of an object. An app that is no AppSet is one unit.
fn unit_names(app: &App, pod_set: &str) -> Arc<[Arc<str>]> {
    match app.spec {
        AppSpec::AppSet(_) => [pod_set.into()].into(),
        AppSpec::Component(_) | AppSpec::Objects(_) | AppSpec::Project(_) => Arc::default(),
    }
}

/// All objects of one podSet.
fn render_pod_set(
    job: &RenderJob<'_>,
    templates: &Templates,
    pod_set: &AssignedPodSet,
    context: &TemplateContext<'_>,
    of_chart: Vec<ObjectDocument>,
    patches: &Patches,
    used: &mut PatchUsage,
) -> Result<ObjectsById, Vec<Diagnostic>> {
    let mut made = of_chart;
    let (texts, mut wrong) = templates.render(job, context);
    for (template, output) in texts {
        match documents::parse_output(job, template, &output) {
            Ok(mut documents) => made.append(&mut documents),
            Err(mut mistakes) => wrong.append(&mut mistakes),
        }
    }
    if !wrong.is_empty() {
        return Err(wrong);
    }
    patches.apply_layer_patches(job, &mut made, used)?;
    if let AppSpec::AppSet(app_set) = &job.app.spec {
        app_set::overlay(job, app_set, pod_set, &mut made).map_err(|mistake| vec![*mistake])?;
    }
    patches.apply_app_patches(job, &mut made, used)?;
    foreign_annotations::read_annotations(job, &mut made)?;
    let found = finish_documents(job, made, &pod_set.name, &mut wrong);
    if wrong.is_empty() { Ok(found) } else { Err(wrong) }
}

/// Turns the documents of one podSet into objects.
pub fn finish_documents(
    job: &RenderJob<'_>,
    mut made: Vec<ObjectDocument>,
    pod_set: &str,
    wrong: &mut Vec<Diagnostic>,
) -> ObjectsById {
    hooks::name_runs(&mut made);
    let definitions = AppDefinedKinds::of(&made);
    let mut found = ObjectsById::new();
    for document in made {
        let object = match documents::finish_object(job, document, &definitions) {
            Ok(object) => object,
            Err(mut mistakes) => {
                wrong.append(&mut mistakes);
                continue;
            }
        };
        match found.entry(object.id.clone()) {
            Entry::Vacant(place) => {
                place.insert((object, pod_set.to_owned()));
            }
            Entry::Occupied(mut known) => match merge_duplicates(job, &known.get().0, &object) {
                Ok(one) => known.get_mut().0 = one,
                Err(mistake) => wrong.push(*mistake),
            },
        }
    }
    found
}

/// Several charts may bring the same definition. If one of them has the prune annotation of `crds/`, it stays.
fn merge_definitions<'o>(
    first: &'o RenderedObject,
    second: &'o RenderedObject,
) -> Option<&'o RenderedObject> {
    second.defines.as_ref()?;
    if first.hash == second.hash {
        return Some(first);
    }
    let said = |object: &RenderedObject| {
        let mut fields = object.body.fields();
        let annotations = fields.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        (annotations.and_then(|annotations| annotations.shift_remove(PRUNE)), fields)
    };
    let ((_, of_first), (kept, of_second)) = (said(first), said(second));
    let stays = kept.is_some_and(|kept| kept == "keep");
    (of_first == of_second).then_some(if stays { second } else { first })
}

/// Merges one object from two sources, or refuses it.
fn merge_duplicates(
    job: &RenderJob<'_>,
    first: &RenderedObject,
    second: &RenderedObject,
) -> Result<RenderedObject, Box<Diagnostic>> {
    let one =
        merge_definitions(first, second).cloned().or_else(|| hooks::merge_hook_with_object(first, second));
    one.ok_or_else(|| Box::new(duplicate_object(job, first, second)))
}

pub fn duplicate_object(job: &RenderJob<'_>, first: &RenderedObject, second: &RenderedObject) -> Diagnostic {
    let message = format!(
        "{} is rendered twice, by {} and by {}",
        job.describe(&second.id),
        first.source,
        second.source
    );
    let help = match second.defines {
        None if first.hook.is_some() != second.hook.is_some() => {
            "in tutti, a hook and an object of one name are one object: give the hook another name, or give \
             both the same content \
             (the object is then applied with the hooks, and stays)"
        }
        Some(_) => {
            "they differ: take both out by a patch (`merge: {$patch: delete}`) and write the right one in a layer"
        }
        None => "remove one of them, or give it another name",
    };
    // The alias of a subchart is no path of a file.
    let is_known = |place: &Location| job.snapshot.files.contains_key(&place.file);
    let mistake = job.error(codes::OBJECT_TWICE, message).help(help);
    let place = Some(&second.source).filter(|place| is_known(place)).unwrap_or(&job.app.location);
    let mistake = mistake.at(place.clone());
    if is_known(&first.source) { mistake.related(first.source.clone(), "also here") } else { mistake }
}

/// Equal objects of several podSets are one object.
fn add_object(
    job: &RenderJob<'_>,
    found: &mut ObjectsById,
    object: RenderedObject,
    pod_set: &str,
) -> Option<Diagnostic> {
    let Some((first, of)) = found.get_mut(&object.id) else {
        found.insert(object.id.clone(), (object, pod_set.to_owned()));
        return None;
    };
    let same = if first.hash == object.hash { Some(&*first) } else { merge_definitions(first, &object) };
    if let Some(same) = same {
        let pod_sets = first.pod_sets.iter().chain(&*object.pod_sets).cloned().collect();
        *first = RenderedObject { pod_sets, ..same.clone() };
        return None;
    }
    let message = format!(
        "podSets {of} and {pod_set} both render {}, with different content",
        job.describe(&object.id)
    );
    let mistake = job
        .error(codes::POD_SETS_DIFFER, message)
        .at(object.source.clone())
        .help("name it after the podSet (`podSet.name`), or use nothing of the podSet in it");
    Some(mistake)
}

/// Completes the podSet from the layers, and the values from the app and the podSet.
fn complete_pod_set(
    job: &RenderJob<'_>,
    assigned: &AssignedPodSet,
    mut values: Map<String, Value>,
) -> (AssignedPodSet, Map<String, Value>) {
    let mut pod_set = assigned.clone();
    match &job.app.spec {
        AppSpec::Component(component) => layer_values::merge(&mut values, component_values(component)),
        AppSpec::AppSet(app_set) => layer_values::merge(&mut values, app_set::template_values(app_set)),
        AppSpec::Objects(_) | AppSpec::Project(_) => {}
    }
    let of_app = values.get("image").and_then(Value::as_str);
    let image = match (&assigned.image, &assigned.version, &job.app.spec) {
        (Some(image), Some(version), AppSpec::AppSet(_)) => Some(with_version(image, version)),
        (Some(image), _, _) => Some(image.clone()),
        // The version of a Component comes from its image.
        (None, Some(version), AppSpec::AppSet(_)) => of_app.map(|image| retag(image, version)),
        (None, _, _) => of_app.map(str::to_owned),
    };
    if let Some(image) = image {
        pod_set.version = pod_set.version.or_else(|| image_tag(&image).map(str::to_owned));
        values.insert("image".to_owned(), json!(image));
        pod_set.image = Some(image);
    }
    match assigned.replicas {
        Some(replicas) => {
            values.insert("replicas".to_owned(), json!(replicas));
        }
        None => {
            let of_layers = values.get("replicas").and_then(Value::as_u64);
            pod_set.replicas = of_layers.and_then(|replicas| u32::try_from(replicas).ok());
        }
    }
    (pod_set, values)
}

/// The values of a Component. Its variables are a list; those of layers are a map, which they must merge with.
fn component_values(component: &Component) -> Map<String, Value> {
    let mut values = component.values.clone();
    if let Some(Value::Array(list)) = values.get("env") {
        let variable =
            |item: &Value| Some((item.get("name")?.as_str()?.to_owned(), item.get("value")?.clone()));
        let by_name: Option<Map<String, Value>> = list.iter().map(variable).collect();
        if let Some(by_name) = by_name {
            values.insert("env".to_owned(), Value::Object(by_name));
        }
    }
    values
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn merged_definition_keeps_prune_annotation() {
        let definition = |annotations: Value, scope: &str| RenderedObject {
            defines: Some(("a.io".into(), "Web".into())),
            ..RenderedObject::for_test(
                &json!({"apiVersion": "apiextensions.k8s.io/v1", "kind": "CustomResourceDefinition",
                    "metadata": {"name": "webs.a.io", "annotations": annotations}, "spec": {"scope": scope}}),
                None,
            )
        };
        let plain = definition(json!({"a": "b"}), "Cluster");
        let kept = definition(json!({"a": "b", "tutti.dev/prune": "keep"}), "Cluster");
        for (first, second, expected) in
            [(&plain, &kept, &kept), (&kept, &plain, &kept), (&plain, &plain, &plain), (&kept, &kept, &kept)]
        {
            assert_eq!(merge_definitions(first, second), Some(expected));
        }
        assert_eq!(merge_definitions(&plain, &definition(json!({"a": "b"}), "Namespaced")), None);
        assert_eq!(merge_definitions(&plain, &definition(json!({"a": "c"}), "Cluster")), None);
        let other = RenderedObject { defines: None, ..kept };
        assert_eq!(merge_definitions(&plain, &other), None);
    }
}

//! Applies annotations of Argo CD, Flux and Helm to the documents of an app.

use serde_json::Value;

use super::hooks::{self, HookDecision, HookMode};
use super::object_document::{self, ObjectDocument};
use super::render_job::RenderJob;
use crate::model::foreign_annotation::{self, AnnotationMeaning, ForeignAnnotation};
use crate::model::{ChartHook, Diagnostic, HookReleases, HookStage, ObjectHook, SyncWave, labels};

/// Argo CD and Helm accept `generateName` for hooks. Here each run gets its own name, and other hooks are recreated when they
/// change.
pub fn set_hook_name(object: &mut Value) {
    use AnnotationMeaning::{HelmHook, HookAfter, HookBefore, HookNever, HookWithOthers};
    let is_hook = foreign_annotation::foreign_annotations(object, false)
        .iter()
        .any(|mark| matches!(mark.meaning, HookBefore | HookAfter | HookWithOthers | HookNever | HelmHook));
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if is_hook && !metadata.contains_key("name") {
        let prefix = metadata.shift_remove("generateName");
        let name = prefix.as_ref().and_then(Value::as_str).map(|prefix| prefix.trim_end_matches(['-', '.']));
        metadata.extend(name.map(|name| ("name".to_owned(), name.into())));
    }
}

/// Reads the marks of all documents, and removes hooks that are never run here.
pub fn read_annotations(
    job: &RenderJob<'_>,
    documents: &mut Vec<ObjectDocument>,
) -> Result<(), Vec<Diagnostic>> {
    let all = std::mem::take(documents);
    for mut document in all {
        let object = Value::Object(std::mem::take(&mut document.object));
        let marks = foreign_annotation::foreign_annotations(&object, document.is_from_chart);
        let taken = match document.hook {
            Some(hook) => HookDecision::Keep(Some(hook)),
            None => decide_annotated(job, &object, &marks).map_err(|mistake| vec![*mistake])?,
        };
        if let Value::Object(object) = object {
            document.object = object;
        }
        for mark in marks {
            follow_annotation(job, &mut document, &mark);
        }
        if let HookDecision::Keep(hook) = taken {
            documents.push(ObjectDocument { hook, ..document });
        }
    }
    Ok(())
}

fn decide_annotated(
    job: &RenderJob<'_>,
    object: &Value,
    marks: &[ForeignAnnotation],
) -> Result<HookDecision, Box<Diagnostic>> {
    let runs = hooks::is_run_object(object);
    for mark in marks {
        let stage = match mark.meaning {
            AnnotationMeaning::HookNever => return Ok(HookDecision::Skip),
            AnnotationMeaning::HookBefore => HookStage::Before,
            AnnotationMeaning::HookAfter => HookStage::After,
            AnnotationMeaning::HelmHook => {
                return Ok(hooks::decide_hook(
                    ChartHook::of(object).as_ref(),
                    object,
                    hooks::hook_mode(job)?,
                ));
            }
            _ => continue,
        };
        let weight = SyncWave::of(|name| annotation(object, name)).unwrap_or_default().number().into();
        let hook = ObjectHook { stage, weight, occasion: HookReleases::Each, runs };
        return Ok(match hooks::hook_mode(job)? {
            HookMode::AsHooks => HookDecision::Keep(Some(hook)),
            HookMode::SkipRuns if runs => HookDecision::Skip,
            HookMode::AsObjects | HookMode::SkipRuns => HookDecision::Keep(None),
        });
    }
    Ok(HookDecision::Keep(None))
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// An annotation of ours wins, and then no warning is needed.
fn follow_annotation(job: &RenderJob<'_>, document: &mut ObjectDocument, mark: &ForeignAnnotation) {
    let ours = match mark.meaning {
        AnnotationMeaning::Keep => Some((labels::PRUNE, "keep")),
        AnnotationMeaning::Replace => Some((labels::REPLACE, "true")),
        _ => None,
    };
    let is_said = ours.is_some_and(|(name, _)| {
        let annotations = document.object.get("metadata").and_then(|metadata| metadata.get("annotations"));
        annotations.is_some_and(|annotations| annotations.get(name).is_some())
    });
    if is_said {
        return;
    }
    // An unknown mark of an encrypted object may show encrypted text.
    if mark.meaning != AnnotationMeaning::Unknown || document.sealed.is_none() {
        let name = object_document::object_name(&document.object);
        job.annotation_warnings.record(mark.clone(), name, &document.source);
    }
    if let Some((name, value)) = ours {
        object_document::annotate(&mut document.object, name, value);
    }
    let runs_again = mark.meaning == AnnotationMeaning::HookWithOthers
        && hooks::is_run_kind(&object_document::kind_of(&document.object));
    if runs_again {
        object_document::annotate(&mut document.object, labels::REPLACE, "true");
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn hooks_may_use_generate_name() {
        let check = |annotations: Value, expected: Option<&str>| {
            let mut object = json!({"metadata": {"generateName": "run-", "annotations": annotations}});
            set_hook_name(&mut object);
            assert_eq!(object["metadata"]["name"].as_str(), expected, "{annotations}");
            assert_eq!(object["metadata"].get("generateName").is_none(), expected.is_some());
        };
        for kind in ["PreSync", "Sync", "PostSync", "SyncFail", "Skip"] {
            check(json!({"argocd.argoproj.io/hook": kind}), Some("run"));
        }
        for event in ["pre-install", "test", "post-upgrade,test-success"] {
            check(json!({"helm.sh/hook": event}), Some("run"));
        }
        check(json!({}), None);
    }
}

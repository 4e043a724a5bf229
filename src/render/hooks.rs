//! Handles hooks of charts and annotations: which are taken, their stage, and the names of runs.
//!
//! Four modules share the work. This one sets the stage of each object (`model::ObjectHook`), and names each Job and Pod after its
//! whole release, so that name and hash identify a finished run. `plan::step_order` orders writes, and
//! `plan::release_barriers` turns early writes into waits. `plan::release_phase` decides whether this is the first release. The
//! controller does not know hooks: the end of a run is an event like any other.

use serde_json::{Map, Value, json};

use super::object_document::{self, ObjectDocument};
use super::render_job::RenderJob;
use super::{canonical, codes};
use crate::model::labels::{CHART_HOOKS, HOOK_RUN};
use crate::model::scale;
use crate::model::{
    ChartHook, Diagnostic, Digest, GroupVersionKind, HookReleases, HookStage, ObjectHook, RenderedObject,
    foreign_annotation,
};

/// A Job repeats its name in a label of its pods.
const LONGEST_RUN_NAME: usize = 63;
/// Digits of the digest at the end of a run's name.
const RUN_DIGITS: usize = 8;

/// How an app treats the hooks of its charts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookMode {
    /// Before or after the other objects.
    AsHooks,
    /// As ordinary objects.
    AsObjects,
    /// Without hooks that run something.
    SkipRuns,
}

pub fn hook_mode(job: &RenderJob<'_>) -> Result<HookMode, Box<Diagnostic>> {
    match job.app.annotations.get(CHART_HOOKS).map(String::as_str) {
        None => Ok(HookMode::AsHooks),
        Some("apply") => Ok(HookMode::AsObjects),
        Some("skip") => Ok(HookMode::SkipRuns),
        Some(other) => {
            let message = format!("annotation {CHART_HOOKS} of {} is {other:?}", job.app.id);
            let help = "apply takes hooks as ordinary objects, skip leaves those out that run something; without the \
                        annotation they run before or after the others";
            Err(job.error(codes::CHART_HOOK, message).at(job.app.location.clone()).help(help).into())
        }
    }
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum HookDecision {
    Skip,
    Keep(Option<ObjectHook>),
}

pub fn decide_hook(hook: Option<&ChartHook>, object: &Value, wanted: HookMode) -> HookDecision {
    let Some(hook) = hook else { return HookDecision::Keep(None) };
    let Some(hook) = hook_of_events(hook, is_run_object(object)) else { return HookDecision::Skip };
    match wanted {
        HookMode::AsHooks => HookDecision::Keep(Some(hook)),
        HookMode::SkipRuns if hook.runs => HookDecision::Skip,
        HookMode::AsObjects | HookMode::SkipRuns => HookDecision::Keep(None),
    }
}

/// A hook for both before and after runs before.
fn hook_of_events(hook: &ChartHook, runs: bool) -> Option<ObjectHook> {
    let events = || hook.supported_events();
    events().next()?;
    let is_of = |occasion: &str| events().any(|event| event.ends_with(occasion));
    let before = events().any(|event| event.starts_with("pre-"));
    Some(ObjectHook {
        stage: if before { HookStage::Before } else { HookStage::After },
        weight: hook.weight,
        occasion: match (is_of("-install"), is_of("-upgrade")) {
            (true, false) => HookReleases::Install,
            (false, true) => HookReleases::Upgrade,
            _ => HookReleases::Each,
        },
        runs,
    })
}

pub fn is_run_object(object: &Value) -> bool {
    GroupVersionKind::of(object).is_some_and(|kind| is_run_kind(&kind))
}

/// Whether objects of this kind come to an end, in any version.
pub fn is_run_kind(kind: &GroupVersionKind) -> bool {
    matches!((&*kind.group, &*kind.kind), ("batch", "Job") | ("", "Pod"))
}

/// Names each run after its release; call it after patches. A release with any other object is a new run, and an equal
/// release is the earlier run.
pub fn name_runs(documents: &mut [ObjectDocument]) {
    let runs = |document: &ObjectDocument| document.hook.is_some_and(|hook| hook.runs);
    for document in documents.iter_mut().filter(|document| runs(document)) {
        // After its TTL a Job would be missing and be created again.
        if let Some(Value::Object(spec)) = document.object.get_mut("spec") {
            spec.shift_remove("ttlSecondsAfterFinished");
        }
    }
    let each_time =
        |document: &ObjectDocument| document.hook.is_some_and(|hook| hook.runs && !hook.is_install_only());
    if !documents.iter().any(each_time) {
        return;
    }
    let digests: Vec<String> = documents.iter().map(document_digest).collect();
    // `helm-render` and `helm template` return objects in different orders.
    let mut release = digests.clone();
    release.sort();
    for (document, own) in documents.iter_mut().zip(&digests).filter(|(document, _)| each_time(document)) {
        let run = Digest::of_json(&json!([own, release])).to_string();
        if let Some(Value::String(name)) =
            document.object.get_mut("metadata").and_then(|it| it.get_mut("name"))
        {
            let called = std::mem::replace(name, run_name(name, &run));
            object_document::annotate(&mut document.object, HOOK_RUN, &called);
        }
    }
}

/// Merges an object that is both a hook and an ordinary object, as charts do with the account of their Jobs. If both are
/// equal, the object comes with the hooks and stays.
pub fn merge_hook_with_object(first: &RenderedObject, second: &RenderedObject) -> Option<RenderedObject> {
    let (of_hook, object) = match (first.hook, second.hook) {
        (Some(_), None) => (first, second),
        (None, Some(_)) => (second, first),
        _ => return None,
    };
    let hook = of_hook.hook.filter(|hook| !hook.runs)?;
    let said = |object: &RenderedObject| {
        let mut fields = object.body.fields();
        let annotations = fields.pointer_mut("/metadata/annotations").and_then(Value::as_object_mut);
        if let Some(annotations) = annotations {
            annotations.retain(|name, _| !foreign_annotation::is_hook_annotation(name));
        }
        fields
    };
    let hook = Some(ObjectHook { occasion: HookReleases::Each, ..hook });
    (said(of_hook) == said(object)).then(|| RenderedObject { hook, ..object.clone() })
}

/// Hashes the applied form, so that another spelling is the same run.
fn document_digest(document: &ObjectDocument) -> String {
    let mut object: Map<String, Value> = document.object.clone();
    let kind = object_document::kind_of(&object);
    canonical::canonicalize(&mut object, &kind, false);
    let mut body = Value::Object(object);
    // Replica counts do not make a new release.
    scale::remove_scale(&mut body, &kind);
    let digest =
        document.sealed.as_ref().map_or_else(|| Digest::of_json(&body), |sealed| sealed.digest(&body));
    digest.to_string()
}

fn run_name(name: &str, run: &str) -> String {
    let kept: String = name.chars().take(LONGEST_RUN_NAME - RUN_DIGITS - 1).collect();
    let digits: String = run.chars().take(RUN_DIGITS).collect();
    format!("{}-{digits}", kept.trim_end_matches(['-', '.']))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Location;

    #[test]
    fn hook_events_give_stage_and_occasion() {
        use HookReleases::{Each, Install, Upgrade};
        let check = |events: &[&str], expected: Option<(HookStage, HookReleases)>| {
            let events = events.iter().map(|event| (*event).to_owned()).collect();
            let hook = ChartHook { events, weight: 3, delete_policies: Vec::new() };
            let made = hook_of_events(&hook, true);
            assert_eq!(made.map(|hook| (hook.stage, hook.occasion)), expected, "{:?}", hook.events);
            assert!(made.is_none_or(|hook| hook.weight == 3 && hook.runs));
        };
        check(&["pre-install"], Some((HookStage::Before, Install)));
        check(&["pre-upgrade"], Some((HookStage::Before, Upgrade)));
        check(&["pre-upgrade", "post-upgrade"], Some((HookStage::Before, Upgrade)));
        check(&["pre-install", "pre-upgrade"], Some((HookStage::Before, Each)));
        check(&["post-install"], Some((HookStage::After, Install)));
        check(&["post-install", "post-upgrade"], Some((HookStage::After, Each)));
        check(&["post-install", "pre-upgrade"], Some((HookStage::Before, Each)));
        check(&["pre-install", "post-install"], Some((HookStage::Before, Install)));
        check(&["post-install", "post-delete", "test"], Some((HookStage::After, Install)));
        check(&["test"], None);
        check(&["pre-delete", "post-rollback"], None);
    }

    #[test]
    fn runs_are_known_by_kind() {
        let check = |version: &str, kind: &str, expected: bool| {
            assert_eq!(
                is_run_object(&json!({"apiVersion": version, "kind": kind})),
                expected,
                "{version} {kind}"
            );
        };
        check("batch/v1", "Job", true);
        check("v1", "Pod", true);
        check("batch/v1", "CronJob", false);
        check("batch.volcano.sh/v1alpha1", "Job", false);
        check("v1", "ConfigMap", false);
    }

    const RUN: ObjectHook =
        ObjectHook { stage: HookStage::Before, weight: 0, occasion: HookReleases::Each, runs: true };

    fn document(object: Value, hook: Option<ObjectHook>) -> ObjectDocument {
        let Value::Object(object) = object else { panic!("{object}") };
        ObjectDocument { hook, ..ObjectDocument::new(object, Location::new("a.yaml", 1, 1)) }
    }

    fn job(image: &str, hook: ObjectHook) -> ObjectDocument {
        let object = json!({"apiVersion": "batch/v1", "kind": "Job", "metadata": {"name": "migrate"},
                            "spec": {"image": image, "ttlSecondsAfterFinished": 5}});
        document(object, Some(hook))
    }

    fn config(object: &Value) -> ObjectDocument {
        document(
            json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": object}),
            None,
        )
    }

    fn names(mut documents: Vec<ObjectDocument>) -> Vec<String> {
        name_runs(&mut documents);
        assert!(documents.iter().all(
            |it| it.object["kind"] != "Job" || it.object["spec"].get("ttlSecondsAfterFinished").is_none()
        ));
        documents.iter().map(|it| it.object["metadata"]["name"].as_str().unwrap().to_owned()).collect()
    }

    #[test]
    fn run_is_named_after_its_release() {
        let first = names(vec![job("a", RUN), config(&json!({"x": "1"}))]);
        assert_eq!((first[0].len(), first[0].starts_with("migrate-"), first[1].as_str()), (16, true, "c"));
        let check = |documents: Vec<ObjectDocument>, same: bool| {
            let all = names(documents);
            assert_eq!(all.contains(&first[0]), same, "{all:?}");
        };
        check(vec![config(&json!({"x": "1"})), job("a", RUN)], true);
        let mut with_null = config(&json!({"x": "1"}));
        with_null.object.insert("immutable".to_owned(), Value::Null);
        check(vec![job("a", RUN), with_null], true);
        check(vec![job("b", RUN), config(&json!({"x": "1"}))], false);
        check(vec![job("a", RUN), config(&json!({"x": "2"}))], false);
        check(vec![job("a", RUN)], false);
        let web = |replicas: u32, image: &str| {
            let object = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web"},
                                "spec": {"replicas": replicas, "image": image}});
            names(vec![job("a", RUN), document(object, None)])[0].clone()
        };
        assert_eq!(web(1, "a:1"), web(5, "a:1"), "scaled");
        assert_ne!(web(1, "a:1"), web(1, "a:2"));
        let once = ObjectHook { occasion: HookReleases::Install, ..RUN };
        assert_eq!(names(vec![job("a", once), config(&json!({}))]), ["migrate", "c"]);
    }

    #[test]
    fn equal_hook_and_object_are_merged() {
        let account = |annotations: Value, token: bool, hook: Option<ObjectHook>| {
            let object = json!({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": "robot",
                "annotations": annotations}, "automountServiceAccountToken": token});
            RenderedObject { hook, ..RenderedObject::for_test(&object, None) }
        };
        let helm = json!({"a": "b", "helm.sh/hook": "pre-install", "helm.sh/hook-weight": "-5",
            "helm.sh/hook-delete-policy": "before-hook-creation"});
        let place = ObjectHook { weight: -5, occasion: HookReleases::Install, runs: false, ..RUN };
        let (hook, plain) = (account(helm, true, Some(place)), account(json!({"a": "b"}), true, None));
        let made = ObjectHook { occasion: HookReleases::Each, ..place };
        for (first, second) in [(&hook, &plain), (&plain, &hook)] {
            let one = merge_hook_with_object(first, second).expect("they are alike");
            assert_eq!((one.hook, one.hash, &one.body), (Some(made), plain.hash, &plain.body));
        }
        assert_eq!(merge_hook_with_object(&hook, &account(json!({"a": "b"}), false, None)), None);
        assert_eq!(merge_hook_with_object(&hook, &hook), None);
        let run = RenderedObject { hook: Some(RUN), ..hook };
        assert_eq!(merge_hook_with_object(&run, &plain), None);
    }

    #[test]
    fn names_of_runs_fit_a_label() {
        let check = |name: &str, expected: &str| assert_eq!(run_name(name, "0123456789ab"), expected);
        check("migrate", "migrate-01234567");
        check(&"x".repeat(70), &format!("{}-01234567", "x".repeat(54)));
        check(&format!("{}-{}", "x".repeat(53), "y".repeat(20)), &format!("{}-01234567", "x".repeat(53)));
    }
}

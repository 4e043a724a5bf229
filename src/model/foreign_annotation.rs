//! Annotations that other deploy tools define on objects, and their equivalents in tutti.

use std::fmt;

use serde_json::Value;

use super::ChartHook;
use super::labels::PRUNE;

const SYNC_OPTIONS: &str = "argocd.argoproj.io/sync-options";
const COMPARE_OPTIONS: &str = "argocd.argoproj.io/compare-options";
const ARGO_HOOK: &str = "argocd.argoproj.io/hook";
const ARGO_HOOK_DELETE: &str = "argocd.argoproj.io/hook-delete-policy";
const FLUX_PRUNE: &str = "kustomize.toolkit.fluxcd.io/prune";
const FLUX_RECONCILE: &str = "kustomize.toolkit.fluxcd.io/reconcile";
const FLUX_SSA: &str = "kustomize.toolkit.fluxcd.io/ssa";
const FLUX_FORCE: &str = "kustomize.toolkit.fluxcd.io/force";
const HELM_POLICY: &str = "helm.sh/resource-policy";
pub const HELM_HOOK: &str = "helm.sh/hook";
pub const HELM_HOOK_DELETE: &str = "helm.sh/hook-delete-policy";
pub const HELM_HOOK_WEIGHT: &str = "helm.sh/hook-weight";

/// Whether an annotation marks its object as a hook.
pub fn is_hook_annotation(annotation: &str) -> bool {
    [HELM_HOOK, ARGO_HOOK].iter().any(|hook| {
        annotation.strip_prefix(hook).is_some_and(|rest| rest.is_empty() || rest.starts_with('-'))
    })
}

/// One foreign annotation of an object, or one option of an annotation with a list.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ForeignAnnotation {
    key: &'static str,
    value: String,
    pub meaning: AnnotationMeaning,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AnnotationMeaning {
    /// As `tutti.dev/prune: keep`.
    Keep,
    /// As `tutti.dev/replace: "true"`.
    Replace,
    /// A hook that other tools run before the other objects, after them, or never.
    HookBefore,
    HookAfter,
    /// A hook of Argo CD that is applied with the other objects.
    HookWithOthers,
    HookNever,
    /// The events of a hook of Helm.
    HelmHook,
    /// No equivalent: the effect on the object, and the help.
    Unsupported(&'static str, &'static str),
    /// A value that the tool itself may not know.
    Unknown,
}

impl fmt::Display for ForeignAnnotation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "`{}: {}`", self.key, self.value)
    }
}

impl ForeignAnnotation {
    fn new(key: &'static str, value: &str, meaning: AnnotationMeaning) -> Self {
        Self { key, value: value.to_owned(), meaning }
    }

    /// The equivalent annotation of tutti; `None` without one.
    pub fn equivalent(&self) -> Option<&'static str> {
        match self.meaning {
            AnnotationMeaning::Keep => Some("`tutti.dev/prune: keep`"),
            AnnotationMeaning::Replace => Some("`tutti.dev/replace: \"true\"`"),
            AnnotationMeaning::HookBefore => Some("a hook that runs before the other objects"),
            AnnotationMeaning::HookAfter => Some("a hook that runs after the other objects"),
            AnnotationMeaning::HelmHook => Some("a hook, as in a chart"),
            AnnotationMeaning::HookWithOthers
            | AnnotationMeaning::HookNever
            | AnnotationMeaning::Unsupported(..)
            | AnnotationMeaning::Unknown => None,
        }
    }

    /// What happens to an object whose annotation has no equivalent.
    pub fn effect(&self) -> &'static str {
        match self.meaning {
            AnnotationMeaning::HookWithOthers => {
                "it is applied with the other objects; a Job or Pod that changes is deleted and created again"
            }
            AnnotationMeaning::HookNever => "it is not applied, because tutti has no hooks of this type",
            AnnotationMeaning::Unsupported(effect, _) => effect,
            _ => "it has no effect",
        }
    }

    pub fn help(&self) -> &'static str {
        match self.meaning {
            AnnotationMeaning::Keep | AnnotationMeaning::Replace => {
                "the annotation tutti.dev/… on the object has the same effect and takes precedence"
            }
            AnnotationMeaning::HookBefore | AnnotationMeaning::HookAfter | AnnotationMeaning::HelmHook => {
                "Jobs and Pods run at each change of the app; `tutti.dev/chart-hooks` on the app changes this"
            }
            AnnotationMeaning::HookNever => "take it out of the app, or run it yourself",
            AnnotationMeaning::Unsupported(_, help) => help,
            AnnotationMeaning::HookWithOthers | AnnotationMeaning::Unknown => {
                "remove the annotation if no other tool needs it"
            }
        }
    }
}

/// All foreign annotations of an object, without those that Helm reads as hooks of its chart (`is_of_chart`).
pub fn foreign_annotations(object: &Value, is_of_chart: bool) -> Vec<ForeignAnnotation> {
    let mut found = Vec::new();
    let mut read = |key: &'static str, value: &str, meaning: Option<AnnotationMeaning>| {
        found.extend(meaning.map(|meaning| ForeignAnnotation::new(key, value, meaning)));
    };
    for option in options(object, SYNC_OPTIONS) {
        read(SYNC_OPTIONS, option, sync_option(option));
    }
    for option in options(object, COMPARE_OPTIONS) {
        read(COMPARE_OPTIONS, option, compare_option(option));
    }
    for key in [FLUX_PRUNE, FLUX_RECONCILE, FLUX_SSA, FLUX_FORCE] {
        // Flux reads labels as well as annotations.
        let said = [annotation(object, key), label(object, key)].into_iter().flatten();
        if let Some((value, meaning)) =
            said.filter_map(|value| Some((value, flux_meaning(key, value)?))).next()
        {
            read(key, value, Some(meaning));
        }
    }
    if let Some(policy) = annotation(object, HELM_POLICY) {
        read(
            HELM_POLICY,
            policy,
            policy.trim().eq_ignore_ascii_case("keep").then_some(AnnotationMeaning::Keep),
        );
    }
    if !is_of_chart || annotation(object, HELM_HOOK).is_none() {
        read_hooks(object, &mut read);
    }
    found
}

/// Argo CD reads Helm's hook annotations when its own is missing.
fn read_hooks(object: &Value, read: &mut impl FnMut(&'static str, &str, Option<AnnotationMeaning>)) {
    let types: Vec<&str> = options(object, ARGO_HOOK).collect();
    let policies = |key, read: &mut dyn FnMut(&'static str, &str, Option<AnnotationMeaning>)| {
        if let Some(policy) = annotation(object, key) {
            let effect = "it is ignored: a finished hook stays until the next release is healthy";
            read(
                key,
                policy,
                Some(AnnotationMeaning::Unsupported(
                    effect,
                    "remove the annotation; the next release deletes the hook",
                )),
            );
        }
    };
    if let Some(of_helm) = annotation(object, HELM_HOOK).filter(|_| types.is_empty()) {
        let is_run = ChartHook::of(object).is_some_and(|hook| hook.supported_events().next().is_some());
        read(
            HELM_HOOK,
            of_helm,
            Some(if is_run { AnnotationMeaning::HelmHook } else { AnnotationMeaning::HookNever }),
        );
        if is_run {
            policies(HELM_HOOK_DELETE, read);
        }
    }
    if types.is_empty() {
        return;
    }
    let is = |name: &str| types.contains(&name);
    let meaning = match () {
        () if is("PreSync") => AnnotationMeaning::HookBefore,
        () if is("PostSync") => AnnotationMeaning::HookAfter,
        () if is("Sync") => AnnotationMeaning::HookWithOthers,
        () => AnnotationMeaning::HookNever,
    };
    read(ARGO_HOOK, &types.join(","), Some(meaning));
    if meaning != AnnotationMeaning::HookNever {
        policies(ARGO_HOOK_DELETE, read);
    }
}

fn sync_option(option: &str) -> Option<AnnotationMeaning> {
    Some(match option {
        "Prune=false" | "Delete=false" => AnnotationMeaning::Keep,
        "Force=true" => AnnotationMeaning::Replace,
        "Prune=confirm" | "Delete=confirm" => AnnotationMeaning::Unsupported(
            "it is deleted like any other, within the caps of the instance",
            "`tutti.dev/prune: keep` keeps it",
        ),
        "Replace=true" | "ServerSideApply=false" => AnnotationMeaning::Unsupported(
            "it has no effect: tutti always uses server-side apply",
            "`tutti.dev/replace: \"true\"` deletes it and creates it again when a field cannot be changed",
        ),
        "Validate=false" => AnnotationMeaning::Unsupported(
            "it has no effect: the server always validates objects",
            "write the object as its schema wants it",
        ),
        "PruneLast=true" => AnnotationMeaning::Unsupported(
            "it has no effect: objects are deleted in the reverse order of their apply",
            "`tutti.dev/sync-wave` changes that order",
        ),
        // Options that tutti always applies, and disabled options.
        "ServerSideApply=true"
        | "SkipDryRunOnMissingResource=true"
        | "Prune=true"
        | "Delete=true"
        | "Replace=false"
        | "Force=false"
        | "Validate=true"
        | "PruneLast=false" => return None,
        _ => AnnotationMeaning::Unknown,
    })
}

fn compare_option(option: &str) -> Option<AnnotationMeaning> {
    match option {
        "ServerSideDiff=true" | "IncludeMutationWebhook=true" => None,
        "IgnoreExtraneous" => Some(AnnotationMeaning::Unsupported(
            "it counts like any other, and is deleted when it is no longer rendered",
            "`tutti.dev/prune: keep` keeps it",
        )),
        _ => Some(AnnotationMeaning::Unknown),
    }
}

fn flux_meaning(key: &str, value: &str) -> Option<AnnotationMeaning> {
    let is = |word: &str| value.eq_ignore_ascii_case(word);
    let held = |effect| {
        AnnotationMeaning::Unsupported(
            effect,
            "take it out of the app, or leave its fields to others with `ignore` in the app",
        )
    };
    match key {
        FLUX_PRUNE if is("disabled") => Some(AnnotationMeaning::Keep),
        FLUX_FORCE if is("enabled") => Some(AnnotationMeaning::Replace),
        FLUX_RECONCILE if is("disabled") => {
            Some(held("it has no effect: the object is applied, and drift is corrected"))
        }
        FLUX_SSA if is("IfNotPresent") => {
            Some(held("it has no effect: drift is corrected, also when the object exists already"))
        }
        FLUX_SSA if is("Ignore") => Some(held("it has no effect: the object is applied")),
        _ => None,
    }
}

/// The annotation that keeps an object when it is no longer rendered, as a text. Our own annotation overrides foreign ones.
pub fn keep_reason(object: &Value) -> Option<String> {
    if let Some(own) = annotation(object, PRUNE) {
        return (own == "keep").then(|| format!("{PRUNE} is {own}"));
    }
    let is_keep = |mark: &ForeignAnnotation| mark.meaning == AnnotationMeaning::Keep;
    let mark = foreign_annotations(object, true).into_iter().find(is_keep)?;
    Some(format!("{} is {}", mark.key, mark.value))
}

fn annotation<'o>(object: &'o Value, key: &str) -> Option<&'o str> {
    object.get("metadata")?.get("annotations")?.get(key)?.as_str()
}

fn label<'o>(object: &'o Value, key: &str) -> Option<&'o str> {
    object.get("metadata")?.get("labels")?.get(key)?.as_str()
}

fn options<'o>(object: &'o Value, key: &str) -> impl Iterator<Item = &'o str> {
    let list = annotation(object, key).unwrap_or_default();
    list.split(',').map(str::trim).filter(|option| !option.is_empty())
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn foreign_annotations_have_meaning_or_help() {
        let check = |annotations: Value, expected: &[AnnotationMeaning]| {
            let object = json!({"metadata": {"annotations": annotations}});
            let found = foreign_annotations(&object, false);
            let meanings: Vec<AnnotationMeaning> = found.iter().map(|mark| mark.meaning).collect();
            assert_eq!(meanings.len(), expected.len(), "{object}: {meanings:?}");
            for (found, expected) in meanings.iter().zip(expected) {
                let alike = match (found, expected) {
                    (AnnotationMeaning::Unsupported(..), AnnotationMeaning::Unsupported(..)) => true,
                    (found, expected) => found == expected,
                };
                assert!(alike, "{object}: {found:?}");
            }
        };
        let nothing = AnnotationMeaning::Unsupported("", "");
        check(json!({SYNC_OPTIONS: "Prune=false"}), &[AnnotationMeaning::Keep]);
        check(json!({SYNC_OPTIONS: " Replace=true , Prune=false,"}), &[nothing, AnnotationMeaning::Keep]);
        check(json!({SYNC_OPTIONS: "Prune=true,ServerSideApply=true"}), &[]);
        check(json!({SYNC_OPTIONS: "prune=false"}), &[AnnotationMeaning::Unknown]);
        check(json!({SYNC_OPTIONS: "Force=true,Prune=confirm"}), &[AnnotationMeaning::Replace, nothing]);
        check(json!({COMPARE_OPTIONS: "IgnoreExtraneous,ServerSideDiff=true"}), &[nothing]);
        check(
            json!({FLUX_PRUNE: "Disabled", FLUX_FORCE: "enabled"}),
            &[AnnotationMeaning::Keep, AnnotationMeaning::Replace],
        );
        check(json!({FLUX_PRUNE: "enabled", FLUX_SSA: "Merge"}), &[]);
        check(json!({FLUX_SSA: "ifnotpresent", FLUX_RECONCILE: "disabled"}), &[nothing, nothing]);
        check(json!({HELM_POLICY: " Keep "}), &[AnnotationMeaning::Keep]);
        check(json!({HELM_POLICY: "delete"}), &[]);
        check(json!({ARGO_HOOK: "PreSync,PostSync"}), &[AnnotationMeaning::HookBefore]);
        check(
            json!({ARGO_HOOK: "PostSync", ARGO_HOOK_DELETE: "HookSucceeded"}),
            &[AnnotationMeaning::HookAfter, nothing],
        );
        check(json!({ARGO_HOOK: "Sync"}), &[AnnotationMeaning::HookWithOthers]);
        check(json!({ARGO_HOOK: "Skip", ARGO_HOOK_DELETE: "HookFailed"}), &[AnnotationMeaning::HookNever]);
        check(json!({ARGO_HOOK: "SyncFail"}), &[AnnotationMeaning::HookNever]);
        check(json!({ARGO_HOOK: "Sync", HELM_HOOK: "pre-install"}), &[AnnotationMeaning::HookWithOthers]);
        check(json!({HELM_HOOK: "pre-install"}), &[AnnotationMeaning::HelmHook]);
        check(
            json!({HELM_HOOK: "post-install,test", HELM_HOOK_DELETE: "x"}),
            &[AnnotationMeaning::HelmHook, nothing],
        );
        check(json!({HELM_HOOK: "test-success", HELM_HOOK_DELETE: "x"}), &[AnnotationMeaning::HookNever]);
        check(json!({HELM_HOOK: "pre-delete,post-rollback"}), &[AnnotationMeaning::HookNever]);
        check(json!({HELM_HOOK: "crd-install"}), &[AnnotationMeaning::HookNever]);
    }

    #[test]
    fn helm_reads_the_hooks_of_its_charts() {
        let object = json!({"metadata": {"annotations": {HELM_HOOK: "pre-install", ARGO_HOOK: "PreSync"}}});
        assert_eq!(foreign_annotations(&object, true), []);
        let object = json!({"metadata": {"annotations": {ARGO_HOOK: "PreSync"}}});
        assert_eq!(
            foreign_annotations(&object, true),
            [ForeignAnnotation::new(ARGO_HOOK, "PreSync", AnnotationMeaning::HookBefore)]
        );
    }

    #[test]
    fn own_prune_annotation_overrides_foreign_ones() {
        let check = |metadata: Value, expected: Option<&str>| {
            let object = json!({"metadata": metadata});
            assert_eq!(keep_reason(&object).as_deref(), expected, "{object}");
        };
        check(json!({}), None);
        check(json!({"annotations": {PRUNE: "keep"}}), Some("tutti.dev/prune is keep"));
        check(json!({"annotations": {PRUNE: "delete", HELM_POLICY: "keep"}}), None);
        check(json!({"annotations": {HELM_POLICY: "keep"}}), Some("helm.sh/resource-policy is keep"));
        let by_flux = Some("kustomize.toolkit.fluxcd.io/prune is disabled");
        check(json!({"labels": {FLUX_PRUNE: "disabled"}}), by_flux);
        check(json!({"annotations": {FLUX_PRUNE: "enabled"}, "labels": {FLUX_PRUNE: "disabled"}}), by_flux);
        check(json!({"labels": {HELM_POLICY: "keep"}}), None);
    }
}

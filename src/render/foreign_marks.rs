//! Applies annotations of Argo CD, Flux and Helm to the documents of an app.

use serde_json::Value;

use super::Job;
use super::documents::{self, Document};
use super::hooks::{self, Taken, Wanted};
use crate::model::mark::{self, Mark, Meaning};
use crate::model::{ChartHook, Diagnostic, Hook, Occasion, Stage, SyncWave, labels};

/// Argo CD and Helm accept `generateName` for hooks. Here each run gets its own name, and other hooks are recreated when they
/// change.
pub fn name_hook(object: &mut Value) {
    use Meaning::{After, Before, Beside, Never, OfHelm};
    let is_hook = mark::marks(object, false)
        .iter()
        .any(|mark| matches!(mark.meaning, Before | After | Beside | Never | OfHelm));
    let Some(metadata) = object.get_mut("metadata").and_then(Value::as_object_mut) else { return };
    if is_hook && !metadata.contains_key("name") {
        let prefix = metadata.shift_remove("generateName");
        let name = prefix.as_ref().and_then(Value::as_str).map(|prefix| prefix.trim_end_matches(['-', '.']));
        metadata.extend(name.map(|name| ("name".to_owned(), name.into())));
    }
}

/// Reads the marks of all documents, and removes hooks that are never run here.
pub fn read(job: &Job<'_>, documents: &mut Vec<Document>) -> Result<(), Vec<Diagnostic>> {
    let all = std::mem::take(documents);
    for mut document in all {
        let object = Value::Object(std::mem::take(&mut document.object));
        let marks = mark::marks(&object, document.is_of_chart);
        let taken = match document.hook {
            Some(hook) => Taken::As(Some(hook)),
            None => take(job, &object, &marks).map_err(|mistake| vec![*mistake])?,
        };
        if let Value::Object(object) = object {
            document.object = object;
        }
        for mark in marks {
            follow(job, &mut document, &mark);
        }
        if let Taken::As(hook) = taken {
            documents.push(Document { hook, ..document });
        }
    }
    Ok(())
}

fn take(job: &Job<'_>, object: &Value, marks: &[Mark]) -> Result<Taken, Box<Diagnostic>> {
    let runs = hooks::runs(object);
    for mark in marks {
        let stage = match mark.meaning {
            Meaning::Never => return Ok(Taken::LeftOut),
            Meaning::Before => Stage::Before,
            Meaning::After => Stage::After,
            Meaning::OfHelm => {
                return Ok(hooks::take(ChartHook::of(object).as_ref(), object, hooks::wanted(job)?));
            }
            _ => continue,
        };
        let weight = SyncWave::of(|name| annotation(object, name)).unwrap_or_default().number().into();
        let hook = Hook { stage, weight, occasion: Occasion::Each, runs };
        return Ok(match hooks::wanted(job)? {
            Wanted::InPlace => Taken::As(Some(hook)),
            Wanted::Without if runs => Taken::LeftOut,
            Wanted::Beside | Wanted::Without => Taken::As(None),
        });
    }
    Ok(Taken::As(None))
}

fn annotation<'o>(object: &'o Value, name: &str) -> Option<&'o str> {
    object.get("metadata")?.get("annotations")?.get(name)?.as_str()
}

/// An annotation of ours wins, and then no warning is needed.
fn follow(job: &Job<'_>, document: &mut Document, mark: &Mark) {
    let ours = match mark.meaning {
        Meaning::Keep => Some((labels::PRUNE, "keep")),
        Meaning::Replace => Some((labels::REPLACE, "true")),
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
    if mark.meaning != Meaning::Unknown || document.sealed.is_none() {
        let name = documents::name(&document.object);
        job.remarks.note(mark.clone(), name, &document.source);
    }
    if let Some((name, value)) = ours {
        documents::annotate(&mut document.object, name, value);
    }
    let runs_again = mark.meaning == Meaning::Beside && hooks::is_run(&documents::kind_of(&document.object));
    if runs_again {
        documents::annotate(&mut document.object, labels::REPLACE, "true");
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
            name_hook(&mut object);
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

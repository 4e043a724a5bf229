//! Parses the texts that a chart renders into objects.

use std::thread;

use serde_json::Value;

use super::helm_messages;
use super::protocol::{HelmRenderAnswer, HelmRenderObject};
use crate::manifest::yaml;
use crate::model::{ChartFailure, ChartFailureKind, ChartHook, ChartObject};

/// Texts that our strict parser refuses go to Helm's (`understand`), which returns one object for each or the first error. A
/// text of comments is no object.
pub fn objects(
    chart: &str,
    made: Vec<HelmRenderObject>,
    understand: impl FnOnce(&[(&str, &str)]) -> Result<HelmRenderAnswer, ChartFailure>,
) -> Result<Vec<ChartObject>, ChartFailure> {
    let read = read_all(&made);
    let left = || made.iter().zip(&read).filter(|(_, read)| read.is_none()).map(|(object, _)| object);
    let texts: Vec<(&str, &str)> = left().map(|it| (it.file.as_str(), it.text.as_str())).collect();
    let mut rest = if texts.is_empty() { HelmRenderAnswer::default() } else { understand(&texts)? };
    if let Some(failure) = rest.error.take() {
        return Err(helm_messages::failure_of_helm(chart, &failure));
    }
    let mut rest = rest.objects.into_iter().map(|object| object.object);
    let mut objects = Vec::with_capacity(made.len());
    for (made, read) in made.into_iter().zip(read) {
        let file = helm_messages::path_in_chart(chart, &made.file);
        let object = read.or_else(|| rest.next()).unwrap_or_default();
        if object.is_null() {
            continue;
        }
        if !made.definition
            && let Some(key) = wrong_annotation(&object)
        {
            let message = format!("the output is not a Kubernetes object: annotation {key} is not a text");
            return Err(ChartFailure::new(ChartFailureKind::Output, message).at(file, 1, 1));
        }
        let hook = made.hook.map(|hook| ChartHook {
            events: hook.events,
            weight: hook.weight,
            delete_policies: hook.delete_policies,
        });
        objects.push(ChartObject { file: file.to_owned(), object, definition: made.definition, hook });
    }
    Ok(objects)
}

/// Bytes from which texts are parsed in parallel: definitions have megabytes, and their child waits.
const PARALLEL_FROM_BYTES: usize = 64 * 1024;

fn read_all(made: &[HelmRenderObject]) -> Vec<Option<Value>> {
    let total: usize = made.iter().map(|object| object.text.len()).sum();
    let workers = thread::available_parallelism().map_or(1, usize::from);
    let read_some = |some: &[HelmRenderObject]| some.iter().map(|object| read(&object.text)).collect();
    if total < PARALLEL_FROM_BYTES || workers == 1 {
        return read_some(made);
    }
    let mut bytes = 0;
    let shares = made.chunk_by(|object, _| {
        let share = bytes * workers / total;
        bytes += object.text.len();
        bytes * workers / total == share
    });
    thread::scope(|scope| {
        // If no thread starts, this one parses.
        let start =
            |share| thread::Builder::new().spawn_scoped(scope, move || read_some(share)).map_err(|_| share);
        let readers: Vec<_> = shares.map(start).collect();
        let join = |reader: Result<thread::ScopedJoinHandle<'_, Vec<Option<Value>>>, &[HelmRenderObject]>| {
            match reader {
                Ok(reader) => reader.join().unwrap_or_else(|panicked| std::panic::resume_unwind(panicked)),
                Err(share) => read_some(share),
            }
        };
        readers.into_iter().flat_map(join).collect()
    })
}

/// `None`: Kubernetes clients may parse it differently.
fn read(text: &str) -> Option<Value> {
    let (documents, mistakes) = yaml::parse("", text);
    match documents.as_slice() {
        _ if !mistakes.is_empty() => None,
        [] => Some(Value::Null),
        [one] => Some(one.root.to_json()),
        _ => None,
    }
}

/// Helm and the API server refuse such an object.
fn wrong_annotation(object: &Value) -> Option<&String> {
    let annotations = object.get("metadata")?.get("annotations")?.as_object()?;
    annotations.iter().find(|(_, value)| !value.is_string() && !value.is_null()).map(|(key, _)| key)
}

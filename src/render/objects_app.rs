//! Renders Objects apps: plain files, and `.j2` files as templates.

use std::collections::{BTreeMap, BTreeSet};

use super::engine;
use super::layer_stacks::LayerStack;
use super::layers::{LayerSource, overlong_line};
use super::patches::PatchUsage;
use super::template_context::TemplateContext;
use super::templates::Templates;
use super::{ObjectsById, RenderJob, codes, documents, foreign_annotations, pod_sets};
use crate::fleet::files_of;
use crate::model::{Diagnostic, Location, ObjectsApp, Snapshot, UNREADABLE_HELP};

/// The files that an Objects app lists, each once, sorted.
pub fn listed_files<'a>(objects: &ObjectsApp, snapshot: &'a Snapshot) -> BTreeSet<&'a str> {
    objects.files.iter().flat_map(|(pattern, _)| files_of(pattern, snapshot)).collect()
}

/// Whether a template reads the ring of the cluster.
pub fn templates_use_ring(objects: &ObjectsApp, snapshot: &Snapshot) -> bool {
    let mut templates = listed_files(objects, snapshot).into_iter().filter(|path| path.ends_with(".j2"));
    templates.any(|path| snapshot.text(path).is_some_and(|text| engine::reads_variable(text, "ring")))
}

pub fn render(
    job: &RenderJob<'_>,
    stack: &LayerStack,
    objects: &ObjectsApp,
    used: &mut PatchUsage,
) -> Result<ObjectsById, Vec<Diagnostic>> {
    let patches = stack.patches(job)?;
    used.append(&mut patches.as_unused(job.app));
    let context = TemplateContext::new(job, stack.values(job)?.clone(), None);
    let (mut plain, mut filled, mut wrong) = (Vec::new(), Vec::new(), Vec::new());
    for path in listed_files(objects, job.snapshot) {
        let Some(text) = job.snapshot.text(path) else {
            let message = format!("{path} {}", job.snapshot.why_unreadable(path));
            let mistake = job.error(codes::LAYER_FILE, message).at(Location::new(path, 1, 1));
            wrong.push(mistake.help(UNREADABLE_HELP));
            continue;
        };
        let file =
            LayerSource { path: path.to_owned(), blob: "".into(), text: text.into(), is_shipped: false };
        match overlong_line(job, &file.path, &file.text).filter(|_| path.ends_with(".j2")) {
            Some(mistake) => wrong.push(mistake),
            None if path.ends_with(".j2") => filled.push(file),
            None => plain.push(file),
        }
    }
    // A template of an Objects app sees no other template.
    let groups: Vec<_> =
        filled.iter().map(|file| BTreeMap::from([(file.path.as_str(), vec![file])])).collect();
    let templates = Templates::new(job, &groups);
    let (texts, mut mistakes) = templates.render(job, &context);
    wrong.append(&mut mistakes);
    let of_texts = texts.iter().map(|(file, text)| (&file.path, documents::parse_output(job, file, text)));
    let of_plain = plain.iter().map(|file| (&file.path, documents::parse_file(job, file)));
    // In file order, which decides which of two equal objects is reported.
    let by_file: BTreeMap<_, _> = of_texts.chain(of_plain).collect();
    let mut made = Vec::new();
    for documents in by_file.into_values() {
        match documents {
            Ok(mut documents) => made.append(&mut documents),
            Err(mut mistakes) => wrong.append(&mut mistakes),
        }
    }
    let patched = patches
        .apply_layer_patches(job, &mut made, used)
        .and_then(|()| patches.apply_app_patches(job, &mut made, used));
    let marked = patched.and_then(|()| foreign_annotations::read_annotations(job, &mut made));
    wrong.extend(marked.err().into_iter().flatten());
    let found = pod_sets::finish_documents(job, made, "", &mut wrong);
    if wrong.is_empty() { Ok(found) } else { Err(wrong) }
}

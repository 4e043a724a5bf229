//! Renders Objects apps: plain files, and `.j2` files as templates.

use std::collections::BTreeMap;

use super::layer_source::LayerSource;
use super::layer_stacks::LayerStack;
use super::layer_text::overlong_line;
use super::object_files::listed_files;
use super::patches::PatchUsage;
use super::render_job::RenderJob;
use super::render_output::ObjectsById;
use super::template_context::TemplateContext;
use super::templates::Templates;
use super::{codes, documents, foreign_annotations, pod_sets};
use crate::model::{Diagnostic, Location, ObjectsApp, UNREADABLE_HELP};

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

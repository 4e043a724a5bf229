//! Objects apps: files as they are, `.j2` files as templates.

use std::collections::{BTreeMap, BTreeSet};

use super::context::Context;
use super::engine::{self, Engine};
use super::layers::{Source, too_wide};
use super::patches::Used;
use super::stacks::Stack;
use super::{Found, Job, codes, documents, foreign_marks, mistakes, pods};
use crate::fleet::files_of;
use crate::model::{Diagnostic, Location, Objects, Snapshot};

/// The files that an Objects app lists, each once, sorted.
pub fn files<'a>(objects: &Objects, snapshot: &'a Snapshot) -> BTreeSet<&'a str> {
    objects.files.iter().flat_map(|(pattern, _)| files_of(pattern, snapshot)).collect()
}

/// Whether one of its templates looks at the ring of the cluster.
pub fn look_at_ring(objects: &Objects, snapshot: &Snapshot) -> bool {
    let mut templates = files(objects, snapshot).into_iter().filter(|path| path.ends_with(".j2"));
    templates.any(|path| snapshot.text(path).is_some_and(|text| engine::reads(text, "ring")))
}

pub fn render(
    job: &Job<'_>,
    stack: &Stack,
    objects: &Objects,
    used: &mut Used,
) -> Result<Found, Vec<Diagnostic>> {
    let patches = stack.patches(job)?;
    used.append(&mut patches.unused(job.app));
    let context = Context::new(job, stack.values(job)?.clone(), None);
    let (mut made, mut wrong) = (Vec::new(), Vec::new());
    for path in files(objects, job.snapshot) {
        let Some(text) = job.snapshot.text(path) else {
            let message = format!("{path} {}", job.snapshot.why_unreadable(path));
            wrong.push(job.error(codes::LAYER_FILE, message).at(Location::new(path, 1, 1)));
            continue;
        };
        let file = Source { path: path.to_owned(), blob: "".into(), text: text.into() };
        let documents = if path.ends_with(".j2") {
            template(job, &file, &context)
        } else {
            documents::of_file(job, &file)
        };
        match documents {
            Ok(mut documents) => made.append(&mut documents),
            Err(mut mistakes) => wrong.append(&mut mistakes),
        }
    }
    let patched =
        patches.apply_below(job, &mut made, used).and_then(|()| patches.apply_of_app(job, &mut made, used));
    let marked = patched.and_then(|()| foreign_marks::read(job, &mut made));
    wrong.extend(marked.err().into_iter().flatten());
    let found = pods::finish(job, made, "", &mut wrong);
    if wrong.is_empty() { Ok(found) } else { Err(wrong) }
}

/// A template of an Objects app sees no other template.
fn template(
    job: &Job<'_>,
    file: &Source,
    context: &Context<'_>,
) -> Result<Vec<documents::Document>, Vec<Diagnostic>> {
    if let Some(mistake) = too_wide(job, &file.path, &file.text) {
        return Err(vec![mistake]);
    }
    let chains = BTreeMap::from([(file.path.as_str(), vec![file])]);
    let output = Engine::new(&chains, job.notes)
        .map_err(|unread| unread.iter().map(|unread| mistakes::of_unread(job, unread)).collect::<Vec<_>>())
        .and_then(|engine| {
            let mistake = |error| vec![mistakes::of_template(job, &error, &|| context.to_json())];
            engine.render(file, context.variables()).map_err(mistake)
        })?;
    documents::of_output(job, file, &output)
}

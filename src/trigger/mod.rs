//! Converts a payload of another program to a change of one file of an app: a pure function of trigger, payload and repository.
//!
//! [`evaluate`] returns whether a payload matches, and the value and the file that it changes ([`TriggerOutcome`]); [`TriggerOutcome::edited_file`]
//! is the file with that value. A payload is untrusted: it only fills in templates. Every text from it is checked for its purpose
//! (an app, a ring, a version, an image, a file of that app) before it is used.
//!
//! It does no IO, reads no clock, and changes only files in the folder of one app.

mod commit;
mod outcome;
#[cfg(test)]
mod tests;
mod value;

use std::fmt;

use serde_json::Value;

pub use commit::SourceCommit;
pub use outcome::TriggerOutcome;
pub use value::{image_mistake, version_mistake};

use crate::fleet::{Fleet, trigger_files};
use crate::manifest::read::suggest;
use crate::model::glob::{self, SeparatorMatching};
use crate::model::{
    App, AppSpec, ImageReference, Location, Snapshot, Trigger, TriggerField, TriggerMatchRule, TriggerTarget,
    TriggerValue, image_tag, short_line,
};
use crate::promotion::edit;

/// Characters of a payload that an error repeats.
const MAX_QUOTE_LENGTH: usize = 80;

/// Why a matching payload changes nothing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Error {
    pub trigger: String,
    /// The position of the trigger's field.
    pub at: Location,
    pub message: String,
    pub help: String,
}

impl fmt::Display for Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self { trigger, at, message, help } = self;
        write!(f, "failed to run trigger {trigger} at {at}: {message} (help: {help})")
    }
}

impl std::error::Error for Error {}

/// The change of a payload; `None` if it does not match.
pub fn evaluate(
    trigger: &Trigger,
    payload: &Value,
    fleet: &Fleet,
    snapshot: &Snapshot,
) -> Result<Option<TriggerOutcome>, Error> {
    if !is_matched(trigger, payload) {
        return Ok(None);
    }
    let run = TriggerEvaluation { trigger, payload };
    let apps: Vec<_> = fleet
        .apps
        .values()
        .chain(fleet.broken_apps.values().filter_map(|it| it.app.as_ref()))
        .cloned()
        .collect();
    let named = run.text(&trigger.app, "app")?;
    let id = trigger_files::find_app(&named, apps.iter().map(|app| &app.id)).map_err(|help| {
        run.error(
            &trigger.app,
            format!("`app` is {}, which does not exist", quote_payload_text(&named)),
            help,
        )
    })?;
    let Some(app) = apps.iter().find(|app| app.id == id) else { return Ok(None) };
    let (value, version) = run.value(app)?;
    let (ring, file, field, to) = match &trigger.target {
        TriggerTarget::Pin { ring: field } => {
            let (ring, to) = (run.ring(field, fleet)?, run.pin_value(app, version.as_deref())?);
            let file = trigger_files::pin_path(app, &ring)
                .map_err(|(mistake, help)| run.error(field, mistake, help))?;
            (Some(ring), file, PIN_FIELD.to_owned(), to)
        }
        TriggerTarget::Field { file, field } => {
            let named = run.text(file, "file")?;
            let path =
                trigger_files::writable_file(app, &named, &apps, snapshot).map_err(|(mistake, help)| {
                    run.error(
                        file,
                        format!("`file` is {}, which {mistake}", quote_payload_text(&named)),
                        help,
                    )
                })?;
            (None, path, field.clone(), value)
        }
    };
    let from = match snapshot.text(&file) {
        Some(text) => Some(edit::scalar(text, &field).map_err(|error| {
            let at = Location { file: file.clone(), start: error.at, end: None };
            Error { trigger: trigger.name.clone(), at, message: error.message, help: error.help }
        })?),
        None if snapshot.files.contains_key(&file) => {
            let message = format!("{file} {}", snapshot.why_unreadable(&file));
            return Err(run.error(&trigger.app, message, "correct the file first".to_owned()));
        }
        None => None,
    };
    let commit = commit::source_commit(payload);
    let reason = outcome::reason(trigger, commit.as_ref());
    Ok(Some(TriggerOutcome {
        trigger: trigger.name.clone(),
        app: id,
        ring,
        file,
        field,
        from,
        to,
        version,
        write: trigger.write,
        commit,
        reason,
    }))
}

/// The changes of all triggers of a receiver for one delivery, without triggers that do not match.
pub fn evaluate_delivery(
    receiver: &str,
    payload: &Value,
    fleet: &Fleet,
    snapshot: &Snapshot,
) -> Vec<Result<TriggerOutcome, Error>> {
    let of_it = fleet.triggers.values().filter(|trigger| trigger.receiver.as_deref() == Some(receiver));
    of_it.filter_map(|trigger| evaluate(trigger, payload, fleet, snapshot).transpose()).collect()
}

/// Whether a delivery matches a trigger of its receiver.
pub fn has_matching_trigger(receiver: &str, payload: &Value, fleet: &Fleet) -> bool {
    let mut of_it = fleet.triggers.values().filter(|trigger| trigger.receiver.as_deref() == Some(receiver));
    of_it.any(|trigger| is_matched(trigger, payload))
}

fn is_matched(trigger: &Trigger, payload: &Value) -> bool {
    trigger.rules.iter().all(|rule| matches_rule(rule, payload))
}

/// The only field of a pin.
const PIN_FIELD: &str = "version";

fn matches_rule(rule: &TriggerMatchRule, payload: &Value) -> bool {
    let Some(found) = rule.path.scalar(payload) else { return false };
    let is_one = |pattern: &String| {
        let is_pattern = pattern.contains(['*', '?', '[', '{', '\\']);
        *pattern == found
            || is_pattern
                && glob::compile(pattern, SeparatorMatching::Literal).is_ok_and(|glob| glob.is_match(&found))
    };
    rule.patterns.iter().any(is_one)
}

/// An untrusted text, safe to show.
fn quote_payload_text(text: &str) -> String {
    format!("{:?}", short_line(text, MAX_QUOTE_LENGTH))
}

struct TriggerEvaluation<'a> {
    trigger: &'a Trigger,
    payload: &'a Value,
}

impl TriggerEvaluation<'_> {
    fn error(&self, field: &TriggerField, message: String, help: String) -> Error {
        Error { trigger: self.trigger.name.clone(), at: field.location.clone(), message, help }
    }

    fn text(&self, field: &TriggerField, name: &str) -> Result<String, Error> {
        field.template.render(self.payload).map_err(|message| {
            let help = "send it, or write a default: {{ path | default('…') }}".to_owned();
            self.error(field, format!("`{name}`: {message}"), help)
        })
    }

    /// The value to write into a field, and its version.
    fn value(&self, app: &App) -> Result<(String, Option<String>), Error> {
        match &self.trigger.value {
            TriggerValue::Version(field) => {
                let text = self.text(field, "version")?;
                match version_mistake(&text) {
                    None => Ok((text.clone(), Some(text))),
                    Some(help) => Err(self.error(
                        field,
                        format!("`version` is {}, which is not a version", quote_payload_text(&text)),
                        help,
                    )),
                }
            }
            TriggerValue::Image(field) => {
                let text = self.text(field, "image")?;
                let wrong = |what: &str, help: String| {
                    Err(self.error(field, format!("`image` is {}, {what}", quote_payload_text(&text)), help))
                };
                if let Some(help) = image_mistake(&text) {
                    return wrong("which is not an image", help);
                }
                let (name, known) = (ImageReference::parse(&text).name(), image_names(app));
                if matches!(self.trigger.target, TriggerTarget::Pin { .. })
                    && !known.is_empty()
                    && !known.contains(&name)
                {
                    let help = format!("a pin sets the tag of {}; send that image", known.join(" or "));
                    return wrong(&format!("which is none of {}", app.title()), help);
                }
                let tag = image_tag(&text).map(ToOwned::to_owned);
                Ok((text, tag))
            }
        }
    }

    fn ring(&self, field: &TriggerField, fleet: &Fleet) -> Result<String, Error> {
        let ring = self.text(field, "ring")?;
        let rings: Vec<&str> = fleet.rings.iter().map(|ring| ring.name.as_str()).collect();
        if rings.contains(&ring.as_str()) {
            return Ok(ring);
        }
        let message = format!("`ring` is {}, which does not exist", quote_payload_text(&ring));
        Err(self.error(field, message, suggest(&ring, &rings, &rings)))
    }

    /// The value to write into a pin.
    fn pin_value(&self, app: &App, version: Option<&str>) -> Result<String, Error> {
        let (TriggerValue::Version(field) | TriggerValue::Image(field)) = &self.trigger.value;
        match (&app.spec, version) {
            (AppSpec::Objects(_) | AppSpec::Project(_), _) => Err(self.error(
                &self.trigger.app,
                format!("{} has no version that a pin could set", app.title()),
                "write `file` and `field` of the trigger instead of `ring`".to_owned(),
            )),
            (_, Some(version)) if version_mistake(version).is_none() => Ok(version.to_owned()),
            (_, Some(tag)) => {
                let message = format!(
                    "`image` has the tag {}, which is not a version of a pin",
                    quote_payload_text(tag)
                );
                Err(self.error(field, message, value::VERSION_HELP.to_owned()))
            }
            (_, None) => {
                let help = "send the image with its tag".to_owned();
                Err(self.error(field, "`image` has no tag, and a pin needs one".to_owned(), help))
            }
        }
    }
}

/// The images that an app names, without tags.
fn image_names(app: &App) -> Vec<String> {
    let name = |image: &str| ImageReference::parse(image).name();
    let mut names: Vec<String> = match &app.spec {
        AppSpec::Component(component) => {
            component.values.get("image").and_then(Value::as_str).map(name).into_iter().collect()
        }
        AppSpec::AppSet(app_set) => {
            let pod_sets = app_set.clusters.iter().flat_map(|cluster| &cluster.pod_sets);
            pod_sets.filter_map(|pod_set| pod_set.image.as_deref()).map(name).collect()
        }
        AppSpec::Objects(_) | AppSpec::Project(_) => Vec::new(),
    };
    names.sort_unstable();
    names.dedup();
    names
}

//! Kind Approval: read, and written by `tutti approve`.

use std::fmt::Write as _;

use super::super::codes;
use super::super::read::{ManifestFields, ManifestValue, NameRule, ReadContext};
use super::super::yaml::YamlNode;
use super::{read_envelope, spec_fields};
use crate::model::{
    AppId, Approval, ApprovedAction, ApprovedObject, ClusterName, Digest, ObjectId, RolloutAction,
    RolloutApproval, RolloutApprovalLocations,
};

/// An Approval by its subject.
#[derive(Debug)]
pub enum ApprovalManifest {
    /// Of objects that are no longer rendered.
    Objects(Approval),
    Rollout(RolloutApproval),
}

/// The folder of approvals that may not be in the folder of an app.
const FOLDER: &str = "approvals/";

#[derive(Clone, Copy, PartialEq, Eq)]
enum ApprovalAction {
    Delete,
    Orphan,
    Rollout,
    Retry,
    Override,
}

const ACTIONS: &[(&str, ApprovalAction)] = &[
    ("delete", ApprovalAction::Delete),
    ("orphan", ApprovalAction::Orphan),
    ("rollout", ApprovalAction::Rollout),
    ("retry", ApprovalAction::Retry),
    ("override", ApprovalAction::Override),
];

pub fn read(root: &YamlNode, reading: &mut ReadContext<'_>) -> Option<ApprovalManifest> {
    let (metadata, spec) = read_envelope(root, NameRule::Subdomain, false, reading)?;
    let mut fields = spec_fields(root, spec, reading)?;
    let app = fields.required("app", reading);
    let app_place = app.as_ref().map(|app| reading.location(app.node));
    let mut places = RolloutApprovalLocations { app: app_place, ..RolloutApprovalLocations::default() };
    let app = app.and_then(|app| read_app(&app, reading));
    let action = fields.required("action", reading);
    let action_place = action.as_ref().map(|action| reading.location(action.node));
    let action = action.and_then(|action| reading.choice(&action, ACTIONS, &[], false));
    let what = match action {
        Some(action @ (ApprovalAction::Rollout | ApprovalAction::Retry | ApprovalAction::Override)) => {
            let digest = fields.required("digest", reading);
            places.digest = digest.as_ref().map(|digest| reading.location(digest.node));
            let digest = digest.and_then(|digest| read_digest(&digest, &rollout_help(app.as_ref()), reading));
            let action = match action {
                ApprovalAction::Override => {
                    if let (false, Some(place)) = (reading.file.starts_with(FOLDER), &action_place) {
                        let message = format!("an override must be below {FOLDER}");
                        reading
                            .mistake(codes::BAD_VALUE, message, place.clone(), "spec.action")
                            .help("move it there with `git mv`: the folder decides who may override windows");
                    }
                    let window = fields.required("window", reading);
                    places.window = window.as_ref().map(|window| reading.location(window.node));
                    let window = window.and_then(|window| reading.name(&window, NameRule::Label));
                    window.map(|window| RolloutAction::Override { window })
                }
                ApprovalAction::Rollout => {
                    let through = fields.required("through", reading);
                    places.through = through.as_ref().map(|through| reading.location(through.node));
                    let through = through.and_then(|through| reading.name(&through, NameRule::Label));
                    through.map(|through| RolloutAction::Open { through })
                }
                _ => Some(RolloutAction::Retry),
            };
            digest.zip(action).map(|(digest, action)| ApprovalContent::Rollout(action, digest))
        }
        // An orphan approval needs no list of objects, because nothing is deleted.
        Some(ApprovalAction::Orphan) => {
            Some(ApprovalContent::Objects(ApprovedAction::Orphan, Digest::of(&[]), Vec::new()))
        }
        Some(ApprovalAction::Delete) => {
            let rendered = fields.required("rendered", reading);
            let rendered = rendered.and_then(|rendered| read_digest(&rendered, DELETE_HELP, reading));
            let objects = fields.required("objects", reading);
            let objects = objects.and_then(|objects| read_objects(&objects, reading));
            let parts = rendered.zip(objects);
            parts.map(|(rendered, objects)| {
                ApprovalContent::Objects(ApprovedAction::Delete, rendered, objects)
            })
        }
        None => {
            // Which of them it must have depends on the action.
            for name in ["rendered", "digest"] {
                fields.optional(name, reading).and_then(|digest| read_digest(&digest, DELETE_HELP, reading));
            }
            fields.optional("objects", reading).and_then(|objects| read_objects(&objects, reading));
            for name in ["through", "window"] {
                fields.optional(name, reading).and_then(|name| reading.name(&name, NameRule::Label));
            }
            None
        }
    };
    fields.finish(reading);
    let (metadata, app) = (metadata?, app?);
    action?;
    let (name, location) = (metadata.name, Some(metadata.location));
    Some(match what? {
        ApprovalContent::Objects(action, rendered, objects) => ApprovalManifest::Objects(Approval {
            name,
            app,
            action,
            rendered,
            objects,
            location,
            is_alone: true,
        }),
        ApprovalContent::Rollout(action, digest) => ApprovalManifest::Rollout(RolloutApproval {
            name,
            app,
            action,
            digest,
            location,
            is_alone: true,
            places,
        }),
    })
}

/// The part of an approval that depends on its action.
enum ApprovalContent {
    Objects(ApprovedAction, Digest, Vec<ApprovedObject>),
    Rollout(RolloutAction, Digest),
}

fn read_objects(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<Vec<ApprovedObject>> {
    let items = reading.long_list(value)?;
    let read: Vec<_> = items.iter().map(|item| read_object(item, reading)).collect();
    let mut objects = read.into_iter().collect::<Option<Vec<_>>>()?;
    objects.sort_unstable();
    objects.dedup();
    Some(objects)
}

fn read_app(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<AppId> {
    let text = reading.text(value)?;
    let app = AppId::parse(&text);
    if app.is_none() {
        reading.bad_value(value, format!("{text:?} is not an app"), "write it as namespace/name");
    }
    app
}

/// Nobody types a digest: the plan prints its beginning, and a command writes the file.
const DELETE_HELP: &str = "64 hexadecimal digits: let `tutti approve DIGEST` write the file";

fn rollout_help(app: Option<&AppId>) -> String {
    let app = app.map_or_else(|| "APP".to_owned(), AppId::to_string);
    format!("64 hexadecimal digits: let `tutti approve rollout {app}` write the file")
}

fn read_digest(value: &ManifestValue<'_>, help: &str, reading: &mut ReadContext<'_>) -> Option<Digest> {
    let text = reading.text(value)?;
    let digest = Digest::parse(&text);
    if digest.is_none() {
        reading.bad_value(value, format!("{text:?} is not a digest"), help);
    }
    digest
}

fn read_object(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ApprovedObject> {
    let mut fields = ManifestFields::of(value, reading)?;
    let cluster =
        fields.required("cluster", reading).and_then(|cluster| reading.name(&cluster, NameRule::Subdomain));
    let id = fields.required("id", reading).and_then(|id| read_id(&id, reading));
    let uid = fields.required("uid", reading).and_then(|uid| reading.word(&uid));
    fields.finish(reading);
    Some(ApprovedObject { cluster: ClusterName::from(cluster?.as_str()), id: id?, uid: uid? })
}

fn read_id(value: &ManifestValue<'_>, reading: &mut ReadContext<'_>) -> Option<ObjectId> {
    let text = reading.text(value)?;
    let id = parse_id(&text);
    if id.is_none() {
        let help = "write it as v1/ConfigMap/infra/old, apps/v1/Deployment/shop/pay, or v1/Namespace//shop";
        reading.bad_value(value, format!("{text:?} is not an object"), help);
    }
    id
}

/// `[group/][version/]Kind/namespace/name`; without a namespace it is empty or left out. The kind is the
/// first part with a capital letter, which groups and versions never have.
fn parse_id(text: &str) -> Option<ObjectId> {
    let parts: Vec<&str> = text.split('/').collect();
    let kind = parts.iter().position(|part| part.starts_with(|letter: char| letter.is_ascii_uppercase()))?;
    let group = match &parts[..kind] {
        [] => "",
        [one] if is_version(one) => "",
        [group] => group,
        [group, version] if is_version(version) => group,
        _ => return None,
    };
    let (namespace, name) = match &parts[kind + 1..] {
        [name] => (None, *name),
        ["", name] => (None, *name),
        [namespace, name] => (Some(*namespace), *name),
        _ => return None,
    };
    (!name.is_empty()).then(|| ObjectId::new(group, parts[kind], namespace, name))
}

/// `v1`, `v2beta3`.
fn is_version(text: &str) -> bool {
    text.strip_prefix('v').is_some_and(|rest| rest.starts_with(|digit: char| digit.is_ascii_digit()))
        && !text.contains('.')
}

/// The file that `tutti approve` writes; [`read`] reads it back to the same approval.
pub fn to_yaml(approval: &Approval) -> String {
    if approval.action == ApprovedAction::Orphan {
        let (name, app) = (quoted(&approval.name), quoted(&approval.app.to_string()));
        return format!(
            "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata:\n  name: {name}\nspec:\n  app: {app}\n  action: orphan\n"
        );
    }
    let mut text = format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata:\n  name: {}\nspec:\n  app: {}\n  action: delete\n  rendered: {}\n  objects:\n",
        quoted(&approval.name),
        quoted(&approval.app.to_string()),
        quoted(&approval.rendered.to_string()),
    );
    if approval.objects.is_empty() {
        text.truncate(text.trim_end().len());
        text.push_str(" []\n");
    }
    for ApprovedObject { cluster, id, uid } in &approval.objects {
        // Writing to a String does not fail.
        let _ = writeln!(
            text,
            "    - {{cluster: {}, id: {}, uid: {}}}",
            quoted(cluster.as_str()),
            quoted(&id_text(id)),
            quoted(uid)
        );
    }
    text
}

/// The same of an approval of a rollout, which `tutti approve rollout` writes.
pub fn rollout_to_yaml(approval: &RolloutApproval) -> String {
    let (action, what) = match &approval.action {
        RolloutAction::Open { through } => ("rollout", format!("  through: {}\n", quoted(through))),
        RolloutAction::Retry => ("retry", String::new()),
        RolloutAction::Override { window } => ("override", format!("  window: {}\n", quoted(window))),
    };
    format!(
        "apiVersion: tutti.dev/v1alpha1\nkind: Approval\nmetadata:\n  name: {}\nspec:\n  app: {}\n  action: {action}\n  digest: {}\n{what}",
        quoted(&approval.name),
        quoted(&approval.app.to_string()),
        quoted(&approval.digest.to_string()),
    )
}

/// An id has no version of its own; only the core group has but one.
fn id_text(id: &ObjectId) -> String {
    let group = if id.group.is_empty() { "v1" } else { &id.group };
    format!("{group}/{}/{}/{}", id.kind, id.namespace.as_deref().unwrap_or(""), id.name)
}

/// JSON's quoted text is YAML's: nothing in it is taken for a number or a boolean.
fn quoted(text: &str) -> String {
    serde_json::Value::from(text).to_string()
}

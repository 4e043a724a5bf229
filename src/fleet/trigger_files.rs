//! Which files a trigger may write: files in the folder of one app. `checks` and `trigger` call it.

use std::sync::Arc;

use crate::manifest::OWN_VERSION;
use crate::manifest::read::{NameRule, suggest};
use crate::manifest::yaml::{self, YamlNode};
use crate::model::{App, AppId, Snapshot};

/// In bytes of a path.
const MAX_PATH_BYTES: usize = 512;

/// The app of a name: `namespace/name`, or the name alone if it is unique. The error is a help text.
pub fn find_app<'a>(name: &str, apps: impl IntoIterator<Item = &'a AppId>) -> Result<AppId, String> {
    let apps: Vec<&AppId> = apps.into_iter().filter(|app| !app.is_project()).collect();
    let wanted = AppId::parse(name);
    let is_meant = |app: &&&AppId| match &wanted {
        Some(wanted) => **app == wanted,
        None => *app.name == *name,
    };
    let meant: Vec<&AppId> = apps.iter().filter(is_meant).copied().collect();
    match meant.as_slice() {
        [one] => Ok((*one).clone()),
        [] => {
            let shown = |app: &&AppId| if wanted.is_some() { app.to_string() } else { app.name.to_string() };
            let names: Vec<String> = apps.iter().map(shown).collect();
            let names: Vec<&str> = names.iter().map(String::as_str).collect();
            Err(match names.len() {
                0 => "there are no apps".to_owned(),
                // A longer list does not help the reader.
                1..=20 => suggest(name, &names, &names),
                _ => "write it as namespace/name, as `tutti get apps` lists it".to_owned(),
            })
        }
        several => {
            let names: Vec<String> = several.iter().take(3).map(|app| app.to_string()).collect();
            Err(format!("several have that name: write {}", names.join(" or ")))
        }
    }
}

/// The path of the pin of an app for a ring. The error is a message and a help text.
pub fn pin_path(app: &App, ring: &str) -> Result<String, (String, String)> {
    let help = || format!("put its manifest into a folder of its own: apps/{}/app.yaml", app.id.name);
    if !NameRule::Label.fits(ring) {
        return Err((format!("{ring:?} is not the name of a ring"), "write a ring of rings.yaml".to_owned()));
    }
    match app.folder().split('/').collect::<Vec<_>>().as_slice() {
        ["apps", folder, ""] if !folder.is_empty() => Ok(format!("{}pins/{ring}.yaml", app.folder())),
        _ => Err((format!("{} is in {}, where it can have no pins", app.title(), app.location.file), help())),
    }
}

/// The path of a writable file of an app, from a path relative to its folder. The error is a message and a help text.
pub fn writable_file(
    app: &App,
    named: &str,
    apps: &[Arc<App>],
    snapshot: &Snapshot,
) -> Result<String, (String, String)> {
    let refused = |what: &str, help: &str| Err((what.to_owned(), help.to_owned()));
    let is_plain = |part: &str| {
        let is_letter = |it: char| it.is_ascii_alphanumeric() || "-_.".contains(it);
        !part.is_empty() && !part.starts_with('.') && part.chars().all(is_letter)
    };
    let is_yaml = named.ends_with(".yaml") || named.ends_with(".yml");
    if named.len() > MAX_PATH_BYTES || !named.split('/').all(is_plain) || !is_yaml {
        return refused(
            "is not the path of a YAML file in the folder of the app",
            "write it from there, with letters, digits, `-`, `_` and `.`, such as app.yaml or layer/values.yaml",
        );
    }
    let folder = app.folder();
    // `apps/` itself contains the folders of all other apps.
    if !folder.starts_with("apps/") || folder == "apps/" {
        return Err((
            format!("would be in {folder:?}, and triggers write below apps/ alone"),
            format!("put the manifest of the app into apps/{}/", app.id.name),
        ));
    }
    let path = format!("{folder}{named}");
    let owners = apps.iter().filter(|other| path.starts_with(other.folder()));
    let nearest = owners.clone().map(|other| other.folder().len()).max();
    let mut owners = owners.filter(|other| Some(other.folder().len()) == nearest);
    if owners.any(|other| other.id != app.id) {
        return refused("may be a file of another app", "put each app into a folder of its own");
    }
    let Some(text) = snapshot.text(&path) else {
        return refused("does not exist", "write the file with a first value, or correct the path");
    };
    if let Some(kind) = privileged_kind(&path, text) {
        return Err((
            format!("has a manifest of kind {kind} in it, which no trigger writes"),
            "put the field that the trigger writes into a separate file".to_owned(),
        ));
    }
    Ok(path)
}

/// The kinds that define one app. All other tutti kinds grant permissions.
const APP_KINDS: [&str; 4] = ["AppSet", "Component", "Objects", "Route"];

/// The kind of a tutti manifest in the text that is not one of [`APP_KINDS`], such as an Approval.
fn privileged_kind(path: &str, text: &str) -> Option<String> {
    let is_own = |root: &YamlNode| {
        let group = |version: &str| version.split('/').next() == OWN_VERSION.split('/').next();
        root.get("apiVersion").and_then(YamlNode::as_str).is_some_and(group)
    };
    let stream = yaml::read(path, text);
    let own = stream.documents.iter().filter(|document| is_own(&document.root));
    let mut kinds = own.map(|document| document.root.get("kind").and_then(YamlNode::as_str).unwrap_or("?"));
    kinds.find(|kind| !APP_KINDS.contains(kind)).map(ToOwned::to_owned)
}

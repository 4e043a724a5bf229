//! The change of a trigger, and its texts in a pull request or commit.

use serde::Serialize;

use super::commit::SourceCommit;
use crate::model::{AppId, Trigger, TriggerWrite};
use crate::promotion::{branch_prefix, edit};

/// One value of one file of an app.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "camelCase")]
pub struct TriggerOutcome {
    pub trigger: String,
    pub app: AppId,
    /// The ring of a pin.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub ring: Option<String>,
    /// Relative to the folder of the manifests.
    pub file: String,
    /// The path for [`edit::set_scalar`].
    pub field: String,
    /// `None`: the file does not exist yet, and is a pin.
    pub from: Option<String>,
    pub to: String,
    /// The version of the app after the change, if it is known.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub version: Option<String>,
    pub write: TriggerWrite,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub commit: Option<SourceCommit>,
    /// For people, on one line.
    pub reason: String,
}

impl TriggerOutcome {
    pub fn is_change(&self) -> bool {
        self.from.as_ref() != Some(&self.to)
    }

    /// The file with the new value. `text`: the file at the base, `None` if there is none.
    pub fn edited_file(&self, text: Option<&str>) -> Result<String, edit::Error> {
        match text {
            Some(text) => edit::set_scalar(text, &self.field, &self.to),
            // Quoted as JSON it is a string for every reader, whatever the version looks like.
            None => Ok(format!("{}: {}\n", self.field, serde_json::Value::from(self.to.as_str()))),
        }
    }

    /// `tutti/trigger/<trigger>/<namespace>.<app>`, for a pin with `.<ring>`: a later version replaces an earlier one. `prefix`:
    /// of the statuses.
    pub fn branch(&self, prefix: &str) -> String {
        let ring = self.ring.as_ref().map(|ring| format!(".{ring}")).unwrap_or_default();
        let begin = branch_prefix(prefix);
        format!("{begin}/trigger/{}/{}.{}{ring}", self.trigger, self.app.namespace, self.app.name)
    }

    /// `shop/pay in test: 1.7.3 → 1.8.0`.
    pub fn title(&self) -> String {
        let app = app_label(&self.app, self.ring.as_deref());
        match &self.from {
            Some(from) => format!("{app}: {from} → {}", self.to),
            None => format!("{app}: {}", self.to),
        }
    }

    /// Of the commit: its title, a blank line, and the source of the value.
    pub fn message(&self) -> String {
        let mut lines = vec![
            self.title(),
            String::new(),
            format!("{} of {}.", self.field, self.file),
            format!("{}.", self.reason),
        ];
        lines.extend(self.commit.iter().flat_map(|commit| commit.lines()));
        lines.join("\n") + "\n"
    }

    /// Of the pull request, in Markdown. Untrusted text is in code spans, so that it cannot contain Markdown.
    pub fn body(&self) -> String {
        let code = |text: &str| format!("`{}`", text.replace('`', "'"));
        let from = self.from.as_deref().map_or_else(|| "nothing".to_owned(), code);
        let mut text = format!(
            "Trigger {} sets {} of {} from {from} to {}.\n",
            code(&self.trigger),
            code(&self.field),
            code(&self.file),
            code(&self.to)
        );
        for line in self.commit.iter().flat_map(|commit| commit.lines()) {
            text.push_str(&format!("\n- {}", code(&line)));
        }
        if self.commit.is_some() {
            text.push('\n');
        }
        text
    }
}

impl SourceCommit {
    fn lines(&self) -> impl Iterator<Item = String> {
        let of = |name: &str, value: &Option<String>| value.as_ref().map(|value| format!("{name}: {value}"));
        [
            of("Repository", &self.repository),
            Some(format!("Commit: {}", self.sha)),
            of("Author", &self.author),
            of("Message", &self.message),
            of("Link", &self.url),
        ]
        .into_iter()
        .flatten()
    }
}

/// The app of an outcome, as pull requests and responses name it.
fn app_label(app: &AppId, ring: Option<&str>) -> String {
    ring.map_or_else(|| app.to_string(), |ring| format!("{app} in {ring}"))
}

pub fn reason(trigger: &Trigger, commit: Option<&SourceCommit>) -> String {
    let because = match &trigger.receiver {
        Some(receiver) if trigger.token.is_none() => {
            format!("trigger {} of receiver {receiver}", trigger.name)
        }
        _ => format!("trigger {}", trigger.name),
    };
    let Some(commit) = commit else { return because };
    let short = commit.sha.get(..7).unwrap_or(&commit.sha);
    match &commit.repository {
        Some(repository) => format!("{because}, for {repository} at {short}"),
        None => format!("{because}, for commit {short}"),
    }
}

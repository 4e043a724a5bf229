//! Compares the forge's settings with the desired ones. Pure.

use crate::forge::{BranchProtection, Label, RepositoryHook};

/// In Gitea the last one includes comments and reviews.
const EVENTS: [&str; 4] = ["push", "create", "delete", "pull_request"];

#[derive(Debug)]
pub struct ForgeState {
    pub hooks: Vec<RepositoryHook>,
    pub protection: Option<BranchProtection>,
    pub labels: Vec<Label>,
}

#[derive(Clone, Debug)]
pub struct DesiredForgeState {
    pub branch: String,
    /// `/hooks/v1/{receiver}`
    pub hook_path: String,
    /// Base URL of the listener; `None`: any host.
    pub hooks_url: Option<String>,
    pub new_secret: bool,
    /// Required status contexts.
    pub required: Vec<String>,
    pub labels: Vec<Label>,
}

#[derive(Debug)]
pub struct SetupItem {
    pub name: &'static str,
    pub text: String,
    pub change: Option<SetupChange>,
    /// A person must change it; `change` cannot.
    is_bad: bool,
}

#[derive(Debug)]
pub enum SetupChange {
    CreateHook { url: String, events: Vec<String> },
    ReplaceHook { id: i64, url: String, events: Vec<String> },
    EditHook { hook: RepositoryHook, events: Vec<String> },
    CreateProtection { branch: String, required: Vec<String> },
    EditProtection { rule: String, required: Vec<String> },
    CreateLabels(Vec<Label>),
}

impl SetupItem {
    pub fn of_token(is_good: bool, text: String) -> Self {
        Self { name: "token", text, change: None, is_bad: !is_good }
    }

    pub fn is_as_desired(&self) -> bool {
        self.change.is_none() && !self.is_bad
    }

    pub fn needs_person(&self) -> bool {
        self.is_bad
    }

    /// An existing webhook: its secret cannot be read.
    pub fn is_known_webhook(&self) -> bool {
        self.name == "webhook" && matches!(self.change, None | Some(SetupChange::EditHook { .. }))
    }

    pub fn planned_state(&self) -> &'static str {
        self.state_word(["no change", "would be created", "would be changed", "needs a person"])
    }

    pub fn done_state(&self) -> &'static str {
        self.state_word(["no change", "created", "changed", "needs a person"])
    }

    pub fn compared_state(&self) -> &'static str {
        self.state_word(["ok", "missing", "different", "different"])
    }

    fn state_word(&self, [same, new, other, bad]: [&'static str; 4]) -> &'static str {
        use SetupChange::{CreateHook, CreateLabels, CreateProtection};
        match &self.change {
            _ if self.is_bad => bad,
            None => same,
            Some(CreateHook { .. } | CreateProtection { .. } | CreateLabels(_)) => new,
            Some(_) => other,
        }
    }
}

pub fn compare_setup(found: ForgeState, wanted: &DesiredForgeState) -> Vec<SetupItem> {
    vec![webhook(found.hooks, wanted), protection(found.protection, wanted), labels(&found.labels, wanted)]
}

fn webhook(hooks: Vec<RepositoryHook>, wanted: &DesiredForgeState) -> SetupItem {
    let item = |text: String, change, is_bad| SetupItem { name: "webhook", text, change, is_bad };
    let DesiredForgeState { hook_path, new_secret, .. } = wanted;
    let url = wanted.hooks_url.as_ref().map(|base| format!("{base}{hook_path}"));
    let is_it =
        |hook: &RepositoryHook| url.as_ref().map_or(hook.url.ends_with(hook_path), |url| hook.url == *url);
    let events: Vec<String> = EVENTS.map(str::to_owned).to_vec();
    let shown = |url: &str| format!("{url}: {}", EVENTS.join(", "));
    match (hooks.into_iter().find(is_it), url) {
        (None, None) => {
            item(format!("no webhook leads to {hook_path}: `tutti forge setup` creates it"), None, true)
        }
        (None, Some(url)) => item(shown(&url), Some(SetupChange::CreateHook { url, events }), false),
        (Some(hook), _) if *new_secret => {
            let events = union(&hook.events, &events);
            let (id, url) = (hook.id, hook.url);
            item(shown(&url), Some(SetupChange::ReplaceHook { id, url, events }), false)
        }
        (Some(hook), _) => {
            let text = shown(&hook.url);
            let all = union(&hook.events, &events);
            let is_same = hook.is_active && hook.is_json && all == hook.events;
            item(text, (!is_same).then_some(SetupChange::EditHook { hook, events: all }), false)
        }
    }
}

fn protection(found: Option<BranchProtection>, wanted: &DesiredForgeState) -> SetupItem {
    let item = |text: String, change, is_bad| SetupItem { name: "protection", text, change, is_bad };
    let branch = wanted.branch.clone();
    let requires = |required: &[String]| format!("{} requires {}", wanted.branch, required.join(", "));
    let Some(found) = found else {
        let required = wanted.required.clone();
        return item(requires(&required), Some(SetupChange::CreateProtection { branch, required }), false);
    };
    // Without status checks the contexts do not count.
    let before = if found.has_status_check { found.required_contexts } else { Vec::new() };
    let required = union(&before, &wanted.required);
    if required == before {
        return item(requires(&required), None, false);
    }
    if found.rule != branch {
        // A pattern also protects other branches, where tutti sets no status.
        let text = format!(
            "{branch} is protected by the pattern `{}`: add {} to it, or a rule for {branch} alone",
            found.rule,
            wanted.required.join(", "),
        );
        return item(text, None, true);
    }
    item(requires(&required), Some(SetupChange::EditProtection { rule: found.rule, required }), false)
}

fn labels(found: &[Label], wanted: &DesiredForgeState) -> SetupItem {
    let is_missing = |label: &&Label| !found.iter().any(|it| it.name == label.name);
    let missing: Vec<Label> = wanted.labels.iter().filter(is_missing).cloned().collect();
    let shown = if missing.is_empty() { &wanted.labels } else { &missing };
    let names: Vec<&str> = shown.iter().map(|label| label.name.as_str()).collect();
    let text = names.join(", ");
    let change = (!missing.is_empty()).then_some(SetupChange::CreateLabels(missing));
    SetupItem { name: "labels", text, change, is_bad: false }
}

/// The first list, plus the second's missing items.
fn union(before: &[String], more: &[String]) -> Vec<String> {
    let lacks = |item: &&String| !before.contains(item);
    before.iter().chain(more.iter().filter(lacks)).cloned().collect()
}

#[cfg(test)]
mod tests {
    use secrecy::SecretString;

    use super::*;
    use crate::forge::own_labels;

    fn owned(texts: &[&str]) -> Vec<String> {
        texts.iter().map(|text| (*text).to_owned()).collect()
    }

    fn wanted() -> DesiredForgeState {
        DesiredForgeState {
            branch: "main".to_owned(),
            hook_path: "/hooks/v1/gitea".to_owned(),
            hooks_url: Some("https://tutti".to_owned()),
            new_secret: false,
            required: owned(&["tutti/validate", "tutti/gate"]),
            labels: own_labels("tutti"),
        }
    }

    fn hook(url: &str, events: &[&str]) -> RepositoryHook {
        RepositoryHook {
            id: 7,
            url: url.to_owned(),
            events: owned(events),
            is_json: true,
            is_active: true,
            branch_filter: String::new(),
            authorization: SecretString::default(),
        }
    }

    #[test]
    fn webhooks_are_compared() {
        let check =
            |hooks: Vec<RepositoryHook>, wanted: &DesiredForgeState, expected: &str, events: &[&str]| {
                let item = webhook(hooks, wanted);
                let found = match &item.change {
                    Some(SetupChange::CreateHook { events, .. } | SetupChange::EditHook { events, .. }) => {
                        events.clone()
                    }
                    Some(SetupChange::ReplaceHook { id: 7, events, .. }) => events.clone(),
                    _ => Vec::new(),
                };
                assert_eq!((item.done_state(), found), (expected, owned(events)), "{item:?}");
            };
        let (url, ours) = ("https://tutti/hooks/v1/gitea", wanted());
        check(vec![], &ours, "created", &EVENTS);
        check(vec![hook("https://other/hooks/v1/gitea", &EVENTS)], &ours, "created", &EVENTS);
        check(vec![hook(url, &EVENTS)], &ours, "no change", &[]);
        let more = ["create", "delete", "pull_request", "push", "release"];
        check(vec![hook("https://else", &[]), hook(url, &more)], &ours, "no change", &[]);
        let all = ["push", "release", "create", "delete", "pull_request"];
        check(vec![hook(url, &["push", "release"])], &ours, "changed", &all);
        check(vec![RepositoryHook { is_active: false, ..hook(url, &EVENTS) }], &ours, "changed", &EVENTS);
        check(vec![RepositoryHook { is_json: false, ..hook(url, &EVENTS) }], &ours, "changed", &EVENTS);
        check(
            vec![hook(url, &EVENTS)],
            &DesiredForgeState { new_secret: true, ..wanted() },
            "changed",
            &EVENTS,
        );
        let anywhere = DesiredForgeState { hooks_url: None, ..wanted() };
        check(vec![hook("https://other/hooks/v1/gitea", &EVENTS)], &anywhere, "no change", &[]);
        check(vec![hook("https://other/hooks/v1/drone", &EVENTS)], &anywhere, "needs a person", &[]);
    }

    #[test]
    fn rules_keep_what_people_required() {
        let check = |rule: Option<(&str, &[&str], bool)>, expected: &str, required: &[&str]| {
            let rule = rule.map(|(rule, required, has_status_check)| BranchProtection {
                rule: rule.to_owned(),
                required_contexts: owned(required),
                has_status_check,
                allows_push: false,
            });
            let item = protection(rule, &wanted());
            let found = match &item.change {
                Some(
                    SetupChange::CreateProtection { required, .. }
                    | SetupChange::EditProtection { required, .. },
                ) => required.clone(),
                _ => Vec::new(),
            };
            assert_eq!((item.done_state(), found), (expected, owned(required)), "{item:?}");
        };
        let both = ["tutti/validate", "tutti/gate"];
        check(None, "created", &both);
        check(Some(("main", &both, true)), "no change", &[]);
        check(Some(("main", &["tutti/gate", "ci", "tutti/validate"], true)), "no change", &[]);
        check(Some(("main", &["ci"], true)), "changed", &["ci", "tutti/validate", "tutti/gate"]);
        // The disabled list must not become active.
        check(Some(("main", &["old"], false)), "changed", &both);
        check(Some(("ma*", &both, true)), "no change", &[]);
        check(Some(("ma*", &["ci"], true)), "needs a person", &[]);
    }

    #[test]
    fn only_missing_labels_are_created() {
        let names = |found: &[Label]| labels(found, &wanted()).text;
        let all = own_labels("tutti");
        assert_eq!(names(&[]), "tutti/promotion, tutti/confirm, tutti/revert, tutti/ok-to-plan");
        assert_eq!(names(&all[1..]), "tutti/promotion");
        assert_eq!(labels(&all, &wanted()).compared_state(), "ok");
        assert_eq!(labels(&all[1..], &wanted()).compared_state(), "missing");
    }
}

//! Checks that no two manifests have the same identity.

use std::collections::HashMap;
use std::collections::hash_map::Entry;
use std::hash::Hash;

use super::CheckInput;
use crate::fleet::codes;
use crate::model::{Diagnostic, DiagnosticScope, Location};

pub fn approvals(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let of_objects = facts.manifests.approvals.iter().map(|it| (&it.name, it.location.as_ref()));
    let of_rollouts = facts.manifests.rollout_approvals.iter().map(|it| (&it.name, it.location.as_ref()));
    duplicates(of_objects.chain(of_rollouts).filter_map(|(name, location)| {
        let location = location?;
        let told = move || (format!("Approval {name}"), DiagnosticScope::File(location.file.clone()));
        Some((name, location, told))
    }))
}

pub fn triggers(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    duplicate_names("Trigger", facts.manifests.triggers.iter().map(|it| (&*it.name, &it.location)))
}

pub fn notifications(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    duplicate_names("Notification", facts.manifests.notifications.iter().map(|it| (&*it.name, &it.location)))
}

pub fn servers(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    duplicate_names("Server", facts.manifests.servers.iter().map(|it| (&*it.name, &it.location)))
}

pub fn policies(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    // A manifest with a mistake may lack its name.
    let all = facts.manifests.policies.iter().filter(|it| !it.has_mistake);
    duplicate_names("Policy", all.map(|it| (&*it.name, &it.location)))
}

pub fn admission_policies(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let all = facts.manifests.admission_policies.iter().map(|it| &it.policy).filter(|it| !it.has_mistake);
    duplicate_names("ValidatingAdmissionPolicy", all.map(|it| (&*it.name, &it.location)))
}

pub fn windows(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    duplicate_names("Window", facts.manifests.windows.iter().map(|it| (&*it.name, &it.location)))
}

pub fn analyses(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    duplicate_names("Analysis", facts.manifests.analyses.iter().map(|it| (&*it.name, &it.location)))
}

pub fn approval_rules(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    duplicate_names("ApprovalRule", facts.manifests.approval_rules.iter().map(|it| (&*it.name, &it.location)))
}

pub fn approvers(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    duplicate_names("Approvers", facts.manifests.approvers.iter().map(|it| (&*it.name, &it.location)))
}

pub fn admission_bindings(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let all = facts.manifests.admission_bindings.iter().filter(|it| !it.has_mistake);
    duplicate_names("ValidatingAdmissionPolicyBinding", all.map(|it| (&*it.name, &it.location)))
}

/// For kinds without namespaces. Their mistakes have the scope of the file.
fn duplicate_names<'a>(
    kind: &str,
    manifests: impl Iterator<Item = (&'a str, &'a Location)>,
) -> Vec<Diagnostic> {
    duplicates(manifests.map(|(name, location)| {
        let told = move || (format!("{kind} {name}"), DiagnosticScope::File(location.file.clone()));
        (name, location, told)
    }))
}

/// Each manifest has a key and a location. Name and scope are built only for a duplicate.
fn duplicates<'a, K: Hash + Eq, T: Fn() -> (String, DiagnosticScope)>(
    manifests: impl Iterator<Item = (K, &'a Location, T)>,
) -> Vec<Diagnostic> {
    let mut first: HashMap<K, (&Location, T)> = HashMap::new();
    let mut found = Vec::new();
    for (key, location, told) in manifests {
        match first.entry(key) {
            Entry::Vacant(free) => {
                free.insert((location, told));
            }
            Entry::Occupied(taken) => {
                let (place, other) = taken.get();
                let ((name, scope), (other, _)) = (told(), other());
                let message = format!("{name} has the identity of {other} at {place}");
                let diagnostic = Diagnostic::error(codes::DUPLICATE, message, scope)
                    .at(location.clone())
                    .help("rename one of them, or give it another namespace")
                    .related((*place).clone(), "first here");
                found.push(diagnostic);
            }
        }
    }
    found
}

//! Checks access to what the repository refers to in the home cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::finding::{Check, Finding, Missing};
use crate::access::{self, Right};
use crate::cli::exit::Exit;
use crate::cluster::{Home, HomeError, Question};
use crate::fleet::Fleet;
use crate::report::words::count;

/// `None`: it refers to nothing there.
pub async fn examine(fleet: &Fleet, home: &Home) -> Option<Finding> {
    let needs = access::home_needs(&fleet.instance, fleet.clusters.values(), None);
    let rights: Vec<&Right> = needs.rights.keys().collect();
    if rights.is_empty() {
        return None;
    }
    Some(match missing(&rights, home).await {
        Err(error @ HomeError::None { .. }) => {
            Finding::bad(Check::Home, Exit::Configuration, error.to_string())
        }
        Err(error) => Finding::bad(Check::Home, Exit::Unreachable, error.to_string()),
        Ok(missing) if missing.is_empty() => Finding::good(
            Check::Home,
            format!("all {} there that the repository needs", count(rights.len(), "right")),
        ),
        Ok(missing) => {
            let message = format!("{} of {} there missing", missing.len(), count(rights.len(), "right"));
            let mut finding = Finding::bad(Check::Home, Exit::Denied, message)
                .help("`tutti cluster rbac --home` prints all that it needs");
            let mut by_namespace: BTreeMap<Option<&Arc<str>>, Vec<&Right>> = BTreeMap::new();
            for right in missing {
                by_namespace.entry(right.namespace.as_ref()).or_default().push(right);
            }
            let name = access::Place::Home.role_name(&fleet.instance.name);
            let of_role = |(namespace, rights): (Option<&Arc<str>>, Vec<&Right>)| Missing {
                role: format!("Role {name} in namespace {}", namespace.map_or("", |it| it)),
                rights: rights.iter().map(ToString::to_string).collect(),
                rules: access::rule_of(rights),
            };
            finding.missing = by_namespace.into_iter().map(of_role).collect();
            finding
        }
    })
}

async fn missing<'r>(rights: &[&'r Right], home: &Home) -> Result<Vec<&'r Right>, HomeError> {
    let mut missing = Vec::new();
    for right in rights {
        let question = Question {
            verb: right.verb.as_str(),
            group: &right.group,
            resource: &right.resource,
            namespace: right.namespace.as_deref(),
            name: right.name.as_deref(),
        };
        if !home.may(question).await? {
            missing.push(*right);
        }
    }
    Ok(missing)
}

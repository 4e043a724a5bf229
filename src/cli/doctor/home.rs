//! Checks access to what the repository refers to in the home cluster.

use std::collections::BTreeMap;
use std::sync::Arc;

use super::finding::{DoctorCheck, DoctorFinding, MissingRights};
use crate::access::{self, Right};
use crate::cli::exit::Exit;
use crate::cluster::{AccessQuestion, HomeCluster, HomeError};
use crate::fleet::Fleet;
use crate::report::status_text::count_noun;

/// `None`: it refers to nothing there.
pub async fn examine(fleet: &Fleet, home: &HomeCluster) -> Option<DoctorFinding> {
    let needs = access::home_rights(&fleet.instance, fleet.clusters.values(), None);
    let rights: Vec<&Right> = needs.rights.keys().collect();
    if rights.is_empty() {
        return None;
    }
    Some(match missing_rights(&rights, home).await {
        Err(error @ HomeError::NotConfigured { .. }) => {
            DoctorFinding::failed(DoctorCheck::Home, Exit::Configuration, error.to_string())
        }
        Err(error) => DoctorFinding::failed(DoctorCheck::Home, Exit::Unreachable, error.to_string()),
        Ok(missing) if missing.is_empty() => DoctorFinding::passed(
            DoctorCheck::Home,
            format!("all {} there that the repository needs", count_noun(rights.len(), "right")),
        ),
        Ok(missing) => {
            let message = format!("{} of {} there missing", missing.len(), count_noun(rights.len(), "right"));
            let mut finding = DoctorFinding::failed(DoctorCheck::Home, Exit::Denied, message)
                .help("`tutti cluster rbac --home` prints all that it needs");
            let mut by_namespace: BTreeMap<Option<&Arc<str>>, Vec<&Right>> = BTreeMap::new();
            for right in missing {
                by_namespace.entry(right.namespace.as_ref()).or_default().push(right);
            }
            let name = access::RbacScope::Home.role_name(&fleet.instance.name);
            let of_role = |(namespace, rights): (Option<&Arc<str>>, Vec<&Right>)| MissingRights {
                role: format!("Role {name} in namespace {}", namespace.map_or("", |it| it)),
                rights: rights.iter().map(ToString::to_string).collect(),
                rules: access::rules_for(rights),
            };
            finding.missing = by_namespace.into_iter().map(of_role).collect();
            finding
        }
    })
}

async fn missing_rights<'r>(rights: &[&'r Right], home: &HomeCluster) -> Result<Vec<&'r Right>, HomeError> {
    let mut missing = Vec::new();
    for right in rights {
        let question = AccessQuestion {
            verb: right.verb.as_str(),
            group: &right.group,
            resource: &right.resource,
            namespace: right.namespace.as_deref(),
            name: right.name.as_deref(),
        };
        if !home.is_allowed(question).await? {
            missing.push(*right);
        }
    }
    Ok(missing)
}

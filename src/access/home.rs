//! Computes the rights that tutti needs in the home cluster: Secrets, the registry, the Lease.

use std::collections::BTreeMap;

use super::required_rights::RequiredRights;
use super::right::{Right, RightReason, Verb};
use crate::model::{Cluster, Connection, DataKeyRef, Instance, SecretRef};

/// The Lease of the leader.
#[derive(Clone, Copy, Debug)]
pub struct LeaseName<'a> {
    pub namespace: &'a str,
    pub name: &'a str,
}

/// Reads of Secrets by name and of the registry's ConfigMaps; writes of the Lease alone.
pub fn home_rights<'a>(
    instance: &Instance,
    clusters: impl Iterator<Item = &'a Cluster>,
    lease: Option<LeaseName<'_>>,
) -> RequiredRights {
    let mut rights = BTreeMap::new();
    let mut add =
        |group: &str, namespace: &str, resource: &str, name: Option<&str>, verb: Verb, why: RightReason| {
            let (namespace, name) = (Some(namespace.into()), name.map(ToOwned::to_owned));
            rights.insert(
                Right { namespace, group: group.into(), resource: resource.to_owned(), name, verb },
                why,
            );
        };
    if let Some(LeaseName { namespace, name }) = lease {
        // A create has no name that a rule could match.
        for (name, verb) in [(None, Verb::Create), (Some(name), Verb::Get), (Some(name), Verb::Update)] {
            add("coordination.k8s.io", namespace, "leases", name, verb, RightReason::Leader);
        }
    }
    let of_clusters = clusters.filter_map(|cluster| match &cluster.connection {
        Connection::KubeconfigSecret { at, .. } => Some(at),
        _ => None,
    });
    let token = instance.forge.iter().filter_map(|forge| forge.token.as_ref());
    let hooks = instance.receivers.iter().flat_map(|receiver| &receiver.secrets);
    for DataKeyRef { namespace, name, .. } in of_clusters.chain(token.chain(hooks).filter_map(stored_key)) {
        add("", namespace, "secrets", Some(name), Verb::Get, RightReason::Secrets);
    }
    if let Some(registry) = &instance.registry {
        for verb in [Verb::Get, Verb::List, Verb::Watch] {
            add("", &registry.namespace, "configmaps", None, verb, RightReason::Registry);
        }
    }
    RequiredRights { rights, ..RequiredRights::default() }
}

fn stored_key(reference: &SecretRef) -> Option<&DataKeyRef> {
    match reference {
        SecretRef::Secret(at) => Some(at),
        SecretRef::Env(_) | SecretRef::File(_) => None,
    }
}

//! What tutti reads in the home cluster for a repository.

use std::collections::BTreeMap;

use super::needs::Needs;
use super::right::{Right, Verb, Why};
use crate::model::{Cluster, Connection, Instance, SecretRef, StoredKey};

/// Secrets by their names, and the ConfigMaps of a registry; nothing else, and no right to write.
pub fn home_needs<'a>(instance: &Instance, clusters: impl Iterator<Item = &'a Cluster>) -> Needs {
    let mut rights = BTreeMap::new();
    let mut add = |namespace: &str, resource: &str, name: Option<&str>, verb: Verb, why: Why| {
        let (namespace, name) = (Some(namespace.into()), name.map(ToOwned::to_owned));
        rights.insert(Right { namespace, group: "".into(), resource: resource.to_owned(), name, verb }, why);
    };
    let of_clusters = clusters.filter_map(|cluster| match &cluster.connection {
        Connection::KubeconfigSecret { at, .. } => Some(at),
        _ => None,
    });
    let token = instance.forge.iter().filter_map(|forge| forge.token.as_ref());
    let hooks = instance.receivers.iter().flat_map(|receiver| &receiver.secrets);
    for StoredKey { namespace, name, .. } in of_clusters.chain(token.chain(hooks).filter_map(of_secret)) {
        add(namespace, "secrets", Some(name), Verb::Get, Why::Secrets);
    }
    if let Some(registry) = &instance.registry {
        for verb in [Verb::Get, Verb::List, Verb::Watch] {
            add(&registry.namespace, "configmaps", None, verb, Why::Registry);
        }
    }
    Needs { rights, ..Needs::default() }
}

fn of_secret(reference: &SecretRef) -> Option<&StoredKey> {
    match reference {
        SecretRef::Secret(at) => Some(at),
        SecretRef::Env(_) | SecretRef::File(_) => None,
    }
}

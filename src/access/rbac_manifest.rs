//! Prints the ClusterRole and Roles that grant some rights, for `kubectl apply`.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt::Write as _;
use std::sync::Arc;

use super::required_rights::RequiredRights;
use super::right::{Right, RightReason, Verb};
use crate::model::{ClusterName, labels};

/// The service account that the roles are bound to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ServiceAccountName {
    pub namespace: String,
    pub name: String,
}

/// Discovery URLs, which every user may read unless a cluster forbids it.
const DISCOVERY: [&str; 5] = ["/api", "/api/*", "/apis", "/apis/*", "/version"];

pub fn role_name(instance: &str) -> String {
    labels::field_manager(instance)
}

#[derive(Clone, Copy, Debug)]
pub enum RbacScope<'a> {
    /// The objects rendered there.
    Cluster(&'a ClusterName),
    /// The objects rendered there before its removal.
    RemovedCluster(&'a ClusterName),
    /// The home cluster, which may be a managed cluster too, so its roles have another name.
    Home,
}

impl RbacScope<'_> {
    pub fn role_name(self, instance: &str) -> String {
        match self {
            Self::Cluster(_) | Self::RemovedCluster(_) => role_name(instance),
            Self::Home => format!("{}-home", role_name(instance)),
        }
    }

    fn heading(self, instance: &str) -> String {
        match self {
            Self::Cluster(cluster) => format!(
                "# The rights that tutti (instance {instance}) needs on cluster {cluster} for the objects \
                 that the repository renders there now.\n\
                 # Written by `tutti cluster rbac {cluster}`. Apply it again before the repository renders other kinds or\n\
                 # namespaces. Remove a right when the last object that needs it is deleted.\n"
            ),
            Self::RemovedCluster(cluster) => format!(
                "# The rights that tutti (instance {instance}) needs on cluster {cluster} to empty it, by \
                 the objects that the repository would render\n\
                 # there now. Written by `tutti cluster rbac {cluster}`. Rights to objects that the \
                 repository no longer has are\n\
                 # missing: while such objects exist, keep the present roles. Delete the roles when the \
                 cluster is Removed.\n"
            ),
            Self::Home => format!(
                "# The rights that tutti (instance {instance}) needs in its home cluster for the secrets and \
                 ConfigMaps that the repository refers to.\n\
                 # Written by `tutti cluster rbac --home`. Rights to secrets of the process settings are not \
                 included.\n"
            ),
        }
    }
}

/// All documents, the account first. Equal rights give equal text.
pub fn rbac_manifest(
    place: RbacScope<'_>,
    instance: &str,
    needs: &RequiredRights,
    account: Option<&ServiceAccountName>,
) -> String {
    let (name, mut text) = (place.role_name(instance), place.heading(instance));
    if let Some(account) = account {
        account_document(&mut text, account);
    }
    let mut by_namespace: BTreeMap<Option<&Arc<str>>, BTreeMap<RightReason, BTreeSet<&Right>>> =
        BTreeMap::new();
    for (right, why) in &needs.rights {
        by_namespace.entry(right.namespace.as_ref()).or_default().entry(*why).or_default().insert(right);
    }
    for (namespace, sections) in &by_namespace {
        document_head(&mut text, if namespace.is_some() { "Role" } else { "ClusterRole" }, &name, *namespace);
        text.push_str("rules:\n");
        if namespace.is_none() {
            text.push_str(
                "  # Discovery and the version; every user has this right unless the cluster removed it.\n",
            );
            let urls: Vec<String> = DISCOVERY.iter().map(|url| yaml_scalar(url)).collect();
            let _ = writeln!(text, "  - nonResourceURLs: [{}]\n    verbs: [get]", urls.join(", "));
        }
        for (why, rights) in sections {
            for line in comment(*why, rights, needs) {
                let _ = writeln!(text, "  # {line}");
            }
            for rule in rules(rights) {
                rule.write(&mut text, "  ", &needs.guessed_plurals);
            }
        }
        if let Some(account) = account {
            binding(&mut text, &name, *namespace, account);
        }
    }
    text
}

/// Rules for missing rights of one namespace.
pub fn rules_for<'a>(rights: impl IntoIterator<Item = &'a Right>) -> String {
    let mut text = String::new();
    for rule in rules(&rights.into_iter().collect()) {
        rule.write(&mut text, "", &BTreeSet::new());
    }
    text
}

fn account_document(text: &mut String, account: &ServiceAccountName) {
    let _ = write!(
        text,
        "---\n# Its namespace must exist.\napiVersion: v1\nkind: ServiceAccount\nmetadata:\n  name: \
         {}\n  namespace: {}\n",
        yaml_scalar(&account.name),
        yaml_scalar(&account.namespace)
    );
}

fn document_head(text: &mut String, kind: &str, name: &str, namespace: Option<&Arc<str>>) {
    let _ = write!(
        text,
        "---\napiVersion: rbac.authorization.k8s.io/v1\nkind: {kind}\nmetadata:\n  name: {}\n",
        yaml_scalar(name)
    );
    if let Some(namespace) = namespace {
        let _ = writeln!(text, "  namespace: {}", yaml_scalar(namespace));
    }
}

fn binding(text: &mut String, name: &str, namespace: Option<&Arc<str>>, account: &ServiceAccountName) {
    let role = if namespace.is_some() { "Role" } else { "ClusterRole" };
    document_head(text, &format!("{role}Binding"), name, namespace);
    let _ = write!(
        text,
        "roleRef:\n  apiGroup: rbac.authorization.k8s.io\n  kind: {role}\n  name: {}\nsubjects:\n  - kind: ServiceAccount\n    \
         name: {}\n    namespace: {}\n",
        yaml_scalar(name),
        yaml_scalar(&account.name),
        yaml_scalar(&account.namespace)
    );
}

fn comment(why: RightReason, rights: &BTreeSet<&Right>, needs: &RequiredRights) -> Vec<String> {
    match why {
        RightReason::Serving => {
            let definitions = rights.iter().any(|right| right.resource == "customresourcedefinitions");
            let what = if definitions { "Definitions and API services" } else { "API services" };
            vec![format!("{what} of all owners: they change which kinds the cluster serves.")]
        }
        RightReason::Observing => {
            let mut lines = vec!["The watches, and the list at each start, cover all namespaces.".to_owned()];
            if rights.iter().any(|right| right.group.is_empty() && right.resource == "secrets") {
                lines.push("tutti reads only the metadata of Secrets, but this right covers their content too.".to_owned());
            }
            lines
        }
        RightReason::Writing => vec!["Rendered objects: read, applied and deleted.".to_owned()],
        RightReason::WritingInOwnNamespaces => {
            let names: Vec<&str> = needs.own_namespaces.iter().map(|name| &**name).collect();
            vec![
                "The same in every namespace: a Role needs its namespace first, and tutti creates these \
                 namespaces:".to_owned(),
                format!("{}. `--namespaces-exist` prints Roles for them.", names.join(", ")),
            ]
        }
        RightReason::Leaving => vec!["Objects to delete; an object that changed meanwhile is read again first.".to_owned()],
        RightReason::Causes => vec!["The cause when a workload does not become healthy.".to_owned()],
        RightReason::LastLines => vec![
            "The last line that a container wrote before it crashed. Commit statuses show it: without this rule they".to_owned(),
            "show the crash alone. A ClusterRole covers all namespaces; `--namespaces-exist` limits it to \
             those of the apps.".to_owned(),
        ],
        RightReason::StorageClasses => vec!["Whether an unbound claim waits for the first pod that uses it.".to_owned()],
        RightReason::Granting => vec![
            "Roles and bindings are rendered too: to write them, a user needs all of their rules or these \
             verbs."
                .to_owned(),
            "Every person with write access to the repository can grant the rules below.".to_owned(),
        ],
        RightReason::Secrets => vec!["Kubeconfigs, tokens and webhook secrets, by their names.".to_owned()],
        RightReason::Registry => vec!["The ConfigMaps that register clusters.".to_owned()],
        RightReason::Leader => vec!["The Lease of the leader: the one of several processes that writes.".to_owned()],
    }
}

/// One rule of a role.
#[derive(Debug)]
struct RbacRule<'a> {
    group: &'a str,
    resources: Vec<&'a str>,
    names: Vec<&'a str>,
    verbs: Vec<Verb>,
}

impl RbacRule<'_> {
    fn write(&self, text: &mut String, indent: &str, guessed: &BTreeSet<(Arc<str>, String)>) {
        let list = |items: &[&str]| items.iter().map(|item| yaml_scalar(item)).collect::<Vec<_>>().join(", ");
        let verbs: Vec<&str> = self.verbs.iter().map(|verb| verb.as_str()).collect();
        let is_guessed = |name: &&&str| guessed.contains(&(self.group.into(), (***name).to_owned()));
        let unsure: Vec<&str> = self.resources.iter().filter(is_guessed).copied().collect();
        if !unsure.is_empty() {
            let _ = writeln!(
                text,
                "{indent}# The plural is a guess, as the repository does not define it: {}.",
                unsure.join(", ")
            );
        }
        let _ = writeln!(text, "{indent}- apiGroups: [{}]", yaml_scalar(self.group));
        let _ = writeln!(text, "{indent}  resources: [{}]", list(&self.resources));
        if !self.names.is_empty() {
            let _ = writeln!(text, "{indent}  resourceNames: [{}]", list(&self.names));
        }
        let _ = writeln!(text, "{indent}  verbs: [{}]", verbs.join(", "));
    }
}

/// The fewest rules for exactly these rights: resources of one group with equal verbs share a rule, and so do names of one
/// resource.
fn rules<'a>(rights: &BTreeSet<&'a Right>) -> Vec<RbacRule<'a>> {
    let mut verbs: BTreeMap<(&str, &str, Option<&str>), BTreeSet<Verb>> = BTreeMap::new();
    for right in rights {
        let key = (&*right.group, right.resource.as_str(), right.name.as_deref());
        verbs.entry(key).or_default().insert(right.verb);
    }
    let mut of_resources: BTreeMap<(&str, BTreeSet<Verb>), Vec<&str>> = BTreeMap::new();
    let mut of_names: BTreeMap<(&str, &str, BTreeSet<Verb>), Vec<&str>> = BTreeMap::new();
    for ((group, resource, name), verbs) in verbs {
        match name {
            None => of_resources.entry((group, verbs)).or_default().push(resource),
            Some(name) => of_names.entry((group, resource, verbs)).or_default().push(name),
        }
    }
    let of_resources = of_resources.into_iter().map(|((group, verbs), resources)| RbacRule {
        group,
        resources,
        names: Vec::new(),
        verbs: verbs.into_iter().collect(),
    });
    let of_names = of_names.into_iter().map(|((group, resource, verbs), names)| RbacRule {
        group,
        resources: vec![resource],
        names,
        verbs: verbs.into_iter().collect(),
    });
    of_resources.chain(of_names).collect()
}

/// A YAML scalar for this text, also valid inside `[…]`.
fn yaml_scalar(text: &str) -> String {
    let plain = |it: char| it.is_ascii_alphanumeric() || matches!(it, '-' | '.' | '/' | ':');
    let words = ["true", "false", "yes", "no", "on", "off", "null", "y", "n"];
    let is_plain = text.starts_with(|first: char| first.is_ascii_alphabetic() || first == '/')
        && text.chars().all(plain)
        && !text.ends_with(':')
        && !words.contains(&&*text.to_lowercase());
    if is_plain { text.to_owned() } else { serde_json::Value::from(text).to_string() }
}

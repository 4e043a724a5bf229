//! Derives rights from renders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::plurals;
use super::right::{Right, RightReason, Verb};
use crate::health;
use crate::model::{
    App, Approval, ApprovedAction, GroupVersionKind, Instance, InstanceMode, PruneMode, RenderedObject,
    RenderedTarget, labels, usual_plural,
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The renders of one cluster, and settings that affect rights.
#[derive(Clone, Copy)]
pub struct AccessInput<'a> {
    pub instance: &'a Instance,
    pub renders: &'a [(&'a App, RenderedTarget)],
    /// The plural of a kind, if the cluster serves it.
    pub known_plural: &'a dyn Fn(&GroupVersionKind) -> Option<String>,
    /// All namespaces exist before tutti starts, rendered ones included. Then their objects need no right outside of them.
    pub namespaces_exist: bool,
    /// Set if the cluster is being removed: the renders are deleted, except objects that these approvals orphan.
    pub removal_approvals: Option<&'a [Approval]>,
}

impl std::fmt::Debug for AccessInput<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("AccessInput").field("renders", &self.renders).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct RequiredRights {
    pub rights: BTreeMap<Right, RightReason>,
    /// Group and guessed plural of custom kinds without a known plural.
    pub guessed_plurals: BTreeSet<(Arc<str>, String)>,
    /// Namespaces that tutti creates: a Role cannot exist before them.
    pub own_namespaces: BTreeSet<Arc<str>>,
}

/// The rights for all requests of these renders.
pub fn required_rights(input: &AccessInput<'_>) -> RequiredRights {
    let managed: Vec<_> = input.renders.iter().filter(|(app, _)| !app.unmanaged).collect();
    let mut work = RightsCollector {
        input,
        defined_plurals: plurals::plurals_of_definitions(managed.iter().map(|(_, rendered)| rendered)),
        needs: RequiredRights::default(),
    };
    let objects = managed.iter().flat_map(|(_, rendered)| rendered.objects.iter());
    let namespaces = objects.filter(|object| object.id.group.is_empty() && &*object.id.kind == "Namespace");
    let rendered: BTreeSet<Arc<str>> = namespaces.map(|object| Arc::clone(&object.id.name)).collect();
    let makes = |app: &App| work.makes_namespace(app) && !rendered.contains(&app.id.namespace);
    let made: BTreeSet<Arc<str>> =
        managed.iter().filter(|(app, _)| makes(app)).map(|(app, _)| Arc::clone(&app.id.namespace)).collect();
    if !made.is_empty() {
        // An existing namespace may be missing later.
        work.add(None, "", "namespaces", None, Verb::Create, RightReason::Writing);
    }
    if !input.namespaces_exist {
        work.needs.own_namespaces = made.into_iter().chain(rendered).collect();
    }
    for (group, resource) in
        [("apiextensions.k8s.io", "customresourcedefinitions"), ("apiregistration.k8s.io", "apiservices")]
    {
        for verb in [Verb::List, Verb::Watch] {
            work.add(None, group, resource, None, verb, RightReason::Serving);
        }
    }
    for (app, rendered) in managed {
        for object in &*rendered.objects {
            work.object(app, object);
        }
    }
    work.needs
}

struct RightsCollector<'a> {
    input: &'a AccessInput<'a>,
    defined_plurals: BTreeMap<(String, String), String>,
    needs: RequiredRights,
}

impl RightsCollector<'_> {
    fn object(&mut self, app: &App, object: &RenderedObject) {
        let resource = self.resource(&object.kind);
        let group = Arc::clone(&object.kind.group);
        for verb in [Verb::List, Verb::Watch] {
            self.add(None, &group, &resource, None, verb, RightReason::Observing);
        }
        let (place, why) = match &object.id.namespace {
            None => (None, RightReason::Writing),
            Some(namespace) if self.needs.own_namespaces.contains(namespace) => {
                (None, RightReason::WritingInOwnNamespaces)
            }
            Some(namespace) => (Some(Arc::clone(namespace)), RightReason::Writing),
        };
        if let Some(approvals) = self.input.removal_approvals {
            for verb in self.removal_verbs(app, object, approvals) {
                self.add(place.clone(), &group, &resource, None, verb, RightReason::Leaving);
            }
            return;
        }
        for verb in self.verbs(app, object) {
            self.add(place.clone(), &group, &resource, None, verb, why);
        }
        let has_pods = health::have_pods(&object.id.group, &object.id.kind);
        if has_pods {
            self.add(place.clone(), "", "pods", None, Verb::List, RightReason::Causes);
        }
        if health::reports_by_events(&object.id.group, &object.id.kind) {
            self.add(place.clone(), "", "events", None, Verb::List, RightReason::Causes);
        }
        if has_pods || (&*object.id.group, &*object.id.kind) == ("", "Pod") {
            self.add(place.clone(), "", "pods/log", None, Verb::Get, RightReason::LastLines);
        }
        if (&*group, &*object.id.kind) == ("", "PersistentVolumeClaim") {
            self.storage_class(object);
        }
        if &*group == RBAC && self.writes() {
            self.grant(place, object);
        }
    }

    /// A claim without a class gets the cluster's default, whose name is unknown here.
    fn storage_class(&mut self, claim: &RenderedObject) {
        let name = claim.body.field("/spec/storageClassName").and_then(|it| it.as_str().map(str::to_owned));
        if name.as_deref() != Some("") {
            self.add(None, "storage.k8s.io", "storageclasses", name, Verb::Get, RightReason::StorageClasses);
        }
    }

    fn makes_namespace(&self, app: &App) -> bool {
        let is_leaving = self.input.removal_approvals.is_some();
        self.writes() && !is_leaving && app.creates_namespace(&self.input.instance.defaults)
    }

    fn writes(&self) -> bool {
        self.input.instance.mode == InstanceMode::Enforce
    }

    /// The verbs for one object.
    fn verbs(&self, app: &App, object: &RenderedObject) -> BTreeSet<Verb> {
        // A lookup by name before the first apply.
        let mut verbs = BTreeSet::from([Verb::Get]);
        if app.adopt {
            // Dry runs of the apply and of an update without the dropped fields, also in observe mode.
            verbs.extend([Verb::Patch, Verb::Update]);
        }
        if self.writes() {
            // A server-side apply of a missing object is a create too.
            verbs.extend([Verb::Patch, Verb::Create]);
            let replaces = object.annotation_flag(labels::REPLACE).unwrap_or(app.replace)
                && !object.id.deletes_contents();
            if (self.may_be_pruned(app) || replaces) && !is_kept(object) {
                verbs.insert(Verb::Delete);
            }
        }
        verbs
    }

    fn may_be_pruned(&self, app: &App) -> bool {
        // A removed app falls under the default of the instance.
        let default = self.input.instance.defaults.prune;
        default != PruneMode::Never || app.prune.is_some_and(|own| own != default)
    }

    /// The verbs for one object that is removed.
    fn removal_verbs(&self, app: &App, object: &RenderedObject, approvals: &[Approval]) -> BTreeSet<Verb> {
        // A changed object is read again.
        let mut verbs = BTreeSet::from([Verb::Get]);
        if self.writes() && self.may_be_pruned(app) && !is_kept(object) {
            verbs.insert(Verb::Delete);
        }
        let orphans = |it: &Approval| it.action == ApprovedAction::Orphan && it.app == app.id;
        if self.writes() && approvals.iter().any(orphans) {
            verbs.insert(Verb::Patch);
        }
        verbs
    }

    /// Writing a role requires its rules or `escalate`; writing a binding requires the rules of its role or `bind`.
    fn grant(&mut self, place: Option<Arc<str>>, object: &RenderedObject) {
        let name = |text: &str| Some(text.to_owned());
        match &*object.id.kind {
            "Role" | "ClusterRole" => {
                let resource = usual_plural(&object.id.kind);
                self.add(
                    place,
                    RBAC,
                    &resource,
                    name(&object.id.name),
                    Verb::Escalate,
                    RightReason::Granting,
                );
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let fields = object.body.fields();
                let text = |pointer: &str| fields.pointer(pointer).and_then(|it| it.as_str());
                let (Some(kind), Some(role)) = (text("/roleRef/kind"), text("/roleRef/name")) else { return };
                self.add(place, RBAC, &usual_plural(kind), name(role), Verb::Bind, RightReason::Granting);
            }
            _ => {}
        }
    }

    fn resource(&mut self, kind: &GroupVersionKind) -> String {
        if let Some(known) = (self.input.known_plural)(kind) {
            return known;
        }
        if let Some(defined) = self.defined_plurals.get(&(kind.group.to_string(), kind.kind.to_string())) {
            return defined.clone();
        }
        let plural = usual_plural(&kind.kind);
        if !plurals::is_built_in(&kind.group) {
            self.needs.guessed_plurals.insert((Arc::clone(&kind.group), plural.clone()));
        }
        plural
    }

    fn add(
        &mut self,
        namespace: Option<Arc<str>>,
        group: &str,
        resource: &str,
        name: Option<String>,
        verb: Verb,
        why: RightReason,
    ) {
        let right = Right { namespace, group: group.into(), resource: resource.to_owned(), name, verb };
        // Keeps the first reason in order. But rendered definitions are needed for more than discovery.
        let known = self.needs.rights.entry(right).or_insert(why);
        *known = if *known == RightReason::Serving { why } else { why.min(*known) };
    }
}

/// Its annotation forbids the delete.
fn is_kept(object: &RenderedObject) -> bool {
    object.annotation(labels::PRUNE).as_deref() == Some("keep")
}

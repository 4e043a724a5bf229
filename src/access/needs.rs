//! Derives rights from renders.

use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::naming;
use super::right::{Right, Verb, Why};
use crate::health;
use crate::model::{
    App, Approval, ApprovedAction, Instance, Kind, Mode, PruneMode, Rendered, RenderedObject, labels,
    usual_plural,
};

const RBAC: &str = "rbac.authorization.k8s.io";

/// The renders of one cluster, and settings that affect rights.
#[derive(Clone, Copy)]
pub struct Input<'a> {
    pub instance: &'a Instance,
    pub renders: &'a [(&'a App, Rendered)],
    /// The plural of a kind, if the cluster serves it.
    pub known: &'a dyn Fn(&Kind) -> Option<String>,
    /// All namespaces exist before tutti starts, rendered ones included. Then their objects need no right outside of them.
    pub namespaces_exist: bool,
    /// Set if the cluster is being removed: the renders are deleted, except objects that these approvals orphan.
    pub leaving: Option<&'a [Approval]>,
}

impl std::fmt::Debug for Input<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Input").field("renders", &self.renders).finish_non_exhaustive()
    }
}

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Needs {
    pub rights: BTreeMap<Right, Why>,
    /// Group and guessed plural of custom kinds without a known plural.
    pub guessed: BTreeSet<(Arc<str>, String)>,
    /// Namespaces that tutti creates: a Role cannot exist before them.
    pub own_namespaces: BTreeSet<Arc<str>>,
}

/// The rights for all requests of these renders.
pub fn needs(input: &Input<'_>) -> Needs {
    let managed: Vec<_> = input.renders.iter().filter(|(app, _)| !app.unmanaged).collect();
    let mut work = Work {
        input,
        defined: naming::defined(managed.iter().map(|(_, rendered)| rendered)),
        needs: Needs::default(),
    };
    let objects = managed.iter().flat_map(|(_, rendered)| rendered.objects.iter());
    let namespaces = objects.filter(|object| object.id.group.is_empty() && &*object.id.kind == "Namespace");
    let rendered: BTreeSet<Arc<str>> = namespaces.map(|object| Arc::clone(&object.id.name)).collect();
    let makes = |app: &App| work.makes_namespace(app) && !rendered.contains(&app.id.namespace);
    let made: BTreeSet<Arc<str>> =
        managed.iter().filter(|(app, _)| makes(app)).map(|(app, _)| Arc::clone(&app.id.namespace)).collect();
    if !made.is_empty() {
        // An existing namespace may be missing later.
        work.add(None, "", "namespaces", None, Verb::Create, Why::Writing);
    }
    if !input.namespaces_exist {
        work.needs.own_namespaces = made.into_iter().chain(rendered).collect();
    }
    for (group, resource) in
        [("apiextensions.k8s.io", "customresourcedefinitions"), ("apiregistration.k8s.io", "apiservices")]
    {
        for verb in [Verb::List, Verb::Watch] {
            work.add(None, group, resource, None, verb, Why::Serving);
        }
    }
    for (app, rendered) in managed {
        for object in &*rendered.objects {
            work.object(app, object);
        }
    }
    work.needs
}

struct Work<'a> {
    input: &'a Input<'a>,
    defined: BTreeMap<(String, String), String>,
    needs: Needs,
}

impl Work<'_> {
    fn object(&mut self, app: &App, object: &RenderedObject) {
        let resource = self.resource(&object.kind);
        let group = Arc::clone(&object.kind.group);
        for verb in [Verb::List, Verb::Watch] {
            self.add(None, &group, &resource, None, verb, Why::Observing);
        }
        let (place, why) = match &object.id.namespace {
            None => (None, Why::Writing),
            Some(namespace) if self.needs.own_namespaces.contains(namespace) => {
                (None, Why::WritingInOwnNamespaces)
            }
            Some(namespace) => (Some(Arc::clone(namespace)), Why::Writing),
        };
        if let Some(approvals) = self.input.leaving {
            for verb in self.last_verbs(app, object, approvals) {
                self.add(place.clone(), &group, &resource, None, verb, Why::Leaving);
            }
            return;
        }
        for verb in self.verbs(app, object) {
            self.add(place.clone(), &group, &resource, None, verb, why);
        }
        let has_pods = health::have_pods(&object.id.group, &object.id.kind);
        if has_pods {
            self.add(place.clone(), "", "pods", None, Verb::List, Why::Causes);
        }
        if health::tell_by_events(&object.id.group, &object.id.kind) {
            self.add(place.clone(), "", "events", None, Verb::List, Why::Causes);
        }
        if has_pods || (&*object.id.group, &*object.id.kind) == ("", "Pod") {
            self.add(place.clone(), "", "pods/log", None, Verb::Get, Why::LastLines);
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
            self.add(None, "storage.k8s.io", "storageclasses", name, Verb::Get, Why::StorageClasses);
        }
    }

    fn makes_namespace(&self, app: &App) -> bool {
        let is_leaving = self.input.leaving.is_some();
        self.writes() && !is_leaving && app.creates_namespace(&self.input.instance.defaults)
    }

    fn writes(&self) -> bool {
        self.input.instance.mode == Mode::Enforce
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
            let replaces =
                object.says(labels::REPLACE).unwrap_or(app.replace) && !object.id.takes_others_along();
            if (self.may_go(app) || replaces) && !is_kept(object) {
                verbs.insert(Verb::Delete);
            }
        }
        verbs
    }

    fn may_go(&self, app: &App) -> bool {
        // A removed app falls under the default of the instance.
        let default = self.input.instance.defaults.prune;
        default != PruneMode::Never || app.prune.is_some_and(|own| own != default)
    }

    /// The verbs for one object that is removed.
    fn last_verbs(&self, app: &App, object: &RenderedObject, approvals: &[Approval]) -> BTreeSet<Verb> {
        // A changed object is read again.
        let mut verbs = BTreeSet::from([Verb::Get]);
        if self.writes() && self.may_go(app) && !is_kept(object) {
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
                self.add(place, RBAC, &resource, name(&object.id.name), Verb::Escalate, Why::Granting);
            }
            "RoleBinding" | "ClusterRoleBinding" => {
                let fields = object.body.fields();
                let text = |pointer: &str| fields.pointer(pointer).and_then(|it| it.as_str());
                let (Some(kind), Some(role)) = (text("/roleRef/kind"), text("/roleRef/name")) else { return };
                self.add(place, RBAC, &usual_plural(kind), name(role), Verb::Bind, Why::Granting);
            }
            _ => {}
        }
    }

    fn resource(&mut self, kind: &Kind) -> String {
        if let Some(known) = (self.input.known)(kind) {
            return known;
        }
        if let Some(defined) = self.defined.get(&(kind.group.to_string(), kind.kind.to_string())) {
            return defined.clone();
        }
        let plural = usual_plural(&kind.kind);
        if !naming::is_built_in(&kind.group) {
            self.needs.guessed.insert((Arc::clone(&kind.group), plural.clone()));
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
        why: Why,
    ) {
        let right = Right { namespace, group: group.into(), resource: resource.to_owned(), name, verb };
        // Keeps the first reason in order. But rendered definitions are needed for more than discovery.
        let known = self.needs.rights.entry(right).or_insert(why);
        *known = if *known == Why::Serving { why } else { why.min(*known) };
    }
}

/// Its annotation forbids the delete.
fn is_kept(object: &RenderedObject) -> bool {
    object.annotation(labels::PRUNE).as_deref() == Some("keep")
}

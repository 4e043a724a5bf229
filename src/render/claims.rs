//! Objects of one cluster that more than one app renders, and which of these apps has each.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use super::codes;
use crate::model::{AppId, ClusterName, Diagnostic, Location, ObjectId, Rendered, RenderedObject, Scope};

/// An app that renders an object, and the place that it comes from. Ordered by the place.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct Claim {
    place: Location,
    app: AppId,
}

/// The objects of one cluster that more than one app renders, each with these apps in the order of their files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Claims(BTreeMap<ObjectId, Vec<Claim>>);

impl Claims {
    /// Of the renders of one cluster, each of another app.
    pub fn of<'a>(renders: impl IntoIterator<Item = &'a Rendered>) -> Self {
        let mut claims: BTreeMap<ObjectId, Vec<Claim>> = BTreeMap::new();
        let mut first: HashMap<&ObjectId, (&AppId, &RenderedObject)> = HashMap::new();
        let claim =
            |app: &AppId, object: &RenderedObject| Claim { place: object.source.clone(), app: app.clone() };
        for render in renders {
            for object in &*render.objects {
                match first.entry(&object.id) {
                    Entry::Vacant(place) => {
                        place.insert((&render.app, object));
                    }
                    Entry::Occupied(known) => {
                        let (app, known) = *known.get();
                        claims
                            .entry(object.id.clone())
                            .or_insert_with(|| vec![claim(app, known)])
                            .push(claim(&render.app, object));
                    }
                }
            }
        }
        claims.values_mut().for_each(|apps| apps.sort());
        Self(claims)
    }

    /// The app that keeps an object from this one: the app that applied what is there (`applied_by`), else the one whose file
    /// comes first. `None`: this app may have it.
    pub fn taken_from(&self, app: &AppId, id: &ObjectId, applied_by: Option<&str>) -> Option<&AppId> {
        let apps = self.0.get(id)?;
        let of_live = applied_by.and_then(|name| apps.iter().find(|claim| claim.app.to_string() == name));
        let owner = &of_live.or_else(|| apps.first())?.app;
        (owner != app && apps.iter().any(|claim| claim.app == *app)).then_some(owner)
    }
}

/// One error for each object of an app that an app whose file comes first renders, too. What the clusters hold is not known
/// here.
pub fn objects_in_two_apps<'a>(renders: impl IntoIterator<Item = &'a Rendered>) -> Vec<Diagnostic> {
    let mut of_clusters: BTreeMap<&ClusterName, Vec<&Rendered>> = BTreeMap::new();
    for render in renders {
        of_clusters.entry(&render.cluster).or_default().push(render);
    }
    let mistakes = |(cluster, renders): (&ClusterName, Vec<&Rendered>)| {
        let claims = Claims::of(renders);
        let of_object = |(id, apps): (&ObjectId, &Vec<Claim>)| {
            let Some((owner, others)) = apps.split_first() else { return Vec::new() };
            others.iter().map(|other| mistake(cluster, id, owner, other)).collect::<Vec<_>>()
        };
        claims.0.iter().flat_map(of_object).collect::<Vec<_>>()
    };
    of_clusters.into_iter().flat_map(mistakes).collect()
}

fn mistake(cluster: &ClusterName, id: &ObjectId, owner: &Claim, other: &Claim) -> Diagnostic {
    let message = format!("{id} is rendered by app {} and by app {} on {cluster}", owner.app, other.app);
    let help = match (&*id.group, &*id.kind) {
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            "one app owns it, and others may use it: leave it in one of the two, or make an app of it alone"
        }
        _ => "one app owns an object: remove it from one of the two, or give it another name or namespace",
    };
    let scope = Scope::Target(other.app.clone(), cluster.clone());
    Diagnostic::error(codes::OBJECT_IN_TWO_APPS, message, scope)
        .at(other.place.clone())
        .related(owner.place.clone(), format!("app {} renders it here", owner.app))
        .help(help)
}

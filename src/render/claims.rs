//! Finds objects of a cluster that several apps render, and decides which app owns each.

use std::collections::hash_map::Entry;
use std::collections::{BTreeMap, HashMap};

use super::codes;
use crate::fleet::Fleet;
use crate::model::{
    AppId, ClusterName, Diagnostic, DiagnosticScope, Location, ObjectId, RenderedObject, RenderedTarget,
    Snapshot,
};

/// An app that renders an object, and the source of the object. Ordered by source.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ObjectClaim {
    place: Location,
    app: AppId,
}

/// The objects of one cluster that several apps render, each with these apps in the order of their files.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectClaims(BTreeMap<ObjectId, Vec<ObjectClaim>>);

impl ObjectClaims {
    /// Takes the renders of one cluster, one for each app.
    pub fn of<'a>(renders: impl IntoIterator<Item = &'a RenderedTarget>) -> Self {
        let mut claims: BTreeMap<ObjectId, Vec<ObjectClaim>> = BTreeMap::new();
        let mut first: HashMap<&ObjectId, (&AppId, &RenderedObject)> = HashMap::new();
        let claim = |app: &AppId, object: &RenderedObject| ObjectClaim {
            place: object.source.clone(),
            app: app.clone(),
        };
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

    /// The other app that owns the object: the app that applied it (`applied_by`), else the one whose file comes first.
    /// `None`: this app may apply it.
    pub fn other_owner(&self, app: &AppId, id: &ObjectId, applied_by: Option<&str>) -> Option<&AppId> {
        let apps = self.0.get(id)?;
        let of_live = applied_by.and_then(|name| apps.iter().find(|claim| claim.app.to_string() == name));
        let owner = &of_live.or_else(|| apps.first())?.app;
        (owner != app && apps.iter().any(|claim| claim.app == *app)).then_some(owner)
    }
}

/// One error for each object that an app with an earlier file renders too. Live objects are not read here.
pub fn objects_in_two_apps<'a>(
    fleet: &Fleet,
    snapshot: &Snapshot,
    renders: impl IntoIterator<Item = &'a RenderedTarget>,
) -> Vec<Diagnostic> {
    let mut of_clusters: BTreeMap<&ClusterName, Vec<&RenderedTarget>> = BTreeMap::new();
    for render in renders {
        of_clusters.entry(&render.cluster).or_default().push(render);
    }
    // Two apps of one chart share a source, and a fetched chart has none here. Then the manifests are shown.
    let place = |claim: &ObjectClaim, other: &ObjectClaim| {
        let is_shown = claim.place != other.place && snapshot.files.contains_key(&claim.place.file);
        let manifest = fleet.apps.get(&claim.app).filter(|_| !is_shown);
        manifest.map_or(&claim.place, |app| &app.location).clone()
    };
    let mistakes = |(cluster, renders): (&ClusterName, Vec<&RenderedTarget>)| {
        let claims = ObjectClaims::of(renders);
        let of_object = |(id, apps): (&ObjectId, &Vec<ObjectClaim>)| {
            let Some((owner, others)) = apps.split_first() else { return Vec::new() };
            let mistake =
                |other| mistake(cluster, id, (owner, place(owner, other)), (other, place(other, owner)));
            others.iter().map(mistake).collect::<Vec<_>>()
        };
        claims.0.iter().flat_map(of_object).collect::<Vec<_>>()
    };
    of_clusters.into_iter().flat_map(mistakes).collect()
}

fn mistake(
    cluster: &ClusterName,
    id: &ObjectId,
    (owner, place): (&ObjectClaim, Location),
    (other, other_place): (&ObjectClaim, Location),
) -> Diagnostic {
    let message = format!("{id} is rendered by app {} and by app {} on {cluster}", owner.app, other.app);
    let help = match (&*id.group, &*id.kind) {
        ("", "Namespace") | ("apiextensions.k8s.io", "CustomResourceDefinition") => {
            "one app owns it, and others may use it: leave it in one of the two, or make an app of it alone"
        }
        _ => "one app owns an object: remove it from one of the two, or give it another name or namespace",
    };
    let scope = DiagnosticScope::Target(other.app.clone(), cluster.clone());
    Diagnostic::error(codes::OBJECT_IN_TWO_APPS, message, scope)
        .at(other_place)
        .related(place, format!("app {} renders it here", owner.app))
        .help(help)
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use super::*;
    use crate::fleet::assemble;
    use crate::manifest;
    use crate::model::NoCharts;
    use crate::render::{FleetRenderer, RenderCache};

    const CLUSTER: &str = "apiVersion: tutti.dev/v1alpha1\nkind: Cluster\nmetadata: {name: bj1}\nspec: {connection: {sandbox: {}}}\n";
    const OBJECT: &str = "apiVersion: v1\nkind: ConfigMap\nmetadata: {name: x, namespace: default}\n";

    #[test]
    fn claims_without_source_point_to_manifests() {
        let app = |name: &str| {
            format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: Objects\nmetadata: {{name: {name}}}\nspec: {{files: [o.yaml]}}\n"
            )
        };
        let (a, b) = (app("a"), app("b"));
        let files = [("apps/a/app.yaml", &*a), ("apps/b/app.yaml", &*b), ("clusters/bj1.yaml", CLUSTER)];
        let objects = [("apps/a/o.yaml", OBJECT), ("apps/b/o.yaml", OBJECT), ("charts/x/a.yaml", OBJECT)];
        let snapshot = Snapshot::of_texts(files.into_iter().chain(objects));
        let fleet = assemble(manifest::read(&snapshot), &snapshot);
        let renders =
            FleetRenderer::new(&fleet, &snapshot, &NoCharts).render_all(&mut RenderCache::default());
        let check = |sources: [&str; 2], expected: [&str; 2]| {
            let at = |(rendered, source): (&Result<Arc<RenderedTarget>, _>, &str)| {
                let rendered = rendered.as_ref().expect("rendered");
                let moved = |object: &RenderedObject| RenderedObject {
                    source: Location::new(source, 1, 1),
                    ..object.clone()
                };
                RenderedTarget {
                    objects: rendered.objects.iter().map(moved).collect(),
                    ..(**rendered).clone()
                }
            };
            let moved: Vec<RenderedTarget> = renders.results().zip(sources).map(at).collect();
            let found = objects_in_two_apps(&fleet, &snapshot, &moved);
            let [mistake] = found.as_slice() else { panic!("{found:?}") };
            let places = [&mistake.related[0].0, mistake.location.as_ref().expect("a place")];
            assert_eq!(places.map(|place| place.file.as_str()), expected, "{sources:?}");
        };
        check(["apps/a/o.yaml", "apps/b/o.yaml"], ["apps/a/o.yaml", "apps/b/o.yaml"]);
        check(["charts/x/a.yaml", "charts/x/a.yaml"], ["apps/a/app.yaml", "apps/b/app.yaml"]);
        check(["apps/a/o.yaml", "oci://r.io/x/a.yaml"], ["apps/a/o.yaml", "apps/b/app.yaml"]);
        check(["oci://r.io/x/a.yaml", "oci://r.io/y/a.yaml"], ["apps/a/app.yaml", "apps/b/app.yaml"]);
    }
}

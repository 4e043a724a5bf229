//! Checks replicas, image tags and names of podSets.

use std::collections::{BTreeMap, HashMap};
use std::sync::Arc;

use serde_json::{Map, Value};

use super::CheckInput;
use crate::fleet::{ReplicaDivision, codes, divide_replicas, placement};
use crate::model::{
    App, AppSet, AppSpec, ClusterName, Diagnostic, DiagnosticScope, Location, PodSet, image_tag,
};

pub fn replicas_fit(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let check = |app: &App| match &app.spec {
        AppSpec::AppSet(app_set) => replicas_error(app, app_set),
        AppSpec::Component(_) | AppSpec::Objects(_) | AppSpec::Project(_) => None,
    };
    facts.manifests.apps.iter().filter_map(|app| check(app)).collect()
}

fn replicas_error(app: &App, app_set: &AppSet) -> Option<Diagnostic> {
    let scope = DiagnosticScope::App(app.id.clone());
    match divide_replicas(app_set) {
        ReplicaDivision::Divided(_) => None,
        ReplicaDivision::Mismatch { total, sum } => {
            let message = format!("AppSet {} has {total} replicas, but its podSets add up to {sum}", app.id);
            let location = app_set.replicas_location.as_ref().unwrap_or(&app.location).clone();
            let diagnostic = Diagnostic::error(codes::REPLICAS_MISMATCH, message, scope)
                .at(location)
                .in_path("spec.replicas")
                .help(format!(
                    "write {sum} here, or leave out the replicas of one podSet: it takes what is left"
                ));
            Some(diagnostic)
        }
        ReplicaDivision::PercentWithoutTotal(index) => {
            let pod_set = app_set.clusters.iter().flat_map(|cluster| &cluster.pod_sets).nth(index)?;
            let message = format!(
                "podSet {} takes a percent of replicas, and AppSet {} has no spec.replicas",
                pod_set.name, app.id
            );
            let diagnostic = Diagnostic::error(codes::PERCENT_WITHOUT_TOTAL, message, scope)
                .at(pod_set.location.clone())
                .help("give spec.replicas, or a number here");
            Some(diagnostic)
        }
    }
}

/// The version of a podSet equals the tag of its image.
pub fn tags_agree(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let app_sets = facts.manifests.apps.iter().filter_map(|app| match &app.spec {
        AppSpec::AppSet(app_set) => Some((app, app_set)),
        AppSpec::Component(_) | AppSpec::Objects(_) | AppSpec::Project(_) => None,
    });
    let pod_sets = app_sets.flat_map(|(app, set)| {
        set.clusters.iter().flat_map(move |it| it.pod_sets.iter().map(move |it| (app, it)))
    });
    let two_tags = |(app, pod_set): (&Arc<App>, &PodSet)| {
        let of_image = pod_set.image.as_deref().and_then(image_tag);
        let first = pod_set.version.as_deref().or(of_image)?;
        let of_image = of_image.map(|tag| ("the tag of its image", tag.to_owned()));
        let raw = pod_set.raw_values.as_ref().map(raw_tags).unwrap_or_default();
        let (what, other) = of_image.into_iter().chain(raw).find(|(_, tag)| tag != first)?;
        let has = if pod_set.version.is_some() { "version" } else { "an image with the tag" };
        let other = if other.is_empty() { "empty" } else { &other };
        let message = format!("podSet {} has {has} {first}, and {what} is {other}", pod_set.name);
        let mistake = Diagnostic::error(codes::TWO_TAGS, message, DiagnosticScope::App(app.id.clone()));
        Some(mistake.at(pod_set.location.clone()).help("write one of them, or the same in both"))
    };
    pod_sets.filter_map(two_tags).collect()
}

/// The tags that chart values set for the image, and the fields that set them. A null or empty value removes the tag.
fn raw_tags(raw: &Map<String, Value>) -> Vec<(&'static str, String)> {
    let tag = |value: &Value| match value {
        Value::String(text) => text.split('@').next().unwrap_or_default().to_owned(),
        Value::Null => String::new(),
        other => other.to_string(),
    };
    let image = raw.get("image");
    let of_text = image.and_then(Value::as_str).and_then(image_tag).map(str::to_owned);
    let of_parts = image.and_then(|image| image.get("tag")).map(tag);
    let beside = raw.get("imageTag").map(tag);
    let named =
        [("rawValues.image", of_text), ("rawValues.image.tag", of_parts), ("rawValues.imageTag", beside)];
    named.into_iter().filter_map(|(name, tag)| Some((name, tag?))).collect()
}

/// A podSet becomes a workload of its name, so the name is unique in a namespace of a cluster.
pub fn names_differ(facts: &CheckInput<'_>) -> Vec<Diagnostic> {
    let mut taken: BTreeMap<(ClusterName, &str, &str), (&App, &Location)> = BTreeMap::new();
    let mut found: Vec<Diagnostic> = Vec::new();
    // Most names occur once; those need no comparison by cluster.
    let mut times: HashMap<(&str, &str), usize> = HashMap::new();
    for (app, name) in facts.manifests.apps.iter().flat_map(|app| names(app).map(move |name| (app, name))) {
        *times.entry((&*app.id.namespace, name)).or_default() += 1;
    }
    let is_shared =
        |app: &App, name: &str| times.get(&(&*app.id.namespace, name)).is_some_and(|times| *times > 1);
    for app in facts.by_seniority().into_iter().filter(|app| names(app).any(|name| is_shared(app, name))) {
        for (cluster, name, location) in pod_sets(app, facts) {
            let key = (cluster, &*app.id.namespace, name);
            let Some((other, place)) = taken.get(&key) else {
                taken.insert(key, (app, location));
                continue;
            };
            let (cluster, ..) = key;
            let message = format!(
                "podSet {name} of {} is also a podSet of {} in namespace {} of cluster {cluster}",
                app.id, other.id, app.id.namespace
            );
            let error =
                Diagnostic::error(codes::POD_SET_TWICE, message, DiagnosticScope::App(app.id.clone()));
            found.push(
                error
                    .at(location.clone())
                    .help("both would be one workload of that name; rename one of them")
                    .related((*place).clone(), "the one that has it"),
            );
        }
    }
    // An app on many clusters gets one error.
    found.sort_by(|one, other| (&one.location, &one.scope).cmp(&(&other.location, &other.scope)));
    found.dedup_by(|one, other| one.location == other.location && one.scope == other.scope);
    found
}

fn names(app: &App) -> impl Iterator<Item = &str> {
    let (of_set, of_app) = match &app.spec {
        AppSpec::AppSet(app_set) if app_set.placement.is_none() => (app_set.clusters.as_slice(), None),
        AppSpec::AppSet(_) | AppSpec::Component(_) => (&[][..], Some(&*app.id.name)),
        AppSpec::Objects(_) | AppSpec::Project(_) => (&[][..], None),
    };
    let of_set = of_set.iter().flat_map(|cluster| &cluster.pod_sets).map(|pod_set| pod_set.name.as_str());
    of_set.chain(of_app)
}

fn pod_sets<'a>(app: &'a App, facts: &CheckInput<'_>) -> Vec<(ClusterName, &'a str, &'a Location)> {
    match &app.spec {
        AppSpec::AppSet(app_set) if app_set.placement.is_none() => app_set
            .clusters
            .iter()
            .flat_map(|cluster| cluster.pod_sets.iter().map(move |pod_set| (&cluster.name, pod_set)))
            .map(|(cluster, pod_set)| (cluster.clone(), pod_set.name.as_str(), &pod_set.location))
            .collect(),
        AppSpec::AppSet(_) | AppSpec::Component(_) => placement(app, facts.clusters, facts.ring_of)
            .into_iter()
            .map(|cluster| (cluster, &*app.id.name, &app.location))
            .collect(),
        AppSpec::Objects(_) | AppSpec::Project(_) => Vec::new(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn tags_of_raw_values_are_found() {
        let check = |raw: Value, expected: &[(&'static str, &str)]| {
            let Value::Object(map) = &raw else { panic!("{raw}") };
            let expected: Vec<_> = expected.iter().map(|(name, tag)| (*name, (*tag).to_owned())).collect();
            assert_eq!(raw_tags(map), expected, "{raw}");
        };
        check(json!({"tag": "v1", "image": {"repository": "web"}}), &[]);
        check(json!({"image": {"tag": "v1@sha256:0f"}}), &[("rawValues.image.tag", "v1")]);
        check(json!({"image": {"tag": 7}}), &[("rawValues.image.tag", "7")]);
        check(json!({"image": {"tag": null}}), &[("rawValues.image.tag", "")]);
        let beside = [("rawValues.image", "v1"), ("rawValues.imageTag", "v2")];
        check(json!({"image": "r.io:5000/web:v1", "imageTag": "v2"}), &beside);
    }
}

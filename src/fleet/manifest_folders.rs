//! Warns about manifests outside of their folder. Trust goes by folder: who may write a folder decides what its manifests may do.
//! Called by `cli::lint`.

use std::collections::BTreeMap;

use super::{Fleet, codes};
use crate::model::{App, AppSpec, Connection, Diagnostic, DiagnosticScope, Location};

/// Folders of manifests that other apps depend on. No app belongs there.
const PRIVILEGED_FOLDERS: [&str; 10] = [
    "clusters/",
    "projects/",
    "policies/",
    "approvals/",
    "triggers/",
    "notifications/",
    "servers/",
    "plugins/",
    "health/",
    "templates/",
];

/// A manifest with the file where it belongs; `None` if it may stay.
struct ManifestPlacement<'a> {
    title: String,
    place: &'a Location,
    expected_path: Option<String>,
}

pub fn misplaced_manifests(fleet: &Fleet) -> Vec<Diagnostic> {
    let all = all_placements(fleet);
    let mut in_file: BTreeMap<&str, usize> = BTreeMap::new();
    all.iter().for_each(|found| *in_file.entry(&found.place.file).or_default() += 1);
    let warn = |found: &ManifestPlacement<'_>| {
        let (home, file) = (found.expected_path.as_ref()?, &found.place.file);
        let folder = home.rfind('/').map_or(&**home, |slash| &home[..=slash]);
        let message = format!("{} is in {file}, and not in {folder}", found.title);
        let help = match in_file.get(&**file) {
            Some(1) => format!("git mv {file} {home}"),
            _ => format!("move this document to {home}: other manifests are in {file}, too"),
        };
        let warning = Diagnostic::warning(codes::MISPLACED, message, DiagnosticScope::File(file.clone()));
        Some(warning.at(found.place.clone()).help(help))
    };
    all.iter().filter_map(warn).collect()
}

fn all_placements(fleet: &Fleet) -> Vec<ManifestPlacement<'_>> {
    let named = |place: &Location, file: &str| (!is_at_path(place, file)).then(|| file.to_owned());
    let below = |place: &Location, folder: &str, name: &str| {
        (!place.file.starts_with(folder)).then(|| format!("{folder}{name}.yaml"))
    };
    let mut all = Vec::new();
    if let Some(place) = &fleet.instance.location {
        all.push(ManifestPlacement {
            title: "the Instance".to_owned(),
            place,
            expected_path: named(place, "tutti.yaml"),
        });
    }
    if let Some(place) = &fleet.rings_location {
        all.push(ManifestPlacement {
            title: "the Rings".to_owned(),
            place,
            expected_path: named(place, "rings.yaml"),
        });
    }
    let of_files =
        fleet.clusters.values().filter(|it| !matches!(it.connection, Connection::ConfigMap { .. }));
    all.extend(of_files.map(|cluster| ManifestPlacement {
        title: format!("Cluster {}", cluster.name),
        place: &cluster.location,
        expected_path: below(&cluster.location, "clusters/", cluster.name.as_str()),
    }));
    let of_objects = fleet.approvals.iter().filter_map(|it| Some((&it.name, it.location.as_ref()?)));
    all.extend(of_objects.map(|(name, place)| ManifestPlacement {
        title: format!("Approval {name}"),
        place,
        expected_path: below(place, "approvals/", name),
    }));
    for (app, approvals) in &fleet.rollout_approvals {
        let folder = fleet.apps.get(app).map(|app| app.folder()).filter(|folder| !folder.is_empty());
        let is_beside = |place: &Location| folder.is_some_and(|folder| place.file.starts_with(folder));
        let approvals = approvals.iter().filter_map(|it| Some((&it.name, it.location.as_ref()?)));
        all.extend(approvals.map(|(name, place)| ManifestPlacement {
            title: format!("Approval {name}"),
            place,
            expected_path: below(place, "approvals/", name).filter(|_| !is_beside(place)),
        }));
    }
    all.extend(fleet.apps.values().map(|app| ManifestPlacement {
        title: app.title(),
        place: &app.location,
        expected_path: expected_app_path(app),
    }));
    all
}

fn expected_app_path(app: &App) -> Option<String> {
    let file = &app.location.file;
    match &app.spec {
        AppSpec::Project(_) if file.starts_with("projects/") => None,
        AppSpec::Project(_) => Some(format!("projects/{}.yaml", app.id.name)),
        _ if PRIVILEGED_FOLDERS.iter().any(|folder| file.starts_with(folder)) => {
            Some(format!("apps/{}/app.yaml", app.id.name))
        }
        _ => None,
    }
}

/// `.yaml` and `.yml` are both accepted.
fn is_at_path(place: &Location, file: &str) -> bool {
    place.file == file
        || place.file.strip_suffix(".yml").is_some_and(|it| file.strip_suffix(".yaml") == Some(it))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::fleet::assemble;
    use crate::manifest;
    use crate::model::Snapshot;

    #[test]
    fn misplaced_manifests_get_the_right_path() {
        let own = |kind: &str, name: &str, spec: &str| {
            format!(
                "apiVersion: tutti.dev/v1alpha1\nkind: {kind}\nmetadata: {{name: {name}}}\nspec: {{{spec}}}\n"
            )
        };
        let (instance, rings) = (own("Instance", "main", ""), own("Rings", "rings", "rings: []"));
        let (cluster, project) =
            (own("Cluster", "bj", "connection: {sandbox: {}}"), own("Project", "shop", ""));
        let web = own("Objects", "web", "files: [o.txt]");
        let check = |files: &[(&str, &str)], expected: &[&str]| {
            let snapshot = Snapshot::of_texts(files.iter().copied());
            let fleet = assemble(manifest::read(&snapshot), &snapshot);
            let told = misplaced_manifests(&fleet);
            let told: Vec<_> = told.iter().filter_map(|it| it.help.as_deref()).collect();
            assert_eq!(told, expected, "{files:?}");
        };
        let right = [
            ("tutti.yaml", &*instance),
            ("rings.yml", &rings),
            ("clusters/a/bj.yaml", &cluster),
            ("projects/x.yaml", &project),
        ];
        check(&right, &[]);
        check(
            &[("conf/i.yaml", &instance), ("r.yaml", &rings)],
            &["git mv conf/i.yaml tutti.yaml", "git mv r.yaml rings.yaml"],
        );
        check(&[("apps/bj.yaml", &cluster)], &["git mv apps/bj.yaml clusters/bj.yaml"]);
        check(&[("apps/p.yaml", &project)], &["git mv apps/p.yaml projects/shop.yaml"]);
        let both = [&*cluster, &*project].join("---\n");
        check(
            &[("clusters/all.yaml", &both)],
            &["move this document to projects/shop.yaml: other manifests are in clusters/all.yaml, too"],
        );
        let files = [("clusters/web.yaml", &*web), ("clusters/o.txt", "a")];
        check(&files, &["git mv clusters/web.yaml apps/web/app.yaml"]);
    }
}

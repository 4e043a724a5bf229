//! Decides by path which files may hold manifests.

use super::kinds::ManifestKind;
use crate::model::outside_path;

/// Whether a file is parsed: YAML, not hidden, inside the configured folder, and not in a reserved folder.
pub fn is_candidate(path: &str) -> bool {
    if outside_path::is_outside(path) {
        return false;
    }
    let mut parts: Vec<&str> = path.split('/').collect();
    let Some(file) = parts.pop() else { return false };
    let hidden = file.starts_with('.') || parts.iter().any(|folder| folder.starts_with('.'));
    let is_yaml = file.ends_with(".yaml") || file.ends_with(".yml");
    is_yaml && !hidden && !is_reserved_folder(&parts)
}

/// Templates, charts, plug-ins and health rules are found by folder. An app's layer has the files of a template layer.
fn is_reserved_folder(folders: &[&str]) -> bool {
    matches!(folders, ["templates" | "charts" | "plugins" | "health", ..] | ["apps", _, "layer", ..])
}

/// Whether a path always belongs to a file with a manifest.
pub fn is_manifest_path(path: &str) -> bool {
    usual_kind_at(path).is_some()
        || matches!(path.split('/').collect::<Vec<_>>().as_slice(), ["apps", _, "app.yaml" | "app.yml"])
}

/// Whether a file is a pin, `apps/<app>/pins/<ring>.yaml`.
pub fn is_pin(path: &str) -> bool {
    matches!(path.split('/').collect::<Vec<_>>().as_slice(), ["apps", _, "pins", _])
}

/// Whether it is a kustomization file.
pub fn is_kustomization(path: &str) -> bool {
    matches!(path.rsplit('/').next(), Some("kustomization.yaml" | "kustomization.yml"))
}

/// The kind whose usual path this is.
pub fn usual_kind_at(path: &str) -> Option<ManifestKind> {
    match path {
        "tutti.yaml" | "tutti.yml" => Some(ManifestKind::Instance),
        "rings.yaml" | "rings.yml" => Some(ManifestKind::Rings),
        _ => {
            let file = path.strip_prefix("projects/")?;
            (!file.contains('/')).then_some(ManifestKind::Project)
        }
    }
}

/// Whether app teams own the file.
pub fn is_below_apps(file: &str) -> bool {
    file.starts_with("apps/")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reserved_folders_are_left_out() {
        for path in
            ["tutti.yaml", "clusters/bj5.yml", "apps/a/app.yaml", "apps/a/templates/x.yaml", "layer/x.yaml"]
        {
            assert!(is_candidate(path), "{path}");
        }
        for path in [
            ".drone.yml",
            ".github/x.yaml",
            "templates/base/values.yaml",
            "charts/a/Chart.yaml",
            "plugins/trait/x/1/definition.yaml",
            "health/example.com/Database.yaml",
            "apps/a/layer/values.yaml",
            "README.md",
            "apps/a/objects/x.yaml.j2",
        ] {
            assert!(!is_candidate(path), "{path}");
        }
        assert!(is_pin("apps/a/pins/prod.yaml"));
    }

    #[test]
    fn usual_places() {
        assert_eq!(usual_kind_at("tutti.yaml"), Some(ManifestKind::Instance));
        assert_eq!(usual_kind_at("rings.yml"), Some(ManifestKind::Rings));
        assert_eq!(usual_kind_at("projects/shop.yaml"), Some(ManifestKind::Project));
        assert_eq!(usual_kind_at("projects/shop/app.yaml"), None);
        assert_eq!(usual_kind_at("apps/projects/rings.yaml"), None);
    }
}

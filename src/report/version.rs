//! The version of running workloads, for tables and messages.

use serde_json::Value;

use crate::model::{FieldPath, FieldPathStep};

/// The tag of the first container's image; without a tag, the first digits of its digest.
pub fn of_workload(object: &Value) -> Option<String> {
    let image = object.pointer("/spec/template/spec/containers/0/image")?.as_str()?;
    let (name, digest) = image.split_once('@').map_or((image, None), |(name, digest)| (name, Some(digest)));
    let last = name.rsplit('/').next().unwrap_or(name);
    match (last.split_once(':'), digest) {
        (Some((_, tag)), _) => Some(tag.to_owned()),
        (None, Some(digest)) => Some(digest.trim_start_matches("sha256:").chars().take(12).collect()),
        (None, None) => Some("latest".to_owned()),
    }
}

/// Whether these field paths cover the image that gives the version.
pub fn is_image_ignored(object: &Value, paths: &[FieldPath]) -> bool {
    const CONTAINERS: [&str; 4] = ["spec", "template", "spec", "containers"];
    let Some(container) = object.pointer("/spec/template/spec/containers/0") else { return false };
    let holds = |(depth, step): (usize, &FieldPathStep)| match (depth, step) {
        (..4, FieldPathStep::Field(name)) => name == CONTAINERS[depth],
        (4, step) => step.is_item(container),
        (5, FieldPathStep::Field(name)) => name == "image",
        _ => false,
    };
    paths.iter().any(|path| path.steps().iter().enumerate().all(holds))
}

/// Splits on `/`, drops blanks and duplicates, sorts by the number in `v<N>`.
pub fn merge_versions<'a>(versions: impl Iterator<Item = &'a str>) -> String {
    let mut parts: Vec<&str> = versions
        .flat_map(|version| version.split('/'))
        .map(str::trim)
        .filter(|part| !part.is_empty())
        .collect();
    let number = |part: &str| part.strip_prefix('v').and_then(|rest| rest.parse::<u64>().ok());
    parts.sort_by(|one, other| (number(one), one).cmp(&(number(other), other)));
    parts.dedup();
    parts.join("/")
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn versions_merge_as_in_the_seed() {
        let check = |one: &str, other: &str, expected: &str| {
            assert_eq!(merge_versions([one, other].into_iter()), expected)
        };
        check("v1", "v2/v3", "v1/v2/v3");
        check("", "v3/v2", "v2/v3");
        check("v10", "v7", "v7/v10");
        check("/v12/v11", " ", "v11/v12");
        check("", " ", "");
        check("v1", "v1", "v1");
    }

    #[test]
    fn ignored_path_may_cover_the_image() {
        let containers = json!([{"name": "app", "image": "a:1"}, {"name": "side", "image": "b:2"}]);
        let object = json!({"spec": {"template": {"spec": {"containers": containers}}}});
        let check = |path: &str, expected: bool| {
            let path = FieldPath::parse(path).expect("a path");
            assert_eq!(is_image_ignored(&object, std::slice::from_ref(&path)), expected, "{path:?}");
            assert!(!is_image_ignored(&json!({"data": {}}), &[path]));
        };
        check("/spec", true);
        check("/spec/template/spec/containers", true);
        check("/spec/template/spec/containers/name=app", true);
        check("/spec/template/spec/containers/name=app/image", true);
        check("/spec/template/spec/containers/name=app/image/x", false);
        check("/spec/template/spec/containers/name=app/env", false);
        check("/spec/template/spec/containers/name=side/image", false);
        check("/spec/replicas", false);
        check("/metadata", false);
    }

    #[test]
    fn workload_has_the_version_of_its_image() {
        let check = |image: &str, expected: &str| {
            let object = json!({"spec": {"template": {"spec": {"containers": [{"image": image}]}}}});
            assert_eq!(of_workload(&object).as_deref(), Some(expected));
        };
        check("registry.example.com:5000/shop/pay:1.8.0", "1.8.0");
        check("registry.example.com:5000/shop/pay", "latest");
        check("pay:1@sha256:0123456789abcdef", "1");
        check("pay@sha256:0123456789abcdef", "0123456789ab");
    }
}

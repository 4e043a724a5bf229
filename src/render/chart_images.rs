//! Translates the image of a podSet into values of a chart, which keep it as one text or in parts.

use serde_json::{Map, Value, json};

use crate::model::{ImageReference, retag, with_version};

/// The registry of a reference without one, and its folder for images without a folder.
const DEFAULT_REGISTRY: (&str, &str) = ("docker.io", "library/");

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ImageSetting {
    Image,
    Version,
}

impl ImageSetting {
    pub fn name(self) -> &'static str {
        match self {
            Self::Image => "image",
            Self::Version => "version",
        }
    }
}

/// A value that a podSet sets and the chart does not define.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MissingChartValue {
    pub setting: ImageSetting,
    pub name: &'static str,
    /// The value is passed on anyway: templates may read a value that has no default.
    pub is_passed_on: bool,
}

/// Whether one line of a template reads both values.
pub type ReadsBoth<'a> = &'a dyn Fn(&str, &str) -> bool;

/// The values for image and version, given the defaults of the chart, and the values that the chart lacks.
pub fn image_values(
    defaults: &Map<String, Value>,
    image: Option<&str>,
    version: Option<&str>,
    reads_both: ReadsBoth<'_>,
) -> (Map<String, Value>, Vec<MissingChartValue>) {
    let mut made = Map::new();
    let mut missing = Vec::new();
    let both =
        || image.map(|_| ImageSetting::Image).into_iter().chain(version.map(|_| ImageSetting::Version));
    match defaults.get("image") {
        Some(Value::Object(parts)) => {
            let parts_made = image_parts(parts, image, version, reads_both);
            let has = |key: &str| parts.contains_key(key);
            let mut lacks =
                |of, name| missing.push(MissingChartValue { setting: of, name, is_passed_on: true });
            if image.is_some() && !has("repository") && !has("name") {
                lacks(ImageSetting::Image, "`image.repository` or `image.name`");
            }
            if parts_made.contains_key("tag") && !has("tag") {
                lacks(
                    if version.is_some() { ImageSetting::Version } else { ImageSetting::Image },
                    "`image.tag`",
                );
            }
            if !parts_made.is_empty() {
                made.insert("image".to_owned(), Value::Object(parts_made));
            }
        }
        Some(Value::String(default)) => {
            if let Some(tag) = separate_tag_key(defaults, default, reads_both) {
                let parts = Map::from_iter([
                    ("repository".to_owned(), json!(default)),
                    ("tag".to_owned(), json!("")),
                ]);
                let names = [("repository", "image"), ("tag", tag)];
                let mut parts = image_parts(&parts, image, version, reads_both);
                let named = |(part, name): (&str, &str)| Some((name.to_owned(), parts.remove(part)?));
                made.extend(names.into_iter().filter_map(named));
                return (made, missing);
            }
            let image = match (image, version) {
                (Some(image), Some(version)) => Some(with_version(image, version)),
                (Some(image), None) => Some(image.to_owned()),
                (None, Some(_)) if default.is_empty() => {
                    missing.push(MissingChartValue {
                        setting: ImageSetting::Version,
                        name: "in `image`",
                        is_passed_on: false,
                    });
                    None
                }
                (None, version) => version.map(|version| retag(default, version)),
            };
            made.extend(image.map(|image| ("image".to_owned(), json!(image))));
        }
        _ => missing.extend(both().map(|of| MissingChartValue {
            setting: of,
            name: "`image`",
            is_passed_on: false,
        })),
    }
    (made, missing)
}

/// The key of a separate tag if `image` is one text, as in old charts.
fn separate_tag_key(
    defaults: &Map<String, Value>,
    image: &str,
    reads_both: ReadsBoth<'_>,
) -> Option<&'static str> {
    let has_no_tag = || with_version(image, "x") != image;
    let is_of_image =
        |key: &str| key == "imageTag" || has_no_tag() && reads_both(".Values.image", ".Values.tag");
    let is_scalar = |value: &Value| !value.is_object() && !value.is_array();
    ["imageTag", "tag"].into_iter().find(|key| is_of_image(key) && defaults.get(*key).is_some_and(is_scalar))
}

/// Splits an image into the parts that the chart defines. A part that would keep the value of another image is emptied.
fn image_parts(
    parts: &Map<String, Value>,
    image: Option<&str>,
    version: Option<&str>,
    reads_both: ReadsBoth<'_>,
) -> Map<String, Value> {
    let mut made = Map::new();
    let mut put = |key: &str, value: &str| {
        made.insert(key.to_owned(), json!(value));
    };
    let reference = image.map(ImageReference::parse);
    let digest = reference.and_then(|reference| reference.digest);
    let tag = reference.and_then(|reference| reference.tag).or(version.filter(|_| digest.is_none()));
    let mut name = reference.map(|reference| match (parts.contains_key("registry"), reference.registry) {
        (false, _) => reference.name(),
        (true, Some(_)) => reference.path.to_owned(),
        (true, None) if reference.path.contains('/') => reference.path.to_owned(),
        (true, None) => format!("{}{}", DEFAULT_REGISTRY.1, reference.path),
    });
    if let (true, Some(reference)) = (parts.contains_key("registry"), reference) {
        put("registry", reference.registry.unwrap_or(DEFAULT_REGISTRY.0));
    }
    let digest_keys = ["digest", "sha"].into_iter().filter(|key| parts.contains_key(*key));
    let digest_keys: Vec<&str> = digest_keys.collect();
    match (tag, digest, digest_keys.is_empty()) {
        (tag, Some(digest), false) => {
            for key in digest_keys {
                // The template adds the algorithm to `sha`.
                put(key, if key == "sha" { digest.trim_start_matches("sha256:") } else { digest });
            }
            tag.into_iter().for_each(|tag| put("tag", tag));
        }
        (Some(tag), Some(digest), true) => put("tag", &format!("{tag}@{digest}")),
        (None, Some(digest), true) => {
            // The chart joins name and tag with a colon, which becomes the colon of the digest.
            let (algorithm, hex) = digest.split_once(':').unwrap_or(("sha256", digest));
            name = name.map(|name| format!("{name}@{algorithm}"));
            put("tag", hex);
        }
        (tag, None, _) => {
            tag.into_iter().for_each(|tag| put("tag", tag));
            for key in digest_keys.into_iter().filter(|_| tag.is_some() || image.is_some()) {
                put(key, "");
            }
        }
    }
    if let Some(name) = name {
        match (parts.get("repository"), parts.get("name")) {
            (Some(repository), Some(last))
                if is_name_joined(repository, last) && reads_both("image.repository", "image.name") =>
            {
                // The template joins them with a slash.
                let whole =
                    if name.contains('/') { name.clone() } else { format!("docker.io/library/{name}") };
                let (before, last) = whole.rsplit_once('/').unwrap_or(("", &whole));
                put("repository", before);
                put("name", last);
            }
            (None, Some(_)) => put("name", &name),
            _ => put("repository", &name),
        }
    }
    made
}

/// Whether the template joins `repository` and `name`. Otherwise `name` names something else.
fn is_name_joined(repository: &Value, name: &Value) -> bool {
    let [repository, name] = [repository, name].map(|text| text.as_str().unwrap_or_default());
    if name.is_empty() { repository.is_empty() } else { repository.rsplit('/').next() != Some(name) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn map(value: Value) -> Map<String, Value> {
        match value {
            Value::Object(map) => map,
            _ => panic!("a map"),
        }
    }

    fn check(parts: Value, image: Option<&str>, version: Option<&str>, expected: Value) {
        let parts = map(parts);
        assert_eq!(
            image_parts(&parts, image, version, &|_, _| true),
            map(expected),
            "{parts:?} {image:?} {version:?}"
        );
    }

    #[test]
    fn image_fits_every_form_of_chart_values() {
        let plain = || json!({"repository": "docker.io/vendor/web", "tag": "v0"});
        check(plain(), None, None, json!({}));
        check(plain(), None, Some("v2"), json!({"tag": "v2"}));
        check(plain(), Some("r.io/web"), Some("v2"), json!({"repository": "r.io/web", "tag": "v2"}));
        check(plain(), Some("r.io/web:v3"), None, json!({"repository": "r.io/web", "tag": "v3"}));
        check(plain(), Some("web"), None, json!({"repository": "web"}));
        let full = "r.io:5000/shop/web:v1@sha256:0f";
        check(plain(), Some(full), None, json!({"repository": "r.io:5000/shop/web", "tag": "v1@sha256:0f"}));
        check(plain(), Some("web@sha256:0f"), Some("v1"), json!({"repository": "web@sha256", "tag": "0f"}));
        check(json!({"name": "a", "tag": "b"}), Some("web:v1"), None, json!({"name": "web", "tag": "v1"}));

        let joined = || json!({"registry": "", "repository": "", "name": "operator", "tag": ""});
        let operator =
            json!({"registry": "quay.io", "repository": "strimzi", "name": "operator", "tag": "0.44"});
        check(joined(), Some("quay.io/strimzi/operator:0.44"), None, operator);
        let nginx = json!({"registry": "docker.io", "repository": "library", "name": "nginx", "tag": "1"});
        check(joined(), Some("nginx:1"), None, nginx);
        let two = || json!({"repository": "r.io/shop", "name": "web", "tag": ""});
        let pinned = json!({"repository": "r.io/a/b", "name": "c@sha256", "tag": "0f"});
        check(two(), Some("r.io/a/b/c@sha256:0f"), None, pinned);
        check(two(), None, Some("v2"), json!({"tag": "v2"}));
        let official = json!({"repository": "docker.io/library", "name": "nginx", "tag": "1"});
        check(two(), Some("nginx:1"), None, official);
        let container = map(json!({"repository": "nginx", "name": "main", "tag": "1.25"}));
        let made = image_parts(&container, Some("r.io/a/b:1"), None, &|_, _| false);
        assert_eq!(made, map(json!({"repository": "r.io/a/b", "tag": "1"})));
        let beside = json!({"repository": "r.io/shop/web", "name": "web", "tag": ""});
        check(beside, Some("r.io/a/b:1"), None, json!({"repository": "r.io/a/b", "tag": "1"}));

        let registry = || json!({"registry": "quay.io", "repository": "vendor/web", "tag": "v0"});
        let nginx = json!({"registry": "docker.io", "repository": "library/nginx", "tag": "1"});
        check(registry(), Some("nginx:1"), None, nginx);
        let shop = json!({"registry": "docker.io", "repository": "shop/web", "tag": "1"});
        check(registry(), Some("shop/web:1"), None, shop);
        let ported = json!({"registry": "r.io:5000", "repository": "shop/web", "tag": "v1@sha256:0f"});
        check(registry(), Some(full), None, ported);

        let pinned = || json!({"repository": "vendor/web", "tag": "v0", "digest": "sha256:aa"});
        check(pinned(), None, Some("v2"), json!({"tag": "v2", "digest": ""}));
        check(pinned(), Some("web"), None, json!({"repository": "web", "digest": ""}));
        check(pinned(), Some("web@sha256:0f"), None, json!({"repository": "web", "digest": "sha256:0f"}));
        check(pinned(), None, None, json!({}));

        let older = || json!({"repository": "vendor/web", "tag": "v0", "sha": "aa"});
        check(older(), None, Some("v2"), json!({"tag": "v2", "sha": ""}));
        check(
            older(),
            Some("web:v1@sha256:0f"),
            None,
            json!({"repository": "web", "tag": "v1", "sha": "0f"}),
        );
    }

    #[test]
    fn missing_image_value_is_reported() {
        let check =
            |defaults: Value, image: Option<&str>, version: Option<&str>, expected: Value, lacks: &[&str]| {
                let defaults = map(defaults);
                let (made, missing) = image_values(&defaults, image, version, &|_, _| true);
                let missing: Vec<String> = missing
                    .iter()
                    .map(|it| format!("{} {} {}", it.setting.name(), it.name, it.is_passed_on))
                    .collect();
                assert_eq!(
                    (made, missing),
                    (map(expected), lacks.iter().map(|it| (*it).to_owned()).collect()),
                    "{defaults:?}"
                );
            };
        let nothing = || json!({});
        check(nothing(), None, None, nothing(), &[]);
        check(nothing(), None, Some("v2"), nothing(), &["version `image` false"]);
        check(
            nothing(),
            Some("web"),
            Some("v2"),
            nothing(),
            &["image `image` false", "version `image` false"],
        );
        check(json!({"image": null}), Some("web"), None, nothing(), &["image `image` false"]);
        check(json!({"image": ""}), None, Some("v2"), nothing(), &["version in `image` false"]);
        check(json!({"image": ""}), Some("web"), Some("v2"), json!({"image": "web:v2"}), &[]);
        let tag = json!({"image": {"tag": "v2"}});
        check(json!({"image": {"repository": "web"}}), None, Some("v2"), tag, &["version `image.tag` true"]);
        let both = json!({"image": {"tag": "v2", "repository": "web"}});
        let lacks = ["image `image.repository` or `image.name` true"];
        check(json!({"image": {"tag": ""}}), Some("web:v2"), None, both.clone(), &lacks);
        let lacks = [lacks[0], "image `image.tag` true"];
        check(json!({"image": {}}), Some("web:v2"), None, both, &lacks);
        let apart = json!({"image": "web", "imageTag": "v2"});
        check(json!({"image": "a", "imageTag": "b"}), Some("web:v2"), None, apart, &[]);
        check(json!({"image": "a", "imageTag": "b"}), None, Some("v2"), json!({"imageTag": "v2"}), &[]);
        let beside = json!({"image": "nginx", "tag": "1.25"});
        let made = json!({"image": "nginx", "tag": "1.26"});
        check(beside.clone(), Some("nginx:1.26"), None, made, &[]);
        check(beside, None, Some("1.26"), json!({"tag": "1.26"}), &[]);
        let whole = json!({"image": "nginx:1.25", "tag": "blue"});
        check(whole, Some("nginx:1.26"), None, json!({"image": "nginx:1.26"}), &[]);
        let map = json!({"image": "nginx", "tag": {"key": "value"}});
        check(map, Some("nginx:1.26"), None, json!({"image": "nginx:1.26"}), &[]);
    }
}

//! Tags of image references: `registry:port/path/name:tag@digest`.

/// The tag; `None` without one.
pub fn tag(image: &str) -> Option<&str> {
    let (_, tag) = split(image);
    tag
}

/// The same image with another tag. A digest would pin the old content, so it goes.
pub fn retag(image: &str, tag: &str) -> String {
    let (name, _) = split(image);
    format!("{name}:{tag}")
}

fn split(image: &str) -> (&str, Option<&str>) {
    let name = image.split_once('@').map_or(image, |(name, _)| name);
    // A colon before the last slash belongs to the registry's port.
    match name.rsplit_once(':') {
        Some((before, tag)) if !tag.contains('/') => (before, Some(tag)),
        Some(_) | None => (name, None),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(image: &str, expected_tag: Option<&str>, expected_v2: &str) {
        assert_eq!(tag(image), expected_tag, "{image}");
        assert_eq!(retag(image, "v2"), expected_v2, "{image}");
    }

    #[test]
    fn tags_are_found_behind_ports_and_before_digests() {
        check("web", None, "web:v2");
        check("web:1.4", Some("1.4"), "web:v2");
        check("registry.example.com:5000/shop/web", None, "registry.example.com:5000/shop/web:v2");
        check("registry.example.com:5000/shop/web:1.4", Some("1.4"), "registry.example.com:5000/shop/web:v2");
        check("shop/web:1.4@sha256:0f", Some("1.4"), "shop/web:v2");
        check("shop/web@sha256:0f", None, "shop/web:v2");
    }
}

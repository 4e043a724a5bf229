//! Image references: `registry:port/path/name:tag@digest`.

use std::fmt;

/// An image reference in its parts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ImageReference<'a> {
    pub registry: Option<&'a str>,
    pub path: &'a str,
    pub tag: Option<&'a str>,
    /// `sha256:…`
    pub digest: Option<&'a str>,
}

impl<'a> ImageReference<'a> {
    pub fn parse(image: &'a str) -> Self {
        let (name, digest) = match image.split_once('@') {
            Some((name, digest)) => (name, Some(digest)),
            None => (image, None),
        };
        // A colon before the last slash belongs to the registry's port.
        let (name, tag) = match name.rsplit_once(':') {
            Some((before, tag)) if !tag.contains('/') => (before, Some(tag)),
            Some(_) | None => (name, None),
        };
        let is_host = |host: &str| host.contains(['.', ':']) || host == "localhost";
        match name.split_once('/').filter(|(host, _)| is_host(host)) {
            Some((host, path)) => Self { registry: Some(host), path, tag, digest },
            None => Self { registry: None, path: name, tag, digest },
        }
    }

    /// Registry and path, as the reference has them.
    pub fn name(&self) -> String {
        self.registry.map_or_else(|| self.path.to_owned(), |registry| format!("{registry}/{}", self.path))
    }
}

impl fmt::Display for ImageReference<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.name())?;
        self.tag.map_or(Ok(()), |tag| write!(f, ":{tag}"))?;
        self.digest.map_or(Ok(()), |digest| write!(f, "@{digest}"))
    }
}

/// The tag; `None` without one.
pub fn image_tag(image: &str) -> Option<&str> {
    ImageReference::parse(image).tag
}

/// The same image with another tag. A digest would pin the old content, so it goes.
pub fn retag(image: &str, tag: &str) -> String {
    ImageReference { tag: Some(tag), digest: None, ..ImageReference::parse(image) }.to_string()
}

/// The image with a version as its tag, where it has neither tag nor digest.
pub fn with_version(image: &str, version: &str) -> String {
    match ImageReference::parse(image) {
        ImageReference { tag: None, digest: None, .. } => retag(image, version),
        reference => reference.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(image: &str, expected_tag: Option<&str>, expected_v2: &str) {
        assert_eq!(image_tag(image), expected_tag, "{image}");
        assert_eq!(retag(image, "v2"), expected_v2, "{image}");
        assert_eq!(ImageReference::parse(image).to_string(), image);
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

    #[test]
    fn version_is_the_tag_where_there_is_none() {
        let check = |image: &str, expected: &str| assert_eq!(with_version(image, "v2"), expected);
        check("localhost/web", "localhost/web:v2");
        check("web:v1", "web:v1");
        check("web@sha256:0f", "web@sha256:0f");
    }
}

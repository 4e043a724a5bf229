//! Files that `spec.ignore` of tutti.yaml leaves out: other tools' YAML beside ours.

use globset::{GlobBuilder, GlobSet, GlobSetBuilder};

use super::kinds::Native;
use super::yaml::{self, Node};
use crate::model::Snapshot;

/// The file that says it. It must be known before any other file is read.
pub const FILE: &str = "tutti.yaml";

/// Which files hold no manifest of ours, whatever they look like.
#[derive(Debug, Default)]
pub struct Ignored(GlobSet);

impl Ignored {
    /// As far as it can be read; its mistakes are told where the instance is read.
    pub fn of(snapshot: &Snapshot) -> Self {
        let Some(text) = snapshot.text(FILE).filter(|text| text.contains("ignore")) else {
            return Self::default();
        };
        let stream = yaml::read(FILE, text);
        let is_instance =
            |root: &&Node| root.get("kind").and_then(Node::as_str) == Some(Native::Instance.name());
        let instance = stream.documents.iter().map(|document| &document.root).find(is_instance);
        let list = instance.and_then(|root| root.find(&["spec", "ignore"])?.as_seq());
        let mut globs = GlobSetBuilder::new();
        for pattern in list.into_iter().flatten().filter_map(Node::as_str) {
            for glob in globs_of(pattern).into_iter().flatten() {
                globs.add(glob);
            }
        }
        Self(globs.build().unwrap_or_default())
    }

    pub fn fits(&self, path: &str) -> bool {
        path != FILE && self.0.is_match(path)
    }
}

/// A pattern of paths from the folder that is read; one of a folder fits all that is in it.
pub fn globs_of(pattern: &str) -> Result<[globset::Glob; 2], globset::Error> {
    let pattern = pattern.strip_prefix("./").unwrap_or(pattern).trim_end_matches('/');
    let glob = |pattern: &str| GlobBuilder::new(pattern).literal_separator(true).build();
    Ok([glob(pattern)?, glob(&format!("{pattern}/**"))?])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn patterns_fit_files_and_folders() {
        let check = |patterns: &str, path: &str, expected: bool| {
            let text = format!("kind: Instance\nspec: {{ignore: {patterns}}}\n");
            let ignored = Ignored::of(&Snapshot::of_texts([(FILE, text.as_str())]));
            assert_eq!(ignored.fits(path), expected, "{patterns} {path}");
        };
        check("[docs]", "docs/a/b.yaml", true);
        check("[docs/]", "docs/a.yaml", true);
        check("[docs]", "apps/docs/a.yaml", false);
        check("['**/kustomization.yaml']", "apps/a/kustomization.yaml", true);
        check("['**/kustomization.yaml']", "kustomization.yaml", true);
        check("['apps/*/values*.yaml']", "apps/a/values-prod.yaml", true);
        check("['apps/*/values*.yaml']", "apps/a/b/values.yaml", false);
        check("['**']", "tutti.yaml", false);
        check("[]", "a.yaml", false);
    }
}

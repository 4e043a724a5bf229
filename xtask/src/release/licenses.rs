//! The list of the licences of all components, with their texts.

use std::collections::BTreeMap;
use std::fmt::Write as _;

use super::VERSION;
use super::components::{ComponentKind, ReleaseComponent};

/// One file: a list of everything from elsewhere, then each text once.
pub fn license_list(components: &[ReleaseComponent]) -> String {
    let mut all: Vec<&ReleaseComponent> = components.iter().collect();
    all.sort();
    let mut text =
        format!("Software of others in tutti {VERSION}: first a list, then the texts of the licences.\n\n");
    let mut by_text: BTreeMap<(usize, String), Vec<String>> = BTreeMap::new();
    let mut order: BTreeMap<String, usize> = BTreeMap::new();
    for component in all {
        let kind = match component.kind {
            ComponentKind::Crate => "crate",
            ComponentKind::Native => "library",
            ComponentKind::Go => "Go module",
            ComponentKind::Debian => "Debian package",
        };
        let license = component.license.as_deref().unwrap_or("see its text");
        let _ = writeln!(text, "{kind} {} {}: {license}", component.name, component.version);
        for one in component.texts.iter().map(|one| normalize_line_ends(one)) {
            let next = order.len();
            let place = *order.entry(one.clone()).or_insert(next);
            by_text
                .entry((place, one))
                .or_default()
                .push(format!("{} {}", component.name, component.version));
        }
    }
    for ((_, one), of) in by_text {
        let _ = writeln!(text, "\n{}\n{}\n{}\n\n{one}", "=".repeat(80), of.join(", "), "-".repeat(80));
    }
    text
}

/// The same text from files that differ in the ends of their lines.
fn normalize_line_ends(text: &str) -> String {
    let lines: Vec<&str> = text.lines().map(str::trim_end).collect();
    lines.join("\n").trim_matches('\n').to_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn component(name: &str, texts: &[&str]) -> ReleaseComponent {
        ReleaseComponent {
            kind: ComponentKind::Crate,
            name: name.to_owned(),
            version: "1.0".to_owned(),
            inside: None,
            license: Some("MIT".to_owned()),
            sha256: None,
            purl: None,
            texts: texts.iter().map(|it| (*it).to_owned()).collect(),
        }
    }

    #[test]
    fn a_text_of_several_comes_once() {
        let text = license_list(&[
            component("b", &["One\r\ntext \r\n"]),
            component("a", &["One\ntext"]),
            component("c", &["Two"]),
        ]);
        assert_eq!(text.matches("One\ntext").count(), 1);
        assert!(text.contains("\na 1.0, b 1.0\n"), "{text}");
        assert!(text.contains("\ncrate c 1.0: MIT\n"), "{text}");
    }
}

//! Proposes CODEOWNERS for files that only the platform team may change.

use std::fmt::Write as _;

/// The path that Gitea and Forgejo read.
pub const CODEOWNERS_PATH: &str = ".gitea/CODEOWNERS";
/// Places of kinds that grant power. Apps are below `apps/`.
const FILES: [&str; 2] = ["tutti.yaml", "rings.yaml"];
const FOLDERS: [&str; 11] = [
    "clusters",
    "projects",
    "policies",
    "approvals",
    "triggers",
    "notifications",
    "servers",
    "templates",
    "charts",
    "health",
    "plugins",
];

/// `folder`: the manifest folder. Gitea matches each pattern as a regular expression for the whole path.
pub fn code_owners(folder: &str, owners: &[String]) -> String {
    let parts = folder.split('/').filter(|part| !part.is_empty() && *part != ".");
    let prefix: String = parts.map(|part| format!("{}/", escaped(part))).collect();
    let owners = owners.join(" ");
    let mut text = String::new();
    for file in FILES {
        // Writing to a String cannot fail.
        let _ = writeln!(text, "{prefix}{} {owners}", escaped(file));
    }
    for folder in FOLDERS {
        let _ = writeln!(text, "{prefix}{folder}/.* {owners}");
    }
    let _ = writeln!(text, "[.]gitea/.* {owners}");
    text
}

/// One `\` is for the file format, one for the regular expression.
fn escaped(name: &str) -> String {
    let mut text = String::new();
    for character in name.chars() {
        match character {
            '.' => text.push_str("[.]"),
            ' ' | '#' => text.extend(['\\', character]),
            _ if character.is_alphanumeric() || matches!(character, '-' | '_') => text.push(character),
            _ => text.extend(['\\', '\\', character]),
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_privileged_place_has_a_line() {
        let owners = ["@platform/writers".to_owned(), "@li".to_owned()];
        let text = code_owners(".", &owners);
        assert_eq!(text.lines().count(), FILES.len() + FOLDERS.len() + 1);
        assert!(text.starts_with("tutti[.]yaml @platform/writers @li\nrings[.]yaml @platform"), "{text}");
        assert!(text.contains("\nclusters/.* @platform/writers @li\n"), "{text}");
        assert!(!text.contains("apps"), "{text}");
        let text = code_owners("./my deploy/a+b/", &owners);
        assert!(text.contains("\nmy\\ deploy/a\\\\+b/charts/.* @platform"), "{text}");
        assert!(text.ends_with("\n[.]gitea/.* @platform/writers @li\n"), "{text}");
    }
}

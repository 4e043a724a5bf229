//! CODEOWNERS for the files that only the platform may change.

use std::fmt::Write as _;

/// Where Gitea and Forgejo look for it.
pub const PATH: &str = ".gitea/CODEOWNERS";
/// Kinds that give power have these places; apps have theirs below `apps/`.
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

/// `folder` is that of the manifests in the repository. Gitea takes each pattern as a regular expression for a whole path.
pub fn code_owners(folder: &str, owners: &[String]) -> String {
    let parts = folder.split('/').filter(|part| !part.is_empty() && *part != ".");
    let prefix: String = parts.map(|part| format!("{}/", escaped(part))).collect();
    let owners = owners.join(" ");
    let mut text = String::new();
    for file in FILES {
        // Writing to a text does not fail.
        let _ = writeln!(text, "{prefix}{} {owners}", escaped(file));
    }
    for folder in FOLDERS {
        let _ = writeln!(text, "{prefix}{folder}/.* {owners}");
    }
    let _ = writeln!(text, "[.]gitea/.* {owners}");
    text
}

/// As it stands in the file, where one `\` is for the reader of lines, and the next for the expression.
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
    fn each_place_of_power_has_a_line() {
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

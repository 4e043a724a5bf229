//! Why a scenario file is refused.

/// A mistake in a scenario file, with its place and a way out.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("scenario, line {line}, column {column}: {cause}; {help}")]
pub struct ScenarioError {
    /// From one; zero when the place is not known.
    pub line: usize,
    pub column: usize,
    pub cause: String,
    pub help: String,
}

impl ScenarioError {
    pub(super) fn of_yaml(error: &serde_yaml::Error) -> Self {
        let (line, column) = error.location().map_or((0, 0), |location| (location.line(), location.column()));
        let text = error.to_string();
        let tail = format!(" at line {line} column {column}");
        let cause = text.strip_suffix(&tail).unwrap_or(&text).to_owned();
        let help = help_for(&cause).to_owned();
        Self { line, column, cause, help }
    }

    pub(super) fn of_rule(text: &str, number: usize, cause: String) -> Self {
        let (line, column) = place_of(text, number).unwrap_or_default();
        let help = help_for(&cause).to_owned();
        Self { line, column, cause, help }
    }
}

/// Where the rule begins, when every rule begins on a line of its own.
fn place_of(text: &str, number: usize) -> Option<(usize, usize)> {
    let indent = |line: &str| line.len() - line.trim_start().len();
    let mut items = text
        .lines()
        .enumerate()
        .skip_while(|(_, line)| !line.starts_with("rules:"))
        .filter(|(_, line)| line.trim_start().starts_with('-'));
    let (first, line) = items.next()?;
    let column = indent(line);
    let mut rules = std::iter::once((first, line)).chain(items).filter(|(_, line)| indent(line) == column);
    rules.nth(number).map(|(line, _)| (line + 1, column + 1))
}

fn help_for(cause: &str) -> &'static str {
    let help = [
        ("unknown field", "remove the key or correct its spelling"),
        ("without fail", "add `fail`, or remove these keys"),
        ("no effect with ", "remove the key, or choose another failure"),
        ("is not a time", "write 500ms, 2s or 1m, or two of them as 1s..3s"),
        ("is not a share", "write a fraction between 0/1 and 1/1, as 1/3"),
        ("unknown failure", "see the list in the message; `none` is a pod that does not fail"),
    ];
    let found = help.iter().find(|(word, _)| cause.contains(word));
    found.map_or("compare with the example in crates/sandbox/examples/scenario.yaml", |(_, help)| help)
}

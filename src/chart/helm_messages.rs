//! Parses error messages of Helm and Go into chart failures.

use super::protocol::HelmRenderFailure;
use crate::model::{ChartFailure, ChartFailureKind};

/// Extracts template, line and value, if the message has them.
pub fn failure_of_helm(chart: &str, said: &HelmRenderFailure) -> ChartFailure {
    match said.step.as_str() {
        "load" => ChartFailure::new(ChartFailureKind::Malformed, as_message(&said.message)),
        "values" | "request" => {
            let failure = ChartFailure::new(ChartFailureKind::Values, as_message(&said.message));
            if said.file.is_empty() { failure } else { failure.at(&said.file, 1, 1) }
        }
        "output" => output_failure(chart, &said.file, &said.message),
        _ => template_failure(chart, &said.message),
    }
}

pub fn template_failure(chart: &str, message: &str) -> ChartFailure {
    let of = |place: Option<HelmPosition>, value: Option<&str>, words: &str| {
        let words = words.trim();
        let words = if words.is_empty() { "failed without a message" } else { words };
        let mut failure = ChartFailure::new(ChartFailureKind::Template, words);
        if let Some(place) = place {
            failure = failure.at(path_in_chart(chart, &place.file), place.line, place.column);
        }
        match value {
            Some(value) => failure.about(value),
            None => failure,
        }
    };
    for start in ["execution error at (", "parse error at (", "execution error in (", "parse error in ("] {
        if let Some(rest) = message.strip_prefix(start)
            && let Some((place, words)) = rest.split_once("): ")
        {
            return of(HelmPosition::read(place), None, words);
        }
    }
    if let Some(traced) = innermost_trace(message) {
        return of(Some(traced.place), Some(traced.value), traced.words);
    }
    if let Some((place, rest)) = message.strip_prefix("template: ").and_then(|rest| rest.split_once(": "))
        && let Some(place) = HelmPosition::read(place)
    {
        let value = rest.split_once(" at <").and_then(|(_, rest)| rest.split_once(">: "));
        return of(Some(place), value.map(|(value, _)| value), value.map_or(rest, |(_, words)| words));
    }
    of(None, None, message)
}

/// Template output is not YAML. Line numbers are those of the output.
pub fn output_failure(chart: &str, file: &str, message: &str) -> ChartFailure {
    let message = message.strip_prefix("YAML parse error on ").unwrap_or(message);
    let (file, words) = match message.split_once(": ") {
        Some((named, words)) if file.is_empty() && named.contains('/') => (named, words),
        _ => (file, message),
    };
    let words = words.trim_start_matches("error converting YAML to JSON: ").trim_start_matches("yaml: ");
    let failure = ChartFailure::new(ChartFailureKind::Output, format!("the output is not YAML: {words}"));
    if file.is_empty() { failure } else { failure.at(path_in_chart(chart, file), 1, 1) }
}

/// The innermost step of a trace: position, expression and reason.
struct HelmTrace<'a> {
    place: HelmPosition,
    value: &'a str,
    words: &'a str,
}

/// A trace has blocks of position, executed expression and reason, outermost first.
fn innermost_trace(message: &str) -> Option<HelmTrace<'_>> {
    let at = message.rfind("\n  executing \"")?;
    let place = HelmPosition::read(message[..at].lines().last()?.trim())?;
    let (executed, words) = message[at..].split_once(">:\n")?;
    let (_, value) = executed.split_once(" at <")?;
    Some(HelmTrace { place, value, words: words.trim() })
}

struct HelmPosition {
    file: String,
    line: u32,
    column: u32,
}

impl HelmPosition {
    /// `chart/templates/a.yaml:3:4`, with or without numbers; Go counts columns from 0.
    fn read(text: &str) -> Option<Self> {
        let mut parts = text.split(':');
        let file = parts.next().filter(|file| !file.is_empty() && !file.contains(char::is_whitespace))?;
        let mut number = || parts.next().and_then(|part| part.trim().parse::<u32>().ok());
        let (line, column) =
            (number().unwrap_or(1).max(1), number().map_or(1, |from_zero| from_zero.saturating_add(1)));
        Some(Self { file: file.to_owned(), line, column })
    }
}

/// Removes the chart name that Helm puts before paths.
pub fn path_in_chart<'a>(chart: &str, file: &'a str) -> &'a str {
    file.strip_prefix(chart).and_then(|rest| rest.strip_prefix('/')).unwrap_or(file)
}

/// A segmentation violation counts too: parts of Go's collector do not check whether an allocation succeeded.
pub fn is_out_of_memory(words: &str) -> bool {
    words.contains("out of memory")
        || words.contains("cannot allocate memory")
        || words.contains("can't allocate")
        || (words.contains("SIGSEGV") && !is_out_of_stack(words))
}

pub fn is_out_of_stack(words: &str) -> bool {
    words.contains("stack exceeds") || words.contains("stack overflow")
}

/// Our messages begin with a lower case letter and end without a full stop.
fn as_message(text: &str) -> String {
    let text = text.trim().trim_end_matches('.');
    let mut letters = text.chars();
    let second_is_lower = text.chars().nth(1).is_some_and(char::is_lowercase);
    match letters.next() {
        Some(first) if second_is_lower && !text.starts_with("Chart.yaml") => {
            first.to_lowercase().chain(letters).collect()
        }
        _ => text.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn collector_crash_counts_as_out_of_memory() {
        let words = "SIGSEGV: segmentation violation\nPC=0x439b3d m=3 sigcode=1 addr=0x0\n\n\
                     goroutine 0 gp=0x190097a1f2c0 m=3 mp=0x190097a6d008 [idle]:\n\
                     runtime.(*spanQueue).tryDrain(0x400?, 0x220000000b?, 0x0?)\n";
        assert_eq!((is_out_of_memory(words), is_out_of_stack(words)), (true, false));
        let words = "runtime: goroutine stack exceeds 1000000000-byte limit\nfatal error: stack overflow\n";
        assert_eq!((is_out_of_memory(words), is_out_of_stack(words)), (false, true));
    }

    fn check(message: &str, expected: &str) {
        assert_eq!(template_failure("web", message).to_string(), expected);
    }

    #[test]
    fn helm_error_gives_line_and_value() {
        check(
            "execution error at (web/templates/a.yaml:3:4): image is required",
            "image is required at templates/a.yaml:3:5",
        );
        check(
            "parse error at (web/templates/a.yaml:7): unclosed action",
            "unclosed action at templates/a.yaml:7:1",
        );
        check(
            "web/templates/a.yaml:5:10\n  executing \"web/templates/a.yaml\" at <include \"x\" .>:\n    error calling \
             include:\nweb/templates/_x.tpl:2:8\n  executing \"x\" at <.Values.a.b>:\n    nil pointer evaluating \
             interface {}.b",
            "nil pointer evaluating interface {}.b (.Values.a.b) at templates/_x.tpl:2:9",
        );
        check(
            "template: web/templates/a.yaml:1:2: executing \"a\" at <.Values.x>: can't evaluate field x",
            "can't evaluate field x (.Values.x) at templates/a.yaml:1:3",
        );
        check("rendering template failed: nil", "rendering template failed: nil");
    }

    #[test]
    fn output_that_is_not_yaml_names_the_template() {
        let said =
            "YAML parse error on web/templates/a.yaml: error converting YAML to JSON: yaml: line 3: oops";
        let failure = output_failure("web", "", said);
        assert_eq!(failure.to_string(), "the output is not YAML: line 3: oops at templates/a.yaml:1:1");
        let failure = output_failure("web", "web/charts/db/templates/b.yaml", "yaml: line 1: oops");
        assert_eq!(
            failure.to_string(),
            "the output is not YAML: line 1: oops at charts/db/templates/b.yaml:1:1"
        );
    }
}

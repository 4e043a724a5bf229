//! Bounds the output of templates. The fuel of the engine counts steps, and one step can double a text.

use std::io::Write;

use minijinja::value::Kwargs;
use minijinja::{Error, ErrorKind, State};

/// Bytes of one output, blocks and macros included, and of one filter result.
pub const LARGEST_OUTPUT: usize = 16 * 1024 * 1024;
/// Shorter texts are bounded by the fuel alone.
const UNCOUNTED_LENGTH: usize = 256;
const WIDEST_INDENT: usize = 1000;

/// An output buffer of bounded length. It counts plain text, which no formatter sees.
#[derive(Debug, Default)]
pub struct BoundedOutput(Vec<u8>);

impl BoundedOutput {
    pub fn into_text(self) -> String {
        String::from_utf8_lossy(&self.0).into_owned()
    }
}

impl Write for BoundedOutput {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        if self.0.len() + bytes.len() > LARGEST_OUTPUT {
            return Err(std::io::ErrorKind::FileTooLarge.into());
        }
        self.0.extend_from_slice(bytes);
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}

#[derive(Default)]
struct OutputBytes(usize);

fn too_long() -> Error {
    Error::new(ErrorKind::InvalidOperation, "it makes more than 16 MiB of text")
}

/// Recognizes the error of `too_long` and of a full [`BoundedOutput`].
pub fn is_too_long(error: &Error) -> bool {
    let by_us = error.kind() == ErrorKind::InvalidOperation && error.detail() == too_long().detail();
    by_us || error.kind() == ErrorKind::WriteFailure
}

pub fn check_length(length: Option<usize>) -> Result<(), Error> {
    if length.is_some_and(|length| length <= LARGEST_OUTPUT) { Ok(()) } else { Err(too_long()) }
}

pub fn count_output(state: &mut State<'_, '_>, length: usize) -> Result<(), Error> {
    if length <= UNCOUNTED_LENGTH {
        return Ok(());
    }
    let written = state.get_or_insert_extension(OutputBytes::default());
    written.0 = written.0.saturating_add(length);
    check_length(Some(written.0))
}

/// Replaces the filter of the engine, which has no bound.
pub fn replace(value: &str, from: &str, to: &str) -> Result<String, Error> {
    if to.len() > from.len() {
        let found = value.matches(from).count();
        check_length(found.checked_mul(to.len()).and_then(|more| more.checked_add(value.len())))?;
    }
    Ok(value.replace(from, to))
}

/// Replaces the filter of the engine, which has no bound on the width.
#[expect(clippy::needless_pass_by_value, reason = "the engine gives it away")]
pub fn indent(
    value: &str,
    width: Option<usize>,
    first: Option<bool>,
    blank: Option<bool>,
    options: Kwargs,
) -> Result<String, Error> {
    let width = width.or(options.get("width")?).unwrap_or(4);
    let first = first.or(options.get("first")?).unwrap_or(false);
    let blank = blank.or(options.get("blank")?).unwrap_or(false);
    options.assert_all_used()?;
    if width > WIDEST_INDENT {
        return Err(Error::new(
            ErrorKind::InvalidOperation,
            format!("an indent of more than {WIDEST_INDENT}"),
        ));
    }
    let text = value.strip_suffix('\n').unwrap_or(value);
    let text = text.strip_suffix('\r').unwrap_or(text);
    check_length(text.split('\n').count().checked_mul(width).and_then(|more| more.checked_add(text.len())))?;
    let space = " ".repeat(width);
    let line = |(number, line): (usize, &str)| {
        let is_blank = line.is_empty() || line == "\r";
        let indented = if number == 0 { first && (blank || !is_blank) } else { blank || !is_blank };
        if indented { format!("{space}{line}") } else { line.to_owned() }
    };
    Ok(text.split('\n').enumerate().map(line).collect::<Vec<_>>().join("\n"))
}

#[cfg(test)]
mod tests {
    use minijinja::{Environment, context};

    use super::*;

    fn check_indent(template: &str, text: &str) {
        let own = Environment::new();
        let mut ours = Environment::new();
        ours.add_filter("indent", indent);
        let [own, ours] =
            [own, ours].map(|it| it.render_str(template, context! { x => text }).expect("a text"));
        assert_eq!(ours, own, "{template} {text:?}");
    }

    #[test]
    fn indent_matches_engine_filter() {
        for text in ["", "a", "a\nb", "a\n\nb\n", "\n\na\r\n\r\nb\r\n", "a\n\n"] {
            for arguments in
                ["", "(2)", "(2, true)", "(2, true, true)", "(width=3, blank=true)", "(first=true)"]
            {
                check_indent(&format!("[{{{{ x | indent{arguments} }}}}]"), text);
            }
        }
    }

    #[test]
    fn too_long_output_is_refused() {
        let long = "a".repeat(10_000);
        assert!(is_too_long(&replace(&long, "a", &long).expect_err("too long")));
        assert!(is_too_long(&replace(&long, "", &long).expect_err("too long")));
        assert_eq!(replace("abc", "b", "").ok().as_deref(), Some("ac"));
    }
}

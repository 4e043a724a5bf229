//! Reads the text of a file of a layer, and refuses lines that are too long for the engine.

use super::codes;
use super::render_job::RenderJob;
use crate::manifest::yaml;
use crate::model::{Diagnostic, Location, SnapshotFile, UNREADABLE_HELP, size_problem};

pub fn text<'a>(job: &RenderJob<'a>, path: &str, file: &SnapshotFile) -> Result<&'a str, Box<Diagnostic>> {
    job.snapshot.text(path).filter(|text| text.len() <= yaml::FILE_LIMIT).ok_or_else(|| {
        let why = match file.content.len() {
            size if size > yaml::FILE_LIMIT => size_problem(size, yaml::FILE_LIMIT),
            _ => job.snapshot.why_unreadable(path),
        };
        let mistake = job.error(codes::LAYER_FILE, format!("{path} {why}")).at(Location::new(path, 1, 1));
        Box::new(mistake.help(UNREADABLE_HELP))
    })
}

/// The engine counts columns up to 65,535 and fails beyond.
const WIDEST_LINE: usize = 60_000;

pub fn overlong_line(job: &RenderJob<'_>, path: &str, text: &str) -> Option<Diagnostic> {
    let line = text.split('\n').position(|line| line.len() > WIDEST_LINE)?;
    let line = u32::try_from(line + 1).unwrap_or(u32::MAX);
    let error = job.error(codes::SYNTAX, format!("{path} has a line of more than {WIDEST_LINE} bytes"));
    Some(
        error
            .at(Location::new(path, line, 1))
            .help("a template cannot have such lines: break it, or move it to values"),
    )
}

//! `tutti get promotions`: the version of each ring, and the next one.

use std::time::Duration;

use super::super::chosen::Chosen;
use super::super::exit::{self, Exit};
use super::super::output::{self, Format, fitted, say, table, write_table};
use super::super::process::Process;
use super::super::promote::{fleet_of, with_input};
use super::super::{diagnostics, session};
use crate::controller::Until;
use crate::promotion::{Line, LineState, lines};

pub async fn run(process: &Process, timeout: Duration, format: Format) -> anyhow::Result<Exit> {
    let (ending, overview) = session::look(process, Until::Explained { timeout }, false).await?;
    diagnostics::print(&overview.diagnostics);
    let fleet = fleet_of(process, &overview).await?;
    let lines = with_input(&overview, &fleet, lines);
    match format {
        Format::Table if lines.is_empty() => {
            say!("no app has a pin: apps/<app>/pins/<ring>.yaml gives it one")
        }
        Format::Table => write(&lines),
        format => output::write_value(format, &lines)?,
    }
    Ok(exit::of_look(&ending, &overview, &Chosen::of(&overview, None)))
}

fn write(lines: &[Line]) {
    let mut shown = table(&["APP", "RING", "VERSION", "NEXT", "STATE", "WAITS"]);
    for line in lines {
        let waits = match (line.state, line.pull_request) {
            (_, Some(number)) if line.because.is_empty() => format!("#{number}"),
            (_, Some(number)) => format!("#{number}: {}", line.because),
            // Only the forge knows of an open pull request.
            (LineState::Ready, None) => format!("tutti promote {} --to {}", line.app, line.ring),
            (_, None) => line.because.clone(),
        };
        shown.add_row([
            line.app.to_string(),
            line.ring.clone(),
            line.version.clone(),
            line.next.clone().unwrap_or_else(|| "-".to_owned()),
            line.state.as_str().to_owned(),
            waits,
        ]);
    }
    write_table(&fitted(shown));
}

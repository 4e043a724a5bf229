//! `tutti get promotions`: the version of each ring, and the next one.

use std::time::Duration;

use super::super::app_selection::AppSelection;
use super::super::exit::{self, Exit};
use super::super::output::{self, OutputFormat, fit_terminal, say, table, write_table};
use super::super::process::ProcessSettings;
use super::super::promote::{fleet_at, with_promotion_input};
use super::super::{diagnostics, session};
use crate::controller::RunUntil;
use crate::promotion::{PromotionRow, PromotionRowState, promotion_rows};

pub async fn run(process: &ProcessSettings, timeout: Duration, format: OutputFormat) -> anyhow::Result<Exit> {
    let (ending, overview) = session::observe(process, RunUntil::Explained { timeout }, false).await?;
    diagnostics::print(&overview.diagnostics);
    let fleet = fleet_at(process, &overview).await?;
    let lines = with_promotion_input(&overview, &fleet, promotion_rows);
    match format {
        OutputFormat::Table if lines.is_empty() => {
            say!("no app has a pin: create one as apps/<app>/pins/<ring>.yaml")
        }
        OutputFormat::Table => write(&lines),
        format => output::write_value(format, &lines)?,
    }
    Ok(exit::of_read_only_run(&ending, &overview, &AppSelection::of(&overview, None)))
}

fn write(lines: &[PromotionRow]) {
    let mut shown = table(&["APP", "RING", "VERSION", "NEXT", "STATE", "WAITS"]);
    for line in lines {
        let waits = match (line.state, line.pull_request) {
            (_, Some(number)) if line.because.is_empty() => format!("#{number}"),
            (_, Some(number)) => format!("#{number}: {}", line.because),
            // Only the forge knows of an open pull request.
            (PromotionRowState::Ready, None) => format!("tutti promote {} --to {}", line.app, line.ring),
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
    write_table(&fit_terminal(shown));
}

//! Runs `helm-render` as a child process, one request at a time.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

use super::protocol::{self, HelmRenderAnswer};
use super::render_limits::ChartRenderLimits;
use crate::child::{self, ChildProcess as Process};
use crate::model::{ChartRequest, RenderWait};

/// Why there is no answer. The child has ended in every case.
#[derive(Debug)]
pub enum RendererChildEnd {
    /// It exceeded its time.
    Late,
    /// It exited, with the end of its stderr.
    Died(String),
    /// It exceeded the answer limit.
    TooMuch,
    NotStarted(io::Error),
}

#[derive(Debug)]
pub struct RendererChild {
    process: Process,
    /// Charts that it has received.
    known_charts: BTreeSet<String>,
}

impl RendererChild {
    pub fn start(program: &Path, limits: &ChartRenderLimits) -> Result<Self, RendererChildEnd> {
        let process = Process::start(renderer_command(program, limits), limits.memory, limits.answer)
            .map_err(|ended| match ended {
                child::ChildFailure::NotStarted(error) => RendererChildEnd::NotStarted(error),
                _ => RendererChildEnd::Died(String::new()),
            })?;
        Ok(Self { process, known_charts: BTreeSet::new() })
    }

    /// Sends one request, with the chart's files if the child lacks them. After an error the child is unusable.
    pub fn ask(
        &mut self,
        request: &ChartRequest,
        definitions_known: bool,
        limits: &ChartRenderLimits,
        wait: RenderWait<'_>,
    ) -> Result<HelmRenderAnswer, RendererChildEnd> {
        let name = protocol::chart_key(&request.chart);
        let with_files = !self.known_charts.contains(&name);
        let said =
            |with_files| protocol::render_frame(request, with_files, definitions_known, limits.deadline);
        let mut answer = self.exchange(said(with_files), wait)?;
        // The child keeps a limited number of charts.
        if answer.unknown_chart && !with_files {
            answer = self.exchange(said(true), wait)?;
        }
        self.known_charts.insert(name);
        Ok(answer)
    }

    /// Parses texts, each with its file. After an error the child is unusable.
    pub fn read_texts(
        &mut self,
        texts: &[(&str, &str)],
        wait: RenderWait<'_>,
    ) -> Result<HelmRenderAnswer, RendererChildEnd> {
        self.exchange(protocol::read_texts_frame(texts), wait)
    }

    fn exchange(
        &mut self,
        said: io::Result<Vec<u8>>,
        wait: RenderWait<'_>,
    ) -> Result<HelmRenderAnswer, RendererChildEnd> {
        match self.process.exchange(said, wait) {
            Ok(frame) => protocol::read(&frame).map_err(|_| self.died()),
            Err(child::ChildFailure::TimedOut | child::ChildFailure::OverLimit) => {
                Err(RendererChildEnd::Late)
            }
            Err(child::ChildFailure::OutputTooLarge) => Err(RendererChildEnd::TooMuch),
            Err(child::ChildFailure::NotStarted(error)) => Err(RendererChildEnd::NotStarted(error)),
            Err(child::ChildFailure::Exited) => Err(self.died()),
        }
    }

    fn died(&mut self) -> RendererChildEnd {
        RendererChildEnd::Died(self.process.error_output().text)
    }
}

/// The command, with its memory limit in the environment.
pub fn renderer_command(program: &Path, limits: &ChartRenderLimits) -> Command {
    let mut command = child::isolated_command(program);
    // A soft limit, from which Go collects more often; the process limit is hard.
    let soft = limits.memory / 4 * 3;
    // Below it, Go collects less often: collection took a fifth of render time.
    command.env("GOGC", "400").env("GOMEMLIMIT", soft.to_string()).env("GOMAXPROCS", "2");
    command
}

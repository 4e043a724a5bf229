//! Runs `helm-render` as a child process, one request at a time.

use std::collections::BTreeSet;
use std::io;
use std::path::Path;
use std::process::Command;

use super::Limits;
use super::protocol::{self, Answer};
use crate::child::{self, Child as Process};
use crate::model::{ChartRequest, Wait};

/// Why there is no answer. The child has ended in every case.
#[derive(Debug)]
pub enum Ended {
    /// It exceeded its time.
    Late,
    /// It exited, with the end of its stderr.
    Died(String),
    /// It exceeded the answer limit.
    TooMuch,
    NotStarted(io::Error),
}

#[derive(Debug)]
pub struct Child {
    process: Process,
    /// Charts that it has received.
    known: BTreeSet<String>,
}

impl Child {
    pub fn start(program: &Path, limits: &Limits) -> Result<Self, Ended> {
        let process = Process::start(bare(program, limits), limits.memory, limits.answer).map_err(
            |ended| match ended {
                child::Ended::NotStarted(error) => Ended::NotStarted(error),
                _ => Ended::Died(String::new()),
            },
        )?;
        Ok(Self { process, known: BTreeSet::new() })
    }

    /// Sends one request, with the chart's files if the child lacks them. After an error the child is unusable.
    pub fn ask(
        &mut self,
        request: &ChartRequest,
        definitions_known: bool,
        limits: &Limits,
        wait: Wait<'_>,
    ) -> Result<Answer, Ended> {
        let name = protocol::name_of(&request.chart);
        let with_files = !self.known.contains(&name);
        let said = |with_files| protocol::frame(request, with_files, definitions_known, limits.deadline);
        let mut answer = self.exchange(said(with_files), wait)?;
        // The child keeps a limited number of charts.
        if answer.unknown_chart && !with_files {
            answer = self.exchange(said(true), wait)?;
        }
        self.known.insert(name);
        Ok(answer)
    }

    /// Parses texts, each with its file. After an error the child is unusable.
    pub fn understand(&mut self, texts: &[(&str, &str)], wait: Wait<'_>) -> Result<Answer, Ended> {
        self.exchange(protocol::reading(texts), wait)
    }

    fn exchange(&mut self, said: io::Result<Vec<u8>>, wait: Wait<'_>) -> Result<Answer, Ended> {
        match self.process.exchange(said, wait) {
            Ok(frame) => protocol::read(&frame).map_err(|_| self.died()),
            Err(child::Ended::Late) => Err(Ended::Late),
            Err(child::Ended::TooMuch) => Err(Ended::TooMuch),
            Err(child::Ended::NotStarted(error)) => Err(Ended::NotStarted(error)),
            Err(child::Ended::Died) => Err(self.died()),
        }
    }

    fn died(&mut self) -> Ended {
        Ended::Died(self.process.last_words().text)
    }
}

/// The command, with its memory limit in the environment.
pub fn bare(program: &Path, limits: &Limits) -> Command {
    let mut command = child::bare(program);
    // A soft limit, from which Go collects more often; the process limit is hard.
    let soft = limits.memory / 4 * 3;
    // Below it, Go collects less often: collection took a fifth of render time.
    command.env("GOGC", "400").env("GOMEMLIMIT", soft.to_string()).env("GOMAXPROCS", "2");
    command
}

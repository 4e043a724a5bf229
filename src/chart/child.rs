//! One child process that renders charts, one request at a time.

use std::collections::BTreeSet;
use std::io::{self, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child as Process, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::Duration;

use super::Limits;
use super::protocol::{self, Answer};
use crate::model::ChartRequest;

/// How much of what a dying child says is kept.
const LAST_WORDS: u64 = 16 * 1024;

/// Why there is no answer. The child is gone in every case.
#[derive(Debug)]
pub enum Ended {
    /// It was still at it when its time was over.
    Late,
    /// It ended by itself, with its last words.
    Died(String),
    /// It wrote more than is taken.
    TooMuch,
    NotStarted(io::Error),
}

/// A running child. Dropping it ends it.
#[derive(Debug)]
pub struct Child {
    process: Process,
    requests: SyncSender<Vec<u8>>,
    answers: Receiver<io::Result<Answer>>,
    last_words: Receiver<String>,
    /// Charts that it was given.
    known: BTreeSet<String>,
}

impl Child {
    /// Without environment but for the limit of its memory, which the shell sets as a limit of the process as well.
    pub fn start(program: &Path, limits: &Limits) -> Result<Self, Ended> {
        let mut command = limited(program, limits);
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = command.spawn().map_err(Ended::NotStarted)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            let _ = process.kill();
            return Err(Ended::NotStarted(io::Error::other("its pipes are missing")));
        };
        let (requests, to_send) = mpsc::sync_channel(1);
        let (sender, answers) = mpsc::sync_channel(1);
        let limit = limits.answer;
        thread::spawn(move || converse(stdin, stdout, &to_send, &sender, limit));
        let (words, last_words) = mpsc::sync_channel(1);
        thread::spawn(move || {
            let mut text = Vec::new();
            let _ = BufReader::new(stderr).take(LAST_WORDS).read_to_end(&mut text);
            let _ = words.send(String::from_utf8_lossy(&text).into_owned());
        });
        Ok(Self { process, requests, answers, last_words, known: BTreeSet::new() })
    }

    /// Asks once; with the files of the chart when it does not have them. After an error the child is of no use.
    pub fn ask(
        &mut self,
        request: &ChartRequest,
        definitions_known: bool,
        limits: &Limits,
    ) -> Result<Answer, Ended> {
        let name = protocol::name_of(&request.chart);
        let with_files = !self.known.contains(&name);
        let said = |with_files| protocol::frame(request, with_files, definitions_known, limits.deadline);
        let mut answer = self.exchange(said(with_files), limits.deadline)?;
        // It keeps only so many charts.
        if answer.unknown_chart && !with_files {
            answer = self.exchange(said(true), limits.deadline)?;
        }
        self.known.insert(name);
        Ok(answer)
    }

    /// Has texts read, each with the file that made it. After an error the child is of no use.
    pub fn understand(&mut self, texts: &[(&str, &str)], limits: &Limits) -> Result<Answer, Ended> {
        self.exchange(protocol::reading(texts), limits.deadline)
    }

    fn exchange(&mut self, said: io::Result<Vec<u8>>, deadline: Duration) -> Result<Answer, Ended> {
        let bytes = said.map_err(Ended::NotStarted)?;
        if self.requests.send(bytes).is_err() {
            return Err(self.died());
        }
        match self.answers.recv_timeout(deadline) {
            Ok(Ok(answer)) => Ok(answer),
            Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => {
                self.end();
                Err(Ended::TooMuch)
            }
            Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Err(self.died()),
            Err(RecvTimeoutError::Timeout) => {
                self.end();
                Err(Ended::Late)
            }
        }
    }

    fn died(&mut self) -> Ended {
        self.end();
        Ended::Died(self.last_words.recv_timeout(Duration::from_secs(1)).unwrap_or_default())
    }

    fn end(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for Child {
    fn drop(&mut self) {
        self.end();
    }
}

/// Writes requests and reads answers until either side is gone. On a thread of its own, because a pipe knows no deadline.
fn converse(
    mut stdin: ChildStdin,
    stdout: ChildStdout,
    requests: &Receiver<Vec<u8>>,
    answers: &SyncSender<io::Result<Answer>>,
    limit: usize,
) {
    let mut stdout = BufReader::new(stdout);
    while let Ok(request) = requests.recv() {
        let said = stdin.write_all(&request).and_then(|()| stdin.flush());
        let answer = said.and_then(|()| protocol::read(&mut stdout, limit));
        let failed = answer.is_err();
        if answers.send(answer).is_err() || failed {
            return;
        }
    }
}

/// The program under the limit of memory. `ulimit` is of the shell: this crate calls no system functions by itself.
pub fn limited(program: &Path, limits: &Limits) -> Command {
    let mut command = Command::new("/bin/sh");
    let kibibytes = (limits.memory / 1024).to_string();
    command.args(["-c", r#"ulimit -d "$1" && ulimit -c 0 && shift && exec "$@""#, "sh", &kibibytes]);
    command.arg(program);
    // Go collects harder from here on; the limit of the process is for what cannot be collected.
    let soft = limits.memory / 4 * 3;
    // Before that it collects less often: a render leaves garbage, and a fifth of its time went into that.
    command.env_clear().env("GOGC", "400").env("GOMEMLIMIT", soft.to_string());
    command.env("GOMAXPROCS", "2").current_dir("/");
    command
}

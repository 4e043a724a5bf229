//! Child processes with limits of memory, time and output.
//!
//! Charts and templates of other authors run in children, so that only the child fails. A [`ChildProcess`] answers one request at a
//! time, in [`frames`]; a [`ChildPool`] limits how many run at once. `chart` and `worker` use it; this module does not know what is
//! asked.

pub mod frames;
mod pool;
mod time_limit;

use std::io::{self, BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child as Process, ChildStderr, ChildStdin, ChildStdout, Command, Stdio};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::thread;
use std::time::{Duration, Instant};

#[cfg(target_os = "linux")]
use rustix::{
    io::Errno,
    process::{Pid, Resource, Rlimit, prlimit},
};

use crate::model::RenderWait;

pub use frames::Frame;
pub use pool::{ChildPool, PoolSlot};
use time_limit::TimeLimit;

/// In bytes, of a child's standard error.
const MAX_STDERR_BYTES: usize = 16 * 1024;
/// How often `is_wanted` of a wait is called.
const CANCEL_CHECK_INTERVAL: Duration = Duration::from_millis(50);
/// First character of a line in which a child reports its position.
pub const POSITION_MARK: char = '\u{1}';

/// Why there is no answer. The child has ended in every case.
#[derive(Debug)]
pub enum ChildFailure {
    /// The wait ended.
    TimedOut,
    /// It used its time limit.
    OverLimit,
    Exited,
    OutputTooLarge,
    NotStarted(io::Error),
}

#[derive(Debug, Default)]
pub struct ErrorOutput {
    pub text: String,
    pub position: Option<String>,
}

/// A running child; dropping it kills it.
#[derive(Debug)]
pub struct ChildProcess {
    process: Process,
    requests: SyncSender<Vec<u8>>,
    answers: Receiver<io::Result<Frame>>,
    error_output: Receiver<ErrorOutput>,
}

impl ChildProcess {
    /// `memory` and `answer`: bytes of its memory, and of its longest answer.
    pub fn start(mut command: Command, memory: u64, answer: usize) -> Result<Self, ChildFailure> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = spawn(&mut command, memory).map_err(ChildFailure::NotStarted)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            let _ = process.kill();
            return Err(ChildFailure::NotStarted(io::Error::other("its pipes are missing")));
        };
        let (requests, to_send) = mpsc::sync_channel(1);
        let (sender, answers) = mpsc::sync_channel(1);
        thread::spawn(move || exchange_frames(stdin, stdout, &to_send, &sender, answer));
        let (words, last_words) = mpsc::sync_channel(1);
        thread::spawn(move || words.send(read_stderr(stderr)));
        Ok(Self { process, requests, answers, error_output: last_words })
    }

    /// Sends one request. After an error the child is of no use.
    pub fn exchange(
        &mut self,
        request: io::Result<Vec<u8>>,
        wait: RenderWait<'_>,
    ) -> Result<Frame, ChildFailure> {
        self.exchange_within(request, Duration::MAX, wait).map(|(answer, _)| answer)
    }

    /// The same within a limit of processor time, which may last four times as long. Also returns how much of it was used.
    pub fn exchange_within(
        &mut self,
        request: io::Result<Vec<u8>>,
        limit: Duration,
        wait: RenderWait<'_>,
    ) -> Result<(Frame, Duration), ChildFailure> {
        let limit = TimeLimit::start(self.process.id(), limit);
        let ended = match request.map(|bytes| self.requests.send(bytes)) {
            Err(error) => ChildFailure::NotStarted(error),
            Ok(Err(_)) => ChildFailure::Exited,
            Ok(Ok(())) => match self.receive(&limit, wait) {
                Ok(Ok(answer)) => return Ok((answer, limit.used())),
                Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => ChildFailure::OutputTooLarge,
                Ok(Err(_)) => ChildFailure::Exited,
                Err(ended) => ended,
            },
        };
        self.kill();
        Err(ended)
    }

    fn receive(&self, limit: &TimeLimit, wait: RenderWait<'_>) -> Result<io::Result<Frame>, ChildFailure> {
        let begun = Instant::now();
        loop {
            let (of_limit, of_wait) = (limit.remaining(), wait.time.saturating_sub(begun.elapsed()));
            match self.answers.recv_timeout(of_limit.min(of_wait).min(CANCEL_CHECK_INTERVAL)) {
                Ok(answer) => return Ok(answer),
                Err(RecvTimeoutError::Disconnected) => return Err(ChildFailure::Exited),
                Err(RecvTimeoutError::Timeout) if of_limit.is_zero() => return Err(ChildFailure::OverLimit),
                Err(RecvTimeoutError::Timeout) if of_wait.is_zero() || !(wait.is_wanted)() => {
                    return Err(ChildFailure::TimedOut);
                }
                Err(RecvTimeoutError::Timeout) => {}
            }
        }
    }

    /// Kills it, and returns its standard error.
    pub fn error_output(&mut self) -> ErrorOutput {
        self.kill();
        self.error_output.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
    }

    fn kill(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}

impl Drop for ChildProcess {
    fn drop(&mut self) {
        self.kill();
    }
}

/// Writes requests and reads answers. A thread of its own, because pipes have no deadline.
fn exchange_frames(
    mut stdin: ChildStdin,
    stdout: ChildStdout,
    requests: &Receiver<Vec<u8>>,
    answers: &SyncSender<io::Result<Frame>>,
    limit: usize,
) {
    let mut stdout = BufReader::new(stdout);
    while let Ok(request) = requests.recv() {
        let said = stdin.write_all(&request).and_then(|()| stdin.flush());
        let answer = said.and_then(|()| frames::read(&mut stdout, limit));
        let failed = answer.is_err();
        if answers.send(answer).is_err() || failed {
            return;
        }
    }
}

/// Reads to the end, and keeps the first bytes.
fn read_stderr(stderr: ChildStderr) -> ErrorOutput {
    let mut stderr = BufReader::new(stderr);
    let mut words = ErrorOutput::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without end is read in parts.
        match stderr.by_ref().take(MAX_STDERR_BYTES as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return words,
            Ok(_) => {}
        }
        let said = String::from_utf8_lossy(&line);
        match said.strip_prefix(POSITION_MARK) {
            Some(place) => words.position = Some(place.trim_end().to_owned()),
            None if words.text.len() < MAX_STDERR_BYTES => words.text.push_str(&said),
            None => {}
        }
    }
}

/// A command without environment, in the root folder.
pub fn isolated_command(program: &Path) -> Command {
    let mut command = Command::new(program);
    command.env_clear().current_dir("/");
    command
}

/// Starts a program with a memory limit and without core files. The limits are set from outside, before it has input: an image
/// has no shell for `ulimit`, and code between fork and exec would be unsafe.
pub fn spawn(command: &mut Command, memory: u64) -> io::Result<Process> {
    let mut process = command.spawn()?;
    if let Err(error) = limit(&process, memory) {
        let _ = process.kill();
        let _ = process.wait();
        return Err(error);
    }
    Ok(process)
}

#[cfg(target_os = "linux")]
fn limit(process: &Process, memory: u64) -> io::Result<()> {
    let pid = i32::try_from(process.id()).ok().and_then(Pid::from_raw);
    // No pid would mean this process.
    let pid = Some(pid.ok_or_else(|| io::Error::other("its process id is none"))?);
    for (resource, most) in [(Resource::Data, memory), (Resource::Core, 0)] {
        match prlimit(pid, resource, Rlimit { current: Some(most), maximum: Some(most) }) {
            // It has ended already; the next request reports that.
            Ok(_) | Err(Errno::SRCH) => {}
            Err(error) => return Err(error.into()),
        }
    }
    Ok(())
}

/// Other systems lack the call.
#[cfg(not(target_os = "linux"))]
fn limit(_: &Process, _: u64) -> io::Result<()> {
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn shell(script: &str) -> ChildProcess {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        ChildProcess::start(command, 64 << 20, 100).expect("sh starts")
    }

    fn wait(time: Duration) -> RenderWait<'static> {
        RenderWait { time, ..RenderWait::UNLIMITED }
    }

    #[test]
    fn child_ends_when_the_wait_is_cancelled() {
        let looks = parking_lot::Mutex::new(0);
        let goes_on = || {
            *looks.lock() += 1;
            *looks.lock() < 3
        };
        let mut child = shell("exec sleep 600");
        let wait = RenderWait { time: Duration::from_secs(600), is_wanted: &goes_on };
        assert!(matches!(child.exchange(frames::encode(&"x", []), wait), Err(ChildFailure::TimedOut)));
        assert_eq!(*looks.lock(), 3);
    }

    #[test]
    fn end_of_the_limit_differs_from_the_end_of_the_wait() {
        let ended = |limit, time| {
            let mut child = shell("exec sleep 60");
            child.exchange_within(frames::encode(&"x", []), limit, wait(time)).expect_err("it never answers")
        };
        let (short, long) = (Duration::from_millis(20), Duration::from_secs(60));
        assert!(matches!(ended(short, long), ChildFailure::OverLimit));
        assert!(matches!(ended(long, short), ChildFailure::TimedOut));
        assert!(matches!(ended(Duration::MAX, short), ChildFailure::TimedOut));
    }

    #[test]
    fn failure_reports_position_and_standard_error() {
        let request = || frames::encode(&"x", []);
        let late = |child: &mut ChildProcess| child.exchange(request(), wait(Duration::from_secs(5)));
        let mut child = shell("printf '\\001a:1\\n\\001a:2\\nout of memory\\n' >&2; exit 3");
        assert!(matches!(late(&mut child), Err(ChildFailure::Exited)));
        let words = child.error_output();
        assert_eq!((words.text.as_str(), words.position.as_deref()), ("out of memory\n", Some("a:2")));

        let mut child = shell("printf '\\001b:7\\n' >&2; exec sleep 60");
        assert!(matches!(
            child.exchange(request(), wait(Duration::from_millis(300))),
            Err(ChildFailure::TimedOut)
        ));
        assert_eq!(child.error_output().position.as_deref(), Some("b:7"));

        let mut child = shell("printf '\\177\\0\\0\\0\\0\\0\\0\\0'; exec sleep 60");
        assert!(matches!(late(&mut child), Err(ChildFailure::OutputTooLarge)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn child_runs_under_its_limits() {
        let mut command = isolated_command(Path::new("/bin/sh"));
        // It waits for input until the limits are set.
        command.args(["-c", "read -r line; ulimit -d; ulimit -c; ulimit -Hd"]);
        command.stdin(Stdio::piped()).stdout(Stdio::piped());
        let mut process = spawn(&mut command, 64 << 20).expect("sh starts");
        process.stdin.take().expect("its input").write_all(b"\n").expect("it reads");
        let output = process.wait_with_output().expect("it ends");
        assert_eq!(String::from_utf8_lossy(&output.stdout), "65536\n0\n65536\n");
    }

    #[test]
    fn missing_program_is_not_started() {
        let command = isolated_command(Path::new("/nowhere/program"));
        assert!(matches!(ChildProcess::start(command, 1 << 20, 100), Err(ChildFailure::NotStarted(_))));
    }
}

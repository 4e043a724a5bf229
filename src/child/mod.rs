//! Child processes with limits of memory, time and output.
//!
//! Charts and templates of other authors run in children, so that only the child fails. A [`Child`] answers one request at a
//! time, in [`frames`]; a [`Pool`] limits how many run at once. `chart` and `worker` use it; this module does not know what is
//! asked.

pub mod frames;
mod pool;

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

use crate::model::Wait;

pub use frames::Frame;
pub use pool::{Place, Pool};

/// In bytes, of a child's standard error.
const LAST_WORDS: usize = 16 * 1024;
/// How often `goes_on` of a wait is called.
const LOOK_EVERY: Duration = Duration::from_millis(50);
/// First character of a line in which a child reports its position.
pub const AT: char = '\u{1}';

/// Why there is no answer. The child has ended in every case.
#[derive(Debug)]
pub enum Ended {
    Late,
    Died,
    TooMuch,
    NotStarted(io::Error),
}

#[derive(Debug, Default)]
pub struct LastWords {
    pub text: String,
    pub place: Option<String>,
}

/// A running child; dropping it kills it.
#[derive(Debug)]
pub struct Child {
    process: Process,
    requests: SyncSender<Vec<u8>>,
    answers: Receiver<io::Result<Frame>>,
    last_words: Receiver<LastWords>,
}

impl Child {
    /// `memory` and `answer`: bytes of its memory, and of its longest answer.
    pub fn start(mut command: Command, memory: u64, answer: usize) -> Result<Self, Ended> {
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped());
        let mut process = spawn(&mut command, memory).map_err(Ended::NotStarted)?;
        let (Some(stdin), Some(stdout), Some(stderr)) =
            (process.stdin.take(), process.stdout.take(), process.stderr.take())
        else {
            let _ = process.kill();
            return Err(Ended::NotStarted(io::Error::other("its pipes are missing")));
        };
        let (requests, to_send) = mpsc::sync_channel(1);
        let (sender, answers) = mpsc::sync_channel(1);
        thread::spawn(move || converse(stdin, stdout, &to_send, &sender, answer));
        let (words, last_words) = mpsc::sync_channel(1);
        thread::spawn(move || words.send(listen(stderr)));
        Ok(Self { process, requests, answers, last_words })
    }

    /// Sends one request. After an error the child is of no use.
    pub fn exchange(&mut self, request: io::Result<Vec<u8>>, wait: Wait<'_>) -> Result<Frame, Ended> {
        let ended = match request.map(|bytes| self.requests.send(bytes)) {
            Err(error) => Ended::NotStarted(error),
            Ok(Err(_)) => Ended::Died,
            Ok(Ok(())) => match self.receive(wait) {
                Ok(Ok(answer)) => return Ok(answer),
                Ok(Err(error)) if error.kind() == io::ErrorKind::FileTooLarge => Ended::TooMuch,
                Ok(Err(_)) | Err(RecvTimeoutError::Disconnected) => Ended::Died,
                Err(RecvTimeoutError::Timeout) => Ended::Late,
            },
        };
        self.end();
        Err(ended)
    }

    fn receive(&self, wait: Wait<'_>) -> Result<io::Result<Frame>, RecvTimeoutError> {
        let begun = Instant::now();
        loop {
            let left = wait.time.saturating_sub(begun.elapsed());
            match self.answers.recv_timeout(left.min(LOOK_EVERY)) {
                Err(RecvTimeoutError::Timeout) if left > LOOK_EVERY && (wait.goes_on)() => {}
                received => return received,
            }
        }
    }

    /// Kills it, and returns its standard error.
    pub fn last_words(&mut self) -> LastWords {
        self.end();
        self.last_words.recv_timeout(Duration::from_secs(1)).unwrap_or_default()
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

/// Writes requests and reads answers. A thread of its own, because pipes have no deadline.
fn converse(
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
fn listen(stderr: ChildStderr) -> LastWords {
    let mut stderr = BufReader::new(stderr);
    let mut words = LastWords::default();
    let mut line = Vec::new();
    loop {
        line.clear();
        // A line without end is read in parts.
        match stderr.by_ref().take(LAST_WORDS as u64).read_until(b'\n', &mut line) {
            Ok(0) | Err(_) => return words,
            Ok(_) => {}
        }
        let said = String::from_utf8_lossy(&line);
        match said.strip_prefix(AT) {
            Some(place) => words.place = Some(place.trim_end().to_owned()),
            None if words.text.len() < LAST_WORDS => words.text.push_str(&said),
            None => {}
        }
    }
}

/// A command without environment, in the root folder.
pub fn bare(program: &Path) -> Command {
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

    fn shell(script: &str) -> Child {
        let mut command = Command::new("/bin/sh");
        command.args(["-c", script]);
        Child::start(command, 64 << 20, 100).expect("sh starts")
    }

    fn wait(time: Duration) -> Wait<'static> {
        Wait { time, ..Wait::TO_THE_END }
    }

    #[test]
    fn child_ends_when_the_wait_is_cancelled() {
        let looks = parking_lot::Mutex::new(0);
        let goes_on = || {
            *looks.lock() += 1;
            *looks.lock() < 3
        };
        let mut child = shell("exec sleep 600");
        let wait = Wait { time: Duration::from_secs(600), goes_on: &goes_on };
        assert!(matches!(child.exchange(frames::whole(&"x", []), wait), Err(Ended::Late)));
        assert_eq!(*looks.lock(), 3);
    }

    #[test]
    fn failure_reports_position_and_standard_error() {
        let request = || frames::whole(&"x", []);
        let late = |child: &mut Child| child.exchange(request(), wait(Duration::from_secs(5)));
        let mut child = shell("printf '\\001a:1\\n\\001a:2\\nout of memory\\n' >&2; exit 3");
        assert!(matches!(late(&mut child), Err(Ended::Died)));
        let words = child.last_words();
        assert_eq!((words.text.as_str(), words.place.as_deref()), ("out of memory\n", Some("a:2")));

        let mut child = shell("printf '\\001b:7\\n' >&2; exec sleep 60");
        assert!(matches!(child.exchange(request(), wait(Duration::from_millis(300))), Err(Ended::Late)));
        assert_eq!(child.last_words().place.as_deref(), Some("b:7"));

        let mut child = shell("printf '\\177\\0\\0\\0\\0\\0\\0\\0'; exec sleep 60");
        assert!(matches!(late(&mut child), Err(Ended::TooMuch)));
    }

    #[test]
    #[cfg(target_os = "linux")]
    fn child_runs_under_its_limits() {
        let mut command = bare(Path::new("/bin/sh"));
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
        let command = bare(Path::new("/nowhere/program"));
        assert!(matches!(Child::start(command, 1 << 20, 100), Err(Ended::NotStarted(_))));
    }
}

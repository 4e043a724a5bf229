//! A child process that ends with its parent: dropping the value stops it, and the kernel kills it when the parent
//! dies without dropping.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::sync::OnceLock;
use std::sync::mpsc::{Sender, channel};
use std::time::{Duration, Instant};
use std::{fs, io, thread};

use parking_lot::Mutex;

use crate::Error;

const POLL: Duration = Duration::from_millis(50);

/// One program with its arguments, started and stopped any number of times. Its output goes to `<folder>/<name>.log`.
#[derive(Debug)]
pub(crate) struct TierProcess {
    name: String,
    program: PathBuf,
    arguments: Vec<String>,
    variables: Vec<(String, String)>,
    folder: PathBuf,
    child: Mutex<Option<Child>>,
}

impl TierProcess {
    pub(crate) fn new(name: &str, program: &Path, folder: &Path, arguments: Vec<String>) -> Self {
        Self {
            name: name.to_owned(),
            program: program.to_owned(),
            arguments,
            variables: Vec::new(),
            folder: folder.to_owned(),
            child: Mutex::new(None),
        }
    }

    pub(crate) fn variable(mut self, name: &str, value: &str) -> Self {
        self.variables.push((name.to_owned(), value.to_owned()));
        self
    }

    /// Does nothing when it runs already.
    pub(crate) fn start(&self) -> Result<(), Error> {
        let mut child = self.child.lock();
        if child.is_none() {
            let failed =
                |reason: io::Error| Error::Start { process: self.name.clone(), reason: reason.to_string() };
            *child = Some(spawn(self.command(true)?).map_err(failed)?);
        }
        Ok(())
    }

    /// Runs the program to its end and answers with its standard output.
    pub(crate) fn run(&self) -> Result<String, Error> {
        let failed = |output: String| Error::Command { command: self.name.clone(), output };
        let output = self.command(false)?.output().map_err(|error| failed(error.to_string()))?;
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        if output.status.success() {
            return Ok(text);
        }
        Err(failed(format!("{text}{}", String::from_utf8_lossy(&output.stderr))))
    }

    fn command(&self, supervised: bool) -> Result<Command, Error> {
        let mut command = match supervisor().filter(|_| supervised) {
            Some(supervisor) => {
                let mut command = Command::new(supervisor);
                command.args(["--pdeathsig", "KILL", "--"]).arg(&self.program);
                command
            }
            None => Command::new(&self.program),
        };
        command.args(&self.arguments).current_dir(&self.folder).stdin(Stdio::null());
        // Nothing of the user's: no kubeconfig, no Git configuration.
        command.env_remove("KUBECONFIG").env("HOME", &self.folder).envs(self.variables.iter().cloned());
        if supervised {
            let path = self.log();
            let log = OpenOptions::new()
                .create(true)
                .append(true)
                .open(&path)
                .map_err(Error::file("open", &path))?;
            let copy = log.try_clone().map_err(Error::file("open", &path))?;
            command.stdout(log).stderr(copy);
        }
        Ok(command)
    }

    /// SIGKILL, and waits for the end. What these processes write is thrown away, so nothing is lost.
    pub(crate) fn stop(&self) {
        if let Some(mut child) = self.child.lock().take() {
            let _ = child.kill();
            let _ = child.wait();
        }
    }

    pub(crate) fn id(&self) -> Option<u32> {
        self.child.lock().as_ref().map(Child::id)
    }

    pub(crate) fn log(&self) -> PathBuf {
        self.folder.join(format!("{}.log", self.name))
    }

    /// The last lines of its log, under its name.
    pub(crate) fn log_tail(&self, lines: usize) -> String {
        let text = fs::read(self.log()).unwrap_or_default();
        let text = String::from_utf8_lossy(&text);
        let all: Vec<_> = text.lines().collect();
        format!("--- {}\n{}\n", self.log().display(), all[all.len().saturating_sub(lines)..].join("\n"))
    }

    /// An error when it ended by itself.
    fn check(&self) -> Result<(), Error> {
        let ended = self.child.lock().as_mut().and_then(|child| child.try_wait().ok().flatten());
        match ended {
            Some(status) => Err(Error::Ended {
                process: self.name.clone(),
                status: status.to_string(),
                log: self.log_tail(20),
            }),
            None => Ok(()),
        }
    }
}

impl Drop for TierProcess {
    fn drop(&mut self) {
        self.stop();
    }
}

/// Asks `probe` every 50 ms until it succeeds; fails early when one of the processes ends.
pub(crate) async fn wait_until_ready<Answer>(
    what: &str,
    limit: Duration,
    processes: &[&TierProcess],
    probe: impl AsyncFn() -> Result<Answer, String>,
) -> Result<Answer, Error> {
    let start = Instant::now();
    loop {
        let last = match probe().await {
            Ok(answer) => return Ok(answer),
            Err(last) => last,
        };
        for process in processes {
            process.check()?;
        }
        if start.elapsed() > limit {
            return Err(Error::NotReady { what: what.to_owned(), seconds: limit.as_secs(), last });
        }
        tokio::time::sleep(POLL).await;
    }
}

type SpawnRequest = (Command, Sender<io::Result<Child>>);

/// The kernel ties "kill it when its parent dies" to the thread that started the child, and test threads end early: so
/// one thread that lives as long as we do starts them all.
fn spawn(command: Command) -> io::Result<Child> {
    static KEEPER: OnceLock<Sender<SpawnRequest>> = OnceLock::new();
    let keeper = KEEPER.get_or_init(|| {
        let (sender, requests) = channel::<SpawnRequest>();
        thread::spawn(move || {
            for (mut command, answer) in requests {
                let _ = answer.send(command.spawn());
            }
        });
        sender
    });
    let gone = || io::Error::other("the thread that starts processes has ended");
    let (sender, answer) = channel();
    keeper.send((command, sender)).map_err(|_| gone())?;
    answer.recv().map_err(|_| gone())?
}

/// `setpriv` of util-linux sets the parent death signal and then becomes the program (same process id). Without it, a
/// killed test leaves its processes behind; a test that ends by itself or panics does not.
fn supervisor() -> Option<&'static Path> {
    static FOUND: OnceLock<Option<PathBuf>> = OnceLock::new();
    let look =
        || ["/usr/bin/setpriv", "/bin/setpriv"].map(PathBuf::from).into_iter().find(|path| path.exists());
    FOUND.get_or_init(look).as_deref()
}

#[cfg(test)]
mod tests {
    use std::io::{BufRead, BufReader};

    use super::*;

    #[test]
    fn started_stopped_and_started_again() {
        let folder = std::env::temp_dir();
        let name = format!("tutti-live-sleep-{}", std::process::id());
        let process = TierProcess::new(&name, Path::new("/bin/sleep"), &folder, vec!["60".into()]);
        process.start().unwrap();
        let first = process.id().unwrap();
        process.check().unwrap();
        process.stop();
        assert_eq!(process.id(), None);
        assert!(!Path::new(&format!("/proc/{first}")).exists());
        process.start().unwrap();
        assert_ne!(process.id(), Some(first));
        fs::remove_file(process.log()).unwrap();
    }

    #[tokio::test]
    async fn ended_process_error_contains_its_log() {
        let folder = std::env::temp_dir();
        let name = format!("tutti-live-end-{}", std::process::id());
        let script = "echo the reason; exit 3".to_owned();
        let process = TierProcess::new(&name, Path::new("/bin/sh"), &folder, vec!["-c".into(), script]);
        process.start().unwrap();
        let never = async || Err::<(), _>("not yet".to_owned());
        let error = wait_until_ready("it", Duration::from_secs(20), &[&process], never)
            .await
            .unwrap_err()
            .to_string();
        assert!(error.contains("exit status: 3") && error.contains("the reason"), "{error}");
        fs::remove_file(process.log()).unwrap();
    }

    /// Not a test: the process that the next one kills.
    #[test]
    #[ignore = "started by the test below"]
    fn hold_a_process() {
        let name = format!("tutti-live-held-{}", std::process::id());
        let process =
            TierProcess::new(&name, Path::new("/bin/sleep"), &std::env::temp_dir(), vec!["60".into()]);
        // From a thread that ends at once, as a test's would.
        thread::scope(|scope| scope.spawn(|| process.start().unwrap()).join().unwrap());
        fs::remove_file(process.log()).unwrap();
        println!("\nheld {}", process.id().unwrap());
        thread::sleep(Duration::from_secs(60));
    }

    #[test]
    fn a_killed_test_leaves_nothing_behind() {
        let arguments = ["--exact", "process::tests::hold_a_process", "--ignored", "--nocapture"];
        let mut holder = Command::new(std::env::current_exe().unwrap())
            .args(arguments)
            .stdout(Stdio::piped())
            .spawn()
            .unwrap();
        let lines = BufReader::new(holder.stdout.take().unwrap()).lines().map_while(Result::ok);
        let held = lines.filter_map(|line| line.strip_prefix("held ").map(str::to_owned)).next().unwrap();
        let stat = format!("/proc/{held}/stat");
        // Alive: its own program by now, and no zombie.
        let alive = || fs::read_to_string(&stat).is_ok_and(|text| !text.contains(") Z "));
        thread::sleep(Duration::from_millis(200));
        assert!(alive());
        holder.kill().unwrap();
        holder.wait().unwrap();
        let begin = Instant::now();
        while alive() {
            assert!(begin.elapsed() < Duration::from_secs(10), "process {held} lives on");
            thread::sleep(POLL);
        }
    }
}

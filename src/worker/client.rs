//! The main process's side: starts workers, sends requests, and repeats a failed render to find its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::{Duration, Instant};
use std::{env, io, process, thread};

use parking_lot::Mutex;

use super::{
    COMMAND, FAILED_RENDER_COOLDOWN, MAX_ANSWER_BYTES, MAX_FAILED_RENDERS, MEMORY_LIMIT, RETRY_TIMEOUT, wire,
};
use crate::child::{ChildFailure, ChildPool, ChildProcess, ErrorOutput, Frame, isolated_command};
use crate::model::{
    Digest, RenderFailure, RenderFailureCause, RenderWait, TemplateRequest, TemplateResponse, TemplateWorkers,
};

/// Shared by threads: each render uses a worker of its own, and blocks while all are busy.
#[derive(Debug)]
pub struct WorkerPool {
    pool: ChildPool<TemplateWorker>,
    /// Renders that ended their worker, and when.
    failed_renders: Mutex<BTreeMap<Digest, (Instant, RenderFailure)>>,
}

#[derive(Debug)]
struct TemplateWorker {
    process: ChildProcess,
    known_texts: BTreeSet<Digest>,
}

impl Default for WorkerPool {
    /// As many as cores.
    fn default() -> Self {
        let most = thread::available_parallelism().map_or(2, usize::from);
        Self { pool: ChildPool::new(most), failed_renders: Mutex::default() }
    }
}

impl TemplateWorkers for WorkerPool {
    fn run_task(
        &self,
        request: &TemplateRequest<'_>,
        wait: RenderWait<'_>,
    ) -> Result<TemplateResponse, RenderFailure> {
        let kept: Vec<String> = request.cached.iter().map(|text| text.digest.to_string()).collect();
        let key = Digest::of(format!("{:?} {kept:?} {}", request.task, request.body).as_bytes());
        if let Some(end) = self.recent_failure(&key) {
            return Err(end);
        }
        let mut place = self.pool.acquire();
        let fresh = place.child.is_none();
        let mut first = attempt(&mut place.child, request, false, request.time, wait);
        // An idle worker may have ended for other reasons.
        if !fresh
            && matches!(&first, Err((RenderFailureCause::Crash(_), words)) if words.text.trim().is_empty())
        {
            first = attempt(&mut place.child, request, false, request.time, wait);
        }
        let cause = match first {
            Ok(answer) => return Ok(answer),
            Err((cause @ RenderFailureCause::NoWorker(_), _)) => {
                return Err(RenderFailure { cause, place: None });
            }
            Err((cause, _)) => cause,
        };
        let not_yet = || RenderFailure { cause: RenderFailureCause::Postponed, place: None };
        if cause == RenderFailureCause::Postponed || wait.time < request.time || !(wait.is_wanted)() {
            return Err(not_yet());
        }
        // Repeated with line reports. Its turn may be over, so it is stretched less.
        let last_wait = RenderWait { time: RETRY_TIMEOUT * 2, ..wait };
        match attempt(&mut place.child, request, true, RETRY_TIMEOUT, last_wait) {
            Ok(answer) => Ok(answer),
            Err(_) if !(wait.is_wanted)() => Err(not_yet()),
            Err((_, words)) => {
                let end = RenderFailure { cause, place: words.position };
                self.record_failure(key, &end);
                Err(end)
            }
        }
    }
}

impl WorkerPool {
    fn recent_failure(&self, key: &Digest) -> Option<RenderFailure> {
        let mut ended = self.failed_renders.lock();
        let (since, end) = ended.get(key)?;
        if since.elapsed() < FAILED_RENDER_COOLDOWN {
            return Some(end.clone());
        }
        ended.remove(key);
        None
    }

    fn record_failure(&self, key: Digest, end: &RenderFailure) {
        let mut ended = self.failed_renders.lock();
        if ended.len() >= MAX_FAILED_RENDERS {
            ended.clear();
        }
        ended.insert(key, (Instant::now(), end.clone()));
    }
}

/// One attempt within `limit` of processor time. The worker stays in its slot only if it answers.
fn attempt(
    place: &mut Option<TemplateWorker>,
    request: &TemplateRequest<'_>,
    lines: bool,
    limit: Duration,
    wait: RenderWait<'_>,
) -> Result<TemplateResponse, (RenderFailureCause, ErrorOutput)> {
    let no_worker =
        |error: io::Error| (RenderFailureCause::NoWorker(error.to_string()), ErrorOutput::default());
    let mut worker = match place.take() {
        Some(worker) => worker,
        None => TemplateWorker::start().map_err(no_worker)?,
    };
    let answer = worker.ask(request, lines, limit, wait).map_err(|ended| {
        let words = worker.process.error_output();
        (failure_cause(ended, &words.text), words)
    })?;
    *place = Some(worker);
    Ok(answer)
}

impl TemplateWorker {
    fn start() -> io::Result<Self> {
        let mut command = isolated_command(&own_program()?);
        command.arg(COMMAND);
        match ChildProcess::start(command, MEMORY_LIMIT, MAX_ANSWER_BYTES) {
            Ok(process) => Ok(Self { process, known_texts: BTreeSet::new() }),
            Err(ChildFailure::NotStarted(error)) => Err(error),
            Err(ended) => Err(io::Error::other(format!("{ended:?}"))),
        }
    }

    fn ask(
        &mut self,
        request: &TemplateRequest<'_>,
        lines: bool,
        limit: Duration,
        wait: RenderWait<'_>,
    ) -> Result<TemplateResponse, ChildFailure> {
        let mut took = Duration::ZERO;
        let body = ask(request, lines, &mut self.known_texts, |asked| {
            let (frame, used) = self.process.exchange_within(asked, limit, wait)?;
            took += used;
            Ok(frame)
        })?;
        Ok(TemplateResponse { body, took })
    }
}

/// Sends the texts that the worker lacks. If it dropped some, all are sent again.
fn ask(
    request: &TemplateRequest<'_>,
    lines: bool,
    known: &mut BTreeSet<Digest>,
    mut exchange: impl FnMut(io::Result<Vec<u8>>) -> Result<Frame, ChildFailure>,
) -> Result<Vec<u8>, ChildFailure> {
    let mut once = |known: &BTreeSet<Digest>| {
        let frame = exchange(wire::encode_request(request, |text| known.contains(text), lines))?;
        wire::read_answer(&frame).map_err(|_| ChildFailure::Exited)
    };
    let mut answer = once(known)?;
    if answer.is_none() {
        known.clear();
        answer = once(known)?;
    }
    known.extend(request.cached.iter().map(|text| text.digest));
    answer.ok_or(ChildFailure::Exited)
}

/// The path of this program. After an upgrade in place `/proc` still has the running one.
fn own_program() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    if program.exists() { Ok(program) } else { Ok(format!("/proc/{}/exe", process::id()).into()) }
}

/// Why a worker ended, from its standard error.
fn failure_cause(ended: ChildFailure, words: &str) -> RenderFailureCause {
    match ended {
        ChildFailure::TimedOut => RenderFailureCause::Postponed,
        ChildFailure::OverLimit => RenderFailureCause::Time,
        ChildFailure::OutputTooLarge => RenderFailureCause::Output(MAX_ANSWER_BYTES),
        ChildFailure::NotStarted(error) => RenderFailureCause::NoWorker(error.to_string()),
        ChildFailure::Exited if words.contains("memory allocation of") => {
            RenderFailureCause::Memory(MEMORY_LIMIT)
        }
        ChildFailure::Exited if words.contains("overflowed its stack") => RenderFailureCause::Stack,
        ChildFailure::Exited => {
            // The first line of a panic is its position.
            let mut lines = words.lines().filter(|line| !line.trim().is_empty());
            let said = lines.find(|line| !line.starts_with("thread '"));
            RenderFailureCause::Crash(said.unwrap_or("it was killed").to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve::TextCache;
    use super::*;
    use crate::child::frames;
    use crate::model::{CachedText, Capabilities, WorkerTask};

    #[test]
    fn cause_is_read_from_standard_error() {
        fn check(words: &str, expected: &RenderFailureCause) {
            assert_eq!(&failure_cause(ChildFailure::Exited, words), expected, "{words}");
        }
        check("memory allocation of 268435456 bytes failed\n", &RenderFailureCause::Memory(MEMORY_LIMIT));
        check(
            "\nthread 'templates' (7) has overflowed its stack\nfatal runtime error\n",
            &RenderFailureCause::Stack,
        );
        let panic = "\nthread 'templates' (7) panicked at a.rs:1:2:\ncapacity overflow\nnote: run with\n";
        check(panic, &RenderFailureCause::Crash("capacity overflow".to_owned()));
        check("", &RenderFailureCause::Crash("it was killed".to_owned()));
    }

    /// Requests for renders with these texts, and the number of texts the worker is known to have.
    fn requests(renders: &[[&CachedText; 2]]) -> (usize, usize) {
        let (mut requests, mut known, mut shelf) = (0, BTreeSet::new(), TextCache::default());
        let read = |bytes: Vec<u8>| frames::read(&mut bytes.as_slice(), usize::MAX).unwrap();
        for kept in renders {
            let facts = r#"{"cluster": null, "ring": null, "revision": null}"#;
            let body = format!(r#"{{"variables": {{}}, "facts": {facts}, "first_mark": null}}"#);
            let task = WorkerTask::RenderTemplates;
            let request = TemplateRequest { task, cached: kept, body, time: RETRY_TIMEOUT };
            let exchange = |asked: io::Result<Vec<u8>>| {
                requests += 1;
                Ok(read(shelf.reply(&read(asked.unwrap())).unwrap()))
            };
            assert!(ask(&request, false, &mut known, exchange).is_ok());
        }
        (requests, known.len())
    }

    #[test]
    fn large_texts_need_one_request() {
        // An empty list, padded.
        let large = |more: usize| CachedText::new(format!("[]{}", " ".repeat(5 * 1024 * 1024 + more)));
        let capabilities =
            CachedText::new(serde_json::json!([Capabilities::declared(None, &[]), false]).to_string());
        let (one, other) = (large(0), large(1));
        assert_eq!(requests(&[[&one, &capabilities]; 5]), (5, 2));
        // For the second the worker drops all its texts.
        let renders = [&one, &other, &other, &other].map(|templates| [templates, &capabilities]);
        assert_eq!(requests(&renders), (5, 2));
    }
}

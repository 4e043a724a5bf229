//! The main process's side: starts workers, sends requests, and repeats a failed render to find its line.

use std::collections::{BTreeMap, BTreeSet};
use std::path::PathBuf;
use std::time::Instant;
use std::{env, io, process, thread};

use parking_lot::Mutex;

use super::{ANSWER, COMMAND, MEMORY, MOST_AT_REST, REST, SECOND, wire};
use crate::child::{Child, Ended, Frame, LastWords, Pool, bare};
use crate::model::{
    Digest, RenderEnd, RenderEndCause, TemplateAnswer, TemplateRequest, TemplateWorkers, Wait,
};

/// Shared by threads: each render uses a worker of its own, and blocks while all are busy.
#[derive(Debug)]
pub struct Workers {
    pool: Pool<Worker>,
    /// Renders that ended their worker, and when.
    ended: Mutex<BTreeMap<Digest, (Instant, RenderEnd)>>,
}

#[derive(Debug)]
struct Worker {
    process: Child,
    known: BTreeSet<Digest>,
}

impl Default for Workers {
    /// As many as cores.
    fn default() -> Self {
        let most = thread::available_parallelism().map_or(2, usize::from);
        Self { pool: Pool::new(most), ended: Mutex::default() }
    }
}

impl TemplateWorkers for Workers {
    fn ask(&self, request: &TemplateRequest<'_>, wait: Wait<'_>) -> Result<TemplateAnswer, RenderEnd> {
        let kept: Vec<String> = request.kept.iter().map(|text| text.digest.to_string()).collect();
        let key = Digest::of(format!("{:?} {kept:?} {}", request.task, request.body).as_bytes());
        if let Some(end) = self.at_rest(&key) {
            return Err(end);
        }
        let mut place = self.pool.place();
        let begun = Instant::now();
        let answered = |body| TemplateAnswer { body, took: begun.elapsed() };
        let fresh = place.child.is_none();
        let first_wait = Wait { time: wait.time.min(request.time), ..wait };
        let mut first = attempt(&mut place.child, request, false, first_wait);
        // An idle worker may have ended for other reasons.
        if !fresh && matches!(&first, Err((RenderEndCause::Crash(_), words)) if words.text.trim().is_empty())
        {
            first = attempt(&mut place.child, request, false, first_wait);
        }
        let cause = match first {
            Ok(body) => return Ok(answered(body)),
            Err((cause @ RenderEndCause::NoWorker(_), _)) => return Err(RenderEnd { cause, place: None }),
            Err((cause, _)) => cause,
        };
        let not_yet = || RenderEnd { cause: RenderEndCause::NotYet, place: None };
        if wait.time < request.time || !(wait.goes_on)() {
            return Err(not_yet());
        }
        // Repeated with line reports. It may succeed on a machine that was busy before.
        match attempt(&mut place.child, request, true, Wait { time: SECOND, ..wait }) {
            Ok(body) => Ok(answered(body)),
            Err(_) if !(wait.goes_on)() => Err(not_yet()),
            Err((_, words)) => {
                let end = RenderEnd { cause, place: words.place };
                self.note(key, &end);
                Err(end)
            }
        }
    }
}

impl Workers {
    fn at_rest(&self, key: &Digest) -> Option<RenderEnd> {
        let mut ended = self.ended.lock();
        let (since, end) = ended.get(key)?;
        if since.elapsed() < REST {
            return Some(end.clone());
        }
        ended.remove(key);
        None
    }

    fn note(&self, key: Digest, end: &RenderEnd) {
        let mut ended = self.ended.lock();
        if ended.len() >= MOST_AT_REST {
            ended.clear();
        }
        ended.insert(key, (Instant::now(), end.clone()));
    }
}

/// One attempt. The worker stays in its slot only if it answers.
fn attempt(
    place: &mut Option<Worker>,
    request: &TemplateRequest<'_>,
    lines: bool,
    wait: Wait<'_>,
) -> Result<Vec<u8>, (RenderEndCause, LastWords)> {
    let no_worker = |error: io::Error| (RenderEndCause::NoWorker(error.to_string()), LastWords::default());
    let mut worker = match place.take() {
        Some(worker) => worker,
        None => Worker::start().map_err(no_worker)?,
    };
    let answer = worker.ask(request, lines, wait).map_err(|ended| {
        let words = worker.process.last_words();
        (cause(ended, &words.text), words)
    })?;
    *place = Some(worker);
    Ok(answer)
}

impl Worker {
    fn start() -> io::Result<Self> {
        let mut command = bare(&program()?);
        command.arg(COMMAND);
        match Child::start(command, MEMORY, ANSWER) {
            Ok(process) => Ok(Self { process, known: BTreeSet::new() }),
            Err(Ended::NotStarted(error)) => Err(error),
            Err(ended) => Err(io::Error::other(format!("{ended:?}"))),
        }
    }

    fn ask(&mut self, request: &TemplateRequest<'_>, lines: bool, wait: Wait<'_>) -> Result<Vec<u8>, Ended> {
        ask(request, lines, &mut self.known, |asked| self.process.exchange(asked, wait))
    }
}

/// Sends the texts that the worker lacks. If it dropped some, all are sent again.
fn ask(
    request: &TemplateRequest<'_>,
    lines: bool,
    known: &mut BTreeSet<Digest>,
    mut exchange: impl FnMut(io::Result<Vec<u8>>) -> Result<Frame, Ended>,
) -> Result<Vec<u8>, Ended> {
    let mut once = |known: &BTreeSet<Digest>| {
        let frame = exchange(wire::request(request, |text| known.contains(text), lines))?;
        wire::read_answer(&frame).map_err(|_| Ended::Died)
    };
    let mut answer = once(known)?;
    if answer.is_none() {
        known.clear();
        answer = once(known)?;
    }
    known.extend(request.kept.iter().map(|text| text.digest));
    answer.ok_or(Ended::Died)
}

/// The path of this program. After an upgrade in place `/proc` still has the running one.
fn program() -> io::Result<PathBuf> {
    let program = env::current_exe()?;
    if program.exists() { Ok(program) } else { Ok(format!("/proc/{}/exe", process::id()).into()) }
}

/// Why a worker ended, from its standard error.
fn cause(ended: Ended, words: &str) -> RenderEndCause {
    match ended {
        Ended::Late => RenderEndCause::Time,
        Ended::TooMuch => RenderEndCause::Output(ANSWER),
        Ended::NotStarted(error) => RenderEndCause::NoWorker(error.to_string()),
        Ended::Died if words.contains("memory allocation of") => RenderEndCause::Memory(MEMORY),
        Ended::Died if words.contains("overflowed its stack") => RenderEndCause::Stack,
        Ended::Died => {
            // The first line of a panic is its position.
            let mut lines = words.lines().filter(|line| !line.trim().is_empty());
            let said = lines.find(|line| !line.starts_with("thread '"));
            RenderEndCause::Crash(said.unwrap_or("it was killed").to_owned())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::serve::Shelf;
    use super::*;
    use crate::child::frames;
    use crate::model::{Capabilities, KeptText, WorkerTask};

    #[test]
    fn cause_is_read_from_standard_error() {
        fn check(words: &str, expected: &RenderEndCause) {
            assert_eq!(&cause(Ended::Died, words), expected, "{words}");
        }
        check("memory allocation of 268435456 bytes failed\n", &RenderEndCause::Memory(MEMORY));
        check(
            "\nthread 'templates' (7) has overflowed its stack\nfatal runtime error\n",
            &RenderEndCause::Stack,
        );
        let panic = "\nthread 'templates' (7) panicked at a.rs:1:2:\ncapacity overflow\nnote: run with\n";
        check(panic, &RenderEndCause::Crash("capacity overflow".to_owned()));
        check("", &RenderEndCause::Crash("it was killed".to_owned()));
    }

    /// Requests for renders with these texts, and the number of texts the worker is known to have.
    fn requests(renders: &[[&KeptText; 2]]) -> (usize, usize) {
        let (mut requests, mut known, mut shelf) = (0, BTreeSet::new(), Shelf::default());
        let read = |bytes: Vec<u8>| frames::read(&mut bytes.as_slice(), usize::MAX).unwrap();
        for kept in renders {
            let facts = r#"{"cluster": null, "ring": null, "revision": null}"#;
            let body = format!(r#"{{"variables": {{}}, "facts": {facts}, "first_mark": null}}"#);
            let task = WorkerTask::RenderTemplates;
            let request = TemplateRequest { task, kept, body, time: SECOND };
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
        let large = |more: usize| KeptText::new(format!("[]{}", " ".repeat(5 * 1024 * 1024 + more)));
        let capabilities =
            KeptText::new(serde_json::json!([Capabilities::declared(None, &[]), false]).to_string());
        let (one, other) = (large(0), large(1));
        assert_eq!(requests(&[[&one, &capabilities]; 5]), (5, 2));
        // For the second the worker drops all its texts.
        let renders = [&one, &other, &other, &other].map(|templates| [templates, &capabilities]);
        assert_eq!(requests(&renders), (5, 2));
    }
}

//! The worker's side: answers requests until standard input ends.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Read, Write};
use std::sync::mpsc::{self, Receiver, RecvTimeoutError, SyncSender};
use std::{process, thread};

use super::wire::{WorkerAnswer, WorkerRequest, WorkerRequestText};
use super::{MAX_REQUEST_TIME, STACK_SIZE};
use crate::chart;
use crate::child::{Frame, POSITION_MARK, frames};
use crate::model::WorkerTask;
use crate::render::{DigestedText, WorkerTemplates};

/// Cached texts, in number and bytes; beyond that all are dropped.
const MAX_TEXTS: usize = 64;
const MAX_TEXT_BYTES: usize = 4 * 1024 * 1024;

/// Answers requests from standard input, on a stack of known size.
pub fn serve() -> io::Result<()> {
    let (busy, watched) = mpsc::sync_channel(1);
    thread::spawn(move || exit_when_stuck(&watched));
    let work = move || {
        let (input, output) = (BufReader::new(io::stdin()), io::stdout());
        answer_all(input, output, &busy)
    };
    let worker = thread::Builder::new().name("templates".to_owned()).stack_size(STACK_SIZE).spawn(work)?;
    worker.join().unwrap_or_else(|_| Err(io::Error::other("it panicked")))
}

/// The main process kills a late worker. If that process is gone, the worker must exit by itself.
fn exit_when_stuck(watched: &Receiver<bool>) {
    while let Ok(busy) = watched.recv() {
        if busy && matches!(watched.recv_timeout(MAX_REQUEST_TIME), Err(RecvTimeoutError::Timeout)) {
            process::exit(1);
        }
    }
}

fn answer_all(mut input: impl Read, mut output: impl Write, busy: &SyncSender<bool>) -> io::Result<()> {
    let mut shelf = TextCache::default();
    loop {
        let frame = match frames::read(&mut input, usize::MAX) {
            Ok(frame) => frame,
            Err(error) if error.kind() == io::ErrorKind::UnexpectedEof => return Ok(()),
            Err(error) => return Err(error),
        };
        let _ = busy.send(true);
        let answer = shelf.reply(&frame)?;
        let _ = busy.send(false);
        output.write_all(&answer)?;
        output.flush()?;
    }
}

#[derive(Debug, Default)]
pub struct TextCache {
    texts: BTreeMap<String, String>,
    desk: WorkerTemplates,
}

impl TextCache {
    pub fn reply(&mut self, frame: &Frame) -> io::Result<Vec<u8>> {
        let answer = self.answer(frame)?;
        let unknown = answer.is_none();
        frames::encode(&WorkerAnswer { unknown }, [answer.unwrap_or_default().as_bytes()])
    }

    /// `None`: a text is missing.
    fn answer(&mut self, frame: &Frame) -> io::Result<Option<String>> {
        let WorkerRequest { task, kept, lines } = serde_json::from_slice(frame.head())?;
        let mut texts = frame.texts();
        let mut sent = Vec::new();
        for WorkerRequestText { digest, size } in &kept {
            let Some(size) = *size else { continue };
            let (text, rest) = texts
                .split_at_checked(size)
                .ok_or_else(|| io::Error::other("a request is shorter than its header"))?;
            sent.push((digest.clone(), utf8_text(text)?));
            texts = rest;
        }
        self.store(sent);
        let told = kept.iter().map(|kept| {
            self.texts.get_key_value(&kept.digest).map(|(digest, text)| DigestedText { digest, text })
        });
        let Some(told) = told.collect::<Option<Vec<DigestedText<'_>>>>() else { return Ok(None) };
        let body = utf8_text(texts)?;
        let answer = match (task, told.as_slice()) {
            (WorkerTask::RenderTemplates, [templates, capabilities]) => {
                self.desk.render(*templates, *capabilities, &body, lines.then_some(report_position))?
            }
            (WorkerTask::CheckValues, []) => chart::check_values(&body)?,
            _ => return Err(io::Error::other("a request with other texts than its task has")),
        };
        Ok(Some(answer))
    }

    fn store(&mut self, sent: Vec<(String, String)>) {
        if sent.is_empty() {
            return;
        }
        let bytes: usize =
            self.texts.values().chain(sent.iter().map(|(_, text)| text)).map(String::len).sum();
        if self.texts.len() + sent.len() > MAX_TEXTS || bytes > MAX_TEXT_BYTES {
            *self = Self::default();
        }
        self.texts.extend(sent);
    }
}

fn utf8_text(bytes: &[u8]) -> io::Result<String> {
    String::from_utf8(bytes.to_vec()).map_err(io::Error::other)
}

/// Not buffered: the process may end right after.
fn report_position(template: usize, line: usize) {
    let _ = io::stderr().write_all(format!("{POSITION_MARK}{template}:{line}\n").as_bytes());
}

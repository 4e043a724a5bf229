//! Mutates the answers of a peer.

use std::io::Write as _;

use flate2::Compression;
use flate2::write::GzEncoder;
use rand::RngExt as _;
use rand::rngs::StdRng;

use super::server::PeerAnswer;

/// Fragments with a meaning in JSON or on a terminal.
const WORDS: &[&str] = &[
    "{",
    "}",
    "[",
    "]",
    ",",
    ":",
    "\"",
    "\\",
    "\\u0000",
    "\\ud800",
    "\n",
    "\r\n",
    "\0",
    "null",
    "true",
    "-1",
    "1e999",
    "18446744073709551616",
    "0.1",
    "\"\"",
    "{}",
    "[]",
    "\u{1b}[2J",
    "\u{202e}",
    "\u{feff}",
    "\"metadata\":",
    "\"items\":",
    "\"kind\":\"Status\",",
    "\"continue\":\"x\",",
    "\"resourceVersion\":\"\",",
    "\"uid\":null,",
    "\"name\":\"../..\",",
    "\"annotations\":{},",
    "\"type\":\"ERROR\",",
    "\"type\":\"BOOKMARK\",",
    "\"object\":",
    "\"code\":70000,",
    "\"message\":",
];

/// Bytes that are added to an answer at once, most often and seldom.
const LONG: usize = 64 * 1024;
const LONGEST: usize = 24 * 1024 * 1024;

pub fn change(answer: &mut PeerAnswer, random: &mut StdRng) {
    // Most are valid, or nothing would ever get beyond the first.
    if random.random_range(0..4) > 0 {
        return;
    }
    for _ in 0..random.random_range(1..6) {
        match random.random_range(0..12) {
            0 => {
                answer.status =
                    [200, 201, 204, 206, 301, 307, 400, 401, 403, 404, 409, 410, 415, 422, 429, 500, 503]
                        [random.random_range(0..17)]
            }
            1 => headers(answer, random),
            2 => compress(answer, random),
            _ => text(&mut answer.body, random),
        }
    }
}

fn text(body: &mut Vec<u8>, random: &mut StdRng) {
    let at = random.random_range(0..=body.len());
    let range = span(body.len(), random);
    match random.random_range(0..9) {
        0 => drop(body.drain(range)),
        1 => body.truncate(at),
        2 => {
            let piece = body[range].to_vec();
            insert(body, at, &piece, many(random));
        }
        3 => {
            let piece = body[range].to_vec();
            insert(body, at, &piece, 1);
        }
        4 => insert(
            body,
            at,
            [b"[".as_slice(), b"{\"a\":", b"[{}", b"\""][random.random_range(0..4)],
            many(random),
        ),
        5 => {
            if let Some(byte) = body.get_mut(at) {
                *byte = random.random();
            }
        }
        6 => {
            let word = WORDS[random.random_range(0..WORDS.len())];
            insert(body, at, word.as_bytes(), many(random));
        }
        7 => {
            // Another value in the place of one.
            if let Some(start) = body[at..].iter().position(|byte| *byte == b':').map(|found| at + found + 1)
            {
                let rest = &body[start..];
                let end =
                    start + rest.iter().position(|byte| matches!(byte, b',' | b'}')).unwrap_or(rest.len());
                let word = ["null", "\"x\"", "7", "{}", "[]", "true", "\"\""][random.random_range(0..7)];
                body.splice(start..end, word.bytes());
            }
        }
        _ => insert(body, at, WORDS[random.random_range(0..WORDS.len())].as_bytes(), 1),
    }
}

fn headers(answer: &mut PeerAnswer, random: &mut StdRng) {
    let line = match random.random_range(0..9) {
        0 => "content-length: 5".to_owned(),
        1 => "content-length: 99999999999999999999".to_owned(),
        2 => "transfer-encoding: gzip, chunked".to_owned(),
        3 => "content-type: text/html".to_owned(),
        4 => format!("x: {}", "a".repeat(random.random_range(0..200_000))),
        5 => "x: y\r\n".repeat(random.random_range(1..2000)) + "x: y",
        6 => format!("retry-after: {}", ["-1", "1", "99999999999999999999", "x"][random.random_range(0..4)]),
        7 => "date: Thu, 99 Foo 99999 99:99:99 GMT".to_owned(),
        _ => "location: http://127.0.0.1:1/".to_owned(),
    };
    answer.headers.push(line);
}

/// Packed, and then perhaps not quite.
fn compress(answer: &mut PeerAnswer, random: &mut StdRng) {
    let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
    encoder.write_all(&answer.body).expect("memory");
    if random.random_range(0..4) == 0 {
        for _ in 0..random.random_range(1..256) {
            encoder.write_all(&[b' '; LONG]).expect("memory");
        }
    }
    answer.body = encoder.finish().expect("memory");
    answer.headers.push("content-encoding: gzip".to_owned());
}

/// Seldom very many.
fn many(random: &mut StdRng) -> usize {
    match random.random_range(0..20) {
        0 => LONGEST,
        1..4 => LONG,
        _ => random.random_range(1..500),
    }
}

/// `times` the piece, as far as that is not too long.
fn insert(body: &mut Vec<u8>, at: usize, piece: &[u8], times: usize) {
    if piece.is_empty() {
        return;
    }
    let room = LONGEST.saturating_sub(body.len()) / piece.len();
    let longest = if times > LONG { LONGEST } else { times * piece.len() };
    let times = times.min(room).min(longest.div_ceil(piece.len()));
    // Made in place: the memory that a finding names should be that of whoever asks.
    let rest = body.split_off(at);
    body.reserve_exact(times * piece.len() + rest.len());
    (0..times).for_each(|_| body.extend_from_slice(piece));
    body.extend(rest);
}

/// Some part, seldom a large one.
fn span(length: usize, random: &mut StdRng) -> std::ops::Range<usize> {
    let start = random.random_range(0..=length);
    let longest = if random.random_range(0..5) == 0 { length } else { 40 };
    start..(start + random.random_range(0..=longest)).min(length)
}

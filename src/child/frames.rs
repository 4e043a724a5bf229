//! Frames between parent and child: the length of the JSON and of the texts, four bytes each, big-endian; the JSON; the texts,
//! concatenated.

use std::io::{self, Read};

use serde::Serialize;

const PREFIX: usize = 8;

#[derive(Debug)]
pub struct Frame {
    bytes: Vec<u8>,
    head: usize,
}

impl Frame {
    pub fn head(&self) -> &[u8] {
        self.bytes.get(..self.head).unwrap_or_default()
    }

    /// The texts, concatenated.
    pub fn texts(&self) -> &[u8] {
        self.bytes.get(self.head..).unwrap_or_default()
    }
}

pub fn encode<'a>(said: &impl Serialize, texts: impl IntoIterator<Item = &'a [u8]>) -> io::Result<Vec<u8>> {
    let mut bytes = vec![0; PREFIX];
    serde_json::to_writer(&mut bytes, said)?;
    let head = bytes.len();
    texts.into_iter().for_each(|text| bytes.extend_from_slice(text));
    let length = |length: usize| u32::try_from(length).map_err(|_| io::Error::other("the frame is too long"));
    let lengths = [length(head - PREFIX)?, length(bytes.len() - head)?].map(u32::to_be_bytes).concat();
    bytes[..PREFIX].copy_from_slice(&lengths);
    Ok(bytes)
}

/// Reads one frame of at most `limit` bytes.
pub fn read(from: &mut impl Read, limit: usize) -> io::Result<Frame> {
    let mut lengths = [[0; 4]; 2];
    from.read_exact(lengths.as_flattened_mut())?;
    let [head, texts] = lengths.map(|length| u32::from_be_bytes(length) as usize);
    let length = head.saturating_add(texts);
    if length > limit {
        return Err(io::Error::new(io::ErrorKind::FileTooLarge, format!("a frame of {length} bytes")));
    }
    let mut bytes = vec![0; length];
    from.read_exact(&mut bytes)?;
    Ok(Frame { bytes, head })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn frame_is_read_as_it_was_written() {
        let bytes = encode(&["a"], [&b"text"[..], b"s"]).expect("a frame");
        let frame = read(&mut bytes.as_slice(), 20).expect("a frame");
        assert_eq!((frame.head(), frame.texts()), (&br#"["a"]"#[..], &b"texts"[..]));
        let error = read(&mut bytes.as_slice(), 9).expect_err("too long");
        assert_eq!(error.kind(), io::ErrorKind::FileTooLarge);
    }
}

//! Git's packet lines (gitprotocol-common(5)): four hexadecimal digits of length, then the content.

/// Ends a message.
pub(super) const FLUSH: &[u8] = b"0000";
/// Ends a section of a message.
pub(super) const DELIMITER: &[u8] = b"0001";

const HEADER: usize = 4;

#[derive(Debug, PartialEq, Eq)]
pub(super) enum Packet {
    Data(Vec<u8>),
    Delimiter,
    Flush,
}

/// A short text as a packet.
pub(super) fn encode_line(text: &str) -> Vec<u8> {
    format!("{:04x}{text}\n", HEADER + text.len() + 1).into_bytes()
}

/// Splits a stream of bytes into packets.
#[derive(Debug, Default)]
pub(super) struct PacketReader {
    bytes: Vec<u8>,
    start: usize,
}

impl PacketReader {
    pub(super) fn push(&mut self, bytes: &[u8]) {
        self.bytes.drain(..self.start);
        self.start = 0;
        self.bytes.extend_from_slice(bytes);
    }

    /// `None` until more bytes arrive; an error when it is not this format.
    pub(super) fn next(&mut self) -> Result<Option<Packet>, &'static str> {
        let rest = &self.bytes[self.start..];
        let Some((digits, rest)) = rest.split_at_checked(HEADER) else { return Ok(None) };
        let mut length = [0; 2];
        hex::decode_to_slice(digits, &mut length).map_err(|_| "not a packet")?;
        let length = usize::from(u16::from_be_bytes(length));
        let packet = match length {
            0 => Packet::Flush,
            1 => Packet::Delimiter,
            2 | 3 => return Err("not a packet"),
            _ => match rest.get(..length - HEADER) {
                Some(content) => Packet::Data(content.to_vec()),
                None => return Ok(None),
            },
        };
        self.start += length.max(HEADER);
        Ok(Some(packet))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn all(bytes: &[u8], step: usize) -> Result<Vec<Packet>, &'static str> {
        let (mut packets, mut found) = (PacketReader::default(), Vec::new());
        for part in bytes.chunks(step) {
            packets.push(part);
            while let Some(packet) = packets.next()? {
                found.push(packet);
            }
        }
        Ok(found)
    }

    #[test]
    fn packets_arrive_in_any_pieces() {
        let bytes = [&encode_line("version 2"), DELIMITER, b"0004", &encode_line(""), FLUSH].concat();
        let data = |text: &str| Packet::Data(text.as_bytes().to_vec());
        for step in 1..bytes.len() {
            let expected = vec![data("version 2\n"), Packet::Delimiter, data(""), data("\n"), Packet::Flush];
            assert_eq!(all(&bytes, step), Ok(expected), "{step}");
        }
    }

    #[test]
    fn anything_else_is_refused() {
        let check = |bytes: &[u8]| assert_eq!(all(bytes, 1), Err("not a packet"));
        check(b"<html>");
        check(b"0003");
        check("发发".as_bytes());
    }
}

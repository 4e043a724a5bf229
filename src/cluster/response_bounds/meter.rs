//! Measures JSON while it arrives, without parsing it.

/// Nesting depth. The JSON parser accepts no more.
pub(super) const DEPTH: u32 = 128;

/// About the memory of a map field, beside its bytes.
const FIELD: usize = 128;
/// A list item, or another field: the memory of its slot.
const ITEM: usize = 80;
/// A map that is not empty.
const MAP: usize = 300;
/// A list.
const LIST: usize = 32;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Excess {
    Bytes,
    Depth,
    Memory,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BodyLimits {
    pub bytes: usize,
    pub memory: usize,
}

/// Measures one response, or each line of a watch. Text that is no JSON is measured too: its result is never less
/// than its bytes.
#[derive(Debug)]
pub(super) struct JsonMeter {
    most: BodyLimits,
    /// Each line is measured separately.
    is_of_lines: bool,
    bytes: usize,
    memory: usize,
    /// Of the lines that ended in the last piece.
    ended: usize,
    depth: u32,
    is_text: bool,
    is_escaped: bool,
    /// A map has begun and is empty so far.
    is_new_map: bool,
}

impl JsonMeter {
    pub fn new(most: BodyLimits, is_of_lines: bool) -> Self {
        Self {
            most,
            is_of_lines,
            bytes: 0,
            memory: 0,
            ended: 0,
            depth: 0,
            is_text: false,
            is_escaped: false,
            is_new_map: false,
        }
    }

    /// The memory so far, with the lines that ended in the last piece.
    pub fn memory(&self) -> usize {
        self.memory.saturating_add(self.ended)
    }

    /// The memory of what has not ended.
    pub fn open_memory(&self) -> usize {
        self.memory
    }

    pub fn feed(&mut self, piece: &[u8]) -> Result<(), Excess> {
        self.ended = 0;
        if !self.is_of_lines {
            return self.take_part(piece);
        }
        // No JSON text contains a raw newline.
        for part in piece.split_inclusive(|byte| *byte == b'\n') {
            self.take_part(part)?;
            if part.ends_with(b"\n") {
                *self = Self { ended: self.ended.max(self.memory), ..Self::new(self.most, true) };
            }
        }
        Ok(())
    }

    fn take_part(&mut self, mut part: &[u8]) -> Result<(), Excess> {
        self.bytes += part.len();
        self.memory += part.len();
        if self.bytes > self.most.bytes {
            return Err(Excess::Bytes);
        }
        while let [sign, rest @ ..] = part {
            part = rest;
            if !self.is_text {
                self.take_sign(*sign)?;
            } else if std::mem::take(&mut self.is_escaped) {
                // An escaped byte ends nothing.
            } else if *sign == b'\\' {
                self.is_escaped = true;
            } else if *sign == b'"' {
                self.is_text = false;
            } else {
                // The usual case.
                let end = rest.iter().position(|sign| matches!(sign, b'"' | b'\\')).unwrap_or(rest.len());
                part = rest.get(end..).unwrap_or_default();
            }
        }
        if self.memory > self.most.memory { Err(Excess::Memory) } else { Ok(()) }
    }

    fn take_sign(&mut self, byte: u8) -> Result<(), Excess> {
        match byte {
            b'"' => {
                self.is_text = true;
                if std::mem::take(&mut self.is_new_map) {
                    self.memory += MAP;
                }
            }
            b'{' | b'[' => {
                self.depth += 1;
                self.is_new_map = byte == b'{';
                self.memory += LIST;
                if self.depth > DEPTH {
                    return Err(Excess::Depth);
                }
            }
            b'}' | b']' => {
                self.depth = self.depth.saturating_sub(1);
                self.is_new_map = false;
            }
            b':' => self.memory += FIELD,
            b',' => self.memory += ITEM,
            _ => {}
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const MEMORY: usize = 32 * 1024 * 1024;

    #[track_caller]
    fn check(bytes: usize, is_of_lines: bool, pieces: &[&str], expected: Result<(), Excess>) {
        let mut meter = JsonMeter::new(BodyLimits { bytes, memory: MEMORY }, is_of_lines);
        let found = pieces.iter().try_for_each(|piece| meter.feed(piece.as_bytes()));
        assert_eq!(found, expected, "{:?}", pieces.first());
    }

    #[test]
    fn bytes_are_counted_in_total_or_per_line() {
        check(4, false, &["12", "34"], Ok(()));
        check(4, false, &["12", "345"], Err(Excess::Bytes));
        check(4, true, &["12", "3\n123\n", "123"], Ok(()));
        check(4, true, &["123\n", "123\n12", "3\n"], Ok(()));
        check(4, true, &["12", "3\n123\n123", "45"], Err(Excess::Bytes));
        // The newline counts.
        check(4, true, &["1234\n"], Err(Excess::Bytes));
    }

    #[test]
    fn depth_counts_no_brackets_of_texts() {
        let deep = |number: usize| "[".repeat(number);
        check(10_000, false, &[&deep(128)], Ok(()));
        check(10_000, false, &[&deep(100), &deep(29)], Err(Excess::Depth));
        check(10_000, false, &[&"[{}]".repeat(500)], Ok(()));
        check(10_000, false, &["\"\\\\\\\"", &deep(500), "\"", &deep(128)], Ok(()));
        check(10_000, false, &["\"\\", "\"", &deep(500), "\"", &deep(129)], Err(Excess::Depth));
        check(10_000, true, &[&deep(100), "\n", &deep(100)], Ok(()));
    }

    #[test]
    fn small_values_take_more_memory_than_bytes() {
        let many = |value: &str| value.repeat(3 * 1024 * 1024 / value.len());
        check(usize::MAX, false, &[&format!("\"{}\"", many("a"))], Ok(()));
        check(usize::MAX, false, &[&many("[],")], Err(Excess::Memory));
        check(usize::MAX, false, &[&many("{\"a\":1},")], Err(Excess::Memory));
        check(usize::MAX, true, &[&format!("{}\n", many("{\"a\":1}\n"))], Ok(()));
    }

    /// The estimate holds for usual objects, and is close for unusual ones.
    #[test]
    fn memory_estimate_is_close_to_parsed_values() {
        let check = |text: &str, least: usize, most: usize| {
            let mut meter = JsonMeter::new(BodyLimits { bytes: usize::MAX, memory: usize::MAX }, false);
            meter.feed(text.as_bytes()).expect("small");
            let found = meter.memory() / text.len();
            assert!((least..=most).contains(&found), "{text}: {found}");
        };
        check(
            r#"{"metadata":{"name":"web","labels":{"app":"web"}},"data":{"x":"yyyyyyyyyyyyyyyyyyy"}}"#,
            10,
            30,
        );
        check(r#"{"f:metadata":{"f:annotations":{".":{},"f:tutti.dev/hash":{}},"f:labels":{}}}"#, 10, 30);
        check(r#"[{"a":1},{"a":1},{"a":1},{"a":1}]"#, 40, 80);
    }
}

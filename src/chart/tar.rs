//! Parses tar archives in memory.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TarEntryKind {
    File,
    Folder,
    /// A symbolic or hard link.
    Link,
    /// A device, a pipe, or unknown.
    Other,
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TarEntry<'a> {
    pub name: String,
    pub kind: TarEntryKind,
    pub content: &'a [u8],
}

const BLOCK: usize = 512;

/// Reads long names in GNU and POSIX form.
pub fn entries(mut bytes: &[u8]) -> Result<Vec<TarEntry<'_>>, &'static str> {
    let mut found = Vec::new();
    let mut long_name: Option<String> = None;
    while let Some((header, rest)) = bytes.split_at_checked(BLOCK) {
        if header.iter().all(|byte| *byte == 0) {
            return Ok(found);
        }
        if !checksum_fits(header) {
            return Err("a header is damaged");
        }
        let size = number(field(header, 124, 12)).ok_or("a size is not a number")?;
        let (content, after) = rest.split_at_checked(size).ok_or("it ends within a file")?;
        bytes = after.get(padding(size)..).unwrap_or_default();
        let kind = header.get(156).copied().unwrap_or_default();
        match kind {
            b'L' => long_name = Some(text(content)),
            b'x' => long_name = extended_path(content).or(long_name),
            b'g' => {}
            _ => {
                let name = long_name.take().unwrap_or_else(|| name(header));
                let kind = match kind {
                    b'0' | b'7' | 0 if name.ends_with('/') => TarEntryKind::Folder,
                    b'0' | b'7' | 0 => TarEntryKind::File,
                    b'1' | b'2' => TarEntryKind::Link,
                    b'5' => TarEntryKind::Folder,
                    _ => TarEntryKind::Other,
                };
                found.push(TarEntry { name, kind, content });
            }
        }
    }
    // Some writers leave out the two empty blocks at the end.
    if bytes.is_empty() { Ok(found) } else { Err("it ends within a header") }
}

fn padding(size: usize) -> usize {
    size.next_multiple_of(BLOCK) - size
}

fn field(header: &[u8], at: usize, length: usize) -> &[u8] {
    header.get(at..at + length).unwrap_or_default()
}

/// Up to the first zero byte.
fn text(bytes: &[u8]) -> String {
    let end = bytes.iter().position(|byte| *byte == 0).unwrap_or(bytes.len());
    String::from_utf8_lossy(bytes.get(..end).unwrap_or_default()).into_owned()
}

fn name(header: &[u8]) -> String {
    let name = text(field(header, 0, 100));
    let prefix =
        if field(header, 257, 6) == b"ustar\0" { text(field(header, 345, 155)) } else { String::new() };
    if prefix.is_empty() { name } else { format!("{prefix}/{name}") }
}

/// Octal digits, or base 256 when the first bit is set.
fn number(field: &[u8]) -> Option<usize> {
    match field.split_first() {
        Some((first, rest)) if first & 0x80 != 0 => {
            let start = usize::from(first & 0x7f);
            rest.iter().try_fold(start, |sum, byte| sum.checked_mul(256)?.checked_add(usize::from(*byte)))
        }
        _ => {
            let digits = text(field);
            let digits = digits.trim();
            if digits.is_empty() { Some(0) } else { usize::from_str_radix(digits, 8).ok() }
        }
    }
}

/// The sum of all bytes, with spaces in the place of the sum itself.
fn checksum_fits(header: &[u8]) -> bool {
    let sum = |(at, byte): (usize, &u8)| if (148..156).contains(&at) { 32 } else { usize::from(*byte) };
    let expected: usize = header.iter().enumerate().map(sum).sum();
    number(field(header, 148, 8)) == Some(expected)
}

/// The `path` of a POSIX extended header: records `length key=value\n`.
fn extended_path(content: &[u8]) -> Option<String> {
    let text = String::from_utf8_lossy(content);
    let record =
        |line: &str| line.split_once(' ').and_then(|(_, pair)| pair.strip_prefix("path=").map(str::to_owned));
    text.lines().filter_map(record).next_back()
}

//! Unpacks packaged charts (`.tgz`) in memory, within limits.

use std::io::Read as _;
use std::sync::Arc;

use flate2::read::MultiGzDecoder;

use super::tar::{self, TarEntryKind};
use super::{MIB, shown_size};
use crate::model::{Chart, ChartFailure, ChartFailureKind, Digest};

/// Bytes of a packed archive.
pub const LARGEST_ARCHIVE: usize = 20 * MIB;
/// Bytes of the unpacked archive, tar headers included.
const LARGEST_CONTENT: usize = 64 * MIB;
/// Bytes of one file, as in Helm.
pub const LARGEST_FILE: usize = 5 * MIB;
const MOST_FILES: usize = 10_000;
/// Levels of subchart archives within archives.
const DEEPEST_ARCHIVES: usize = 4;

/// By path within the chart.
type ArchiveFiles = Vec<(String, Arc<[u8]>)>;

/// `origin` is the path prefix of its files in locations.
pub fn read(archive: &[u8], origin: &str) -> Result<Chart, ChartFailure> {
    let mut left = LARGEST_CONTENT;
    let mut files = unpack(archive, &mut left, 0)?;
    files.sort();
    files.dedup_by(|one, other| one.0 == other.0);
    if !files.iter().any(|(name, _)| name == "Chart.yaml") {
        return Err(malformed("the archive has no Chart.yaml in its first folder"));
    }
    Ok(Chart { origin: origin.to_owned(), digest: Digest::of(archive), folder: false, files })
}

fn unpack(archive: &[u8], left: &mut usize, depth: usize) -> Result<ArchiveFiles, ChartFailure> {
    if archive.len() > LARGEST_ARCHIVE {
        return Err(limit(format!("the archive has more than {}", shown_size(LARGEST_ARCHIVE))));
    }
    if depth > DEEPEST_ARCHIVES {
        return Err(limit(format!("there are more than {DEEPEST_ARCHIVES} archives within each other")));
    }
    // Growing by doubling would need three times the memory; unwritten pages cost nothing.
    let mut bytes = Vec::with_capacity(*left + 1);
    MultiGzDecoder::new(archive)
        .take(*left as u64 + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| malformed(&format!("the archive is not gzip: {error}")))?;
    if bytes.len() > *left {
        return Err(limit(format!("the archive holds more than {}", shown_size(LARGEST_CONTENT))));
    }
    *left -= bytes.len();
    let entries = tar::entries(&bytes).map_err(|why| malformed(&format!("the archive is not tar: {why}")))?;
    if entries.len() > MOST_FILES {
        return Err(limit(format!("the archive has {} files, more than {MOST_FILES}", entries.len())));
    }
    let mut files = Vec::new();
    for entry in entries {
        match entry.kind {
            TarEntryKind::Folder => continue,
            TarEntryKind::File => {}
            TarEntryKind::Link => {
                return Err(malformed(&format!("the archive has a link, {:?}", entry.name)));
            }
            TarEntryKind::Other => {
                return Err(malformed(&format!(
                    "the archive has a file of an unknown kind, {:?}",
                    entry.name
                )));
            }
        }
        let name = path_in_chart(&entry.name)?;
        if entry.content.len() > LARGEST_FILE {
            return Err(limit(format!("{name} has more than {}", shown_size(LARGEST_FILE))));
        }
        if is_archive_of_subchart(&name) {
            // Unpacked only to check limits: the renderer unpacks it again.
            unpack(entry.content, left, depth + 1).map_err(|failure| ChartFailure {
                message: format!("{name}: {}", failure.message),
                ..failure
            })?;
        }
        files.push((name, entry.content.into()));
    }
    Ok(files)
}

/// Whether the renderer treats the file as a packaged subchart.
pub fn is_archive_of_subchart(name: &str) -> bool {
    let inner = name.rsplit("charts/").next().unwrap_or(name);
    name.contains("charts/") && !inner.contains('/') && inner.ends_with(".tgz")
}

/// The path without the chart's own folder. A path that leads elsewhere is refused.
fn path_in_chart(name: &str) -> Result<String, ChartFailure> {
    let refuse = |what: &str| malformed(&format!("the archive has {what}, {name:?}"));
    if name.contains('\\') || name.contains(':') || name.contains('\0') {
        return Err(refuse("a path of another system"));
    }
    if name.starts_with('/') {
        return Err(refuse("an absolute path"));
    }
    let parts: Vec<&str> = name.split('/').filter(|part| !part.is_empty() && *part != ".").collect();
    if parts.contains(&"..") {
        return Err(refuse("a path that leads out of it"));
    }
    match parts.split_first() {
        Some((_, inner)) if !inner.is_empty() => Ok(inner.join("/")),
        _ => Err(refuse("a file outside the folder of the chart")),
    }
}

fn malformed(message: &str) -> ChartFailure {
    ChartFailure::new(ChartFailureKind::Malformed, message)
}

fn limit(message: String) -> ChartFailure {
    ChartFailure::new(ChartFailureKind::Limit, message)
}

#[cfg(test)]
pub mod tests {
    use std::io::Write as _;

    use flate2::Compression;
    use flate2::write::GzEncoder;

    use super::*;

    /// A tar entry as `tar` writes it.
    pub fn entry(name: &str, kind: u8, content: &[u8]) -> Vec<u8> {
        let mut header = vec![0_u8; 512];
        header[..name.len()].copy_from_slice(name.as_bytes());
        header[100..108].copy_from_slice(b"0000644\0");
        header[124..136].copy_from_slice(format!("{:011o}\0", content.len()).as_bytes());
        header[148..156].copy_from_slice(b"        ");
        header[156] = kind;
        header[257..265].copy_from_slice(b"ustar\x0000");
        let sum: usize = header.iter().map(|byte| usize::from(*byte)).sum();
        header[148..156].copy_from_slice(format!("{sum:06o}\0 ").as_bytes());
        header.extend_from_slice(content);
        header.resize(header.len().next_multiple_of(512), 0);
        header
    }

    pub fn pack(entries: &[Vec<u8>]) -> Vec<u8> {
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&entries.concat()).unwrap();
        encoder.write_all(&[0; 1024]).unwrap();
        encoder.finish().unwrap()
    }

    fn check(entries: &[Vec<u8>], expected: Result<&[&str], &str>) {
        let read = read(&pack(entries), "x/");
        let names =
            read.as_ref().map(|chart| chart.files.iter().map(|(name, _)| name.as_str()).collect::<Vec<_>>());
        let names = names.map_err(|failure| failure.message.clone());
        assert_eq!(names, expected.map(<[&str]>::to_vec).map_err(str::to_owned));
    }

    #[test]
    fn archive_paths_lose_chart_folder() {
        let chart = entry("web/Chart.yaml", b'0', b"name: web");
        check(
            &[entry("web/", b'5', b""), chart.clone(), entry("web/templates/a.yaml", b'0', b"a")],
            Ok(&["Chart.yaml", "templates/a.yaml"]),
        );
        let long = format!("web/templates/{}.yaml", "a".repeat(120));
        check(
            &[chart, entry("././@LongLink", b'L', long.as_bytes()), entry("web/cut", b'0', b"a")],
            Ok(&["Chart.yaml", &long[4..]]),
        );
    }

    #[test]
    fn paths_out_of_archive_are_refused() {
        let chart = || entry("web/Chart.yaml", b'0', b"name: web");
        for (name, kind, expected) in [
            ("/etc/passwd", b'0', "the archive has an absolute path, \"/etc/passwd\""),
            ("web/../../x", b'0', "the archive has a path that leads out of it, \"web/../../x\""),
            ("web/c:/x", b'0', "the archive has a path of another system, \"web/c:/x\""),
            ("x", b'0', "the archive has a file outside the folder of the chart, \"x\""),
            ("web/x", b'2', "the archive has a link, \"web/x\""),
            ("web/x", b'1', "the archive has a link, \"web/x\""),
            ("web/x", b'3', "the archive has a file of an unknown kind, \"web/x\""),
        ] {
            check(&[chart(), entry(name, kind, b"")], Err(expected));
        }
        check(
            &[entry("web/values.yaml", b'0', b"")],
            Err("the archive has no Chart.yaml in its first folder"),
        );
        let inner = pack(&[entry("db/../../x", b'0', b"")]);
        check(
            &[chart(), entry("web/charts/db-1.tgz", b'0', &inner)],
            Err("charts/db-1.tgz: the archive has a path that leads out of it, \"db/../../x\""),
        );
    }

    #[test]
    fn bombs_are_refused() {
        let chart = || entry("web/Chart.yaml", b'0', b"name: web");
        let large = vec![0; LARGEST_FILE + 1];
        check(&[chart(), entry("web/values.yaml", b'0', &large)], Err("values.yaml has more than 5 MiB"));
        let file = entry("web/x", b'0', &vec![0; LARGEST_FILE]);
        let many: Vec<_> = std::iter::repeat_n(file, 13).collect();
        check(&[vec![chart()], many].concat(), Err("the archive holds more than 64 MiB"));
        let entries: Vec<_> = std::iter::repeat_n(entry("web/x", b'0', b""), MOST_FILES + 1).collect();
        check(&entries, Err("the archive has 10001 files, more than 10000"));
    }

    #[test]
    fn damaged_archive_is_refused() {
        let message = |bytes: &[u8]| read(bytes, "x/").unwrap_err().message;
        assert!(message(b"noise").starts_with("the archive is not gzip"));
        let mut encoder = GzEncoder::new(Vec::new(), Compression::fast());
        encoder.write_all(&[7; 2000]).unwrap();
        assert_eq!(message(&encoder.finish().unwrap()), "the archive is not tar: a header is damaged");
    }
}

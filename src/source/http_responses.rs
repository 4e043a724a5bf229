//! Parses the responses of a Git server over http, within limits of bytes and time.

use std::collections::HashMap;
use std::io::Write as _;
use std::time::Duration;

use git2::{OdbPackwriter, Oid};

use super::branch_names::BRANCHES;
use super::remote_references::RemoteReference;

/// Limits of one response: bytes, and the time from the request to the last byte.
#[derive(Clone, Copy, Debug)]
pub(super) struct ResponseLimits {
    pub bytes: u64,
    pub time: Duration,
}

/// Of a list of references.
pub(super) const LIST_LIMITS: ResponseLimits =
    ResponseLimits { bytes: 64 * 1024 * 1024, time: Duration::from_secs(20) };
/// Of what is fetched.
pub(super) const PACK_LIMITS: ResponseLimits =
    ResponseLimits { bytes: 4 * 1024 * 1024 * 1024, time: Duration::from_mins(15) };
/// References that are kept of a list.
pub(super) const MOST_HEADS: usize = 500_000;
/// Objects of one pack: libgit2 keeps about 200 bytes for each.
pub(super) const MOST_OBJECTS: u32 = 2_000_000;
/// `PACK_LIMITS`, the version, the number of objects.
const PACK_HEADER: usize = 12;

/// The first response of a server: its capabilities, and in version 0 its references.
#[derive(Debug, Default)]
pub(super) struct ServerAdvertisement {
    is_version_2: bool,
    /// The two required features.
    features: [bool; 2],
    is_sha256: bool,
    /// Of version 0: what stands behind the first reference.
    options: Option<String>,
    heads: Vec<RemoteReference>,
    /// A reference that is kept beside the branches.
    requested_reference: Option<String>,
}

impl ServerAdvertisement {
    pub(super) fn for_reference(reference: Option<&str>) -> Self {
        Self { requested_reference: reference.map(str::to_owned), ..Self::default() }
    }

    pub(super) fn read_line(&mut self, content: &[u8]) -> Result<(), &'static str> {
        let text = std::str::from_utf8(content).map_err(|_| "its list of references is not text")?.trim_end();
        if text.starts_with("# service=") || text == "version 1" || text.is_empty() {
            return Ok(());
        }
        if text == "version 2" {
            self.is_version_2 = true;
            return Ok(());
        }
        if self.is_version_2 {
            self.features[0] |= text.starts_with("fetch");
            self.features[1] |= text.starts_with("ls-refs");
            self.is_sha256 |= text.starts_with("object-format=sha256");
            return Ok(());
        }
        let (reference, options) =
            text.split_once('\0').map_or((text, None), |(it, options)| (it, Some(options)));
        if self.options.is_none() {
            self.options = Some(options.ok_or("it does not support the Git protocol over http")?.to_owned());
        }
        let head = parse_reference(reference.as_bytes()).ok_or("it has an invalid reference")?;
        let is_wanted = self.requested_reference.as_ref() == Some(&head.name);
        if head.name != "HEAD" && !head.name.starts_with(BRANCHES) && !is_wanted {
            return Ok(());
        }
        if self.heads.len() == MOST_HEADS {
            return Err("it has too many branches");
        }
        self.heads.push(head);
        Ok(())
    }

    pub(super) fn speaks_version_2(&self) -> bool {
        self.is_version_2 && self.features == [true; 2] && !self.is_sha256
    }

    /// By version 0.
    pub(super) fn heads(mut self) -> Result<Vec<RemoteReference>, &'static str> {
        let options = self.options.as_deref().unwrap_or_default();
        let has = |wanted: &str| options.split(' ').any(|option| option == wanted);
        if self.is_sha256 || has("object-format=sha256") {
            return Err("its object format is SHA-256");
        }
        if self.is_version_2 || self.options.is_some() && !has("side-band-64k") {
            return Err("it lacks a part of the Git protocol that tutti needs");
        }
        let target = options.split(' ').find_map(|option| option.strip_prefix("symref=HEAD:"));
        let target = target.map(str::to_owned);
        if let Some(head) = self.heads.iter_mut().find(|head| head.name == "HEAD") {
            head.target = target;
        }
        Ok(self.heads)
    }
}

/// `<id> <name>`, and perhaps `symref-target:<name>`.
pub(super) fn parse_reference(content: &[u8]) -> Option<RemoteReference> {
    let text = std::str::from_utf8(content).ok()?.trim_end();
    let mut words = text.split(' ');
    let tip = Oid::from_str(words.next()?).ok()?;
    let name = words.next()?.to_owned();
    let attributes: HashMap<&str, &str> = words.filter_map(|word| word.split_once(':')).collect();
    Some(RemoteReference {
        name,
        tip,
        target: attributes.get("symref-target").map(|target| (*target).to_owned()),
    })
}

/// Receives a pack and writes it into the copy.
pub(super) struct PackReceiver<'a> {
    writer: OdbPackwriter<'a>,
    is_version_0: bool,
    /// By version 2 other sections may come first.
    has_begun: bool,
    header: Vec<u8>,
    /// The error of writing to the copy.
    pub store_error: Option<String>,
}

impl<'a> PackReceiver<'a> {
    pub(super) fn new(writer: OdbPackwriter<'a>, is_old: bool) -> Self {
        Self { writer, is_version_0: is_old, has_begun: is_old, header: Vec::new(), store_error: None }
    }

    pub(super) fn receive(&mut self, content: &[u8]) -> Result<(), &'static str> {
        match content.split_first() {
            _ if !self.has_begun => {
                self.has_begun = content == b"packfile\n";
                Ok(())
            }
            Some((1, bytes)) => self.write(bytes),
            Some((2, _)) => Ok(()),
            _ if self.is_version_0 && (content.starts_with(b"NAK") || content.starts_with(b"ACK ")) => Ok(()),
            _ => Err("the pack broke off"),
        }
    }

    fn write(&mut self, bytes: &[u8]) -> Result<(), &'static str> {
        if self.header.len() < PACK_HEADER {
            let missing = PACK_HEADER - self.header.len();
            self.header.extend(&bytes[..missing.min(bytes.len())]);
            let count = self.header.get(8..PACK_HEADER).and_then(|count| count.try_into().ok());
            if count.is_some_and(|count| u32::from_be_bytes(count) > MOST_OBJECTS) {
                return Err("it sends more than 2000000 objects");
            }
        }
        self.writer.write_all(bytes).map_err(|error| {
            self.store_error = Some(error.to_string());
            "the pack cannot be kept"
        })
    }

    pub(super) fn commit(mut self) -> Result<(), git2::Error> {
        self.writer.commit().map(drop)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const ID: &str = "1d50357000000000000000000000000000000001";

    fn read(lines: &[&str]) -> Result<ServerAdvertisement, &'static str> {
        let mut advertised = ServerAdvertisement::default();
        for line in lines {
            advertised.read_line(line.as_bytes())?;
        }
        Ok(advertised)
    }

    #[test]
    fn old_servers_list_their_branches() {
        let first = format!("{ID} HEAD\0multi_ack side-band-64k symref=HEAD:refs/heads/main agent=x\n");
        let lines = [
            "# service=git-upload-pack\n",
            &first,
            &format!("{ID} refs/heads/main\n"),
            &format!("{ID} refs/tags/v1\n"),
        ];
        let advertised = read(&lines).expect("read");
        assert!(!advertised.speaks_version_2());
        let heads = advertised.heads().expect("heads");
        let names: Vec<_> = heads.iter().map(|head| (head.name.as_str(), head.target.as_deref())).collect();
        assert_eq!(names, [("HEAD", Some("refs/heads/main")), ("refs/heads/main", None)]);
        // One without a commit.
        let empty = read(&[&format!("{} capabilities^{{}}\0side-band-64k", "0".repeat(40))]).expect("read");
        assert_eq!(empty.heads().expect("heads"), []);
    }

    #[test]
    fn servers_that_cannot_be_used_are_refused() {
        let check = |lines: &[&str], expected: &str| {
            let found = read(lines).and_then(ServerAdvertisement::heads).expect_err("refused");
            assert!(found.contains(expected), "{lines:?}: {found}");
        };
        check(&["<html>"], "does not support the Git protocol");
        check(&[&format!("{ID} HEAD\0multi_ack")], "lacks");
        check(&["version 2", "ls-refs"], "lacks");
        check(&["version 2", "ls-refs", "fetch", "object-format=sha256"], "SHA-256");
        check(&[&format!("{ID} HEAD\0side-band-64k object-format=sha256")], "SHA-256");
        check(&[&format!("{ID} HEAD\0side-band-64k"), "nonsense"], "invalid reference");
    }
}

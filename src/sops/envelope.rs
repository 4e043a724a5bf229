//! Parses the `sops` map of a file: recipients, the rule for encrypted values, the MAC.

use regex::{Regex, RegexBuilder};
use secrecy::{ExposeSecret as _, SecretSlice};

use super::codes;
use crate::manifest::yaml::{YamlEntry, YamlNode, YamlNodeKind};
use crate::model::{DecryptionKeys, Diagnostic, DiagnosticScope, Location};

/// Bytes of a compiled regular expression.
const LARGEST_REGEX: usize = 1 << 20;

#[derive(Debug)]
pub struct Envelope {
    recipients: Vec<Recipient>,
    pub mac: String,
    pub mac_location: Location,
    pub last_modified: String,
    pub rule: EncryptionRule,
    /// The MAC covers encrypted values alone.
    pub mac_only_encrypted: bool,
    location: Location,
}

#[derive(Debug)]
struct Recipient {
    name: String,
    wrapped: String,
}

/// Which values are encrypted, by the keys that lead to them.
#[derive(Debug)]
pub struct EncryptionRule {
    pattern: KeyPattern,
    /// Matching keys are encrypted, or all others are.
    encrypts_matching: bool,
}

#[derive(Debug)]
enum KeyPattern {
    Suffix(String),
    Regex(Box<Regex>),
}

impl EncryptionRule {
    pub fn matches_key(&self, key: &str) -> bool {
        match &self.pattern {
            KeyPattern::Suffix(suffix) => key.ends_with(suffix.as_str()),
            KeyPattern::Regex(regex) => regex.is_match(key),
        }
    }

    /// `fitted`: a key on the path matches.
    pub fn encrypts(&self, fitted: bool) -> bool {
        fitted == self.encrypts_matching
    }
}

/// The default rule of `sops`.
const DEFAULT_SUFFIX: &str = "_unencrypted";
const RULES: [&str; 6] = [
    "unencrypted_suffix",
    "encrypted_suffix",
    "unencrypted_regex",
    "encrypted_regex",
    "unencrypted_comment_regex",
    "encrypted_comment_regex",
];
/// Other kinds of keys that `sops` supports.
const UNSUPPORTED_KEYS: [&str; 7] = ["pgp", "kms", "gcp_kms", "azure_kv", "hc_vault", "hckms", "key_groups"];

/// Reads the map, or returns all its mistakes.
pub fn read(file: &str, entry: &YamlEntry) -> Result<Envelope, Vec<Diagnostic>> {
    let mut reader = EnvelopeReader { file, mistakes: Vec::new() };
    let location = entry.location(file);
    let root = &entry.value;
    if root.as_map().is_none() {
        reader.wrong("`sops` is not a map", location.clone());
        return Err(reader.mistakes);
    }
    let mac = reader.text(root, "mac", &location);
    let last_modified = reader.text(root, "lastmodified", &location);
    let rule = reader.rule(root);
    let recipients = reader.recipients(root, &location);
    let mac_only_encrypted = match root.get("mac_only_encrypted").map(|node| &node.kind) {
        Some(YamlNodeKind::Bool(value, _)) => *value,
        Some(YamlNodeKind::String(text)) => text == "true",
        _ => false,
    };
    match (mac, last_modified, rule) {
        (Some(mac), Some(last_modified), Some(rule)) if reader.mistakes.is_empty() => Ok(Envelope {
            recipients,
            mac_location: root.get("mac").map_or_else(|| location.clone(), |node| node.location(file)),
            mac,
            last_modified,
            rule,
            mac_only_encrypted,
            location,
        }),
        _ => Err(reader.mistakes),
    }
}

struct EnvelopeReader<'f> {
    file: &'f str,
    mistakes: Vec<Diagnostic>,
}

impl EnvelopeReader<'_> {
    fn wrong(&mut self, message: &str, location: Location) {
        let mistake =
            Diagnostic::error(codes::ENVELOPE, message, DiagnosticScope::File(self.file.to_owned()));
        self.mistakes.push(mistake.at(location).help("`sops` writes this map: encrypt the file again"));
    }

    fn refuse(&mut self, message: String, location: Location, help: &str) {
        let mistake =
            Diagnostic::error(codes::NOT_SUPPORTED, message, DiagnosticScope::File(self.file.to_owned()));
        self.mistakes.push(mistake.at(location).help(help));
    }

    fn text(&mut self, root: &YamlNode, key: &str, location: &Location) -> Option<String> {
        let node = root.get(key);
        let text = node.and_then(YamlNode::as_str).filter(|text| !text.is_empty());
        if text.is_none() {
            let place = node.map_or_else(|| location.clone(), |node| node.location(self.file));
            self.wrong(&format!("`sops.{key}` is missing or not a text"), place);
        }
        text.map(str::to_owned)
    }

    fn rule(&mut self, root: &YamlNode) -> Option<EncryptionRule> {
        let entries = root.as_map().into_iter().flatten();
        let is_set = |entry: &&YamlEntry| !entry.value.is_null() && entry.value.as_str() != Some("");
        let set: Vec<&YamlEntry> =
            entries.filter(|entry| RULES.contains(&entry.key.as_str())).filter(is_set).collect();
        let entry = match set.as_slice() {
            [] => {
                let pattern = KeyPattern::Suffix(DEFAULT_SUFFIX.to_owned());
                return Some(EncryptionRule { pattern, encrypts_matching: false });
            }
            [entry] => *entry,
            [first, second, ..] => {
                let message = format!("`{}` and `{}`: a file has one rule", first.key, second.key);
                self.wrong(&message, second.location(self.file));
                return None;
            }
        };
        let location = entry.value.location(self.file);
        let Some(text) = entry.value.as_str() else {
            self.wrong(&format!("`sops.{}` is not a text", entry.key), location);
            return None;
        };
        let pattern = if entry.key.ends_with("comment_regex") {
            let message = format!("the rule `{}` is not supported", entry.key);
            self.refuse(message, location, "choose by key: `encrypted_regex`, `encrypted_suffix`");
            return None;
        } else if entry.key.ends_with("_suffix") {
            KeyPattern::Suffix(text.to_owned())
        } else {
            match RegexBuilder::new(text).size_limit(LARGEST_REGEX).build() {
                Ok(regex) => KeyPattern::Regex(Box::new(regex)),
                Err(_) => {
                    self.wrong(&format!("`sops.{}` is not a regular expression", entry.key), location);
                    return None;
                }
            }
        };
        Some(EncryptionRule { pattern, encrypts_matching: entry.key.starts_with("encrypted") })
    }

    fn recipients(&mut self, root: &YamlNode, location: &Location) -> Vec<Recipient> {
        let mut found = Vec::new();
        for item in root.get("age").and_then(YamlNode::as_seq).into_iter().flatten() {
            let text = |key: &str| item.get(key).and_then(YamlNode::as_str);
            match text("enc") {
                Some(wrapped) => found.push(Recipient {
                    name: text("recipient").unwrap_or("a recipient without a name").to_owned(),
                    wrapped: wrapped.to_owned(),
                }),
                None => self.wrong("a recipient of `sops.age` has no `enc`", item.location(self.file)),
            }
        }
        let is_there = |key: &&&str| match root.get(key).map(|node| &node.kind) {
            None | Some(YamlNodeKind::Null) => false,
            Some(YamlNodeKind::Seq(items)) => !items.is_empty(),
            Some(_) => true,
        };
        let others: Vec<&str> = UNSUPPORTED_KEYS.iter().filter(is_there).copied().collect();
        if found.is_empty() && self.mistakes.is_empty() {
            match others.first().and_then(|key| root.entry(key)) {
                Some(entry) => {
                    let message =
                        format!("encrypted with keys that are not supported: {}", others.join(", "));
                    let help = "add an age recipient: `sops rotate -i --add-age age1… FILE`";
                    self.refuse(message, entry.location(self.file), help);
                }
                None => self.wrong("`sops` names no recipient", location.clone()),
            }
        }
        found
    }
}

/// The key of every value of a file.
pub type DataKey = SecretSlice<u8>;

impl Envelope {
    /// Decrypts the data key with any matching identity.
    pub fn data_key(&self, file: &str, keys: &DecryptionKeys) -> Result<DataKey, Box<Diagnostic>> {
        let error = |code, message: String| {
            Diagnostic::error(code, message, DiagnosticScope::File(file.to_owned())).at(self.location.clone())
        };
        let names: Vec<&str> = self.recipients.iter().map(|recipient| recipient.name.as_str()).collect();
        let names = names.join(", ");
        if keys.is_empty() {
            let message = format!("this file is encrypted for {names}, and no age identity was given");
            let help = "give --age-identity-file FILE, or SOPS_AGE_KEY_FILE as for sops";
            return Err(error(codes::NO_IDENTITY, message).help(help).into());
        }
        let identities = keys.identities().iter().filter_map(|key| key.expose_secret().parse().ok());
        for identity in identities {
            let identity: age::x25519::Identity = identity;
            for recipient in &self.recipients {
                if let Ok(key) = age::decrypt(&identity, recipient.wrapped.as_bytes()) {
                    return Ok(key.into());
                }
            }
        }
        let message =
            format!("this file is encrypted for {names}, and no identity that was given is one of them");
        let help = "give the identity of one of them, or add yours: `sops rotate -i --add-age age1… FILE`";
        Err(error(codes::WRONG_IDENTITY, message).help(help).into())
    }
}

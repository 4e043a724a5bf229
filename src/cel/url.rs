//! Parses URLs like the API server: RFC 3986, normalizing only the scheme.

use std::collections::BTreeMap;

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Url {
    pub scheme: String,
    user: Option<String>,
    /// The host with its port.
    pub host: String,
    path: String,
    query: Option<String>,
    fragment: Option<String>,
}

impl Url {
    /// Accepts absolute URLs and paths that begin with `/`.
    pub fn parse(text: &str) -> Option<Self> {
        if text.is_empty() || text.chars().any(|it| it.is_ascii_control()) {
            return None;
        }
        let (before, fragment) = split_at_first(text, '#');
        let (scheme, rest) = scheme_of(before)?;
        let (rest, query) = split_at_first(rest, '?');
        let mut url = Self {
            scheme: scheme.to_ascii_lowercase(),
            user: None,
            host: String::new(),
            path: String::new(),
            query: query.map(str::to_owned),
            fragment: fragment.map(str::to_owned),
        };
        if fragment.is_some_and(|it| unescaped(it, false).is_none()) {
            return None;
        }
        if !rest.starts_with('/') {
            // `mailto:a@b` has neither host nor path.
            return (!scheme.is_empty()).then_some(url);
        }
        let mut path = rest;
        if let Some(after) = rest.strip_prefix("//").filter(|it| !scheme.is_empty() || !it.starts_with('/')) {
            let end = after.find('/').unwrap_or(after.len());
            let (authority, rest) = after.split_at(end);
            let (user, host) = match authority.rsplit_once('@') {
                Some((user, host)) => (Some(user), host),
                None => (None, authority),
            };
            if !is_host(host) || user.is_some_and(|it| !is_user(it)) {
                return None;
            }
            (url.user, url.host, path) = (user.map(str::to_owned), host.to_owned(), rest);
        }
        unescaped(path, false)?;
        url.path = path.to_owned();
        Some(url)
    }

    /// In bytes.
    pub fn len(&self) -> usize {
        let optional = [&self.user, &self.query, &self.fragment].into_iter().flatten().map(String::len);
        self.scheme.len() + self.host.len() + self.path.len() + optional.sum::<usize>()
    }

    pub fn hostname(&self) -> &str {
        let host = match self.host.rsplit_once(':') {
            Some((host, port)) if !port.contains(']') => host,
            _ => &self.host,
        };
        host.strip_prefix('[').and_then(|it| it.strip_suffix(']')).unwrap_or(host)
    }

    pub fn port(&self) -> &str {
        self.host
            .rsplit_once(':')
            .map(|(_, port)| port)
            .filter(|port| !port.contains(']'))
            .unwrap_or_default()
    }

    pub fn escaped_path(&self) -> String {
        let is_plain = |letter: char| is_of_path(letter) || "!'()*[]%".contains(letter);
        if self.path.chars().all(is_plain) {
            return self.path.clone();
        }
        let mut path = String::new();
        for byte in unescaped(&self.path, false).unwrap_or_default() {
            match char::from(byte) {
                letter if byte.is_ascii() && is_of_path(letter) => path.push(letter),
                _ => path.push_str(&format!("%{byte:02X}")),
            }
        }
        path
    }

    /// Skips invalid parameters.
    pub fn query(&self) -> BTreeMap<String, Vec<String>> {
        let mut found: BTreeMap<String, Vec<String>> = BTreeMap::new();
        let parts = self.query.iter().flat_map(|query| query.split('&'));
        for part in parts.filter(|it| !it.is_empty() && !it.contains(';')) {
            let (key, value) = part.split_once('=').unwrap_or((part, ""));
            let text = |it: &str| Some(String::from_utf8_lossy(&unescaped(it, true)?).into_owned());
            if let (Some(key), Some(value)) = (text(key), text(value)) {
                found.entry(key).or_default().push(value);
            }
        }
        found
    }
}

fn split_at_first(text: &str, at: char) -> (&str, Option<&str>) {
    text.split_once(at).map_or((text, None), |(before, after)| (before, Some(after)))
}

/// Empty without a scheme. A text that begins with a colon is no URL.
fn scheme_of(text: &str) -> Option<(&str, &str)> {
    for (at, letter) in text.char_indices() {
        match letter {
            'a'..='z' | 'A'..='Z' => {}
            '0'..='9' | '+' | '-' | '.' if at > 0 => {}
            ':' => return if at == 0 { None } else { text.split_once(':') },
            _ => break,
        }
    }
    Some(("", text))
}

fn is_of_path(letter: char) -> bool {
    letter.is_ascii_alphanumeric() || "-_.~$&+,/:;=@".contains(letter)
}

fn is_user(text: &str) -> bool {
    text.chars().all(|it| it.is_ascii_alphanumeric() || "-._:~!$&'()*+,;=%@".contains(it))
        && unescaped(text, false).is_some()
}

fn is_host(text: &str) -> bool {
    let is_port = |port: &str| {
        port.is_empty() || port.strip_prefix(':').is_some_and(|it| it.bytes().all(|it| it.is_ascii_digit()))
    };
    let has_port = match text.strip_prefix('[') {
        Some(inside) => inside.rsplit_once(']').is_some_and(|(_, port)| is_port(port)),
        None => text.rfind(':').is_none_or(|at| is_port(text.get(at..).unwrap_or_default())),
    };
    let is_letter =
        |it: char| !it.is_ascii() || it.is_ascii_alphanumeric() || "-_.~!$&'()*+,;=:[]<>\"%".contains(it);
    has_port && text.chars().all(is_letter) && unescaped(text, false).is_some()
}

/// `None`: an invalid `%` escape.
fn unescaped(text: &str, is_query: bool) -> Option<Vec<u8>> {
    let mut found = Vec::with_capacity(text.len());
    let mut bytes = text.bytes();
    while let Some(byte) = bytes.next() {
        match byte {
            b'%' => {
                let mut digit = || char::from(bytes.next()?).to_digit(16);
                let (high, low) = (digit()?, digit()?);
                found.push(u8::try_from(16 * high + low).ok()?);
            }
            b'+' if is_query => found.push(b' '),
            byte => found.push(byte),
        }
    }
    Some(found)
}

//! Addresses of other hosts: their redaction for display, and lists of named hosts.

use std::collections::BTreeSet;

// An address is a value; nothing is connected here.
use core::net::IpAddr;

/// Hosts by name, as `HOST` (with any port) or `HOST:PORT`, in small letters.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Hosts(BTreeSet<String>);

impl Hosts {
    pub fn new<'a>(names: impl IntoIterator<Item = &'a str>) -> Self {
        Self(names.into_iter().map(|name| name.trim().to_ascii_lowercase()).collect())
    }

    /// `host` in small letters.
    pub fn has(&self, host: &str, port: Option<u16>) -> bool {
        self.0.contains(host) || port.is_some_and(|port| self.0.contains(&format!("{host}:{port}")))
    }

    /// With one port at least.
    pub fn has_any_port(&self, host: &str) -> bool {
        let is_it = |name: &String| {
            name.strip_prefix(host).is_some_and(|rest| rest.is_empty() || rest.starts_with(':'))
        };
        self.0.iter().any(is_it)
    }
}

/// Whether the host of an address is this machine: an address of loopback, or the name that every system gives it.
pub fn is_loopback(host: &str) -> bool {
    host == "localhost" || parse_ip(host).is_some_and(|address| address.is_loopback())
}

/// The IP address of a host that is not a name.
pub fn parse_ip(host: &str) -> Option<IpAddr> {
    host.trim_start_matches('[').trim_end_matches(']').parse().ok()
}

/// An address without possible credentials: user and password, query and fragment. A bare user name of ssh is part of the address. A text
/// without a scheme stays as it is.
pub fn redacted_address(url: &str) -> String {
    let Some((scheme, after)) = url.split_once(":/") else { return url.to_owned() };
    let rest = after.trim_start_matches('/');
    let slashes = &url[scheme.len() + 1..url.len() - rest.len()];
    // A path may look like that too. With user and password it is an address with a slip of the finger.
    if slashes != "//" && !rest.contains('@') {
        return url.to_owned();
    }
    let (main, hidden) = match rest.find(['?', '#']) {
        Some(at) => (&rest[..at], "?***"),
        None => (rest, ""),
    };
    let (authority, path) = main.split_at(main.find('/').unwrap_or(main.len()));
    let (user, host) =
        authority.rsplit_once('@').map_or((None, authority), |(user, host)| (Some(user), host));
    let after_name = host.rfind(']').unwrap_or(0);
    let port = host[after_name..].split_once(':').map_or("", |(_, port)| port);
    if !port.bytes().all(|byte| byte.is_ascii_digit()) {
        // A password with a `/` or `?` in it, most likely.
        return format!("{scheme}:{slashes}***");
    }
    let user = match user.map(|user| user.split_once(':').map_or(user, |(name, _)| name)) {
        Some(name) if scheme.contains("ssh") => format!("{name}@"),
        _ => String::new(),
    };
    format!("{scheme}:{slashes}{user}{host}{path}{hidden}")
}

/// A message without possible credentials in the addresses that it quotes.
pub fn without_credentials(message: &str) -> String {
    let is_end = |letter: char| letter.is_whitespace() || matches!(letter, '`' | '"' | '\'' | '<' | '>');
    let words = message.split_inclusive(is_end);
    let shown = |word: &str| {
        let address = word.trim_end_matches(|it| is_end(it) || matches!(it, ':' | ',' | ';' | '.' | ')'));
        match address.contains('@') {
            true => redacted_address(address) + &word[address.len()..],
            false => word.to_owned(),
        }
    };
    words.map(shown).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_are_shown_without_credentials() {
        let check = |url: &str, expected: &str| assert_eq!(redacted_address(url), expected, "{url}");
        check("https://li:s3cr3t@git.example.com/a/b.git", "https://git.example.com/a/b.git");
        check("https://token@git.example.com/a/b.git", "https://git.example.com/a/b.git");
        check("https://li:p@ss@git.example.com/a@b.git", "https://git.example.com/a@b.git");
        check("https://git.example.com:3000/a@b.git", "https://git.example.com:3000/a@b.git");
        check("https://[::1]:3000/a", "https://[::1]:3000/a");
        check("https://[::1]/a", "https://[::1]/a");
        check("https://li:p/ss@git.example.com/a", "https://***");
        check("https://li:p?ss@git.example.com/a", "https://***");
        check("https://git.example.com/a?access_token=s3cr3t&b=1", "https://git.example.com/a?***");
        check("https://git.example.com?token=s3cr3t", "https://git.example.com?***");
        check("https://git.example.com/a#s3cr3t", "https://git.example.com/a?***");
        check("ssh://git@git.example.com:22/a.git", "ssh://git@git.example.com:22/a.git");
        check("ssh://git:s3cr3t@git.example.com/a.git", "ssh://git@git.example.com/a.git");
        check("git@git.example.com:a/b.git", "git@git.example.com:a/b.git");
        check("../repo", "../repo");
        check("https:/li:s3cr3t@git.example.com/a.git", "https:/git.example.com/a.git");
        check("https:///li:s3cr3t@git.example.com/a.git", "https:///git.example.com/a.git");
        check("/srv/https:/li:s3cr3t@git.example.com", "/srv/https:/git.example.com");
        check("file:///srv/a@b", "file:///srv/a@b");
        check("/srv/odd:/a:b", "/srv/odd:/a:b");
    }

    #[test]
    fn addresses_in_messages_are_shown_without_credentials() {
        let check =
            |message: &str, expected: &str| assert_eq!(without_credentials(message), expected, "{message}");
        check("failed to read https://li:s3cr3t@h: no such file", "failed to read https://h: no such file");
        check("no app `https:/li:s3cr3t@h/a?b` here\n", "no app `https:/h/a?***` here\n");
        check(
            "see https://example.com/a#b, and me@example.com",
            "see https://example.com/a#b, and me@example.com",
        );
        check("no image nginx:1@sha256:0123", "no image nginx:1@sha256:0123");
    }

    #[test]
    fn hosts_are_named_with_and_without_a_port() {
        let hosts = Hosts::new(["A.example.com", "b.example.com:3000", " c "]);
        let check = |host: &str, port: u16, expected: bool| {
            assert_eq!(hosts.has(host, Some(port)), expected, "{host}:{port}");
        };
        check("a.example.com", 443, true);
        check("b.example.com", 3000, true);
        check("b.example.com", 443, false);
        check("example.com", 443, false);
        check("c", 80, true);
        assert!(hosts.has_any_port("b.example.com") && !hosts.has_any_port("b.example"));
    }

    #[test]
    fn loopback_differs_from_similar_names() {
        for host in ["127.0.0.1", "127.9.9.9", "::1", "[::1]", "localhost"] {
            assert!(is_loopback(host), "{host}");
        }
        for host in
            ["localhost.evil.com", "127.0.0.1.evil.com", "10.0.0.1", "0.0.0.0", "::", "[::ffff:10.0.0.1]"]
        {
            assert!(!is_loopback(host), "{host}");
        }
    }
}

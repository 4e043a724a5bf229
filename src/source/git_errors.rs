//! Turns libgit2's errors into [`Error`]. libgit2 distinguishes many of them only by their text, so the search texts are those of its
//! transports (`transports/{http,ssh_libssh2}.c`, `streams/*.c`).

use git2::{ErrorClass, ErrorCode};

use super::Error;
use crate::model::{one_line, short_line, shortened};

/// The longest message, in characters.
const LONGEST_MESSAGE: usize = 2048;

/// A foreign text, cleaned for display.
pub(super) fn clean_line(text: &str) -> String {
    short_line(text, LONGEST_MESSAGE)
}

/// What failed while talking to a remote.
pub(super) fn remote_error(url: &str, scrub: &[String], error: &git2::Error) -> Error {
    let message = scrubbed(error.message(), scrub);
    let url = url.to_owned();
    let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
    if error.code() == ErrorCode::Certificate
        || error.class() == ErrorClass::Ssl
        || says(&["certificate", "SSL error"])
    {
        return Error::Certificate { url, message };
    }
    if says(&["resolve address"]) {
        return Error::Resolve { url, message };
    }
    if says(&["failed to resolve path", "could not find repository"]) {
        return Error::NotARepository { url };
    }
    if error.code() == ErrorCode::Auth
        || says(&["authentica", "status code: 401", "status code: 403", "Username/PublicKey", "credentials"])
    {
        // libgit2's text for a second request for credentials.
        let refused = says(&["that we do not support"]);
        let message = if refused { "the server refused the credentials".to_owned() } else { message };
        return Error::Authentication { url, message };
    }
    if says(&["status code: 404", "remote not found", "epository not found", "does not appear to be a git"]) {
        return Error::NoSuchRepository { url, message };
    }
    if error.class() == ErrorClass::Net || says(&["connect", "timed out", "unreachable"]) {
        return Error::Unreachable { url, message };
    }
    Error::Remote { url, message }
}

/// What failed while reading objects or references that should be there.
pub(super) fn read_error(url: &str, error: &git2::Error) -> Error {
    Error::Read { url: url.to_owned(), message: clean_line(error.message()) }
}

/// What failed while opening a local path.
pub(super) fn open_error(url: &str, path: &std::path::Path, error: &git2::Error) -> Error {
    let shown = url.to_owned();
    match error.code() {
        ErrorCode::Owner => Error::ForeignOwner { url: shown },
        ErrorCode::NotFound if !path.exists() => {
            Error::Folder { path: path.to_owned(), message: "no such file or directory".to_owned() }
        }
        ErrorCode::NotFound => match git2::Repository::discover(path) {
            Ok(outer) => {
                let parent = outer.workdir().unwrap_or_else(|| outer.path());
                Error::InsideRepository { url: shown, parent: parent.display().to_string() }
            }
            Err(_) => Error::NotARepository { url: shown },
        },
        _ => read_error(url, error),
    }
}

fn scrubbed(message: &str, secrets: &[String]) -> String {
    // Control characters may split a secret, so they go first; the message is shortened last.
    let mut message = one_line(message, usize::MAX).trim_end_matches(';').to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        message = message.replace(secret, "***");
    }
    shortened(message, LONGEST_MESSAGE)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn messages_are_one_clean_line_without_secrets() {
        let check = |message: &str, expected: &str| {
            let error = git2::Error::new(ErrorCode::GenericError, ErrorClass::None, message);
            let Error::Remote { message, .. } = remote_error("url", &["s3cr3t".to_owned()], &error) else {
                panic!("{error}")
            };
            assert_eq!(message, expected);
        };
        check("\u{1b}[2Jremote\r\n hung\u{7} up;\n", "remote hung up");
        check("it has s3c\u{1b}[0mr3t", "it has ***");
        let filled = "x".repeat(2045);
        check(&format!("{filled}s3cr3t"), &format!("{filled}***"));
        check(&"x".repeat(60_000), &format!("{}…", "x".repeat(2048)));
    }
}

//! libgit2's errors in our words. libgit2 tells many of them apart only by their text, so the texts
//! looked for are those of its transports (`transports/{http,ssh_libssh2}.c`, `streams/*.c`).

use git2::{ErrorClass, ErrorCode};

use super::Error;

/// What failed while talking to a remote.
pub(super) fn remote(url: &str, scrub: &[String], error: &git2::Error) -> Error {
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
        // How libgit2 puts it when the server asks once more after the credentials were sent.
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
pub(super) fn read(url: &str, error: &git2::Error) -> Error {
    Error::Read { url: url.to_owned(), message: error.message().to_owned() }
}

/// What failed while opening a local path.
pub(super) fn open(url: &str, path: &std::path::Path, error: &git2::Error) -> Error {
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
        _ => read(url, error),
    }
}

fn scrubbed(message: &str, secrets: &[String]) -> String {
    let mut message = message.trim().trim_end_matches(['\n', ';']).to_owned();
    for secret in secrets.iter().filter(|secret| !secret.is_empty()) {
        message = message.replace(secret, "***");
    }
    message
}

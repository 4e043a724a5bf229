//! The callbacks that libgit2 calls during a connection: credentials and the check of the host key.

use std::cell::RefCell;
use std::path::Path;
use std::rc::Rc;

use git2::cert::Cert;
use git2::{CertificateCheckStatus, Cred, CredentialType, RemoteCallbacks};
use secrecy::ExposeSecret;

use super::remote_address::credentials_in;
use super::{Error, GitCredentials, known_hosts};
use crate::model::redacted_address;

/// Forges accept any user name with a token; GitHub's installation tokens need this one.
pub(super) const TOKEN_USER: &str = "x-access-token";

/// An error of a callback, which libgit2 cannot pass on. When set, it replaces libgit2's own error.
pub(super) type CallbackError = Rc<RefCell<Option<Error>>>;

/// Callbacks for one connection. libgit2 repeats a refused request without end, so the second request for the same kind of
/// credential returns an error.
pub(super) fn callbacks<'a>(
    url: &'a str,
    credentials: &'a GitCredentials,
    cause: &CallbackError,
) -> RemoteCallbacks<'a> {
    let mut callbacks = RemoteCallbacks::new();
    let mut offered = false;
    let told = Rc::clone(cause);
    callbacks.credentials(move |_, user, allowed| {
        let user = user.unwrap_or("git");
        if allowed.contains(CredentialType::USERNAME) {
            return Cred::username(user);
        }
        let refuse = |message: &str| {
            let url = redacted_address(url);
            told.replace(Some(Error::Authentication { url, message: message.to_owned() }));
            git2::Error::from_str(message)
        };
        if offered {
            return Err(refuse("the server refused the credentials"));
        }
        offered = true;
        match credentials {
            GitCredentials::Token(token) if allowed.contains(CredentialType::USER_PASS_PLAINTEXT) => {
                Cred::userpass_plaintext(TOKEN_USER, token.expose_secret())
            }
            GitCredentials::SshKey { key, .. } if allowed.contains(CredentialType::SSH_KEY) => {
                if let Err(error) = check_key_file(key) {
                    told.replace(Some(error));
                    return Err(git2::Error::from_str("key is not readable"));
                }
                Cred::ssh_key(user, None, key, None)
            }
            GitCredentials::None if credentials_in(url).is_some() => {
                Err(refuse("the server refused the credentials"))
            }
            GitCredentials::None => Err(refuse("the server asks for credentials and none are configured")),
            GitCredentials::Token(_) => {
                Err(refuse("the server takes no token here; an ssh address needs a key"))
            }
            GitCredentials::SshKey { .. } => {
                Err(refuse("the server takes no ssh key here; an http address needs a token"))
            }
        }
    });
    let told = Rc::clone(cause);
    callbacks.certificate_check(move |certificate, host| {
        let GitCredentials::SshKey { known_hosts: Some(file), .. } = credentials else {
            return Ok(CertificateCheckStatus::CertificatePassthrough);
        };
        if certificate.as_hostkey().is_none() {
            return Ok(CertificateCheckStatus::CertificatePassthrough);
        }
        match check_host_key(certificate, host, url, file) {
            Ok(()) => Ok(CertificateCheckStatus::CertificateOk),
            Err(message) => {
                told.replace(Some(Error::HostKey { host: host.to_owned(), message }));
                Err(git2::Error::from_str("host key is not trusted"))
            }
        }
    });
    callbacks
}

fn check_key_file(key: &Path) -> Result<(), Error> {
    let problem = |message: String| Error::Key { path: key.to_owned(), message };
    let text = std::fs::read_to_string(key).map_err(|error| problem(error.to_string()))?;
    if !text.contains("PRIVATE KEY") {
        return Err(problem("not a private key".to_owned()));
    }
    Ok(())
}

fn check_host_key(certificate: &Cert<'_>, host: &str, url: &str, file: &Path) -> Result<(), String> {
    let key = certificate.as_hostkey().and_then(|key| key.hostkey()).ok_or("the server sent no host key")?;
    let text = std::fs::read_to_string(file).map_err(|error| format!("{}: {error}", file.display()))?;
    known_hosts::check_known_host(&text, host, known_hosts::port_of(url), key)
        .map_err(|problem| format!("{} in {}", problem, file.display()))
}

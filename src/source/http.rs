//! Git over http (gitprotocol-http(5)). Protocol version 2 (gitprotocol-v2(5)) needs one request for the tip and one for the pack.
//! Older servers use version 0 (gitprotocol-pack(5)), whose list has every reference.
//!
//! Reasons against libgit2's http transport: it stores an unlimited list of references, sends the token to the target of a
//! redirect, and loses 40 ms per request to Nagle's algorithm, because it writes each request in two pieces.

use std::time::Duration;

use git2::{Oid, Repository};
use reqwest::header::LOCATION;
use reqwest::{RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret;

use super::branch_names::BRANCHES;
use super::credentials::TOKEN_USER;
use super::http_responses::{
    LIST_LIMITS, MOST_HEADS, PACK_LIMITS, PackReceiver, ResponseLimits, ServerAdvertisement, parse_reference,
};
use super::packets::{DELIMITER, FLUSH, Packet, PacketReader, encode_line};
use super::remote::{RemoteFailure, is_at_tip};
use super::remote_address::RemoteAddress;
use super::remote_references::{RemoteReference, choose_branch, find_reference};
use super::{Error, GitCredentials, git_errors};

const CONNECT_TIMEOUT: Duration = Duration::from_secs(10);
/// Known commits that are sent as `have` lines: several, because of forced pushes.
const MOST_HAVES: usize = 16;
const AGENT: &str = concat!("agent=tutti/", env!("CARGO_PKG_VERSION"));

/// A remote that speaks http, with its idle connections.
#[derive(Debug)]
pub(super) struct HttpRemote {
    client: reqwest::Client,
    address: RemoteAddress,
    idle_timeout: Duration,
    /// Set after the first response.
    version: Option<GitProtocolVersion>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum GitProtocolVersion {
    Zero,
    Two,
}

impl HttpRemote {
    /// `None` for any other kind of address.
    pub(super) fn of(address: &RemoteAddress, patience: Duration) -> Result<Option<Self>, Error> {
        let scheme = address.url.split_once("://").map_or("", |(scheme, _)| scheme).to_ascii_lowercase();
        if !matches!(scheme.as_str(), "http" | "https") {
            return Ok(None);
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // Another thread may have installed the same provider already.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = reqwest::Client::builder()
            .user_agent(concat!("git/2 (tutti/", env!("CARGO_PKG_VERSION"), ")"))
            .connect_timeout(CONNECT_TIMEOUT.min(patience))
            .read_timeout(patience)
            .redirect(reqwest::redirect::Policy::none())
            .build();
        let client = client.map_err(|error| {
            let message = format!("the HTTP client cannot be created: {error}");
            Error::Remote { url: address.display_url.clone(), message }
        })?;
        Ok(Some(Self { client, address: address.clone(), idle_timeout: patience, version: None }))
    }

    /// The tip of the branch, or of a reference by its full name, which is then in the copy.
    pub(super) async fn fetch_tip(&mut self, reference: Option<&str>) -> Result<Oid, RemoteFailure> {
        let is_known = self.version.is_some();
        match self.try_fetch_tip(reference).await {
            // The server may have closed the idle connection just now.
            Err(RemoteFailure::Failed(Error::Unreachable { .. })) if is_known => {
                self.try_fetch_tip(reference).await
            }
            found => found,
        }
    }

    async fn try_fetch_tip(&mut self, reference: Option<&str>) -> Result<Oid, RemoteFailure> {
        let copy = self.address.open_copy()?;
        let heads = self.heads(reference).await?;
        let damaged =
            |error: git2::Error| RemoteFailure::DamagedCopy(git_errors::clean_line(error.message()));
        if let Some(reference) = reference {
            let tip = find_reference(&self.address.display_url, reference, &heads)?;
            if copy.find_commit(tip).is_err() {
                self.fetch(&copy, tip).await?;
                copy.find_commit(tip).map_err(damaged)?;
            }
            return Ok(tip);
        }
        let (branch, tip) = choose_branch(&self.address.display_url, self.address.branch.as_deref(), &heads)?;
        if is_at_tip(&copy, &branch, tip) {
            return Ok(tip);
        }
        self.fetch(&copy, tip).await?;
        copy.find_commit(tip).map_err(damaged)?;
        copy.reference(&format!("{BRANCHES}{branch}"), tip, true, "fetch").map_err(damaged)?;
        Ok(tip)
    }

    async fn heads(&mut self, reference: Option<&str>) -> Result<Vec<RemoteReference>, Error> {
        if self.version != Some(GitProtocolVersion::Two) {
            let advertised = self.read_advertisement(reference).await?;
            if !advertised.speaks_version_2() {
                self.version = Some(GitProtocolVersion::Zero);
                return advertised.heads().map_err(|message| self.remote_error(message));
            }
            self.version = Some(GitProtocolVersion::Two);
        }
        match reference {
            Some(reference) => self.list_prefixes(&[reference.to_owned()]).await,
            None => self.list_references().await,
        }
    }

    /// Which version the server speaks, and its references where that is not version 2. A server that knew version 2 goes on knowing it.
    async fn read_advertisement(&self, reference: Option<&str>) -> Result<ServerAdvertisement, Error> {
        let mut advertised = ServerAdvertisement::for_reference(reference);
        let request = self.client.get(self.path("info/refs?service=git-upload-pack"));
        self.send_request(request, LIST_LIMITS, |content| advertised.read_line(&content)).await?;
        Ok(advertised)
    }

    /// Lists the configured branch; when it is missing, all branches, for the error message.
    async fn list_references(&self) -> Result<Vec<RemoteReference>, Error> {
        let wanted = match &self.address.branch {
            Some(branch) => vec![format!("{BRANCHES}{branch}")],
            None => vec!["HEAD".to_owned()],
        };
        let mut heads = self.list_prefixes(&wanted).await?;
        // The answer to HEAD names its branch, which is all there is to know.
        let named = heads
            .iter()
            .find_map(|head| Some(RemoteReference { name: head.target.clone()?, ..head.clone() }));
        heads.extend(named);
        let found = match &self.address.branch {
            Some(_) => heads.iter().any(|head| wanted.contains(&head.name)),
            None => heads.iter().any(|head| head.name.starts_with(BRANCHES)),
        };
        if found {
            return Ok(heads);
        }
        self.list_prefixes(&["HEAD".to_owned(), BRANCHES.to_owned()]).await
    }

    async fn list_prefixes(&self, prefixes: &[String]) -> Result<Vec<RemoteReference>, Error> {
        let mut body =
            [encode_line("command=ls-refs"), encode_line(AGENT), DELIMITER.to_vec(), encode_line("symrefs")]
                .concat();
        for prefix in prefixes {
            body.extend(encode_line(&format!("ref-prefix {prefix}")));
        }
        body.extend(FLUSH);
        let mut heads = Vec::new();
        let take = |content: Vec<u8>| {
            if heads.len() == MOST_HEADS {
                return Err("it has too many branches");
            }
            heads.push(parse_reference(&content).ok_or("it has an invalid reference")?);
            Ok(())
        };
        self.send_request(self.post(body), LIST_LIMITS, take).await?;
        Ok(heads)
    }

    /// Everything up to the tip that the copy does not have, into one pack.
    async fn fetch(&self, copy: &Repository, tip: Oid) -> Result<(), RemoteFailure> {
        let is_old = self.version == Some(GitProtocolVersion::Zero);
        let haves = haves(copy).into_iter().flat_map(|have| encode_line(&format!("have {have}")));
        let mut body = if is_old {
            let options = format!("side-band-64k ofs-delta thin-pack no-progress {AGENT}");
            [encode_line(&format!("want {tip} {options}")), FLUSH.to_vec()].concat()
        } else {
            let start = [encode_line("command=fetch"), encode_line(AGENT), DELIMITER.to_vec()].concat();
            let options = ["ofs-delta", "thin-pack", "no-progress"].map(encode_line).concat();
            [start, options, encode_line(&format!("want {tip}"))].concat()
        };
        body.extend(haves);
        body.extend(encode_line("done"));
        if !is_old {
            body.extend(FLUSH);
        }
        let damaged =
            |error: git2::Error| RemoteFailure::DamagedCopy(git_errors::clean_line(error.message()));
        let database = copy.odb().map_err(damaged)?;
        let mut pack = PackReceiver::new(database.packwriter().map_err(damaged)?, is_old);
        let asked = self.send_request(self.post(body), PACK_LIMITS, |content| pack.receive(&content)).await;
        // The error of the copy counts more than the server's.
        if let Some(message) = pack.store_error.take() {
            return Err(RemoteFailure::DamagedCopy(git_errors::clean_line(&message)));
        }
        asked?;
        pack.commit().map_err(damaged)
    }

    fn post(&self, body: Vec<u8>) -> RequestBuilder {
        self.client
            .post(self.path("git-upload-pack"))
            .header("content-type", "application/x-git-upload-pack-request")
            .header("accept", "application/x-git-upload-pack-result")
            .body(body)
    }

    /// Sends a request, and reads all packets of its answer within the bounds.
    async fn send_request(
        &self,
        request: RequestBuilder,
        bounds: ResponseLimits,
        take: impl FnMut(Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<(), Error> {
        let answer = async {
            let response = self.check_response(self.send(request).await?)?;
            self.read_packets(response, bounds, take).await
        };
        let late = |_| {
            let message = format!("its answer did not end within {} s", bounds.time.as_secs());
            self.remote_error(message)
        };
        tokio::time::timeout(bounds.time, answer).await.map_err(late)?
    }

    async fn send(&self, request: RequestBuilder) -> Result<Response, Error> {
        let request = request.header("git-protocol", "version=2");
        let request = match &self.address.credentials {
            GitCredentials::Token(token) => request.basic_auth(TOKEN_USER, Some(token.expose_secret())),
            _ => request,
        };
        request.send().await.map_err(|error| self.unreachable_error(error))
    }

    fn check_response(&self, response: Response) -> Result<Response, Error> {
        let url = self.address.display_url.clone();
        let status = response.status();
        let message = match (status, &self.address.credentials) {
            (StatusCode::OK, _) => return Ok(response),
            (StatusCode::UNAUTHORIZED, GitCredentials::None) if !self.address.has_password() => {
                "the server asks for credentials and none are configured".to_owned()
            }
            (StatusCode::UNAUTHORIZED, GitCredentials::SshKey { .. }) => {
                "the server takes no ssh key here; an http address needs a token".to_owned()
            }
            (StatusCode::UNAUTHORIZED, _) => "the server refused the credentials".to_owned(),
            (status, _) => format!("http status {status}"),
        };
        Err(match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Error::Authentication { url, message },
            StatusCode::NOT_FOUND => Error::NoSuchRepository { url, message },
            status if status.is_redirection() => {
                // A redirect is not followed, because its target would receive the token.
                let place = response.headers().get(LOCATION).and_then(|place| place.to_str().ok());
                let place = place.and_then(|place| response.url().join(place).ok());
                let place = place.map(|place| format!(", to {}", place.origin().ascii_serialization()));
                let place = git_errors::clean_line(&place.unwrap_or_default());
                let message = format!("{message}{place}; redirects are not followed");
                Error::NoSuchRepository { url, message }
            }
            _ => self.remote_error(message),
        })
    }

    async fn read_packets(
        &self,
        mut response: Response,
        bounds: ResponseLimits,
        mut take: impl FnMut(Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<(), Error> {
        let (mut packets, mut ended, mut size) = (PacketReader::default(), false, 0);
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreachable_error(error))? {
            size += bytes.len() as u64;
            if size > bounds.bytes {
                return Err(self.remote_error(format!("its answer has more than {} bytes", bounds.bytes)));
            }
            packets.push(&bytes);
            while let Some(packet) = packets.next().map_err(|reason| self.remote_error(reason))? {
                ended = packet == Packet::Flush;
                let Packet::Data(content) = packet else { continue };
                if let Some(message) = content.strip_prefix(b"ERR ") {
                    return Err(self.remote_error(git_errors::clean_line(&String::from_utf8_lossy(message))));
                }
                take(content).map_err(|reason| self.remote_error(reason))?;
            }
        }
        if ended { Ok(()) } else { Err(self.remote_error("its answer broke off")) }
    }

    fn remote_error(&self, message: impl Into<String>) -> Error {
        Error::Remote { url: self.address.display_url.clone(), message: message.into() }
    }

    fn unreachable_error(&self, error: reqwest::Error) -> Error {
        let url = self.address.display_url.clone();
        if error.is_timeout() && !error.is_connect() {
            return Error::Timeout { url, seconds: self.idle_timeout.as_secs() };
        }
        let error = error.without_url();
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let message = git_errors::clean_line(&causes.map(ToString::to_string).collect::<Vec<_>>().join(": "));
        let says = |words: &[&str]| words.iter().any(|word| message.contains(word));
        if says(&["dns error"]) {
            Error::Resolve { url, message }
        } else if says(&["certificate", "corrupt message", "HandshakeFailure", "ProtocolVersion"]) {
            Error::Certificate { url, message }
        } else {
            Error::Unreachable { url, message }
        }
    }

    fn path(&self, rest: &str) -> String {
        format!("{}/{rest}", self.address.url.trim_end_matches('/'))
    }
}

/// The newest commits of the branches in the copy; none when it has none or is damaged.
fn haves(copy: &Repository) -> Vec<Oid> {
    let walk = || {
        let mut walk = copy.revwalk()?;
        walk.push_glob(BRANCHES)?;
        walk.take(MOST_HAVES).collect::<Result<Vec<_>, git2::Error>>()
    };
    walk().unwrap_or_default()
}

//! Git over http by protocol version 2 (gitprotocol-v2(5), gitprotocol-http(5)): one request to ask
//! for the tip, one more to fetch what is new.
//!
//! libgit2 could do it too, but it writes each request in two pieces onto a socket with Nagle's
//! algorithm, which costs 40 ms per request, and asks first without the token, then with it. A push
//! waits for this, so it is done here; whatever a server does not support is left to libgit2.

use std::collections::HashMap;
use std::io::Write as _;
use std::time::Duration;

use git2::{Oid, Repository};
use reqwest::{RequestBuilder, Response, StatusCode};
use secrecy::ExposeSecret;

use super::credentials::TOKEN_USER;
use super::heads::{BRANCHES, Head, choose};
use super::packets::{DELIMITER, FLUSH, Packet, Packets, line};
use super::remote::{Address, Failure, is_known};
use super::{Credentials, Error};

const CONNECT: Duration = Duration::from_secs(10);
/// Commits of ours that the server may build on: the newest ones, for forced pushes.
const MOST_HAVES: usize = 16;
const AGENT: &str = concat!("agent=tutti/", env!("CARGO_PKG_VERSION"));

/// A remote that speaks http, with its idle connections.
#[derive(Debug)]
pub(super) struct Http {
    client: reqwest::Client,
    address: Address,
    patience: Duration,
    /// Known to speak version 2.
    greeted: bool,
}

/// An answer, or that libgit2 has to try.
enum Said<T> {
    Answer(T),
    NotThisWay(String),
}

impl Http {
    /// `None` for any other kind of address, and when no client can be made.
    pub(super) fn of(address: &Address, patience: Duration) -> Option<Self> {
        if !address.url.starts_with("http://") && !address.url.starts_with("https://") {
            return None;
        }
        if matches!(address.credentials, Credentials::SshKey { .. }) {
            return None;
        }
        if rustls::crypto::CryptoProvider::get_default().is_none() {
            // The process chose none; another thread may have been faster, with the same result.
            let _ = rustls::crypto::ring::default_provider().install_default();
        }
        let client = reqwest::Client::builder()
            .user_agent(concat!("git/2 (tutti/", env!("CARGO_PKG_VERSION"), ")"))
            .connect_timeout(CONNECT.min(patience))
            .read_timeout(patience)
            .redirect(reqwest::redirect::Policy::none())
            .build()
            .ok()?;
        Some(Self { client, address: address.clone(), patience, greeted: false })
    }

    /// The tip of the branch, which is then in the copy; `None` when the server does not support this.
    pub(super) async fn tip(&mut self) -> Result<Option<Oid>, Failure> {
        let greeted = self.greeted;
        let said = match self.try_tip().await {
            // The server may have closed the idle connection just now.
            Err(Failure::Told(Error::Unreachable { .. })) if greeted => self.try_tip().await?,
            said => said?,
        };
        match said {
            Said::Answer(tip) => Ok(Some(tip)),
            Said::NotThisWay(reason) => {
                tracing::debug!(url = self.address.shown, reason, "no Git protocol 2, asking the older way");
                self.greeted = false;
                Ok(None)
            }
        }
    }

    async fn try_tip(&mut self) -> Result<Said<Oid>, Failure> {
        if !self.greeted
            && let Said::NotThisWay(reason) = self.greet().await?
        {
            return Ok(Said::NotThisWay(reason));
        }
        self.greeted = true;
        let copy = self.address.copy()?;
        let heads = match self.list().await? {
            Said::Answer(heads) => heads,
            Said::NotThisWay(reason) => return Ok(Said::NotThisWay(reason)),
        };
        let (branch, tip) = choose(&self.address.shown, self.address.branch.as_deref(), &heads)?;
        if is_known(&copy, &branch, tip) {
            return Ok(Said::Answer(tip));
        }
        if let Said::NotThisWay(reason) = self.fetch(&copy, &branch, tip).await? {
            return Ok(Said::NotThisWay(reason));
        }
        let damaged = |error: git2::Error| Failure::Damaged(error.message().to_owned());
        copy.find_commit(tip).map_err(damaged)?;
        copy.reference(&format!("{BRANCHES}{branch}"), tip, true, "fetch").map_err(damaged)?;
        Ok(Said::Answer(tip))
    }

    /// Which version the server speaks. It stays the same, so this is asked once.
    async fn greet(&self) -> Result<Said<()>, Error> {
        let response = self.sent(self.client.get(self.path("info/refs?service=git-upload-pack"))).await?;
        let response = match self.accepted(response)? {
            Said::Answer(response) => response,
            Said::NotThisWay(reason) => return Ok(Said::NotThisWay(reason)),
        };
        let mut lines = Vec::new();
        let read = self.each(response, |content| {
            lines.push(content);
            Ok(())
        });
        if let Err(reason) = read.await? {
            return Ok(Said::NotThisWay(reason));
        }
        let says = |start: &str| lines.iter().any(|line| line.starts_with(start.as_bytes()));
        if !says("version 2") || !says("fetch") || !says("ls-refs") || says("object-format=sha256") {
            return Ok(Said::NotThisWay("another version".to_owned()));
        }
        Ok(Said::Answer(()))
    }

    /// The wanted branch alone; all of them when it is not there, to say so.
    async fn list(&self) -> Result<Said<Vec<Head>>, Error> {
        let wanted = match &self.address.branch {
            Some(branch) => vec![format!("{BRANCHES}{branch}")],
            None => vec!["HEAD".to_owned()],
        };
        let mut heads = match self.list_of(&wanted).await? {
            Said::Answer(heads) => heads,
            other => return Ok(other),
        };
        // The answer to HEAD names its branch, which is all there is to know.
        let named = heads.iter().find_map(|head| Some(Head { name: head.target.clone()?, ..head.clone() }));
        heads.extend(named);
        let found = match &self.address.branch {
            Some(_) => heads.iter().any(|head| wanted.contains(&head.name)),
            None => heads.iter().any(|head| head.name.starts_with(BRANCHES)),
        };
        if found {
            return Ok(Said::Answer(heads));
        }
        self.list_of(&["HEAD".to_owned(), BRANCHES.to_owned()]).await
    }

    async fn list_of(&self, prefixes: &[String]) -> Result<Said<Vec<Head>>, Error> {
        let mut body = [line("command=ls-refs"), line(AGENT), DELIMITER.to_vec(), line("symrefs")].concat();
        for prefix in prefixes {
            body.extend(line(&format!("ref-prefix {prefix}")));
        }
        body.extend(FLUSH);
        let response = match self.post(body).await? {
            Said::Answer(response) => response,
            Said::NotThisWay(reason) => return Ok(Said::NotThisWay(reason)),
        };
        let mut heads = Vec::new();
        let read = self.each(response, |content| {
            heads.push(head_of(&content).ok_or("not a reference")?);
            Ok(())
        });
        match read.await? {
            Ok(()) => Ok(Said::Answer(heads)),
            Err(reason) => Ok(Said::NotThisWay(reason)),
        }
    }

    /// Everything up to the tip that the copy does not have, into one pack.
    async fn fetch(&self, copy: &Repository, branch: &str, tip: Oid) -> Result<Said<()>, Failure> {
        let start = [line("command=fetch"), line(AGENT), DELIMITER.to_vec()].concat();
        let options = ["ofs-delta", "thin-pack", "no-progress"].map(line).concat();
        let haves = haves(copy, branch).into_iter().flat_map(|have| line(&format!("have {have}")));
        let mut body = [start, options, line(&format!("want {tip}"))].concat();
        body.extend(haves);
        body.extend(line("done"));
        body.extend(FLUSH);
        let response = match self.post(body).await? {
            Said::Answer(response) => response,
            Said::NotThisWay(reason) => return Ok(Said::NotThisWay(reason)),
        };
        let damaged = |error: git2::Error| Failure::Damaged(error.message().to_owned());
        let database = copy.odb().map_err(damaged)?;
        let mut pack = database.packwriter().map_err(damaged)?;
        let mut in_pack = false;
        let read = self.each(response, |content| {
            match content.split_first() {
                _ if !in_pack => in_pack = content == b"packfile\n",
                Some((1, bytes)) => pack.write_all(bytes).map_err(|_| "the pack cannot be kept")?,
                Some((2, _)) => {}
                _ => return Err("the pack broke off"),
            }
            Ok(())
        });
        if let Err(reason) = read.await? {
            return Ok(Said::NotThisWay(reason));
        }
        pack.commit().map_err(damaged)?;
        Ok(Said::Answer(()))
    }

    async fn post(&self, body: Vec<u8>) -> Result<Said<Response>, Error> {
        let request = self
            .client
            .post(self.path("git-upload-pack"))
            .header("content-type", "application/x-git-upload-pack-request")
            .header("accept", "application/x-git-upload-pack-result")
            .body(body);
        let response = self.sent(request).await?;
        self.accepted(response)
    }

    async fn sent(&self, request: RequestBuilder) -> Result<Response, Error> {
        let request = request.header("git-protocol", "version=2");
        let request = match &self.address.credentials {
            Credentials::Token(token) => request.basic_auth(TOKEN_USER, Some(token.expose_secret())),
            _ => request,
        };
        request.send().await.map_err(|error| self.unreachable(error))
    }

    fn accepted(&self, response: Response) -> Result<Said<Response>, Error> {
        let url = self.address.shown.clone();
        let status = response.status();
        let message = match (status, &self.address.credentials) {
            (StatusCode::OK, _) => return Ok(Said::Answer(response)),
            (StatusCode::UNAUTHORIZED, Credentials::None) if !self.address.has_password() => {
                "the server asks for credentials and none are configured".to_owned()
            }
            (StatusCode::UNAUTHORIZED, _) => "the server refused the credentials".to_owned(),
            (status, _) => format!("http status {status}"),
        };
        match status {
            StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN => Err(Error::Authentication { url, message }),
            StatusCode::NOT_FOUND => Err(Error::NoSuchRepository { url, message }),
            _ => Ok(Said::NotThisWay(message)),
        }
    }

    /// Reads all packets of an answer. The inner error is about what it says.
    async fn each(
        &self,
        mut response: Response,
        mut take: impl FnMut(Vec<u8>) -> Result<(), &'static str>,
    ) -> Result<Result<(), String>, Error> {
        let mut packets = Packets::default();
        let mut ended = false;
        while let Some(bytes) = response.chunk().await.map_err(|error| self.unreachable(error))? {
            packets.push(&bytes);
            loop {
                ended = match packets.next() {
                    Ok(None) => break,
                    Ok(Some(Packet::Data(content))) => {
                        if let Some(message) = content.strip_prefix(b"ERR ") {
                            return Ok(Err(String::from_utf8_lossy(message).trim().to_owned()));
                        }
                        match take(content) {
                            Ok(()) => false,
                            Err(reason) => return Ok(Err(reason.to_owned())),
                        }
                    }
                    Ok(Some(Packet::Delimiter)) => false,
                    Ok(Some(Packet::Flush)) => true,
                    Err(reason) => return Ok(Err(reason.to_owned())),
                };
            }
        }
        Ok(if ended { Ok(()) } else { Err("the answer broke off".to_owned()) })
    }

    fn unreachable(&self, error: reqwest::Error) -> Error {
        let url = self.address.shown.clone();
        if error.is_timeout() && !error.is_connect() {
            return Error::Silent { url, seconds: self.patience.as_secs() };
        }
        let error = error.without_url();
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        let message = causes.map(ToString::to_string).collect::<Vec<_>>().join(": ");
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

/// `<id> <name>`, and perhaps `symref-target:<name>`.
fn head_of(content: &[u8]) -> Option<Head> {
    let text = std::str::from_utf8(content).ok()?.trim_end();
    let mut words = text.split(' ');
    let tip = Oid::from_str(words.next()?).ok()?;
    let name = words.next()?.to_owned();
    let attributes: HashMap<&str, &str> = words.filter_map(|word| word.split_once(':')).collect();
    Some(Head { name, tip, target: attributes.get("symref-target").map(|target| (*target).to_owned()) })
}

/// The newest commits of the branch in the copy; none when it has none or is damaged.
fn haves(copy: &Repository, branch: &str) -> Vec<Oid> {
    let walk = || {
        let mut walk = copy.revwalk()?;
        walk.push_ref(&format!("{BRANCHES}{branch}"))?;
        walk.take(MOST_HAVES).collect::<Result<Vec<_>, git2::Error>>()
    };
    walk().unwrap_or_default()
}

//! `tutti hook deliveries` and `tutti hook replay`: the last deliveries of a running process.

use std::path::PathBuf;
use std::time::Duration;

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;
use reqwest::{Method, StatusCode, Url};
use serde_json::Value;

use super::hint_line;
use crate::cli::exit::Exit;
use crate::cli::output::{self, Format, age, fitted, say, table, tell, write_table};
use crate::model::{Hosts, is_loopback, short_line};

/// Of one request, to the last byte of its answer.
const PATIENCE: Duration = Duration::from_secs(30);
/// Of an answer, in bytes.
const LARGEST_ANSWER: usize = 16 * 1024 * 1024;
/// Of a cell, in characters.
const LONGEST: usize = 100;
const TOKEN: &str = "TUTTI_API_TOKEN";

#[derive(Args, Debug)]
pub struct ServerArgs {
    /// Address of the running tutti, such as https://tutti.example.com
    #[arg(long, env = "TUTTI_SERVER", value_name = "URL")]
    server: Url,
    /// Host that the token is sent to without TLS, as within a cluster
    #[arg(long, env = "TUTTI_ALLOW_HTTP", value_delimiter = ',', value_name = "HOST[:PORT]")]
    allow_http: Vec<String>,
    /// File with the certificate authority of the server, as PEM
    #[arg(long, value_name = "FILE")]
    ca_file: Option<PathBuf>,
}

#[derive(Args, Debug)]
pub struct DeliveriesArgs {
    /// One of them, with its headers
    number: Option<u64>,
    #[command(flatten)]
    server: ServerArgs,
    /// How many, the newest first
    #[arg(long, default_value_t = 50)]
    limit: usize,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Its number, as `tutti hook deliveries` prints it
    number: u64,
    #[command(flatten)]
    server: ServerArgs,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

pub async fn deliveries(args: DeliveriesArgs) -> anyhow::Result<Exit> {
    let path = match args.number {
        Some(number) => format!("deliveries/{number}"),
        None => format!("deliveries?limit={}", args.limit),
    };
    let value = match args.server.ask(Method::GET, &path).await? {
        Ok(value) => value,
        Err(exit) => return Ok(exit),
    };
    match (args.output, args.number) {
        (Format::Table, None) => write_table(&fitted(rows(&value, Timestamp::now()))),
        (Format::Table, Some(_)) => output::write_value(Format::Yaml, &value)?,
        (format, _) => output::write_value(format, &value)?,
    }
    Ok(Exit::Ok)
}

pub async fn replay(args: ReplayArgs) -> anyhow::Result<Exit> {
    let value = match args.server.ask(Method::POST, &format!("deliveries/{}/replay", args.number)).await? {
        Ok(value) => value,
        Err(exit) => return Ok(exit),
    };
    match args.output {
        Format::Table => say!("delivery {} was taken again, as number {}", args.number, value["number"]),
        format => output::write_value(format, &value)?,
    }
    Ok(Exit::Ok)
}

fn rows(value: &Value, now: Timestamp) -> comfy_table::Table {
    let mut table = table(&["NUMBER", "AGE", "RECEIVER", "EVENT", "VERDICT", "HINT OR REASON"]);
    for one in value["deliveries"].as_array().into_iter().flatten() {
        let text = |name: &str| one[name].as_str().map(|text| short_line(text, LONGEST));
        let hint = Some(&one["hint"]).filter(|hint| hint.is_object()).map(hint_line);
        let words = text("reason").into_iter().chain(hint).collect::<Vec<_>>().join(": ");
        table.add_row([
            one["number"].to_string(),
            age(one["time"].as_str(), now),
            text("receiver").unwrap_or_default(),
            text("event").unwrap_or_else(|| "-".to_owned()),
            text("verdict").unwrap_or_default(),
            short_line(&words, LONGEST),
        ]);
    }
    table
}

impl ServerArgs {
    /// What the server answers; a refusal of it is told, with the exit code that it has.
    async fn ask(&self, method: Method, path: &str) -> anyhow::Result<Result<Value, Exit>> {
        let mut url = self.checked()?;
        let base = url.path().trim_end_matches('/').to_owned();
        let (path, query) = path.split_once('?').map_or((path, None), |(path, query)| (path, Some(query)));
        url.set_path(&format!("{base}/api/v1/{path}"));
        url.set_query(query);
        let mut client = reqwest::Client::builder()
            .user_agent(concat!("tutti/", env!("CARGO_PKG_VERSION")))
            .timeout(PATIENCE)
            // The token is for this server alone.
            .redirect(reqwest::redirect::Policy::none());
        if let Some(path) = &self.ca_file {
            let pem = std::fs::read(path).with_context(|| format!("failed to read {}", path.display()))?;
            let authorities = reqwest::Certificate::from_pem_bundle(&pem)
                .with_context(|| format!("failed to read the certificates in {}", path.display()))?;
            client = authorities.into_iter().fold(client, reqwest::ClientBuilder::add_root_certificate);
        }
        let mut request =
            client.build().context("failed to prepare the client")?.request(method, url.clone());
        if let Some(token) = std::env::var(TOKEN).ok().filter(|token| !token.is_empty()) {
            request = request.bearer_auth(token);
        }
        match read(request).await {
            Ok((status, body)) if status.is_success() => {
                let value = serde_json::from_slice(&body)
                    .with_context(|| format!("failed to read the answer of {url}: it is no JSON"))?;
                Ok(Ok(value))
            }
            Ok((status, body)) => {
                tell!("error: {url} answers {status}: {}", detail(&body));
                if matches!(status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN) {
                    tell!("  help: set {TOKEN} to a token of this server");
                    return Ok(Err(Exit::Denied));
                }
                Ok(Err(if status.is_server_error() { Exit::Unreachable } else { Exit::Configuration }))
            }
            Err(error) => {
                tell!("error: failed to ask {url}: {error}");
                Ok(Err(Exit::Unreachable))
            }
        }
    }

    /// Where a token may go.
    fn checked(&self) -> anyhow::Result<Url> {
        let host = self.server.host_str().unwrap_or_default();
        if !self.server.username().is_empty() || self.server.password().is_some() {
            bail!("--server holds credentials; the token goes into {TOKEN}");
        }
        let is_named = Hosts::new(self.allow_http.iter().map(String::as_str))
            .has(host, self.server.port_or_known_default());
        match self.server.scheme() {
            "https" => Ok(self.server.clone()),
            "http" if is_loopback(host) || is_named => Ok(self.server.clone()),
            "http" => {
                bail!("the token would be sent to {host} without TLS (help: https, or --allow-http {host})")
            }
            scheme => bail!("--server {scheme}://… is neither http nor https"),
        }
    }
}

/// The answer up to its bound.
async fn read(request: reqwest::RequestBuilder) -> Result<(StatusCode, Vec<u8>), String> {
    // Only the last cause says what happened.
    let words = |error: reqwest::Error| {
        let error = error.without_url();
        let causes = std::iter::successors(Some(&error as &dyn std::error::Error), |error| error.source());
        causes.map(ToString::to_string).collect::<Vec<_>>().join(": ")
    };
    let mut response = request.send().await.map_err(words)?;
    let mut body = Vec::new();
    while let Some(part) = response.chunk().await.map_err(words)? {
        if body.len() + part.len() > LARGEST_ANSWER {
            return Err(format!("its answer is larger than {LARGEST_ANSWER} bytes"));
        }
        body.extend_from_slice(&part);
    }
    Ok((response.status(), body))
}

/// Of an `application/problem+json`.
fn detail(body: &[u8]) -> String {
    let value: Option<Value> = serde_json::from_slice(body).ok();
    let detail = value.as_ref().and_then(|value| value["detail"].as_str());
    short_line(detail.unwrap_or("without a reason"), LONGEST)
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn token_goes_nowhere_without_tls() {
        let check = |server: &str, allowed: &[&str], expected: Result<(), &str>| {
            let allow_http = allowed.iter().map(ToString::to_string).collect();
            let server: Url = server.parse().expect("an address");
            let found = ServerArgs { server, allow_http, ca_file: None }.checked().map(drop);
            match (found, expected) {
                (Ok(()), Ok(())) => {}
                (Err(error), Err(words)) => assert!(error.to_string().contains(words), "{error}"),
                (found, expected) => panic!("{found:?} {expected:?}"),
            }
        };
        check("https://tutti.example.com", &[], Ok(()));
        check("http://127.0.0.1:8080/base/", &[], Ok(()));
        check("http://tutti.tutti.svc:8080", &[], Err("--allow-http tutti.tutti.svc"));
        check("http://tutti.tutti.svc:8080", &["tutti.tutti.svc:8080"], Ok(()));
        check("https://me:t0ken@tutti.example.com", &[], Err("credentials"));
        check("ftp://tutti.example.com", &[], Err("neither"));
    }

    #[test]
    fn table_of_deliveries() {
        let value = json!({"deliveries": [
            {"number": 2, "time": "2026-01-01T00:00:00Z", "receiver": "ci", "event": "build", "verdict": "accepted",
                "reason": "replay of 1", "hint": {"kind": "build", "repository": "shop/pay", "pull": 7, "reference": null,
                "after": "3f9c2d1a0000000000000000000000000000beef"}},
            {"number": 1, "time": "no time", "receiver": "x\u{1b}[2J", "verdict": "unauthorized", "reason": "no\nsignature",
                "hint": null}]});
        let now = "2026-01-01T00:00:07Z".parse().expect("a time");
        let lines = rows(&value, now).to_string();
        let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
        assert!(lines[1].ends_with("replay of 1: build shop/pay #7 3f9c2d1"), "{lines:?}");
        assert!(lines[1].starts_with("2       7s"), "{lines:?}");
        assert!(lines[2].ends_with("no signature") && !lines[2].contains('\u{1b}'), "{lines:?}");
        assert_eq!(lines.len(), 3);
    }

    #[test]
    fn reason_of_a_refusal() {
        assert_eq!(detail(br#"{"detail":"there is no such delivery"}"#), "there is no such delivery");
        assert_eq!(detail(b"<html>"), "without a reason");
    }
}

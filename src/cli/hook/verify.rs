//! `tutti hook verify`: applies a receiver's checks to a stored delivery.

use std::io::Read as _;
use std::path::{Path, PathBuf};

use anyhow::{Context as _, bail};
use clap::Args;
use http::{HeaderMap, HeaderName, HeaderValue, StatusCode};
use jiff::Timestamp;
use secrecy::SecretString;
use serde_json::{Value, json};

use super::hint_line::hint_line;
use crate::api::LARGEST_BODY;
use crate::cli::exit::Exit;
use crate::cli::output::{self, OutputFormat, say};
use crate::cli::repository;
use crate::cluster::HomeCluster;
use crate::controller::resolve_operator_secret;
use crate::forge::{WebhookOutcome, WebhookRejection, receive};
use crate::metrics::DeliveryResult;
use crate::model::{SecretRef, WebhookReceiverKind, short_line};

/// In characters.
const MAX_TEXT_CHARS: usize = 1024;

#[derive(Args, Debug)]
pub struct HookVerifyArgs {
    /// Name of the receiver in tutti.yaml; its type is read from there
    #[arg(long, value_name = "NAME", required_unless_present = "kind", conflicts_with = "kind")]
    receiver: Option<String>,
    /// Type of the receiver, instead of --receiver: gitea, forgejo, drone, woodpecker, generic or standard-webhooks
    #[arg(long = "type", id = "kind", value_name = "TYPE", value_parser = kind)]
    kind: Option<WebhookReceiverKind>,
    /// Folder of the config repository; its files are read from disk, including uncommitted changes
    #[arg(long, default_value = ".", value_name = "PATH")]
    repo: PathBuf,
    /// Environment variable with the webhook secret; repeatable, for a secret that is being replaced
    #[arg(long, value_name = "NAME", required_unless_present = "secret_file")]
    secret_env: Vec<String>,
    /// File with the webhook secret; repeatable, for a secret that is being replaced
    #[arg(long, value_name = "FILE")]
    secret_file: Vec<PathBuf>,
    /// File with the body of the delivery, byte for byte; `-` reads standard input
    #[arg(short, long, value_name = "FILE|-")]
    file: PathBuf,
    /// Header of the delivery, as `Name: value`; repeatable
    #[arg(short = 'H', long = "header", value_name = "HEADER", value_parser = header)]
    headers: Vec<(HeaderName, HeaderValue)>,
    /// Time of the delivery, such as 2026-01-31T12:00:00Z; default: now
    #[arg(long, value_name = "TIME")]
    at: Option<Timestamp>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

fn kind(text: &str) -> Result<WebhookReceiverKind, String> {
    let found = WebhookReceiverKind::NAMES.iter().find(|(name, _)| *name == text);
    let names = || WebhookReceiverKind::NAMES.map(|(name, _)| name).join(", ");
    found.map(|(_, kind)| *kind).ok_or_else(|| format!("expected one of {}", names()))
}

fn header(text: &str) -> Result<(HeaderName, HeaderValue), String> {
    let parts = text.split_once(':').and_then(|(name, value)| {
        Some((name.trim().parse().ok()?, HeaderValue::from_bytes(value.trim().as_bytes()).ok()?))
    });
    parts.ok_or_else(|| "expected `Name: value`".to_owned())
}

pub async fn run(args: HookVerifyArgs) -> anyhow::Result<Exit> {
    let (name, kind) = match (&args.receiver, args.kind) {
        (Some(name), _) => (name.clone(), receiver_kind(name, &args.repo).await?),
        (None, kind) => ("-".to_owned(), kind.unwrap_or_default()),
    };
    let secrets = read_secrets(&args).await?;
    let headers: HeaderMap = args.headers.iter().cloned().collect();
    let body = read_body(&args.file)?;
    let answer =
        receiver_answer(kind, &name, &headers, body, &secrets, args.at.unwrap_or_else(Timestamp::now));
    write(&answer, args.output)?;
    Ok(answer.exit())
}

/// The type of a receiver in `tutti.yaml`. Its secrets come from flags.
async fn receiver_kind(name: &str, repo: &Path) -> anyhow::Result<WebhookReceiverKind> {
    let fleet = repository::fleet(&repository::snapshot(repo, None).await?);
    let receivers = &fleet.instance.receivers;
    let Some(receiver) = receivers.iter().find(|receiver| receiver.name == name) else {
        let known: Vec<&str> = receivers.iter().map(|receiver| receiver.name.as_str()).collect();
        let known = if known.is_empty() { "it has none".to_owned() } else { known.join(", ") };
        bail!(
            "no receiver {name} in {}: {known} (help: give its type with --type)",
            repo.join("tutti.yaml").display()
        );
    };
    Ok(receiver.kind)
}

async fn read_secrets(args: &HookVerifyArgs) -> anyhow::Result<Vec<SecretString>> {
    let files = args.secret_file.iter().map(|path| SecretRef::File(path.display().to_string()));
    let references = args.secret_env.iter().cloned().map(SecretRef::Env).chain(files);
    let mut secrets = Vec::new();
    for reference in references {
        secrets.push(resolve_operator_secret(&reference, &HomeCluster::default()).await?);
    }
    Ok(secrets)
}

/// Reads one byte above the limit, to detect a larger body.
fn read_body(path: &Path) -> anyhow::Result<Vec<u8>> {
    let mut bytes = Vec::new();
    let most = LARGEST_BODY as u64 + 1;
    let read = match path.to_str() {
        Some("-") => std::io::stdin().take(most).read_to_end(&mut bytes),
        _ => std::fs::File::open(path).and_then(|file| file.take(most).read_to_end(&mut bytes)),
    };
    read.with_context(|| format!("failed to read the body from {}", path.display()))?;
    Ok(bytes)
}

#[derive(Debug, PartialEq)]
struct VerifyAnswer {
    status: StatusCode,
    verdict: DeliveryResult,
    reason: Option<String>,
    delivery: Option<String>,
    hint: Option<Value>,
    payload: Option<Value>,
}

impl VerifyAnswer {
    fn refused(status: StatusCode, verdict: DeliveryResult, reason: String) -> Self {
        Self { status, verdict, reason: Some(reason), delivery: None, hint: None, payload: None }
    }

    fn exit(&self) -> Exit {
        match self.verdict {
            DeliveryResult::Accepted | DeliveryResult::Ignored => Exit::Ok,
            DeliveryResult::Unauthorized => Exit::Denied,
            _ => Exit::Configuration,
        }
    }
}

impl From<WebhookRejection> for VerifyAnswer {
    fn from(rejected: WebhookRejection) -> Self {
        let verdict = match rejected {
            WebhookRejection::Unauthorized(_) => DeliveryResult::Unauthorized,
            WebhookRejection::Malformed(_) | WebhookRejection::UnsupportedMediaType(_) => {
                DeliveryResult::Malformed
            }
        };
        Self::refused(rejected.status(), verdict, rejected.to_string())
    }
}

fn receiver_answer(
    kind: WebhookReceiverKind,
    receiver: &str,
    headers: &HeaderMap,
    body: Vec<u8>,
    secrets: &[SecretString],
    now: Timestamp,
) -> VerifyAnswer {
    if let Err(rejected) = receive::check_signed(kind, headers) {
        return rejected.into();
    }
    if body.len() > LARGEST_BODY {
        let reason = format!("the body is larger than {LARGEST_BODY} bytes");
        return VerifyAnswer::refused(StatusCode::PAYLOAD_TOO_LARGE, DeliveryResult::TooLarge, reason);
    }
    let read = receive::authenticate(kind, headers, body, secrets, now)
        .and_then(|genuine| Ok((receive::read(kind, receiver, headers, &genuine)?, genuine.delivery)));
    match read {
        Err(rejected) => rejected.into(),
        Ok((WebhookOutcome::Ignored { reason }, delivery)) => VerifyAnswer {
            delivery,
            ..VerifyAnswer::refused(StatusCode::OK, DeliveryResult::Ignored, reason)
        },
        Ok((WebhookOutcome::Accepted(hint), delivery)) => VerifyAnswer {
            status: StatusCode::ACCEPTED,
            verdict: DeliveryResult::Accepted,
            reason: None,
            delivery,
            hint: Some(hint.without_payload()),
            payload: hint.payload.as_deref().cloned(),
        },
    }
}

fn write(answer: &VerifyAnswer, format: OutputFormat) -> anyhow::Result<()> {
    let status = answer.status.as_u16();
    if format != OutputFormat::Table {
        let VerifyAnswer { verdict, reason, delivery, hint, payload, .. } = answer;
        return output::write_value(
            format,
            &json!({"status": status, "verdict": verdict.as_str(), "reason": reason, "delivery": delivery, "hint": hint,
                "payload": payload}),
        );
    }
    say!("answer    {status} {}", answer.verdict.as_str());
    let hint = answer.hint.as_ref().map(hint_line);
    for (name, text) in [("reason", &answer.reason), ("delivery", &answer.delivery), ("hint", &hint)] {
        if let Some(text) = text {
            say!("{name:<9} {}", short_line(text, MAX_TEXT_CHARS));
        }
    }
    if answer.payload.is_some() {
        say!("payload   kept for triggers; -o json prints it");
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_push(signature: &str, event: &str, body: &str) -> VerifyAnswer {
        let pairs = [("x-gitea-signature", signature), ("x-gitea-event", event)];
        let headers = pairs.map(|(name, value)| header(&format!("{name}: {value}")).expect("a header"));
        let headers: HeaderMap = headers.into_iter().collect();
        let secrets = [SecretString::from("s3cr3t")];
        receiver_answer(
            WebhookReceiverKind::Gitea,
            "gitea",
            &headers,
            body.as_bytes().to_vec(),
            &secrets,
            Timestamp::UNIX_EPOCH,
        )
    }

    #[test]
    fn answer_matches_the_receiver() {
        const GOOD: &str = "8588fd50c04ac2c191575340c4c0fe284157898def8e4d10af822f05dd7c9bb5";
        const BODY: &str = r#"{"ref":"refs/heads/main"}"#;
        let check = |found: &VerifyAnswer, status: u16, verdict: DeliveryResult, exit: Exit| {
            assert_eq!((found.status.as_u16(), found.verdict, found.exit()), (status, verdict, exit));
        };
        let found = of_push(GOOD, "push", BODY);
        check(&found, 202, DeliveryResult::Accepted, Exit::Ok);
        assert_eq!(hint_line(&found.hint.expect("a hint")), "push refs/heads/main");
        check(&of_push(GOOD, "status", BODY), 200, DeliveryResult::Ignored, Exit::Ok);
        check(&of_push(GOOD, "", BODY), 400, DeliveryResult::Malformed, Exit::Configuration);
        check(&of_push(GOOD, "push", "{}"), 401, DeliveryResult::Unauthorized, Exit::Denied);
        check(&of_push("", "push", BODY), 401, DeliveryResult::Unauthorized, Exit::Denied);
        let large = " ".repeat(LARGEST_BODY + 1);
        check(&of_push(GOOD, "push", &large), 413, DeliveryResult::TooLarge, Exit::Configuration);
    }

    #[test]
    fn types_and_headers_are_read_or_refused() {
        assert_eq!(kind("standard-webhooks"), Ok(WebhookReceiverKind::StandardWebhooks));
        assert!(kind("github").is_err_and(|error| error.contains("woodpecker")));
        assert!(["x", ": y", "x y: z", "x: a\nb"].iter().all(|text| header(text).is_err()));
    }
}

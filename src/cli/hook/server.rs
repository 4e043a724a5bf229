//! `tutti hook deliveries` and `tutti hook replay`: the delivery log of a running process.

use anyhow::Context as _;
use clap::Args;
use jiff::Timestamp;
use serde_json::Value;

use super::hint_line::hint_line;
use crate::cli::api_client::{ApiClient, ApiReply, ApiServerArgs, TOKEN};
use crate::cli::exit::Exit;
use crate::cli::output::{self, OutputFormat, age, fit_terminal, say, table, tell, write_table};
use crate::model::short_line;

/// In characters.
const MAX_CELL_CHARS: usize = 100;

#[derive(Args, Debug)]
pub struct DeliveriesArgs {
    /// Number of one delivery to show with its headers; without it, the deliveries are listed
    number: Option<u64>,
    #[command(flatten)]
    server: ApiServerArgs,
    /// Maximum number of deliveries to list, newest first
    #[arg(long, default_value_t = 50)]
    limit: usize,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

#[derive(Args, Debug)]
pub struct ReplayArgs {
    /// Number of the delivery, as printed by `tutti hook deliveries`
    number: u64,
    #[command(flatten)]
    server: ApiServerArgs,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

pub async fn deliveries(args: DeliveriesArgs) -> anyhow::Result<Exit> {
    let client = args.server.client()?;
    let limit = args.limit.to_string();
    let reply = match args.number {
        Some(number) => client.get(&["deliveries", &number.to_string()], &[], None).await,
        None => client.get(&["deliveries"], &[("limit", &limit)], None).await,
    };
    let value = match success_body(&client, reply)? {
        Ok(value) => value,
        Err(exit) => return Ok(exit),
    };
    match (args.output, args.number) {
        (OutputFormat::Table, None) => write_table(&fit_terminal(delivery_table(&value, Timestamp::now()))),
        (OutputFormat::Table, Some(_)) => output::write_value(OutputFormat::Yaml, &value)?,
        (format, _) => output::write_value(format, &value)?,
    }
    Ok(Exit::Ok)
}

pub async fn replay(args: ReplayArgs) -> anyhow::Result<Exit> {
    let client = args.server.client()?;
    let reply = client.post(&["deliveries", &args.number.to_string(), "replay"], None, None).await;
    let value = match success_body(&client, reply)? {
        Ok(value) => value,
        Err(exit) => return Ok(exit),
    };
    match args.output {
        OutputFormat::Table => {
            say!("delivery {} was taken again, as number {}", args.number, value["number"])
        }
        format => output::write_value(format, &value)?,
    }
    Ok(Exit::Ok)
}

fn delivery_table(value: &Value, now: Timestamp) -> comfy_table::Table {
    let mut table = table(&["NUMBER", "AGE", "RECEIVER", "EVENT", "VERDICT", "HINT OR REASON"]);
    for one in value["deliveries"].as_array().into_iter().flatten() {
        let text = |name: &str| one[name].as_str().map(|text| short_line(text, MAX_CELL_CHARS));
        let hint = Some(&one["hint"]).filter(|hint| hint.is_object()).map(hint_line);
        let words = text("reason").into_iter().chain(hint).collect::<Vec<_>>().join(": ");
        table.add_row([
            one["number"].to_string(),
            age(one["time"].as_str(), now),
            text("receiver").unwrap_or_default(),
            text("event").unwrap_or_else(|| "-".to_owned()),
            text("verdict").unwrap_or_default(),
            short_line(&words, MAX_CELL_CHARS),
        ]);
    }
    table
}

/// The body of a success; or, after printing the error, the exit code.
fn success_body(client: &ApiClient, reply: Result<ApiReply, String>) -> anyhow::Result<Result<Value, Exit>> {
    let server = client.server();
    match reply {
        Ok(reply) if reply.status.is_success() => {
            let value = reply.json();
            Ok(Ok(value.with_context(|| format!("failed to read the answer of {server}: it is not JSON"))?))
        }
        Ok(reply) => {
            tell!("error: {server} answers {}: {}", reply.status, reply.reason());
            if reply.is_denied() {
                tell!("  help: set {TOKEN} to a token of this server");
                return Ok(Err(Exit::Denied));
            }
            let is_down = reply.status.is_server_error();
            Ok(Err(if is_down { Exit::Unreachable } else { Exit::Configuration }))
        }
        Err(error) => {
            tell!("error: failed to call {server}: {error}");
            Ok(Err(Exit::Unreachable))
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn deliveries_are_one_row_each() {
        let value = json!({"deliveries": [
            {"number": 2, "time": "2026-01-01T00:00:00Z", "receiver": "ci", "event": "build", "verdict": "accepted",
                "reason": "replay of 1", "hint": {"kind": "build", "repository": "shop/pay", "pull": 7, "reference": null,
                "after": "3f9c2d1a0000000000000000000000000000beef"}},
            {"number": 1, "time": "no time", "receiver": "x\u{1b}[2J", "verdict": "unauthorized", "reason": "no\nsignature",
                "hint": null}]});
        let now = "2026-01-01T00:00:07Z".parse().expect("a time");
        let lines = delivery_table(&value, now).to_string();
        let lines: Vec<&str> = lines.lines().map(str::trim_end).collect();
        assert!(lines[1].ends_with("replay of 1: build shop/pay #7 3f9c2d1"), "{lines:?}");
        assert!(lines[1].starts_with("2       7s"), "{lines:?}");
        assert!(lines[2].ends_with("no signature") && !lines[2].contains('\u{1b}'), "{lines:?}");
        assert_eq!(lines.len(), 3);
    }
}

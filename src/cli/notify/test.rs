//! `tutti notify test`: sends one message to a route's service, without reading or recording sent messages.

use anyhow::{Context as _, bail};
use clap::Args;
use jiff::Timestamp;

use super::super::exit::Exit;
use super::super::get;
use super::super::output::{say, tell};
use super::super::process::ProcessArgs;
use super::route::route_named;
use crate::cluster::host_name;
use crate::manifest::ManifestKind;
use crate::notification::message_text;
use crate::notification::resolve_service;
use crate::notification::service::send::{RequestRewriter, client, deliver};
use crate::notification::service::{SendOutcome, check};

#[derive(Args, Debug)]
pub struct NotifyTestArgs {
    /// Name of the notification route
    route: String,
    #[command(flatten)]
    process: ProcessArgs,
}

pub async fn run(args: NotifyTestArgs) -> anyhow::Result<Exit> {
    let process = args.process.resolve(Some(".")).await?;
    let (fleet, _) = get::read_manifests(&process, ManifestKind::Notification).await?;
    let route = route_named(&fleet.notifications, &args.route)?;
    let name = &route.name;
    let target = resolve_service(&process.grants, &process.connections.home, &route.service).await;
    let target = target.with_context(|| format!("route {name} cannot be used"))?;
    let at = Timestamp::now();
    let message = message_text::test_message(&fleet.instance, route, &sender_name(), at);
    if let Err(why) = check(&target, &message, at) {
        bail!("route {name} cannot be used: {why}");
    }
    let client = client().map_err(anyhow::Error::msg)?;
    let service = target.name();
    Ok(match deliver(&client, &target, &message, at, None, &RequestRewriter::default()).await {
        SendOutcome::Sent(_) => {
            say!("route {name}: {service} accepted the message: {}", message.title);
            if route.quiet_until(at, message.happened).is_some() {
                tell!("note: other messages of this route wait now: it has quiet hours");
            }
            Exit::Ok
        }
        SendOutcome::Refused(why) => {
            say!("route {name}: the message is refused: {why}");
            Exit::Denied
        }
        SendOutcome::RetryLater { why, .. } => {
            say!("route {name}: the message is not sent: {why}");
            Exit::Unreachable
        }
        SendOutcome::Unconfirmed(why) => {
            say!("route {name}: the message may have arrived: {why}");
            Exit::Unreachable
        }
    })
}

/// The user and host that send it.
fn sender_name() -> String {
    let user =
        ["USER", "LOGNAME"].iter().find_map(|name| std::env::var(name).ok().filter(|it| !it.is_empty()));
    match user {
        Some(user) => format!("{user}@{}", host_name()),
        None => host_name(),
    }
}

//! `tutti notify`: tests a route of notifications, and previews its messages.

mod preview;
mod test;

use std::sync::Arc;

use anyhow::bail;
use clap::{Args, Subcommand};

use super::exit::Exit;
use crate::manifest::read::nearest;
use crate::model::Notification;

#[derive(Args, Debug)]
pub struct NotifyArgs {
    #[command(subcommand)]
    command: NotifyCommand,
}

#[derive(Debug, Subcommand)]
enum NotifyCommand {
    /// Send one message to the service of a route, and say what the service answers
    Test(test::NotifyTestArgs),
    /// Show what the routes would send if a commit were deployed; nothing is sent, and no cluster is asked
    Preview(preview::PreviewArgs),
}

pub async fn run(args: NotifyArgs) -> anyhow::Result<Exit> {
    match args.command {
        NotifyCommand::Test(args) => test::run(args).await,
        NotifyCommand::Preview(args) => preview::run(args).await,
    }
}

fn route_named<'r>(routes: &'r [Arc<Notification>], name: &str) -> anyhow::Result<&'r Arc<Notification>> {
    let Some(route) = routes.iter().find(|route| route.name == name) else {
        let known: Vec<&str> = routes.iter().map(|route| route.name.as_str()).collect();
        let near = match nearest(name, &known) {
            Some(near) => format!("; did you mean {near}?"),
            None if known.is_empty() => String::new(),
            None => format!("; there are {}", known.join(", ")),
        };
        bail!("no route {name} in notifications/{near}")
    };
    Ok(route)
}

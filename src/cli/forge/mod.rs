//! `tutti forge`: settings of the repository at its forge. `setup` applies them, `check` compares.

mod items;
mod owners;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use reqwest::Url;
use secrecy::SecretString;
use serde::Serialize;

use super::at_forge::instance;
use super::exit::Exit;
use super::output::{self, Format, say, tell};
use super::process::{Process, ProcessArgs};
use crate::controller::resolve_secret;
use crate::forge::{Client, NewHook, Permission, own_labels};
use crate::model::{Forge, Instance, Receiver, ReceiverKind, SecretRef};
use items::{Change, Found, Item, Wanted};

/// Scopes of tutti's token. The token of `setup` needs them too, from an administrator of the repository.
const SCOPES: &str = "write:repository, write:issue, read:user";

#[derive(Args, Debug)]
pub struct ForgeArgs {
    #[command(subcommand)]
    command: ForgeCommand,
}

#[derive(Debug, Subcommand)]
enum ForgeCommand {
    /// Create or change the webhook, the branch protection and the labels that tutti needs
    Setup(SetupArgs),
    /// Compare the forge with what `setup` would make of it, and change nothing
    Check(CheckArgs),
}

#[derive(Args, Debug)]
struct SetupArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Address at which the forge reaches the webhook port of tutti, without /hooks/v1/…
    #[arg(long, value_name = "URL")]
    hooks_url: String,
    /// Print what would be done, and change nothing
    #[arg(long)]
    dry_run: bool,
    /// Create the webhook anew: a forge never shows a secret and never changes one
    #[arg(long)]
    new_secret: bool,
    /// Who reviews the files of the platform, in the CODEOWNERS that is printed; by default the owner of the repository
    #[arg(long, value_delimiter = ',', value_name = "@USER|@ORG/TEAM")]
    owners: Vec<String>,
}

#[derive(Args, Debug)]
struct CheckArgs {
    #[command(flatten)]
    common: CommonArgs,
    /// Address at which the forge reaches the webhook port of tutti; without it, a webhook at any host is good
    #[arg(long, value_name = "URL")]
    hooks_url: Option<String>,
}

#[derive(Args, Debug)]
struct CommonArgs {
    #[command(flatten)]
    process: ProcessArgs,
    /// Read the folder as it stands on disk, before a commit
    #[arg(long)]
    worktree: bool,
    /// The receiver of tutti.yaml that the webhook is for; needed when several are of type gitea or forgejo
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// Environment variable with the token of an administrator of the repository, in place of the one in tutti.yaml
    #[arg(long, value_name = "NAME", conflicts_with = "admin_token_file")]
    admin_token_env: Option<String>,
    /// File with the token of an administrator of the repository, in place of the one in tutti.yaml
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    #[arg(short, long, value_enum, default_value_t)]
    output: Format,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct Report {
    items: Vec<Line>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_owners: Option<CodeOwners>,
}

#[derive(Serialize)]
struct Line {
    item: &'static str,
    state: &'static str,
    text: String,
}

#[derive(Serialize)]
struct CodeOwners {
    path: &'static str,
    text: String,
}

pub async fn run(args: ForgeArgs) -> anyhow::Result<Exit> {
    match args.command {
        ForgeCommand::Setup(args) => setup(args).await,
        ForgeCommand::Check(args) => check(args).await,
    }
}

async fn setup(args: SetupArgs) -> anyhow::Result<Exit> {
    let site = Site::open(&args.common, Some(&args.hooks_url)).await?;
    let secret = site.secret().await?;
    let items = site.items(args.new_secret).await?;
    let mut lines = Vec::new();
    for item in &items {
        if !args.dry_run
            && let Some(change) = &item.change
        {
            site.carry_out(change, &secret).await?;
        }
        let state = if args.dry_run { item.planned() } else { item.done() };
        lines.push(Line { item: item.name, state, text: item.text.clone() });
    }
    let owner = site.forge.repository.split('/').next().unwrap_or_default();
    let owners = if args.owners.is_empty() { vec![format!("@{owner}")] } else { args.owners };
    let text = owners::code_owners(&site.process.source.path, &owners);
    let report = Report { items: lines, code_owners: Some(CodeOwners { path: owners::PATH, text }) };
    write(&report, args.common.output)?;
    if args.common.output == Format::Table {
        tell!("note: tutti's token needs the scopes {SCOPES}; this command also needs an administrator's");
        if !args.new_secret && items.iter().any(Item::is_known_webhook) {
            tell!(
                "note: the forge does not show the webhook's secret; --new-secret creates the webhook anew"
            );
        }
    }
    Ok(if items.iter().any(Item::needs_person) { Exit::Differences } else { Exit::Ok })
}

async fn check(args: CheckArgs) -> anyhow::Result<Exit> {
    let site = Site::open(&args.common, args.hooks_url.as_deref()).await?;
    let items = site.items(false).await?;
    let line = |item: &Item| Line { item: item.name, state: item.compared(), text: item.text.clone() };
    let report = Report { items: items.iter().map(line).collect(), code_owners: None };
    write(&report, args.common.output)?;
    Ok(if items.iter().all(Item::is_good) { Exit::Ok } else { Exit::Differences })
}

fn write(report: &Report, format: Format) -> anyhow::Result<()> {
    if format != Format::Table {
        return output::write_value(format, report);
    }
    for Line { item, state, text } in &report.items {
        say!("{item:<12} {state:<16} {text}");
    }
    if let Some(CodeOwners { path, text }) = &report.code_owners {
        say!("\nProposal for {path}, which asks for reviews of what only the platform may change:\n\n{text}");
    }
    Ok(())
}

/// The repository at its forge, with the clients of both users.
struct Site {
    process: Process,
    instance: Instance,
    forge: Forge,
    receiver: Receiver,
    /// Without a trailing `/`.
    hooks_url: Option<String>,
    admin: Client,
    /// With tutti's own token, if there is one.
    bot: Option<Client>,
}

impl Site {
    async fn open(args: &CommonArgs, hooks_url: Option<&str>) -> anyhow::Result<Self> {
        let hooks_url = hooks_url.map(checked_url).transpose()?;
        let process = args.process.resolve(Some(".")).await?;
        let instance = instance(&process, args.worktree).await?;
        let forge = instance.forge.clone().context("tutti.yaml names no forge: add spec.forge")?;
        let receiver = receiver(&instance.receivers, args.receiver.as_deref())?.clone();
        let grants = &process.grants;
        let client =
            |token: SecretString| Client::gitea(&forge.url, &forge.repository, Some(token), &grants.forge);
        let bot = match &forge.token {
            Some(reference) => Some(client(grants.resolve(reference, &process.ways.home).await?)?),
            None => None,
        };
        let named = match (&args.admin_token_env, &args.admin_token_file) {
            (Some(name), _) => Some(SecretRef::Env(name.clone())),
            (None, Some(path)) => Some(SecretRef::File(path.display().to_string())),
            (None, None) => None,
        };
        let admin = match (&named, &bot) {
            (Some(named), _) => client(resolve_secret(named, &process.ways.home.of_operator()).await?)?,
            (None, Some(bot)) => bot.clone(),
            (None, None) => {
                bail!(
                    "no token: name one in tutti.yaml (spec.forge.credentials) or give --admin-token-env NAME"
                )
            }
        };
        Ok(Self { process, instance, forge, receiver, hooks_url, admin, bot })
    }

    async fn items(&self, new_secret: bool) -> anyhow::Result<Vec<Item>> {
        let facts = self.admin.repository_facts().await?;
        let branch = self.process.source.branch.clone().unwrap_or(facts.default_branch);
        let prefix = &self.instance.status_prefix;
        let wanted = Wanted {
            branch: branch.clone(),
            hook_path: format!("/hooks/v1/{}", self.receiver.name),
            hooks_url: self.hooks_url.clone(),
            new_secret,
            required: vec![format!("{prefix}/validate"), format!("{prefix}/gate")],
            labels: own_labels(prefix),
        };
        let found = Found {
            hooks: self.admin.hooks().await?,
            protection: self.admin.protection(&branch).await?,
            labels: self.admin.labels().await?,
        };
        let mut items = vec![self.token().await?];
        items.extend(items::compare(found, &wanted));
        Ok(items)
    }

    async fn token(&self) -> anyhow::Result<Item> {
        let repository = &self.forge.repository;
        let Some(bot) = &self.bot else {
            return Ok(Item::of_token(false, "tutti.yaml names none: add spec.forge.credentials".to_owned()));
        };
        let user = bot.who_am_i().await?.login;
        let permission = bot.repository_facts().await?.permission;
        let text = format!("user {user}, permission on {repository}: {}", permission.as_str());
        Ok(Item::of_token(permission >= Permission::Write, text))
    }

    /// The receiver's newest secret, which is listed first.
    async fn secret(&self) -> anyhow::Result<SecretString> {
        let name = &self.receiver.name;
        let first = self.receiver.secrets.first();
        let reference = first.with_context(|| format!("receiver {name} of tutti.yaml has no secret"))?;
        Ok(self.process.grants.resolve(reference, &self.process.ways.home).await?)
    }

    async fn carry_out(&self, change: &Change, secret: &SecretString) -> anyhow::Result<()> {
        let create = async |url: &String, events: &Vec<String>| {
            let hook = NewHook { url: url.clone(), secret: secret.clone(), events: events.clone() };
            self.admin.create_hook(&hook).await
        };
        match change {
            Change::CreateHook { url, events } => create(url, events).await?,
            Change::ReplaceHook { id, url, events } => {
                // This order loses no event.
                create(url, events).await?;
                self.admin.delete_hook(*id).await?;
            }
            Change::EditHook { hook, events } => self.admin.edit_hook(hook, events).await?,
            Change::CreateProtection { branch, required } => {
                self.admin.create_protection(branch, required).await?;
            }
            Change::EditProtection { rule, required } => self.admin.edit_protection(rule, required).await?,
            Change::CreateLabels(labels) => drop(self.admin.ensure_labels(labels).await?),
        }
        Ok(())
    }
}

/// The forge's receiver; other programs configure theirs.
fn receiver<'r>(receivers: &'r [Receiver], name: Option<&str>) -> anyhow::Result<&'r Receiver> {
    let is_of_forge =
        |receiver: &&Receiver| matches!(receiver.kind, ReceiverKind::Gitea | ReceiverKind::Forgejo);
    if let Some(name) = name {
        let found = receivers.iter().find(|receiver| receiver.name == name);
        let found = found.with_context(|| format!("tutti.yaml has no receiver `{name}`"))?;
        if !is_of_forge(&found) {
            bail!(
                "receiver `{name}` of tutti.yaml has type {}: give one of type gitea or forgejo",
                found.kind.as_str()
            );
        }
        return Ok(found);
    }
    let of_forge: Vec<&Receiver> = receivers.iter().filter(is_of_forge).collect();
    match of_forge[..] {
        [one] => Ok(one),
        [] => bail!("tutti.yaml has no receiver of type gitea or forgejo: add one to spec.receivers"),
        _ => {
            let names: Vec<&str> = of_forge.iter().map(|receiver| receiver.name.as_str()).collect();
            bail!("tutti.yaml has several receivers of the forge: give --receiver {}", names.join(" or "))
        }
    }
}

fn checked_url(text: &str) -> anyhow::Result<String> {
    let url = Url::parse(text).with_context(|| format!("--hooks-url {text} is not an address"))?;
    if !matches!(url.scheme(), "http" | "https") || url.query().is_some() || url.path().contains("/hooks/v1")
    {
        bail!("--hooks-url {text}: give the address without /hooks/v1/…, as https://tutti.example.com");
    }
    Ok(text.trim_end_matches('/').to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Written;

    #[test]
    fn webhook_is_for_the_receiver_of_the_forge() {
        let check = |receivers: &[(&str, ReceiverKind)], name: Option<&str>, expected: Result<&str, &str>| {
            let receivers: Vec<Receiver> = receivers
                .iter()
                .map(|(name, kind)| Receiver {
                    name: (*name).to_owned(),
                    kind: *kind,
                    secrets: Vec::new(),
                    written: Written::default(),
                })
                .collect();
            let found =
                receiver(&receivers, name).map(|found| found.name.clone()).map_err(|it| it.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{receivers:?} {name:?}");
        };
        let (git, builds) = (("git", ReceiverKind::Gitea), ("builds", ReceiverKind::Drone));
        let other = ("other", ReceiverKind::Forgejo);
        check(&[git], None, Ok("git"));
        check(&[builds, other], None, Ok("other"));
        check(&[builds, git, other], Some("other"), Ok("other"));
        check(
            &[],
            None,
            Err("tutti.yaml has no receiver of type gitea or forgejo: add one to spec.receivers"),
        );
        check(
            &[builds],
            None,
            Err("tutti.yaml has no receiver of type gitea or forgejo: add one to spec.receivers"),
        );
        check(
            &[git, builds, other],
            None,
            Err("tutti.yaml has several receivers of the forge: give --receiver git or other"),
        );
        check(&[git], Some("x"), Err("tutti.yaml has no receiver `x`"));
        check(
            &[git, builds],
            Some("builds"),
            Err("receiver `builds` of tutti.yaml has type drone: give one of type gitea or forgejo"),
        );
    }
}

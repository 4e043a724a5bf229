//! `tutti forge`: settings of the repository at its forge. `setup` applies them, `check` compares.

mod owners;
mod setup_items;

use std::path::PathBuf;

use anyhow::{Context as _, bail};
use clap::{Args, Subcommand};
use reqwest::Url;
use secrecy::SecretString;
use serde::Serialize;

use super::exit::Exit;
use super::forge_repository::read_instance;
use super::output::{self, OutputFormat, say, tell};
use super::process::{ProcessArgs, ProcessSettings};
use crate::controller::resolve_operator_secret;
use crate::forge::{ForgeClient, NewHook, Permission, own_labels};
use crate::model::{ForgeSettings, Instance, SecretRef, WebhookReceiver, WebhookReceiverKind};
use setup_items::{DesiredForgeState, ForgeState, SetupChange, SetupItem};

/// Scopes of tutti's token. The token of `setup` needs them too, from an administrator of the repository.
const SCOPES: &str = "write:repository, write:issue, read:user";

#[derive(Args, Debug)]
pub struct ForgeArgs {
    #[command(subcommand)]
    command: ForgeCommand,
}

#[derive(Debug, Subcommand)]
enum ForgeCommand {
    /// Create or update the webhook, the branch protection and the labels that tutti needs
    Setup(SetupArgs),
    /// Compare the forge with the result of `tutti forge setup`; nothing is changed
    Check(CheckArgs),
}

#[derive(Args, Debug)]
struct SetupArgs {
    #[command(flatten)]
    common: ForgeCommonArgs,
    /// URL at which the forge reaches the webhook port of tutti, without /hooks/v1/…
    #[arg(long, value_name = "URL")]
    hooks_url: String,
    /// Print the changes without making them
    #[arg(long)]
    dry_run: bool,
    /// Replace the webhook by a new one with the current secret; a forge can neither show nor change a secret
    #[arg(long)]
    new_secret: bool,
    /// Users or teams that review the platform files in the printed CODEOWNERS; default: the owner of the repository
    #[arg(long, value_delimiter = ',', value_name = "@USER|@ORG/TEAM")]
    owners: Vec<String>,
}

#[derive(Args, Debug)]
struct CheckArgs {
    #[command(flatten)]
    common: ForgeCommonArgs,
    /// URL at which the forge reaches the webhook port of tutti, without /hooks/v1/…; by default any host is accepted
    #[arg(long, value_name = "URL")]
    hooks_url: Option<String>,
}

#[derive(Args, Debug)]
struct ForgeCommonArgs {
    #[command(flatten)]
    process: ProcessArgs,
    /// Read the files on disk, including uncommitted changes, instead of the last commit
    #[arg(long)]
    worktree: bool,
    /// Receiver in tutti.yaml that the webhook is for; required if several have type gitea or forgejo
    #[arg(long, value_name = "NAME")]
    receiver: Option<String>,
    /// Environment variable with the token of a repository administrator; default: the token in tutti.yaml
    #[arg(long, value_name = "NAME", conflicts_with = "admin_token_file")]
    admin_token_env: Option<String>,
    /// File with the token of a repository administrator; default: the token in tutti.yaml
    #[arg(long, value_name = "FILE")]
    admin_token_file: Option<PathBuf>,
    /// Output format
    #[arg(short, long, value_enum, default_value_t)]
    output: OutputFormat,
}

#[derive(Serialize)]
#[serde(rename_all = "camelCase")]
struct ForgeReport {
    items: Vec<SetupLine>,
    #[serde(skip_serializing_if = "Option::is_none")]
    code_owners: Option<CodeOwners>,
}

#[derive(Serialize)]
struct SetupLine {
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
    let site = ForgeSetup::open(&args.common, Some(&args.hooks_url)).await?;
    let secret = site.receiver_secret().await?;
    let items = site.items(args.new_secret).await?;
    let mut lines = Vec::new();
    for item in &items {
        if !args.dry_run
            && let Some(change) = &item.change
        {
            site.apply_change(change, &secret).await?;
        }
        let state = if args.dry_run { item.planned_state() } else { item.done_state() };
        lines.push(SetupLine { item: item.name, state, text: item.text.clone() });
    }
    let owner = site.forge.repository.split('/').next().unwrap_or_default();
    let owners = if args.owners.is_empty() { vec![format!("@{owner}")] } else { args.owners };
    let text = owners::code_owners(&site.process.source.path, &owners);
    let report =
        ForgeReport { items: lines, code_owners: Some(CodeOwners { path: owners::CODEOWNERS_PATH, text }) };
    write_report(&report, args.common.output)?;
    if args.common.output == OutputFormat::Table {
        tell!("note: tutti's token needs the scopes {SCOPES}; this command also needs an administrator's");
        if !args.new_secret && items.iter().any(SetupItem::is_known_webhook) {
            tell!("note: the forge does not show the webhook's secret; --new-secret creates a new webhook");
        }
    }
    Ok(if items.iter().any(SetupItem::needs_person) { Exit::Differences } else { Exit::Ok })
}

async fn check(args: CheckArgs) -> anyhow::Result<Exit> {
    let site = ForgeSetup::open(&args.common, args.hooks_url.as_deref()).await?;
    let items = site.items(false).await?;
    let line = |item: &SetupItem| SetupLine {
        item: item.name,
        state: item.compared_state(),
        text: item.text.clone(),
    };
    let report = ForgeReport { items: items.iter().map(line).collect(), code_owners: None };
    write_report(&report, args.common.output)?;
    Ok(if items.iter().all(SetupItem::is_as_desired) { Exit::Ok } else { Exit::Differences })
}

fn write_report(report: &ForgeReport, format: OutputFormat) -> anyhow::Result<()> {
    if format != OutputFormat::Table {
        return output::write_value(format, report);
    }
    for SetupLine { item, state, text } in &report.items {
        say!("{item:<12} {state:<16} {text}");
    }
    if let Some(CodeOwners { path, text }) = &report.code_owners {
        say!(
            "\nProposal for {path}, which requires reviews of files that only the platform team may \
             change:\n\n{text}"
        );
    }
    Ok(())
}

/// The repository at its forge, with the clients of both users.
struct ForgeSetup {
    process: ProcessSettings,
    instance: Instance,
    forge: ForgeSettings,
    receiver: WebhookReceiver,
    /// Without a trailing `/`.
    hooks_url: Option<String>,
    admin: ForgeClient,
    /// With tutti's own token, if there is one.
    bot: Option<ForgeClient>,
}

impl ForgeSetup {
    async fn open(args: &ForgeCommonArgs, hooks_url: Option<&str>) -> anyhow::Result<Self> {
        let hooks_url = hooks_url.map(checked_hooks_url).transpose()?;
        let process = args.process.resolve(Some(".")).await?;
        let instance = read_instance(&process, args.worktree).await?;
        let forge = instance.forge.clone().context("tutti.yaml names no forge: add spec.forge")?;
        let receiver = forge_receiver(&instance.receivers, args.receiver.as_deref())?.clone();
        let grants = &process.grants;
        let client = |token: SecretString| {
            ForgeClient::gitea(&forge.url, &forge.repository, Some(token), &grants.forge)
        };
        let bot = match &forge.token {
            Some(reference) => Some(client(grants.resolve(reference, &process.connections.home).await?)?),
            None => None,
        };
        let named = match (&args.admin_token_env, &args.admin_token_file) {
            (Some(name), _) => Some(SecretRef::Env(name.clone())),
            (None, Some(path)) => Some(SecretRef::File(path.display().to_string())),
            (None, None) => None,
        };
        let admin = match (&named, &bot) {
            (Some(named), _) => {
                client(resolve_operator_secret(named, &process.connections.home.of_operator()).await?)?
            }
            (None, Some(bot)) => bot.clone(),
            (None, None) => {
                bail!(
                    "no token: name one in tutti.yaml (spec.forge.credentials) or give --admin-token-env NAME"
                )
            }
        };
        Ok(Self { process, instance, forge, receiver, hooks_url, admin, bot })
    }

    async fn items(&self, new_secret: bool) -> anyhow::Result<Vec<SetupItem>> {
        let facts = self.admin.repository_facts().await?;
        let branch = self.process.source.branch.clone().unwrap_or(facts.default_branch);
        let prefix = &self.instance.status_prefix;
        let wanted = DesiredForgeState {
            branch: branch.clone(),
            hook_path: format!("/hooks/v1/{}", self.receiver.name),
            hooks_url: self.hooks_url.clone(),
            new_secret,
            required: vec![format!("{prefix}/validate"), format!("{prefix}/gate")],
            labels: own_labels(prefix),
        };
        let found = ForgeState {
            hooks: self.admin.hooks().await?,
            protection: self.admin.protection(&branch).await?,
            labels: self.admin.labels().await?,
        };
        let mut items = vec![self.token_item().await?];
        items.extend(setup_items::compare_setup(found, &wanted));
        Ok(items)
    }

    async fn token_item(&self) -> anyhow::Result<SetupItem> {
        let repository = &self.forge.repository;
        let Some(bot) = &self.bot else {
            return Ok(SetupItem::of_token(
                false,
                "tutti.yaml names none: add spec.forge.credentials".to_owned(),
            ));
        };
        let user = bot.who_am_i().await?.login;
        let permission = bot.repository_facts().await?.permission;
        let text = format!("user {user}, permission on {repository}: {}", permission.as_str());
        Ok(SetupItem::of_token(permission >= Permission::Write, text))
    }

    /// The receiver's newest secret, which is listed first.
    async fn receiver_secret(&self) -> anyhow::Result<SecretString> {
        let name = &self.receiver.name;
        let first = self.receiver.secrets.first();
        let reference = first.with_context(|| format!("receiver {name} of tutti.yaml has no secret"))?;
        Ok(self.process.grants.resolve(reference, &self.process.connections.home).await?)
    }

    async fn apply_change(&self, change: &SetupChange, secret: &SecretString) -> anyhow::Result<()> {
        let create = async |url: &String, events: &Vec<String>| {
            let hook = NewHook { url: url.clone(), secret: secret.clone(), events: events.clone() };
            self.admin.create_hook(&hook).await
        };
        match change {
            SetupChange::CreateHook { url, events } => create(url, events).await?,
            SetupChange::ReplaceHook { id, url, events } => {
                // This order loses no event.
                create(url, events).await?;
                self.admin.delete_hook(*id).await?;
            }
            SetupChange::EditHook { hook, events } => self.admin.edit_hook(hook, events).await?,
            SetupChange::CreateProtection { branch, required } => {
                self.admin.create_protection(branch, required).await?;
            }
            SetupChange::EditProtection { rule, required } => {
                self.admin.edit_protection(rule, required).await?
            }
            SetupChange::CreateLabels(labels) => drop(self.admin.ensure_labels(labels).await?),
        }
        Ok(())
    }
}

/// The forge's receiver; other programs configure theirs.
fn forge_receiver<'r>(
    receivers: &'r [WebhookReceiver],
    name: Option<&str>,
) -> anyhow::Result<&'r WebhookReceiver> {
    let is_of_forge = |receiver: &&WebhookReceiver| {
        matches!(receiver.kind, WebhookReceiverKind::Gitea | WebhookReceiverKind::Forgejo)
    };
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
    let of_forge: Vec<&WebhookReceiver> = receivers.iter().filter(is_of_forge).collect();
    match of_forge[..] {
        [one] => Ok(one),
        [] => bail!("tutti.yaml has no receiver of type gitea or forgejo: add one to spec.receivers"),
        _ => {
            let names: Vec<&str> = of_forge.iter().map(|receiver| receiver.name.as_str()).collect();
            bail!("tutti.yaml has several receivers of the forge: give --receiver {}", names.join(" or "))
        }
    }
}

fn checked_hooks_url(text: &str) -> anyhow::Result<String> {
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
    use crate::model::UncomparedLocation;

    #[test]
    fn webhook_is_for_the_receiver_of_the_forge() {
        let check = |receivers: &[(&str, WebhookReceiverKind)],
                     name: Option<&str>,
                     expected: Result<&str, &str>| {
            let receivers: Vec<WebhookReceiver> = receivers
                .iter()
                .map(|(name, kind)| WebhookReceiver {
                    name: (*name).to_owned(),
                    kind: *kind,
                    secrets: Vec::new(),
                    written: UncomparedLocation::default(),
                })
                .collect();
            let found =
                forge_receiver(&receivers, name).map(|found| found.name.clone()).map_err(|it| it.to_string());
            assert_eq!(found.as_deref().map_err(String::as_str), expected, "{receivers:?} {name:?}");
        };
        let (git, builds) = (("git", WebhookReceiverKind::Gitea), ("builds", WebhookReceiverKind::Drone));
        let other = ("other", WebhookReceiverKind::Forgejo);
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

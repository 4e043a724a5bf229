//! `tutti promote`: sets the version of a ring, by one scalar in one file.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use anyhow::{Context as _, bail};
use clap::Args;

use super::checkout::{ApprovalFileArgs, checkout, commit};
use super::exit::{self, Exit};
use super::forge_repository::ForgeRepository;
use super::output::{say, tell};
use super::process::ProcessSettings;
use super::{diagnostics, files, repository, session};
use crate::cluster::WritePermit;
use crate::controller::{ConfigHead, RunEnding, RunUntil};
use crate::fleet::Fleet;
use crate::manifest::read::nearest;
use crate::model::{AppId, Revision};
use crate::promotion::{self, PinChange, PromotionInput, ProposedChange, RequestRefusal};
use crate::pulls::{ForgeAccess, Proposal, PublishError, Publisher};
use crate::report::{Overview, ring_states, rollout_states, unobserved_reason};
use crate::source::ConfigRepository;

#[derive(Args, Debug)]
pub struct PromoteArgs {
    /// App, as NAMESPACE/NAME or as NAME if it is unique
    app: String,
    /// Ring that the version is copied from; default: the ring before the one of --to
    #[arg(long, value_name = "RING", conflicts_with = "version")]
    from: Option<String>,
    /// Ring that gets the version
    #[arg(long, value_name = "RING")]
    to: String,
    /// Version to set, regardless of the versions in other rings; no cluster is contacted
    #[arg(long)]
    version: Option<String>,
    /// Open a pull request at the forge instead of writing the pin to the checkout
    #[arg(long, conflicts_with = "commit")]
    open: bool,
    #[command(flatten)]
    file: ApprovalFileArgs,
}

enum PromotionDestination {
    Folder(PathBuf),
    Forge(Box<ForgeRepository>),
}

pub async fn run(args: PromoteArgs) -> anyhow::Result<Exit> {
    let process = args.file.process.resolve(Some(".")).await?;
    let place = match args.open {
        true => PromotionDestination::Forge(Box::new(ForgeRepository::open(&process).await?)),
        false => PromotionDestination::Folder(checkout(&process)?),
    };
    let process = match &place {
        PromotionDestination::Forge(site) => site.process.clone(),
        PromotionDestination::Folder(_) => process,
    };
    let (overview, fleet) = match args.version {
        Some(_) => {
            let snapshot = match &place {
                PromotionDestination::Forge(_) => repository::load_snapshot(&process, false).await?,
                PromotionDestination::Folder(root) => repository::snapshot(root, None).await?,
            };
            (Overview::default(), repository::fleet(&snapshot))
        }
        None => {
            let until = RunUntil::Explained { timeout: args.file.timeout };
            let (ending, overview) = session::observe(&process, until, false).await?;
            diagnostics::print(&overview.diagnostics);
            if matches!(ending, RunEnding::Stopped) {
                return Ok(Exit::Interrupted);
            }
            let fleet = fleet_at(&process, &overview).await?;
            (Overview::clone(&overview), fleet)
        }
    };
    let app = app_named(&fleet, &args.app)?;
    let change = with_promotion_input(&overview, &fleet, |input| {
        promotion::requested_promotion(input, &app, args.from.as_deref(), &args.to, args.version.as_deref())
    });
    let change = match change {
        Ok(change) => change,
        Err(why) => {
            let away = exit::offline_clusters(&overview, |_| true);
            if let (RequestRefusal::NotDone(_), Some(away)) = (&why, away) {
                tell!("error: {why}; {away}");
                return Ok(Exit::Unreachable);
            }
            return Err(why.into());
        }
    };
    match &place {
        PromotionDestination::Forge(site) => open_pull_request(site, &change, fleet).await,
        PromotionDestination::Folder(root) => {
            write_pins(root, &change, overview.revision.as_ref(), args.file.commit)
        }
    }
}

/// Opens or updates the promotion's pull request. A running tutti continues it as its own.
async fn open_pull_request(
    site: &ForgeRepository,
    change: &ProposedChange,
    fleet: Fleet,
) -> anyhow::Result<Exit> {
    let ProposedChange::Promote { ring, pins, .. } = change else { bail!("this change is not a promotion") };
    let ForgeRepository { client, process, instance, .. } = site;
    if instance.forge.as_ref().is_none_or(|forge| forge.token.is_none()) {
        bail!("no token: name one in tutti.yaml (spec.forge.credentials)");
    }
    let access = ForgeAccess::of(client.clone(), process.source.branch.as_deref()).await?;
    let repository = ConfigRepository::open(process.source.clone()).await.map_err(session::SourceError)?;
    let tip = repository.fetch_reference(&format!("refs/heads/{}", access.branch)).await;
    let snapshot = repository
        .files_without_history(&tip.map_err(session::SourceError)?)
        .await
        .map_err(session::SourceError)?;
    let read = |path: &str| snapshot.text(path).map(ToOwned::to_owned);
    let files = change.files(&snapshot.revision, &read).map_err(anyhow::Error::msg)?;
    if files.iter().all(|(path, text)| read(path).as_ref() == Some(text)) {
        for PinChange { app, file, to, .. } in pins {
            say!("{file}: {app} has {to} on {ring} already");
        }
        return Ok(Exit::Ok);
    }
    let files = files.into_iter().map(|(path, text)| (path, Some(text))).collect();
    let head = ConfigHead { fleet: Arc::new(fleet), snapshot: Arc::new(snapshot), defined: None };
    let publisher = Publisher {
        access: &access,
        permit: &WritePermit::default(),
        repository: &repository,
        head: &head,
        prefix: &instance.status_prefix,
    };
    let pull =
        publisher.propose(&Proposal::of(change, &[], files, publisher.prefix)).await.map_err(|error| {
            match error {
                PublishError::Forge(error) => anyhow::Error::from(error),
                PublishError::Git(error) => session::SourceError(error).into(),
                other => other.into(),
            }
        })?;
    say!("#{}: {}", pull.number, change.title());
    say!("{}", pull.url);
    Ok(Exit::Ok)
}

/// Writes the changed files of a promotion.
fn write_pins(
    root: &Path,
    change: &ProposedChange,
    head: Option<&Revision>,
    commits: bool,
) -> anyhow::Result<Exit> {
    let head = head.cloned().unwrap_or_else(|| Revision::from(Revision::WORKTREE));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let ProposedChange::Promote { ring, pins, .. } = change else { bail!("this change is not a promotion") };
    for (PinChange { app, to, .. }, (path, text)) in
        pins.iter().zip(change.files(&head, &read).map_err(anyhow::Error::msg)?)
    {
        let place = root.join(&path);
        if read(&path).is_some_and(|before| before == text) {
            say!("{}: {app} has {to} on {ring} already", place.display());
            continue;
        }
        files::write(root, &path, &text)?;
        say!("{}: {}", place.display(), change.title());
        if commits {
            commit(root, &place, &change.title())?;
            say!("committed; push it to continue");
        } else {
            say!("commit and push it to continue");
        }
    }
    Ok(Exit::Ok)
}

/// The fleet at an overview's commit.
pub async fn fleet_at(process: &ProcessSettings, overview: &Overview) -> anyhow::Result<Fleet> {
    let revision = overview.revision.as_ref().context("the config repository was not read")?;
    let repository = ConfigRepository::open(process.source.clone()).await.map_err(session::SourceError)?;
    let snapshot = repository.snapshot(revision).await.map_err(session::SourceError)?;
    Ok(repository::fleet(&snapshot))
}

/// Builds the input of `promotion` without pull requests.
pub fn with_promotion_input<T>(
    overview: &Overview,
    fleet: &Fleet,
    then: impl FnOnce(&PromotionInput<'_>) -> T,
) -> T {
    let rings = ring_states(overview, fleet);
    let rollouts = rollout_states(overview);
    let unread = unobserved_reason(overview);
    then(&PromotionInput {
        fleet,
        rings: &rings,
        rollouts: &rollouts,
        undo: &std::collections::BTreeMap::new(),
        pull_requests: &[],
        unread_reason: unread.as_deref(),
        limit: promotion::MAX_OPEN,
        now: jiff::Timestamp::now(),
        wall_time: jiff::Timestamp::now(),
    })
}

fn app_named(fleet: &Fleet, name: &str) -> anyhow::Result<AppId> {
    let is_it = |app: &&AppId| *app.name == *name || app.to_string() == name;
    let known: Vec<&AppId> = fleet.apps.keys().chain(fleet.broken_apps.keys()).collect();
    let fitting: Vec<&AppId> = known.iter().copied().filter(is_it).collect();
    match fitting[..] {
        [app] => match fleet.broken_apps.get(app).and_then(|broken| broken.errors.first()) {
            Some(error) => bail!("app {app} cannot be read: {error}"),
            None => Ok(app.clone()),
        },
        [] => {
            let names: Vec<String> = known.iter().map(ToString::to_string).collect();
            let bare = known.iter().map(|app| &*app.name);
            let all: Vec<&str> = names.iter().map(String::as_str).chain(bare).collect();
            let near = nearest(name, &all).map(|near| format!("; did you mean {near}?")).unwrap_or_default();
            bail!("no app {name} here{near}")
        }
        _ => {
            let names: Vec<String> = fitting.iter().map(ToString::to_string).collect();
            bail!("{name} is the name of several apps: {}", names.join(", "))
        }
    }
}

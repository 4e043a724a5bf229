//! `tutti promote`: brings a version to a ring, by one scalar in one file.

use std::path::Path;

use anyhow::{Context as _, bail};
use clap::Args;

use super::approve::{FileArgs, checkout, commit};
use super::exit::{self, Exit};
use super::output::{say, tell};
use super::process::Process;
use super::{diagnostics, files, repository, session};
use crate::controller::{Ending, Until};
use crate::fleet::Fleet;
use crate::manifest::read::nearest;
use crate::model::{AppId, Revision};
use crate::promotion::{self, Change, Input, PinChange, Refused};
use crate::report::{Overview, ring_states, rollout_states};
use crate::source::Repository;

#[derive(Args, Debug)]
pub struct PromoteArgs {
    /// NAMESPACE/NAME or its name
    app: String,
    /// The ring whose version is taken; by default the one before
    #[arg(long, value_name = "RING", conflicts_with = "version")]
    from: Option<String>,
    /// The ring that gets it
    #[arg(long, value_name = "RING")]
    to: String,
    /// This version, whatever runs elsewhere; no cluster is asked then
    #[arg(long)]
    version: Option<String>,
    /// Open a pull request instead of writing the file
    #[arg(long, conflicts_with = "commit")]
    open: bool,
    #[command(flatten)]
    file: FileArgs,
}

pub async fn run(args: PromoteArgs) -> anyhow::Result<Exit> {
    if args.open {
        bail!("--open cannot be used yet: leave it out, and push the change as a branch of your own");
    }
    let process = args.file.process.resolve(Some(".")).await?;
    let root = checkout(&process)?;
    let (overview, fleet) = match args.version {
        Some(_) => (Overview::default(), repository::fleet(&repository::snapshot(&root, None).await?)),
        None => {
            let until = Until::Explained { timeout: args.file.timeout };
            let (ending, overview) = session::look(&process, until, false).await?;
            diagnostics::print(&overview.diagnostics);
            if matches!(ending, Ending::Stopped) {
                return Ok(Exit::Interrupted);
            }
            let fleet = fleet_of(&process, &overview).await?;
            (Overview::clone(&overview), fleet)
        }
    };
    let app = app_named(&fleet, &args.app)?;
    let change = with_input(&overview, &fleet, |input| {
        promotion::requested(input, &app, args.from.as_deref(), &args.to, args.version.as_deref())
    });
    let change = match change {
        Ok(change) => change,
        Err(why) => {
            let away = exit::offline(&overview, |_| true);
            if let (Refused::NotDone(_), Some(away)) = (&why, away) {
                tell!("error: {why}; {away}");
                return Ok(Exit::Unreachable);
            }
            return Err(why.into());
        }
    };
    write(&root, &change, overview.revision.as_ref(), args.file.commit)
}

/// Writes the files of a promotion, where one of them is another then.
fn write(root: &Path, change: &Change, head: Option<&Revision>, commits: bool) -> anyhow::Result<Exit> {
    let head = head.cloned().unwrap_or_else(|| Revision::from(Revision::WORKTREE));
    let read = |path: &str| std::fs::read_to_string(root.join(path)).ok();
    let Change::Promote { ring, pins, .. } = change else { bail!("this is no promotion") };
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
            say!("committed; push it to go on");
        } else {
            say!("commit and push it to go on");
        }
    }
    Ok(Exit::Ok)
}

/// The repository at the commit that an overview is of.
pub async fn fleet_of(process: &Process, overview: &Overview) -> anyhow::Result<Fleet> {
    let revision = overview.revision.as_ref().context("the config repository was not read")?;
    let repository = Repository::open(process.source.clone()).await.map_err(session::Source)?;
    let snapshot = repository.snapshot(revision).await.map_err(session::Source)?;
    Ok(repository::fleet(&snapshot))
}

/// What is known without the forge: pull requests are not, nor what versions ran before.
pub fn with_input<T>(overview: &Overview, fleet: &Fleet, then: impl FnOnce(&Input<'_>) -> T) -> T {
    let rings = ring_states(overview, fleet, &|_, _, _| None);
    let rollouts = rollout_states(overview);
    then(&Input {
        fleet,
        rings: &rings,
        rollouts: &rollouts,
        undo: &std::collections::BTreeMap::new(),
        requests: &[],
        limit: promotion::MOST_OPEN,
        now: jiff::Timestamp::now(),
    })
}

/// The app of a name in the repository.
fn app_named(fleet: &Fleet, name: &str) -> anyhow::Result<AppId> {
    let is_it = |app: &&AppId| *app.name == *name || app.to_string() == name;
    let known: Vec<&AppId> = fleet.apps.keys().chain(fleet.broken.keys()).collect();
    let fitting: Vec<&AppId> = known.iter().copied().filter(is_it).collect();
    match fitting[..] {
        [app] => match fleet.broken.get(app).and_then(|broken| broken.errors.first()) {
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

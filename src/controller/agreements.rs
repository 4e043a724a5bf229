//! Who agreed to what: the reviews of pull requests that brought Approvals, and the authors of changes. Asked of the forge and of Git when a
//! decision depends on it, kept until the head is another one.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};
use tokio::task::AbortHandle;

use super::event::Event;
use super::world::World;
use crate::fleet::Fleet;
use crate::forge::{self, Client, Pull};
use crate::model::{
    Answer, AppId, Approval, Lack, Location, People, Question, Revision, RuleAsks, RuledAction, Snapshot,
    TargetSelector,
};
use crate::plan::Candidate;
use crate::reconcile::History;
use crate::source::{MadeOf, Step};

/// After the forge or Git did not answer, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// So many questions are under way side by side.
const SIDE_BY_SIDE: usize = 2;
/// A change by more commits of the deployed branch is not looked through.
const MOST_STEPS: usize = 100;

#[derive(Debug)]
pub struct Agreements {
    known: BTreeMap<Question, Known>,
    turn: Arc<Semaphore>,
}

#[derive(Debug)]
struct Known {
    answer: Option<Answer>,
    /// Whose decisions depend on it.
    apps: BTreeSet<AppId>,
    task: AbortHandle,
}

/// Where answers come from.
#[derive(Clone, Debug)]
pub struct Sources {
    /// `Err`: why the forge cannot be asked.
    pub forge: Result<Client, Arc<str>>,
    pub history: Arc<History>,
}

impl Agreements {
    pub fn new() -> Self {
        Self { known: BTreeMap::new(), turn: Arc::new(Semaphore::new(SIDE_BY_SIDE)) }
    }

    /// `None`: nobody has answered yet.
    pub fn answer(&self, asked: &Question) -> Option<Answer> {
        self.known.get(asked)?.answer.clone()
    }

    /// Asks, if nobody did; goes on until there is an answer. `folder`: of the app; `None` where it is gone.
    pub fn ask(
        &mut self,
        asked: Question,
        (app, folder): (&AppId, Option<String>),
        sources: &Sources,
        events: &mpsc::Sender<Event>,
    ) {
        if let Some(known) = self.known.get_mut(&asked) {
            known.apps.insert(app.clone());
            return;
        }
        let asking = ask(asked.clone(), folder, sources.clone(), Arc::clone(&self.turn), events.clone());
        let task = tokio::spawn(asking).abort_handle();
        self.known.insert(asked, Known { answer: None, apps: BTreeSet::from([app.clone()]), task });
    }

    /// The apps that have to be decided about anew.
    pub fn answered(&mut self, asked: &Question, answer: Answer) -> Vec<AppId> {
        let Some(known) = self.known.get_mut(asked) else { return Vec::new() };
        if known.answer.as_ref() == Some(&answer) {
            return Vec::new();
        }
        known.answer = Some(answer);
        known.apps.iter().cloned().collect()
    }

    pub fn is_asked(&self, asked: &Question, app: &AppId) -> bool {
        self.known.get(asked).is_some_and(|known| known.apps.contains(app))
    }

    /// Somebody is being asked, and never answered.
    pub fn is_waiting(&self) -> bool {
        self.known.values().any(|known| known.answer.is_none())
    }

    /// At another head, or of another forge, others are asked for. The apps whose decisions depended on it.
    pub fn forget(&mut self) -> BTreeSet<AppId> {
        let mut apps = BTreeSet::new();
        for (_, known) in std::mem::take(&mut self.known) {
            known.task.abort();
            apps.extend(known.apps);
        }
        apps
    }
}

fn is_content(line: &str) -> bool {
    let line = line.trim();
    !line.is_empty() && !line.starts_with('#') && !line.starts_with("---")
}

/// The commit that changed the file of an Approval last. `None`: that is not known, or there is more in the file, which may have come otherwise.
pub fn commit_of(snapshot: &Snapshot, location: Option<&Location>) -> Option<Revision> {
    let text = String::from_utf8_lossy(&snapshot.files.get(&location?.file)?.content);
    if text.lines().skip_while(|line| !is_content(line)).any(|line| line.starts_with("---")) {
        return None;
    }
    let at = snapshot.history.newest(location.map(|location| location.file.as_str()))?;
    snapshot.history.commits.get(at).cloned()
}

impl World {
    /// What a rule asks for before an object goes, that the approval does not give. `asks`: what has to be known for that.
    pub(super) fn rule_asks(
        &self,
        fleet: &Fleet,
        candidate: &Candidate,
        approvals: &[&Approval],
        asks: &RefCell<BTreeSet<(Question, AppId)>>,
    ) -> Option<RuleAsks> {
        let rules = &fleet.approval_rules;
        let of_objects = rules.rules.iter().filter(|rule| {
            rule.actions.contains(&RuledAction::Delete) && rule.is_for_object(&candidate.object)
        });
        let cluster = fleet.clusters.get(&candidate.cluster)?;
        let facts = cluster.facts(fleet.ring_of(&candidate.cluster));
        let snapshot = self.snapshot.as_ref()?;
        // What labels an app had that is gone, nobody knows: those of any rule.
        let selects = |selector: &TargetSelector| match fleet.apps.get(&candidate.app) {
            Some(app) => selector.selects(&candidate.app, &app.labels, facts),
            None => selector.selects(&candidate.app, &selector.app_labels, facts),
        };
        let cluster_entry = self.clusters.get(&candidate.cluster);
        let mut asked = of_objects.filter(|rule| selects(&rule.selector));
        asked.find_map(|rule| {
            let since = cluster_entry.and_then(|it| it.observation.objects.get(&candidate.object));
            let since = since.and_then(|live| live.revision.as_deref()).map(Revision::from);
            let (app, until) = (candidate.app.clone(), self.head.clone()?);
            let change = Question::Authors { app, since, until, is_delete: true };
            let answers = |asked: &Question| {
                let answer = self.agreements.answer(asked);
                if answer.is_none() {
                    asks.borrow_mut().insert((asked.clone(), candidate.app.clone()));
                }
                answer
            };
            let mut lacks = Lack::None;
            for approval in approvals {
                let commit = commit_of(snapshot, approval.location.as_ref());
                match rule.agreed(&rules.roles, commit.as_ref(), &change, &answers) {
                    Ok(()) => return None,
                    Err(lack) => lacks = lacks.max(lack),
                }
            }
            Some(rule.asks(lacks))
        })
    }
}

async fn ask(
    asked: Question,
    folder: Option<String>,
    sources: Sources,
    turn: Arc<Semaphore>,
    events: mpsc::Sender<Event>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let place = turn.acquire().await;
        let (answer, is_final) = match &asked {
            Question::Reviews { commit } => match reviewers(&sources, commit).await {
                Ok(Some(people)) => (Ok(people), true),
                // The forge may say only later that it was merged.
                Ok(None) => (Ok(People::default()), false),
                Err(because) => (Err(because), false),
            },
            Question::Authors { app, since, until, is_delete } => {
                let change = Change { app, since: since.as_ref(), until, is_delete: *is_delete };
                let answer = authors(&sources, change, folder.as_deref()).await;
                let is_final = answer.is_ok();
                (answer, is_final)
            }
        };
        drop(place);
        let event = Event::Agreed { asked: asked.clone(), answer: answer.map(Arc::new) };
        if events.send(event).await.is_err() || is_final {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn in_words(error: &impl std::fmt::Display) -> Arc<str> {
    error.to_string().into()
}

/// The pull request that a commit of the deployed branch came with.
async fn merged(client: &Client, history: &History, commit: &Revision) -> Result<Option<Pull>, Arc<str>> {
    let Some(pull) = client.merged_pull(commit).await.map_err(|error| in_words(&error))? else {
        return Ok(None);
    };
    let branch = match history.branch() {
        Some(branch) => branch.to_owned(),
        None => client.repository_facts().await.map_err(|error| in_words(&error))?.default_branch,
    };
    // Of another branch, its reviews were for something else.
    Ok(Some(pull).filter(|pull| pull.base.reference == branch))
}

/// Who approved the pull request that a commit came with. `None`: it came with none.
async fn reviewers(sources: &Sources, commit: &Revision) -> Result<Option<People>, Arc<str>> {
    let client = sources.forge.clone()?;
    let Some(Pull { number, author, head, .. }) = merged(&client, &sources.history, commit).await? else {
        return Ok(None);
    };
    let read = async { Ok((client.who_am_i().await?.login, client.reviews(number).await?)) };
    let (me, reviews) = read.await.map_err(|error: forge::Error| in_words(&error))?;
    let by = forge::approvals(&reviews, &head.revision, &author, &me).by;
    Ok(Some(People { logins: by.iter().map(|login| login.to_ascii_lowercase()).collect(), unknown: None }))
}

/// Whose authors are asked for.
struct Change<'a> {
    app: &'a AppId,
    since: Option<&'a Revision>,
    until: &'a Revision,
    is_delete: bool,
}

/// Who wrote a change: of what came by pull requests, who opened them, and whom their commits name; else whom the commits name.
async fn authors(sources: &Sources, change: Change<'_>, folder: Option<&str>) -> Result<People, Arc<str>> {
    let client = sources.forge.clone()?;
    let Change { app, since, until, is_delete } = change;
    let folder = match (folder, since) {
        (Some(folder), _) => Some(folder.to_owned()),
        (None, Some(since)) => sources.history.folder_at(since, app).await,
        (None, None) => None,
    };
    let folder = folder.ok_or_else(|| -> Arc<str> { format!("nobody knows where {app} was").into() })?;
    let made_of = match since.is_none() || is_delete {
        true => MadeOf::Own { folder },
        false => MadeOf::Shared { folder },
    };
    let steps = sources.history.steps(since.cloned(), until.clone(), made_of).await;
    let steps = steps.map_err(|error| in_words(&error))?;
    let steps = steps.filter(|steps| steps.len() <= MOST_STEPS).ok_or_else(|| -> Arc<str> {
        let since = since.map_or("the beginning", Revision::short);
        format!("the authors of more than {MOST_STEPS} commits since {since} are not read").into()
    })?;
    let mut people = People::default();
    for Step { commit, merged: brought } in steps {
        match merged(&client, &sources.history, &commit).await? {
            Some(pull) => {
                let commits = client.pull_commits(pull.number).await.map_err(|error| in_words(&error))?;
                let named = commits.iter().flat_map(|it| [&it.author.login, &it.committer.login]);
                let named: Vec<&String> = named.flatten().chain([&pull.author]).collect();
                if pull.author.is_empty() {
                    people.unknown = Some(commit);
                }
                people.logins.extend(named.into_iter().map(|login| login.to_ascii_lowercase()));
            }
            None => {
                for id in [commit].into_iter().chain(brought) {
                    let read = client.commit(&id).await.map_err(|error| in_words(&error))?;
                    let (author, committer) = read.map(|it| (it.author.login, it.committer.login)).unzip();
                    let author = author.flatten().filter(|login| !login.is_empty());
                    people.logins.extend(committer.flatten().map(|login| login.to_ascii_lowercase()));
                    match author {
                        Some(login) => _ = people.logins.insert(login.to_ascii_lowercase()),
                        None => people.unknown = Some(id),
                    }
                }
            }
        }
    }
    Ok(people)
}

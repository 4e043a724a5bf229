//! Who agreed to what: the reviews of pull requests that brought Approvals, and the authors of changes. Question of the forge and of Git when a
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
use crate::model::{Answer, AppId, Approval, Lack, People, Question, Revision, RuleAsks, RuledAction};
use crate::plan::Candidate;
use crate::reconcile::History;

/// After the forge or Git did not answer, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// So many questions are under way side by side.
const SIDE_BY_SIDE: usize = 2;
/// A change of more commits is not looked through.
const MOST_COMMITS: usize = 100;

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

/// Who can be asked.
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

    /// Asks, if nobody did; goes on until there is an answer. `below`: what an app is made of.
    pub fn ask(
        &mut self,
        asked: Question,
        (app, below): (&AppId, Vec<String>),
        sources: &Sources,
        events: &mpsc::Sender<Event>,
    ) {
        if let Some(known) = self.known.get_mut(&asked) {
            known.apps.insert(app.clone());
            return;
        }
        let asking = ask(asked.clone(), below, sources.clone(), Arc::clone(&self.turn), events.clone());
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

    /// At another head, others are asked for.
    pub fn forget(&mut self) {
        for (_, question) in std::mem::take(&mut self.known) {
            question.task.abort();
        }
    }
}

impl World {
    /// What a rule asks for before an object goes, that the approval does not give. `asks`: what has to be known for that.
    pub(super) fn rule_asks(
        &self,
        fleet: &Fleet,
        candidate: &Candidate,
        approval: Option<&Approval>,
        asks: &RefCell<BTreeSet<(Question, AppId)>>,
    ) -> Option<RuleAsks> {
        let rules = &fleet.approval_rules;
        let of_objects = rules.rules.iter().filter(|rule| {
            rule.actions.contains(&RuledAction::Delete) && rule.is_for_object(&candidate.object)
        });
        let none = BTreeMap::new();
        let labels = fleet.apps.get(&candidate.app).map_or(&none, |app| &app.labels);
        let facts = fleet.clusters.get(&candidate.cluster)?.facts(fleet.ring_of(&candidate.cluster));
        let snapshot = self.snapshot.as_ref()?;
        let mut asked = of_objects.filter(|rule| rule.selector.selects(&candidate.app, labels, facts));
        asked.find_map(|rule| {
            let Some(approval) = approval else { return Some(rule.asks(Lack::None)) };
            let file = approval.location.as_ref().map(|location| location.file.as_str());
            let at = snapshot.history.newest(file);
            let commit = at.and_then(|at| snapshot.history.commits.get(at));
            let until = self
                .prune
                .vanished
                .get(&(candidate.cluster.clone(), candidate.object.clone()))
                .or(self.head.as_ref())?
                .clone();
            let change = Question::Authors { app: candidate.app.clone(), since: None, until };
            let answers = |asked: &Question| {
                let answer = self.agreements.answer(asked);
                if answer.is_none() {
                    asks.borrow_mut().insert((asked.clone(), candidate.app.clone()));
                }
                answer
            };
            rule.agreed(&rules.roles, commit, &change, &answers).err().map(|lack| rule.asks(lack))
        })
    }
}

async fn ask(
    asked: Question,
    below: Vec<String>,
    sources: Sources,
    turn: Arc<Semaphore>,
    events: mpsc::Sender<Event>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let place = turn.acquire().await;
        let answer = match &asked {
            Question::Reviews { commit } => reviewers(&sources, commit).await,
            Question::Authors { since, until, .. } => {
                authors(&sources, since.as_ref(), until, below.clone()).await
            }
        };
        drop(place);
        let is_known = answer.is_ok();
        let event = Event::Agreed { asked: asked.clone(), answer: answer.map(Arc::new) };
        if events.send(event).await.is_err() || is_known {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

/// Who approved the pull request that a commit came with; nobody where it came with none.
async fn reviewers(sources: &Sources, commit: &Revision) -> Result<People, Arc<str>> {
    let client = sources.forge.clone()?;
    let read = async {
        let Some(pull) = client.merged_pull(commit).await? else { return Ok(Vec::new()) };
        let Pull { number, author, head, .. } = pull;
        let (me, reviews) = (client.who_am_i().await?.login, client.reviews(number).await?);
        Ok(forge::approvals(&reviews, &head.revision, &author, &me).by)
    };
    let by: Vec<String> = read.await.map_err(|error: forge::Error| Arc::from(error.to_string()))?;
    Ok(People { logins: by.iter().map(|login| login.to_ascii_lowercase()).collect(), unknown: None })
}

/// Whom the commits name that changed anything below some folders.
async fn authors(
    sources: &Sources,
    since: Option<&Revision>,
    until: &Revision,
    below: Vec<String>,
) -> Result<People, Arc<str>> {
    let client = sources.forge.clone()?;
    let commits = sources.history.commits_below(since.cloned(), until.clone(), below).await;
    let commits = commits.map_err(|error| Arc::from(error.to_string()))?;
    let commits = commits.filter(|commits| commits.len() <= MOST_COMMITS).ok_or_else(|| -> Arc<str> {
        let since = since.map(|since| format!(" since {}", since.short())).unwrap_or_default();
        format!("too many commits{since}, or none that lead to {}", until.short()).into()
    })?;
    let mut people = People::default();
    for commit in commits {
        let read = client.commit(&commit).await.map_err(|error| -> Arc<str> { error.to_string().into() })?;
        let author = read.and_then(|it| it.author.login).filter(|login| !login.is_empty());
        match author {
            Some(login) => _ = people.logins.insert(login.to_ascii_lowercase()),
            None => people.unknown = Some(commit),
        }
    }
    Ok(people)
}

//! Asks the forge and Git who agreed, and who wrote a change.

use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};

use super::super::event::Event;
use super::Sources;
use crate::forge::{self, BranchCommit, Client, Pull};
use crate::model::{AppId, Digest, FileVersion, People, Question, Revision};
use crate::reconcile::History;
use crate::source::{MadeOf, Step};

/// After the forge or Git did not answer, at first and at most.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A change by more commits of the deployed branch is not looked through.
const MOST_STEPS: usize = 100;

/// Goes on until there is an answer that stays.
pub(super) async fn ask(
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
            Question::Reviews { file } => match reviewers(&sources, file).await {
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

/// Who approved a file in the pull request that its commit came with. `None`: it came with none.
async fn reviewers(sources: &Sources, file: &FileVersion) -> Result<Option<People>, Arc<str>> {
    let client = sources.forge.clone()?;
    let Some(Pull { number, author, head, .. }) = merged(&client, &sources.history, &file.commit).await?
    else {
        return Ok(None);
    };
    let read = async {
        let me = client.who_am_i().await?.login;
        let reviews = client.reviews(number).await?;
        let by = forge::approvals(&reviews, &head.revision, &author, &me).by;
        // What was merged may be another content than what was reviewed.
        let reviewed = if by.is_empty() { None } else { client.file(&head.revision, &file.path).await? };
        Ok((by, reviewed.map(|content| Digest::of(&content))))
    };
    let (mut by, reviewed) = read.await.map_err(|error: forge::Error| in_words(&error))?;
    if !by.is_empty() && reviewed != Some(file.content) {
        let (path, commit) = (&file.path, file.commit.short());
        tracing::warn!(path, commit, pull = number, "its reviews do not count: they are of another content");
        by.clear();
    }
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
                note_pull(&mut people, &commit, &pull.author, &commits);
            }
            None => {
                for id in [commit].into_iter().chain(brought) {
                    let read = client.commit(&id).await.map_err(|error| in_words(&error))?;
                    note_commit(&mut people, id, read.as_ref());
                }
            }
        }
    }
    Ok(people)
}

fn note_login(people: &mut People, login: Option<&str>) -> bool {
    let login = login.filter(|login| !login.is_empty());
    people.logins.extend(login.map(str::to_ascii_lowercase));
    login.is_some()
}

/// Of what came by a pull request: who opened it, and whom its commits name.
fn note_pull(people: &mut People, commit: &Revision, author: &str, commits: &[BranchCommit]) {
    for person in commits.iter().flat_map(|it| [&it.author, &it.committer]) {
        note_login(people, person.login.as_deref());
    }
    if !note_login(people, Some(author)) {
        people.unknown = Some(commit.clone());
    }
}

/// Of a commit that came by a push: whom it names.
fn note_commit(people: &mut People, id: Revision, read: Option<&BranchCommit>) {
    note_login(people, read.and_then(|it| it.committer.login.as_deref()));
    if !note_login(people, read.and_then(|it| it.author.login.as_deref())) {
        people.unknown = Some(id);
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::forge::Person;

    fn commit(author: &str, committer: &str) -> BranchCommit {
        let person =
            |login: &str| Person { email: String::new(), login: (login != "-").then(|| login.to_owned()) };
        let revision = Revision::from("c0ffee");
        BranchCommit { revision, author: person(author), committer: person(committer) }
    }

    #[track_caller]
    fn check(people: &People, logins: &[&str], unknown: Option<&str>) {
        let found: Vec<&str> = people.logins.iter().map(String::as_str).collect();
        assert_eq!((&found[..], people.unknown.as_ref()), (logins, unknown.map(Revision::from).as_ref()));
    }

    #[test]
    fn authors_of_a_pull_request() {
        let of = |author: &str, commits: &[BranchCommit]| {
            let mut people = People::default();
            note_pull(&mut people, &Revision::from("merge"), author, commits);
            people
        };
        check(&of("Li", &[]), &["li"], None);
        check(&of("li", &[commit("Ann", "bob"), commit("ann", "-")]), &["ann", "bob", "li"], None);
        // Who opened it answers for commits that name no user.
        check(&of("li", &[commit("-", ""), commit("", "-")]), &["li"], None);
        check(&of("", &[commit("ann", "-")]), &["ann"], Some("merge"));
    }

    #[test]
    fn authors_of_a_push() {
        let of = |read: Option<BranchCommit>| {
            let mut people = People::default();
            note_commit(&mut people, Revision::from("push"), read.as_ref());
            people
        };
        check(&of(Some(commit("Ann", "bob"))), &["ann", "bob"], None);
        check(&of(Some(commit("ann", "-"))), &["ann"], None);
        // A commit that names no user may be anybody's.
        check(&of(Some(commit("-", "bob"))), &["bob"], Some("push"));
        check(&of(Some(commit("", ""))), &[], Some("push"));
        check(&of(None), &[], Some("push"));
    }
}

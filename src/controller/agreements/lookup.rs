//! Reads from the forge and from Git who approved a file, and who wrote a change.

use std::collections::BTreeSet;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{Semaphore, mpsc};

use super::super::event::Event;
use crate::forge::{self, BranchCommit, ForgeClient, Pull};
use crate::model::{AppId, ApprovalQuery, ApprovalQueryError, Digest, FileVersion, ForgePeople, Revision};
use crate::reconcile::RenderHistory;
use crate::source::{AppSourceCommit, AppSources};

/// The first and the longest delay after the forge or Git did not answer.
const FIRST_PAUSE: Duration = Duration::from_secs(5);
const LONGEST_PAUSE: Duration = Duration::from_secs(60);
/// A change with more commits of the deployed branch is not searched.
const MAX_COMMITS: usize = 100;

/// Where agreements are read.
#[derive(Clone, Debug)]
pub struct AgreementSources {
    /// `Err`: why the forge cannot be read.
    pub forge: Result<ForgeClient, ApprovalQueryError>,
    pub history: Arc<RenderHistory>,
}

/// Retries until the answer is final.
pub(super) async fn look_up_answer(
    asked: ApprovalQuery,
    folder: Option<String>,
    sources: AgreementSources,
    turn: Arc<Semaphore>,
    events: mpsc::Sender<Event>,
) {
    let mut pause = FIRST_PAUSE;
    loop {
        let place = turn.acquire().await;
        let answer = match &asked {
            ApprovalQuery::Reviews { file } => match reviewers(&sources, file).await {
                Ok(Some(people)) => Ok(people),
                // The forge may report the merge with a delay.
                Ok(None) if pause < LONGEST_PAUSE => Err(ApprovalQueryError::Temporary(
                    format!("the forge has no merged pull request of {}", file.commit.short()).into(),
                )),
                Ok(None) => Ok(ForgePeople::default()),
                Err(unread) => Err(unread),
            },
            ApprovalQuery::Authors { app, since, until, is_delete } => {
                let change = AuthoredChange { app, since: since.as_ref(), until, is_delete: *is_delete };
                authors(&sources, change, folder.as_deref()).await
            }
        };
        let is_final = !matches!(answer, Err(ApprovalQueryError::Temporary(_)));
        drop(place);
        let event = Event::AgreementAnswered { asked: asked.clone(), answer: answer.map(Arc::new) };
        if events.send(event).await.is_err() || is_final {
            return;
        }
        tokio::time::sleep(pause).await;
        pause = (pause * 2).min(LONGEST_PAUSE);
    }
}

fn for_now(error: impl std::fmt::Display) -> ApprovalQueryError {
    ApprovalQueryError::Temporary(error.to_string().into())
}

/// The pull request that brought a commit of the deployed branch.
async fn merged_pull_request(
    client: &ForgeClient,
    history: &RenderHistory,
    commit: &Revision,
) -> Result<Option<Pull>, ApprovalQueryError> {
    let Some(pull) = client.merged_pull(commit).await.map_err(for_now)? else {
        return Ok(None);
    };
    let branch = match history.branch() {
        Some(branch) => branch.to_owned(),
        None => client.repository_facts().await.map_err(for_now)?.default_branch,
    };
    // The reviews of a pull request for another branch approved something else.
    Ok(Some(pull).filter(|pull| pull.base.reference == branch))
}

/// The reviewers who approved a file in the pull request that brought its commit. `None`: no pull request brought it.
async fn reviewers(
    sources: &AgreementSources,
    file: &FileVersion,
) -> Result<Option<ForgePeople>, ApprovalQueryError> {
    let client = sources.forge.clone()?;
    let Some(Pull { number, author, head, .. }) =
        merged_pull_request(&client, &sources.history, &file.commit).await?
    else {
        return Ok(None);
    };
    let read = async {
        let me = client.who_am_i().await?.login;
        let reviews = client.reviews(number).await?;
        let by = forge::approvals(&reviews, &head.revision, &author, &me).by;
        // The merged content may differ from the reviewed content.
        let reviewed = if by.is_empty() { None } else { client.file(&head.revision, &file.path).await? };
        Ok((by, reviewed.map(|content| Digest::of(&content))))
    };
    let (mut by, reviewed) = read.await.map_err(|error: forge::Error| for_now(error))?;
    if !by.is_empty() && reviewed != Some(file.content) {
        let (path, commit) = (&file.path, file.commit.short());
        tracing::warn!(path, commit, pull = number, "its reviews do not count: they approve another content");
        by.clear();
    }
    Ok(Some(ForgePeople {
        logins: by.iter().map(|login| login.to_ascii_lowercase()).collect(),
        unknown_author: None,
    }))
}

/// The change whose authors are read.
struct AuthoredChange<'a> {
    app: &'a AppId,
    since: Option<&'a Revision>,
    until: &'a Revision,
    is_delete: bool,
}

/// The authors of a change. For a pull request: who opened it, and the authors of its commits. Otherwise: the authors of the
/// commits.
async fn authors(
    sources: &AgreementSources,
    change: AuthoredChange<'_>,
    folder: Option<&str>,
) -> Result<ForgePeople, ApprovalQueryError> {
    let client = sources.forge.clone()?;
    let AuthoredChange { app, since, until, is_delete } = change;
    // The file may have been moved since.
    let before = match since {
        Some(since) => sources.history.folder_at(since, app).await,
        None => None,
    };
    let folders: BTreeSet<String> = folder.map(ToOwned::to_owned).into_iter().chain(before).collect();
    if folders.is_empty() {
        return Err(ApprovalQueryError::Permanent(format!("the folder of {app} is not known").into()));
    }
    let made_of = match since.is_none() || is_delete {
        true => AppSources::OwnOnly { folders },
        false => AppSources::OwnAndShared { folders },
    };
    let steps = sources.history.steps(since.cloned(), until.clone(), made_of).await;
    let steps = steps.map_err(for_now)?;
    let steps = steps.filter(|steps| steps.len() <= MAX_COMMITS).ok_or_else(|| {
        let since = since.map_or("the beginning", Revision::short);
        ApprovalQueryError::Permanent(
            format!("the authors of more than {MAX_COMMITS} commits since {since} are not read").into(),
        )
    })?;
    let mut people = ForgePeople::default();
    for AppSourceCommit { commit, merged_commits: brought } in steps {
        match merged_pull_request(&client, &sources.history, &commit).await? {
            Some(pull) => {
                let commits = client.pull_commits(pull.number).await.map_err(for_now)?;
                note_pull(&mut people, &commit, &pull.author, &commits);
            }
            None => {
                for id in [commit].into_iter().chain(brought) {
                    let read = client.commit(&id).await.map_err(for_now)?;
                    note_commit(&mut people, id, read.as_ref());
                }
            }
        }
    }
    Ok(people)
}

fn note_login(people: &mut ForgePeople, login: Option<&str>) -> bool {
    let login = login.filter(|login| !login.is_empty());
    people.logins.extend(login.map(str::to_ascii_lowercase));
    login.is_some()
}

/// The authors of a pull request: who opened it, and those whom its commits name.
fn note_pull(people: &mut ForgePeople, commit: &Revision, author: &str, commits: &[BranchCommit]) {
    for person in commits.iter().flat_map(|it| [&it.author, &it.committer]) {
        note_login(people, person.login.as_deref());
    }
    if !note_login(people, Some(author)) {
        people.unknown_author = Some(commit.clone());
    }
}

/// The authors of a pushed commit.
fn note_commit(people: &mut ForgePeople, id: Revision, read: Option<&BranchCommit>) {
    note_login(people, read.and_then(|it| it.committer.login.as_deref()));
    if !note_login(people, read.and_then(|it| it.author.login.as_deref())) {
        people.unknown_author = Some(id);
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
    fn check(people: &ForgePeople, logins: &[&str], unknown: Option<&str>) {
        let found: Vec<&str> = people.logins.iter().map(String::as_str).collect();
        assert_eq!(
            (&found[..], people.unknown_author.as_ref()),
            (logins, unknown.map(Revision::from).as_ref())
        );
    }

    #[test]
    fn authors_of_pull_request() {
        let of = |author: &str, commits: &[BranchCommit]| {
            let mut people = ForgePeople::default();
            note_pull(&mut people, &Revision::from("merge"), author, commits);
            people
        };
        check(&of("Li", &[]), &["li"], None);
        check(&of("li", &[commit("Ann", "bob"), commit("ann", "-")]), &["ann", "bob", "li"], None);
        // The user who opened it is the author of commits that name no user.
        check(&of("li", &[commit("-", ""), commit("", "-")]), &["li"], None);
        check(&of("", &[commit("ann", "-")]), &["ann"], Some("merge"));
    }

    #[test]
    fn authors_of_push() {
        let of = |read: Option<BranchCommit>| {
            let mut people = ForgePeople::default();
            note_commit(&mut people, Revision::from("push"), read.as_ref());
            people
        };
        check(&of(Some(commit("Ann", "bob"))), &["ann", "bob"], None);
        check(&of(Some(commit("ann", "-"))), &["ann"], None);
        // A commit that names no user may be from anybody.
        check(&of(Some(commit("-", "bob"))), &["bob"], Some("push"));
        check(&of(Some(commit("", ""))), &[], Some("push"));
        check(&of(None), &[], Some("push"));
    }
}

//! Commit statuses of others, read from the forge for all that wait for them.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::cluster::Home;
use crate::controller::Grants;
use crate::forge::{Client, State};
use crate::metrics::Metrics;
use crate::model::{Instance, Revision, short_line};
use crate::rollout::Outcome;

/// Commits whose statuses are kept.
const MOST_COMMITS: usize = 100;
/// However often the instance is polled.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST_SHOWN: usize = 100;

/// Of one commit: the newest of each context.
type Statuses = BTreeMap<String, (State, String)>;

/// What the forge said last.
#[derive(Debug)]
pub struct Reader {
    grants: Arc<Grants>,
    home: Home,
    metrics: Metrics,
    /// One commit is read at a time.
    known: Mutex<BTreeMap<Revision, (Instant, Arc<Statuses>)>>,
}

/// How often the forge is asked.
pub fn pause(instance: &Instance) -> Duration {
    instance.poll.max(SHORTEST)
}

impl Reader {
    pub fn new(grants: Arc<Grants>, home: Home, metrics: Metrics) -> Self {
        Self { grants, home, metrics, known: Mutex::default() }
    }

    /// What one status of a commit says, or why that is not known. `is_late`: it had its time.
    pub async fn outcome(
        &self,
        instance: &Instance,
        commit: &Revision,
        context: &str,
        is_late: bool,
    ) -> Result<Outcome, String> {
        if context.starts_with(&format!("{}/", instance.status_prefix)) {
            return Ok(Outcome::Inconclusive("it is one of tutti itself, which says nothing here".into()));
        }
        Ok(of(&*self.read(instance, commit).await?, context, commit, is_late))
    }

    async fn read(&self, instance: &Instance, commit: &Revision) -> Result<Arc<Statuses>, String> {
        let mut known = self.known.lock().await;
        let pause = pause(instance);
        // Half of it: who comes a little early would wait for a whole one more.
        if let Some((at, statuses)) = known.get(commit)
            && at.elapsed() < pause / 2
        {
            return Ok(Arc::clone(statuses));
        }
        let Some(forge) = &instance.forge else { return Err("tutti.yaml names no forge".to_owned()) };
        let token = match &forge.token {
            Some(reference) => {
                let token = self.grants.resolve(reference, &self.home).await;
                Some(token.map_err(|error| error.to_string())?)
            }
            None => None,
        };
        let client = Client::gitea(&forge.url, &forge.repository, token, &self.grants.forge)
            .map_err(|error| error.to_string())?
            .observed_by(Arc::new(self.metrics.clone()));
        let read = client.statuses(commit).await.map_err(|error| error.to_string())?;
        let statuses: Statuses =
            read.into_iter().map(|it| (it.context, (it.state, it.description))).collect();
        let statuses = Arc::new(statuses);
        if known.len() >= MOST_COMMITS {
            known.clear();
        }
        known.insert(commit.clone(), (Instant::now(), Arc::clone(&statuses)));
        Ok(statuses)
    }
}

/// A status that nobody sets is for a person once it is late.
pub(super) fn of(statuses: &Statuses, context: &str, commit: &Revision, is_late: bool) -> Outcome {
    let waits = if is_late { Outcome::Inconclusive } else { Outcome::Pending };
    let Some((state, description)) = statuses.get(context) else {
        return waits(format!("there is none on {}", commit.short()).into());
    };
    let because = |word: &str| -> Arc<str> {
        let description = short_line(description, LONGEST_SHOWN);
        let more = if description.is_empty() { String::new() } else { format!(": {description}") };
        format!("it {word} on {}{more}", commit.short()).into()
    };
    match state {
        State::Success => Outcome::Success(because("is success")),
        State::Pending => Outcome::Pending(because("is pending")),
        State::Skipped => waits(because("is skipped")),
        State::Failure | State::Error => Outcome::Inconclusive(because("has failed")),
    }
}

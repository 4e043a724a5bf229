//! Reads commit statuses of other programs from the forge, once for all waiting rollouts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::cluster::Home;
use crate::controller::Grants;
use crate::forge::{Client, State};
use crate::metrics::Metrics;
use crate::model::{Forge, Instance, Revision, short_line};
use crate::rollout::Outcome;

const MOST_COMMITS: usize = 100;
/// The shortest poll interval, whatever the instance says.
const SHORTEST: Duration = Duration::from_secs(1);
const LONGEST_SHOWN: usize = 100;

/// The newest status of each context of a commit.
type Statuses = BTreeMap<String, (State, String)>;

/// Caches the statuses that were read last.
#[derive(Debug)]
pub struct Reader {
    grants: Arc<Grants>,
    home: Home,
    metrics: Metrics,
    /// The lock serializes reads.
    known: Mutex<BTreeMap<Revision, (Instant, Arc<Statuses>)>>,
}

/// The settings in `tutti.yaml` for reading statuses.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub forge: Option<Forge>,
    /// The poll interval.
    pub pause: Duration,
    /// The prefix of tutti's own statuses.
    pub prefix: String,
}

impl Place {
    pub fn of(instance: &Instance) -> Self {
        let prefix = instance.status_prefix.clone();
        Self { forge: instance.forge.clone(), pause: instance.poll.max(SHORTEST), prefix }
    }
}

impl Reader {
    pub fn new(grants: Arc<Grants>, home: Home, metrics: Metrics) -> Self {
        Self { grants, home, metrics, known: Mutex::default() }
    }

    /// The outcome of one status of a commit, or why it is unknown. `is_late`: its deadline has passed.
    pub async fn outcome(
        &self,
        place: &Place,
        commit: &Revision,
        context: &str,
        is_late: bool,
    ) -> Result<Outcome, String> {
        if context.starts_with(&format!("{}/", place.prefix)) {
            return Ok(Outcome::Inconclusive("it is one of tutti itself, which says nothing here".into()));
        }
        Ok(of(&*self.read(place, commit).await?, context, commit, is_late))
    }

    async fn read(&self, place: &Place, commit: &Revision) -> Result<Arc<Statuses>, String> {
        let mut known = self.known.lock().await;
        // Half the interval: a slightly early caller would wait for another whole one.
        if let Some((at, statuses)) = known.get(commit)
            && at.elapsed() < place.pause / 2
        {
            return Ok(Arc::clone(statuses));
        }
        let Some(forge) = &place.forge else { return Err("tutti.yaml names no forge".to_owned()) };
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

/// A status that is missing or skipped after its deadline needs a person.
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

//! Reads commit statuses of other programs from the forge, once for all waiting rollouts.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::Mutex;
use tokio::time::Instant;

use crate::cluster::HomeCluster;
use crate::controller::RepositoryGrants;
use crate::forge::{CommitStatusState, ForgeClient};
use crate::metrics::Metrics;
use crate::model::{ForgeSettings, Instance, Revision, short_line};
use crate::rollout::MeasurementOutcome;

const MOST_COMMITS: usize = 100;
/// The shortest poll interval, whatever the instance says.
const SHORTEST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_SHOWN: usize = 100;

/// The newest status of each context of a commit.
type StatusesByContext = BTreeMap<String, (CommitStatusState, String)>;

/// Caches the statuses that were read last.
#[derive(Debug)]
pub struct CommitStatusReader {
    grants: Arc<RepositoryGrants>,
    home: HomeCluster,
    metrics: Metrics,
    /// The lock serializes reads.
    known: Mutex<BTreeMap<Revision, (Instant, Arc<StatusesByContext>)>>,
}

/// The settings in `tutti.yaml` for reading statuses.
#[derive(Clone, Debug, PartialEq)]
pub struct CommitStatusSource {
    pub forge: Option<ForgeSettings>,
    /// The poll interval.
    pub pause: Duration,
    /// The prefix of tutti's own statuses.
    pub prefix: String,
}

impl CommitStatusSource {
    pub fn of(instance: &Instance) -> Self {
        let prefix = instance.status_prefix.clone();
        Self { forge: instance.forge.clone(), pause: instance.poll.max(SHORTEST_PAUSE), prefix }
    }
}

impl CommitStatusReader {
    pub fn new(grants: Arc<RepositoryGrants>, home: HomeCluster, metrics: Metrics) -> Self {
        Self { grants, home, metrics, known: Mutex::default() }
    }

    /// The outcome of one status of a commit, or why it is unknown. `is_late`: its deadline has passed.
    pub async fn outcome(
        &self,
        place: &CommitStatusSource,
        commit: &Revision,
        context: &str,
        is_late: bool,
    ) -> Result<MeasurementOutcome, String> {
        if context.starts_with(&format!("{}/", place.prefix)) {
            return Ok(MeasurementOutcome::Inconclusive(
                "tutti writes this status itself: name the status of another program".into(),
            ));
        }
        Ok(status_outcome(&*self.read(place, commit).await?, context, commit, is_late))
    }

    async fn read(
        &self,
        place: &CommitStatusSource,
        commit: &Revision,
    ) -> Result<Arc<StatusesByContext>, String> {
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
        let client = ForgeClient::gitea(&forge.url, &forge.repository, token, &self.grants.forge)
            .map_err(|error| error.to_string())?
            .observed_by(Arc::new(self.metrics.clone()));
        let read = client.statuses(commit).await.map_err(|error| error.to_string())?;
        let statuses: StatusesByContext =
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
pub(super) fn status_outcome(
    statuses: &StatusesByContext,
    context: &str,
    commit: &Revision,
    is_late: bool,
) -> MeasurementOutcome {
    let waits = if is_late { MeasurementOutcome::Inconclusive } else { MeasurementOutcome::Pending };
    let Some((state, description)) = statuses.get(context) else {
        return waits(format!("no such commit status on {}", commit.short()).into());
    };
    let because = |word: &str| -> Arc<str> {
        let description = short_line(description, LONGEST_SHOWN);
        let more = if description.is_empty() { String::new() } else { format!(": {description}") };
        format!("it {word} on {}{more}", commit.short()).into()
    };
    match state {
        CommitStatusState::Success => MeasurementOutcome::Success(because("is success")),
        CommitStatusState::Pending => MeasurementOutcome::Pending(because("is pending")),
        CommitStatusState::Skipped => waits(because("is skipped")),
        CommitStatusState::Failure | CommitStatusState::Error => {
            MeasurementOutcome::Inconclusive(because("has failed"))
        }
    }
}

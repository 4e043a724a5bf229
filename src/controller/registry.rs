//! Who is registered in the home cluster: watched from the moment in which Git says that there is such a registry.
//!
//! A load waits for its first answer, so that a process that starts knows its clusters at once. What was heard once stays while
//! the home cluster does not answer: a registry that is away is no empty one.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use futures::StreamExt as _;
use serde_json::Value;
use tokio::sync::{Mutex, mpsc, watch};
use tokio::task::JoinHandle;

use super::event::Event;
use crate::cluster::{Change, Home, registry_in_words};
use crate::model::{ConfigMapRegistry, Digest, Registered, RegisteredCluster};

/// How long a load waits for the first answer.
const PATIENCE: Duration = Duration::from_secs(10);
const FIRST_PAUSE: Duration = Duration::from_secs(1);
const LONGEST_PAUSE: Duration = Duration::from_secs(30);

/// Holds the watch of the registry that Git names.
#[derive(Debug)]
pub struct Registry {
    home: Home,
    kept: Mutex<Option<Kept>>,
}

#[derive(Debug)]
struct Kept {
    wanted: ConfigMapRegistry,
    said: watch::Receiver<Option<Arc<Registered>>>,
    task: JoinHandle<()>,
}

impl Drop for Kept {
    fn drop(&mut self) {
        self.task.abort();
    }
}

impl Registry {
    pub fn new(home: Home) -> Self {
        Self { home, kept: Mutex::default() }
    }

    /// What it said last, if it is asked at all.
    pub async fn said(&self) -> Option<Arc<Registered>> {
        self.kept.lock().await.as_ref().and_then(|kept| kept.said.borrow().clone())
    }

    /// What this registry says; the first time that is waited for. From then on each change is an event.
    pub async fn ask(
        &self,
        wanted: Option<&ConfigMapRegistry>,
        events: Option<&mpsc::Sender<Event>>,
    ) -> Option<Arc<Registered>> {
        let mut kept = self.kept.lock().await;
        let Some(wanted) = wanted else {
            *kept = None;
            return None;
        };
        if kept.as_ref().is_none_or(|kept| kept.wanted != *wanted) {
            let (sender, said) = watch::channel(None);
            let follow = Follow {
                home: self.home.clone(),
                wanted: wanted.clone(),
                said: sender,
                events: events.cloned(),
            };
            *kept = Some(Kept { wanted: wanted.clone(), said, task: tokio::spawn(follow.run()) });
        }
        let mut said = kept.as_ref()?.said.clone();
        drop(kept);
        let first = tokio::time::timeout(PATIENCE, said.wait_for(Option::is_some)).await;
        let silent = || Arc::new(unread(wanted, "it did not answer in time"));
        Some(first.ok().and_then(|said| said.ok()?.clone()).unwrap_or_else(silent))
    }
}

/// What a registry says now, for whoever asks once.
pub async fn registered(home: &Home, wanted: Option<&ConfigMapRegistry>) -> Option<Arc<Registered>> {
    Registry::new(home.clone()).ask(wanted, None).await
}

fn unread(wanted: &ConfigMapRegistry, detail: &str) -> Registered {
    let problem = format!("failed to read {}, in the home cluster: {detail}", registry_in_words(wanted));
    Registered { clusters: Vec::new(), problem: Some(problem) }
}

/// One watch, for as long as Git names its registry.
struct Follow {
    home: Home,
    wanted: ConfigMapRegistry,
    said: watch::Sender<Option<Arc<Registered>>>,
    events: Option<mpsc::Sender<Event>>,
}

impl Follow {
    async fn run(self) {
        let mut pause = FIRST_PAUSE;
        let mut changes = loop {
            match self.home.registered(&self.wanted).await {
                Ok(changes) => break changes,
                Err(error) => {
                    self.say(Registered { clusters: Vec::new(), problem: Some(error.to_string()) }).await;
                }
            }
            tokio::time::sleep(pause).await;
            pause = (pause * 2).min(LONGEST_PAUSE);
        };
        let (mut known, mut listed, mut is_listing) = (BTreeMap::new(), BTreeMap::new(), false);
        while let Some(change) = changes.next().await {
            match change {
                Change::Listing => {
                    listed.clear();
                    is_listing = true;
                    continue;
                }
                Change::Seen(object) => {
                    let Some(one) = cluster_of(&object, &self.wanted) else { continue };
                    if is_listing {
                        listed.insert(one.name.clone(), one);
                        continue;
                    }
                    known.insert(one.name.clone(), one);
                }
                Change::Left(object) => {
                    let Some(one) = cluster_of(&object, &self.wanted) else { continue };
                    listed.remove(&one.name);
                    // A list that is not whole yet is no answer.
                    if is_listing {
                        continue;
                    }
                    known.remove(&one.name);
                }
                Change::Listed { .. } => {
                    known = std::mem::take(&mut listed);
                    is_listing = false;
                }
                Change::Broken(detail) => {
                    let was_heard = self.said.borrow().as_ref().is_some_and(|said| said.problem.is_none());
                    if was_heard {
                        tracing::warn!(
                            detail,
                            "the cluster registry does not answer; what it said last holds"
                        );
                    } else {
                        self.say(unread(&self.wanted, &detail)).await;
                    }
                    continue;
                }
            }
            self.say(Registered { clusters: known.values().cloned().collect(), problem: None }).await;
        }
    }

    async fn say(&self, registered: Registered) {
        let is_news = self.said.send_if_modified(|said| {
            let is_other = said.as_deref() != Some(&registered);
            if is_other {
                *said = Some(Arc::new(registered));
            }
            is_other
        });
        if let (true, Some(events)) = (is_news, &self.events) {
            // A closed queue means that the controller has stopped: nobody is left to tell.
            let _ = events.send(Event::Registered).await;
        }
    }
}

fn cluster_of(object: &Value, wanted: &ConfigMapRegistry) -> Option<RegisteredCluster> {
    let metadata = &object["metadata"];
    let labels = metadata["labels"].as_object().into_iter().flatten();
    let labels = labels.filter_map(|(key, value)| Some((key.clone(), value.as_str()?.to_owned())));
    let text = |key: &str| object["data"][key].as_str().filter(|text| !text.trim().is_empty());
    Some(RegisteredCluster {
        name: metadata["name"].as_str()?.to_owned(),
        labels: labels.collect(),
        status: text("status").map(|status| status.trim().to_owned()),
        kubeconfig: text(&wanted.key).map(|text| Digest::of(text.as_bytes())),
    })
}

//! Looks up whether names are taken in a cluster: one by one if they are few, and by one list of a kind and namespace
//! if there are many within some seconds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;
use std::time::Duration;

use kube::Api;
use kube::api::ListParams;
use parking_lot::{Mutex, MutexGuard};
use tokio::time::Instant;

use super::object::Bare;
use super::{Client, Error, Resource};
use crate::model::ObjectId;

/// How long a list is valid. An object that is created meanwhile shows up in the response to the apply.
const FRESH: Duration = Duration::from_secs(5);
/// Lookups of one kind and namespace within [`FRESH`] that cost as much as a list.
const MANY: usize = 16;
/// A namespace with more objects of a kind is not listed.
const LARGE: usize = 10_000;
const PAGE: u32 = 500;
/// Pages of such a list.
const PAGES: usize = 100;

/// Group, kind and namespace.
type Place = (Arc<str>, Arc<str>, Option<Arc<str>>);

fn place_of(id: &ObjectId) -> Place {
    (Arc::clone(&id.group), Arc::clone(&id.kind), id.namespace.clone())
}

/// Cached lists by kind and namespace.
#[derive(Debug, Default)]
pub(super) struct Names {
    folders: Mutex<HashMap<Place, Arc<tokio::sync::Mutex<Folder>>>>,
}

#[derive(Debug)]
struct Folder {
    /// Start of the period in which lookups are counted.
    since: Instant,
    asked: usize,
    names: Listed,
}

impl Folder {
    fn new() -> Self {
        Self { since: Instant::now(), asked: 0, names: Listed::Not }
    }
}

#[derive(Debug)]
enum Listed {
    Not,
    /// All names at one moment.
    Whole(HashSet<String>),
    /// Too many names, or the list was too slow.
    Useless,
}

impl Names {
    /// Returns the lists in use, and drops expired ones.
    fn recent(&self) -> MutexGuard<'_, HashMap<Place, Arc<tokio::sync::Mutex<Folder>>>> {
        let mut folders = self.folders.lock();
        folders.retain(|_, folder| {
            Arc::strong_count(folder) > 1
                || folder.try_lock().is_ok_and(|folder| folder.since.elapsed() < FRESH * 2)
        });
        folders
    }
}

impl Client {
    /// Announces lookups. If many are of one kind and namespace, the first one lists.
    pub fn announce<'a>(&self, ids: impl IntoIterator<Item = &'a ObjectId>) {
        let mut counts: HashMap<Place, usize> = HashMap::new();
        for id in ids {
            *counts.entry(place_of(id)).or_default() += 1;
        }
        for (place, _) in counts.into_iter().filter(|(_, count)| *count >= MANY) {
            let folder = self.folder(place);
            // A locked entry is already being listed.
            if let Ok(mut folder) = folder.try_lock() {
                if folder.since.elapsed() >= FRESH {
                    *folder = Folder::new();
                }
                folder.asked = folder.asked.max(MANY);
            }
        }
    }

    fn folder(&self, place: Place) -> Arc<tokio::sync::Mutex<Folder>> {
        let new = || Arc::new(tokio::sync::Mutex::new(Folder::new()));
        Arc::clone(self.names.recent().entry(place).or_insert_with(new))
    }

    /// Whether the name may be taken. `false`: no object had it some seconds ago.
    pub(super) async fn may_be_taken(&self, resource: &Resource, id: &ObjectId) -> Result<bool, Error> {
        let folder = self.folder(place_of(id));
        // Others wait here until the list is complete.
        let mut folder = folder.lock().await;
        let mut were_many = folder.asked >= MANY;
        if folder.since.elapsed() >= FRESH {
            // After many recent lookups more are likely.
            were_many = were_many && folder.since.elapsed() < FRESH * 2;
            *folder = Folder::new();
        }
        folder.asked += 1;
        if matches!(folder.names, Listed::Not) && (were_many || folder.asked >= MANY) {
            folder.asked = MANY;
            let start = Instant::now();
            let listed = self.names_of(resource, id.namespace.as_deref()).await;
            // After a failed or outdated list, waiting lookups run one by one.
            let is_slow = start.elapsed() >= FRESH;
            folder.since = if is_slow { Instant::now() } else { start };
            folder.names = if is_slow { Listed::Useless } else { listed.unwrap_or(Listed::Useless) };
        }
        Ok(match &folder.names {
            Listed::Whole(names) => names.contains(&*id.name),
            Listed::Not | Listed::Useless => true,
        })
    }

    async fn names_of(&self, resource: &Resource, namespace: Option<&str>) -> Result<Listed, Error> {
        let api: Api<Bare> = match namespace {
            Some(namespace) => Api::namespaced_with(self.kube().clone(), namespace, &resource.api),
            None => Api::all_with(self.kube().clone(), &resource.api),
        };
        let mut parameters = ListParams::default().limit(PAGE);
        let mut names = HashSet::new();
        // Pages may be empty.
        for _ in 0..PAGES {
            let page = self.bounded("list", api.list(&parameters)).await?;
            let more = page.metadata.remaining_item_count.and_then(|more| usize::try_from(more).ok());
            names.extend(page.items.into_iter().filter_map(|item| item.into_name()));
            if names.len() + more.unwrap_or_default() > LARGE {
                return Ok(Listed::Useless);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(Listed::Whole(names)),
            }
        }
        Ok(Listed::Useless)
    }
}

//! Looks up whether names are taken in a cluster: one by one if they are few, and by one list of a kind and namespace
//! if there are many within some seconds.

use std::collections::{HashMap, HashSet};
use std::sync::Arc;

use kube::Api;
use kube::api::ListParams;
use tokio::time::Instant;

use super::name_cache::{LISTING_LIFETIME, ListedNames, NameListing, NameScope, place_of};
use super::object::MetadataObject;
use super::{Client, Error, Resource};
use crate::model::ObjectId;

/// Lookups of one kind and namespace within [`LISTING_LIFETIME`] that cost as much as a list.
const LIST_THRESHOLD: usize = 16;
/// A namespace with more objects of a kind is not listed.
const MAX_LISTED_NAMES: usize = 10_000;
const PAGE: u32 = 500;
/// Pages of such a list.
const PAGES: usize = 100;

impl Client {
    /// Announces lookups. If many are of one kind and namespace, the first one lists.
    pub fn announce_lookups<'a>(&self, ids: impl IntoIterator<Item = &'a ObjectId>) {
        let mut counts: HashMap<NameScope, usize> = HashMap::new();
        for id in ids {
            *counts.entry(place_of(id)).or_default() += 1;
        }
        for (place, _) in counts.into_iter().filter(|(_, count)| *count >= LIST_THRESHOLD) {
            let folder = self.folder(place);
            // A locked entry is already being listed.
            if let Ok(mut folder) = folder.try_lock() {
                if folder.since.elapsed() >= LISTING_LIFETIME {
                    *folder = NameListing::new();
                }
                folder.asked = folder.asked.max(LIST_THRESHOLD);
            }
        }
    }

    fn folder(&self, place: NameScope) -> Arc<tokio::sync::Mutex<NameListing>> {
        let new = || Arc::new(tokio::sync::Mutex::new(NameListing::new()));
        Arc::clone(self.name_cache.recent().entry(place).or_insert_with(new))
    }

    /// Whether the name may be taken. `false`: no object had it some seconds ago.
    pub(super) async fn may_exist(&self, resource: &Resource, id: &ObjectId) -> Result<bool, Error> {
        let folder = self.folder(place_of(id));
        // Others wait here until the list is complete.
        let mut folder = folder.lock().await;
        let mut were_many = folder.asked >= LIST_THRESHOLD;
        if folder.since.elapsed() >= LISTING_LIFETIME {
            // After many recent lookups more are likely.
            were_many = were_many && folder.since.elapsed() < LISTING_LIFETIME * 2;
            *folder = NameListing::new();
        }
        folder.asked += 1;
        if matches!(folder.names, ListedNames::NotListed) && (were_many || folder.asked >= LIST_THRESHOLD) {
            folder.asked = LIST_THRESHOLD;
            let start = Instant::now();
            let listed = self.names_of(resource, id.namespace.as_deref()).await;
            // After a failed or outdated list, waiting lookups run one by one.
            let is_slow = start.elapsed() >= LISTING_LIFETIME;
            folder.since = if is_slow { Instant::now() } else { start };
            folder.names =
                if is_slow { ListedNames::Unavailable } else { listed.unwrap_or(ListedNames::Unavailable) };
        }
        Ok(match &folder.names {
            ListedNames::Whole(names) => names.contains(&*id.name),
            ListedNames::NotListed | ListedNames::Unavailable => true,
        })
    }

    async fn names_of(&self, resource: &Resource, namespace: Option<&str>) -> Result<ListedNames, Error> {
        let api: Api<MetadataObject> = match namespace {
            Some(namespace) => Api::namespaced_with(self.kube().clone(), namespace, &resource.api),
            None => Api::all_with(self.kube().clone(), &resource.api),
        };
        let mut parameters = ListParams::default().limit(PAGE);
        let mut names = HashSet::new();
        // Pages may be empty.
        for _ in 0..PAGES {
            let page = self.with_timeout("list", api.list(&parameters)).await?;
            let more = page.metadata.remaining_item_count.and_then(|more| usize::try_from(more).ok());
            names.extend(page.items.into_iter().filter_map(|item| item.into_name()));
            if names.len() + more.unwrap_or_default() > MAX_LISTED_NAMES {
                return Ok(ListedNames::Unavailable);
            }
            match page.metadata.continue_.filter(|token| !token.is_empty()) {
                Some(token) => parameters = parameters.continue_token(&token),
                None => return Ok(ListedNames::Whole(names)),
            }
        }
        Ok(ListedNames::Unavailable)
    }
}

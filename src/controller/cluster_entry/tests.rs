//! State from watches, and state from the responses to our own requests.

use serde_json::json;

use std::num::NonZeroU64;

use super::recording::keep_settled;
use super::*;
use crate::model::{
    AppId, ClusterState, Connection, Digest, Displacement, FieldOwnership, ForeignChanges, Location,
    SyncWave, TextPosition,
};
use crate::model::{LiveObject, OwnershipEvidence};
use crate::plan::PruneCandidate;

const UID: &str = "11111111-0000-0000-0000-000000000000";
const ANOTHER: &str = "22222222-0000-0000-0000-000000000000";

fn kind() -> GroupVersionKind {
    GroupVersionKind::new("", "v1", "ConfigMap")
}

/// A cluster with a watch of ConfigMaps.
fn entry() -> ClusterEntry {
    let cluster = Cluster {
        name: ClusterName::from("bj1"),
        labels: BTreeMap::new(),
        connection: Connection::Kubeconfig { path: "bj1.kubeconfig".to_owned(), context: None },
        state: ClusterState::Ready,
        vip: None,
        meta: serde_json::Map::new(),
        version: None,
        capabilities: Vec::new(),
        taints: Vec::new(),
        location: Location {
            file: "clusters/bj1.yaml".to_owned(),
            start: TextPosition { line: 1, column: 1 },
            end: None,
        },
    };
    let supervisor = tokio::spawn(std::future::pending());
    let (rediscover, _) = watch::channel(0);
    let mut entry =
        ClusterEntry::new(cluster, 1, Arc::default(), ListLimiter::default(), supervisor, rediscover);
    let task = tokio::spawn(std::future::pending());
    entry.watches.insert(kind(), KindWatch::new(task, 1, None));
    entry
}

fn map(uid: &str, version: u64) -> Value {
    json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {
        "name": "web", "namespace": "shop", "uid": uid, "resourceVersion": version.to_string(),
        "labels": {"tutti.dev/managed-by": "main"},
        "annotations": {"tutti.dev/app": "shop/web", "tutti.dev/origin": "/ConfigMap/shop/web"},
    }})
}

fn id() -> ObjectId {
    ObjectId::of(&map(UID, 0)).expect("an object")
}

/// The watch reports this change.
fn tell(entry: &mut ClusterEntry, change: WatchChange) {
    entry.watched(&kind(), 1, change, "main", &mut StringInterner::default());
}

fn listed(version: u64) -> WatchChange {
    WatchChange::ListEnded { version: version.to_string() }
}

/// A cluster with an empty list of ConfigMaps at this version.
fn listed_entry(version: u64) -> ClusterEntry {
    let mut entry = entry();
    tell(&mut entry, WatchChange::ListStarted);
    tell(&mut entry, listed(version));
    entry
}

/// Whether this response to an apply makes the object a known one.
fn is_there_after_answer(entry: &mut ClusterEntry, version: u64) -> bool {
    entry.record_apply(
        &kind(),
        map(UID, version),
        "main",
        &IgnoreRulesByApp::default(),
        None,
        &mut StringInterner::default(),
    );
    let is_there = entry.observation.objects.contains_key(&id());
    entry.remove_object(&id());
    is_there
}

#[tokio::test]
async fn stale_apply_response_restores_no_deleted_object() {
    let mut entry = entry();
    assert!(is_there_after_answer(&mut entry, 5), "nothing has been told yet");
    tell(&mut entry, WatchChange::ListStarted);
    // The objects of a list come in any order, so they do not show the progress of the watch.
    tell(&mut entry, WatchChange::Updated(Box::new(map(UID, 9))));
    entry.remove_object(&id());
    assert!(is_there_after_answer(&mut entry, 8));
    tell(&mut entry, listed(10));
    assert!(!is_there_after_answer(&mut entry, 10), "it is not in the list");
    assert!(is_there_after_answer(&mut entry, 11), "it may still be told");
    tell(&mut entry, WatchChange::Removed(Box::new(map(UID, 12))));
    assert!(!is_there_after_answer(&mut entry, 11));
    assert!(is_there_after_answer(&mut entry, 13));
    // A stale list: the changes after it are reported again.
    tell(&mut entry, WatchChange::ListStarted);
    tell(&mut entry, listed(7));
    assert!(is_there_after_answer(&mut entry, 11));
}

#[tokio::test]
async fn apply_response_restores_no_replaced_object() {
    let mut entry = listed_entry(5);
    tell(&mut entry, WatchChange::Removed(Box::new(map(UID, 11))));
    tell(&mut entry, WatchChange::Updated(Box::new(map(ANOTHER, 12))));
    entry.record_apply(
        &kind(),
        map(UID, 8),
        "main",
        &IgnoreRulesByApp::default(),
        None,
        &mut StringInterner::default(),
    );
    assert_eq!(&*entry.observation.objects[&id()].uid, ANOTHER);
    // The watch has not reported this one yet.
    entry.record_apply(
        &kind(),
        map(UID, 14),
        "main",
        &IgnoreRulesByApp::default(),
        None,
        &mut StringInterner::default(),
    );
    assert_eq!(&*entry.observation.objects[&id()].uid, UID);
}

#[tokio::test]
async fn stale_lookup_restores_no_deleted_object() {
    let mut entry = listed_entry(10);
    let found = |version| {
        let (rules, ignores) = (health::HealthRules::default(), IgnoreRulesByApp::default());
        let live = reconcile::live_object(&kind(), &map(UID, version), "main", &rules, &ignores);
        LookupResult::Ours(Arc::new(live.expect("ours")))
    };
    entry.record_lookup(&id(), &found(9));
    assert!(!entry.observation.objects.contains_key(&id()));
    entry.record_lookup(&id(), &found(11));
    assert!(entry.observation.objects.contains_key(&id()));
}

#[tokio::test]
async fn object_with_other_uid_survives_delete_record() {
    let mut entry = listed_entry(1);
    tell(&mut entry, WatchChange::Updated(Box::new(map(ANOTHER, 5))));
    for is_gone in [false, true] {
        assert_eq!(entry.record_delete(&id(), UID, is_gone), AffectedApps::Nothing);
        assert!(!entry.observation.objects[&id()].deleting);
    }
    assert_eq!(entry.record_delete(&id(), ANOTHER, false), AffectedApps::App("shop/web".into()));
    assert!(entry.observation.objects[&id()].deleting);
    entry.record_delete(&id(), ANOTHER, true);
    assert!(entry.observation.objects.is_empty());
}

#[test]
fn foreign_changes_stay_known_while_commit_waits() {
    let seen = |version: u64| {
        reconcile::live_object(
            &kind(),
            &map(UID, version),
            "main",
            &health::HealthRules::default(),
            &IgnoreRulesByApp::default(),
        )
        .expect("an object of ours")
    };
    let changes = ForeignChanges { fields: Vec::new(), displacement: Displacement::NotKnown };
    let mut known = seen(5);
    known.evidence = Some(OwnershipEvidence::Changes(Arc::new(changes)));
    let is_known =
        |known: &LiveObject, now: LiveObject| keep_settled(Some(known), now).foreign_changes().is_some();
    for settled in [None, Some(FieldOwnership::default())] {
        known.settled_ownership = settled;
        assert!(is_known(&known, seen(6)), "a status");
        let taken = FieldOwnership { fields: NonZeroU64::new(7), ..FieldOwnership::default() };
        assert!(!is_known(&known, LiveObject { ownership: taken, ..seen(6) }), "an edit");
        assert!(!is_known(&known, LiveObject { hash: Some(Digest::of(b"b")), ..seen(6) }), "another commit");
        assert!(!is_known(&known, LiveObject { uid: ANOTHER.into(), ..seen(6) }), "another object");
    }
}

#[tokio::test]
async fn reread_object_counts_unless_newer_is_known() {
    let read = |version: &str| PruneCandidate {
        app: AppId::parse("shop/web").expect("an app"),
        cluster: ClusterName::from("bj1"),
        object: id(),
        kind: kind(),
        uid: UID.to_owned(),
        resource_version: version.to_owned(),
        keep: true,
        wave: SyncWave::default(),
        is_ended_run: false,
        claims_go_along: false,
        contents: Vec::new(),
    };
    let mut entry = listed_entry(1);
    tell(&mut entry, WatchChange::Updated(Box::new(map(UID, 5))));
    let check = |entry: &mut ClusterEntry, version: &str, expected: (&str, bool)| {
        entry.record_reread(&read(version));
        let live = &entry.observation.objects[&id()];
        assert_eq!((&*live.resource_version, live.keep), expected, "{version}");
    };
    check(&mut entry, "4", ("5", false));
    check(&mut entry, "6", ("6", true));
    // Another connection may lead to a cluster with other versions.
    entry.clear_versions();
    check(&mut entry, "3", ("3", true));
}

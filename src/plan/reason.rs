//! The closed list of reasons for a step, and their texts.

use std::fmt;

use serde::{Serialize, Serializer};

use super::prune::ContainedObject;
use super::{Drift, PlanAction};
use crate::model::{
    AdoptionEffect, AppId, ClusterName, Digest, GroupVersionKind, ObjectId, PolicyDenial, SyncWave,
    UnmetApprovalRule,
};

/// Why nothing is written for a whole app or cluster.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum WriteHold {
    ObserveMode,
    ClusterMaintaining,
    ClusterRemoved,
    Paused,
}

impl fmt::Display for WriteHold {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            Self::ObserveMode => "observe mode",
            Self::ClusterMaintaining => "the cluster is in maintenance",
            Self::ClusterRemoved => "the cluster is being removed",
            Self::Paused => "the app is paused",
        })
    }
}

#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(tag = "code", rename_all = "camelCase", rename_all_fields = "camelCase")]
pub enum StepReason {
    // Applied, or unchanged.
    New,
    Same,
    HashChanged {
        from: Digest,
        to: Digest,
    },
    /// The hash annotation is missing, so the applied content is unknown.
    HashMissing,
    /// The label was removed from an object that we apply.
    LabelsMissing,
    /// The object drifted, or may have. It is applied again by force, because all fields were ours.
    Drifted {
        drift: Drift,
        /// Who owns which of our fields, if known.
        fields: String,
    },
    /// Another app of this instance applied it and no longer renders it.
    TransferredFrom {
        app: String,
    },
    /// A foreign object that the app adopts.
    Adopted(AdoptionEffect),
    /// These fields are immutable: the object is deleted, and created again once it is gone.
    Replaced {
        fields: Vec<String>,
    },

    /// The first release has ended; the object records it.
    InstallationOver,
    /// An installation hook, and the installation is over.
    OnlyOnce,
    /// An upgrade hook, and this is the first release.
    OnlyLater,
    /// Another drift check within a minute of the last one.
    AskedLately,

    // Waits for something that comes by itself.
    /// An earlier hook of the chart has not succeeded.
    WaitsForHook {
        hook: ObjectId,
        would: PlanAction,
        because: Box<StepReason>,
    },
    /// A post hook waits until this object of its release is as rendered and healthy.
    WaitsForRelease {
        object: ObjectId,
        would: PlanAction,
        because: Box<StepReason>,
    },
    /// An object of a lower sync wave is not as rendered, or unhealthy.
    WaitsForSyncWave {
        wave: SyncWave,
        object: ObjectId,
        would: PlanAction,
        because: Box<StepReason>,
    },
    Terminating,
    NamespaceTerminating {
        namespace: String,
    },
    NamespacePending {
        namespace: String,
        app: AppId,
    },
    DefinitionPending {
        kind: GroupVersionKind,
        app: AppId,
    },
    /// The kind is not served. An earlier sync wave may define it.
    KindPending {
        kind: GroupVersionKind,
    },
    /// The cluster has not been asked for this name.
    NotLookedUp,
    ObservationIncomplete,
    /// The app that applied it last failed to render, and may still want it.
    OwnerNotRendered {
        app: AppId,
    },

    // Refused until a person changes something.
    NotServed {
        kind: GroupVersionKind,
        served: Vec<GroupVersionKind>,
    },
    ScopeMismatch {
        kind: GroupVersionKind,
        namespaced: bool,
    },
    NotOurs {
        managers: Vec<String>,
    },
    /// The cluster refuses the effect of the takeover.
    CannotAdopt {
        why: String,
    },
    /// The fields are immutable, and the object must not be deleted.
    CannotReplace {
        fields: Vec<String>,
        why: String,
    },
    OtherInstance {
        name: String,
    },
    /// A policy of the repository denies the write, or the delete.
    Denied {
        policy: String,
        message: String,
    },
    /// Another app of the cluster renders and keeps it.
    OfOtherApp {
        owner: AppId,
    },

    // Left alone on purpose.
    Unmanaged,
    /// The app does not tolerate a taint of the cluster and has no object there.
    KeptOut {
        taint: String,
    },
    /// The app only reports drift.
    DriftReported {
        drift: Drift,
        fields: String,
    },
    /// The repaired value was changed again by admission in the same write.
    Overruled,
    Held {
        by: WriteHold,
        would: PlanAction,
        because: Box<StepReason>,
    },
    KeepAnnotation,
    PruneNever,
    /// An approval releases it: it stays and is no longer managed.
    Released {
        approval: String,
    },

    // Deleted, or waiting to be.
    NoLongerRendered,
    Approved {
        approval: String,
    },
    /// The app is unhealthy on a cluster that counts. `on`: that cluster, if it is not the object's own.
    WaitsForHealth {
        on: Option<ClusterName>,
        /// The unhealthy object and its reason, if known.
        because: Option<String>,
    },
    /// This cluster was not read yet, and what is there may decide.
    WaitsForReading {
        on: ClusterName,
    },
    /// The cluster is offline.
    WaitsForCluster {
        cluster: ClusterName,
    },
    /// The delete would also delete its contents.
    WaitsForContents {
        #[serde(flatten)]
        object: ContainedObject,
        others: usize,
    },
    /// The rollout of the app is open. Deletes wait for its end.
    WaitsForRollout,
    FleetInvalid,
    OverCap {
        pending: u64,
        cap: u64,
        digest: Digest,
    },
    /// A delete of these kinds also deletes their contents: namespaces, volumes, claims, definitions.
    KindNeedsApproval {
        kind: GroupVersionKind,
        digest: Digest,
    },
    /// The delete would also delete the volume claims of its pods, and their data.
    ClaimsGoAlong {
        digest: Digest,
    },
    /// A rule requires agreement first.
    RuleAsks {
        #[serde(flatten)]
        asks: UnmetApprovalRule,
        digest: Digest,
    },
    /// The app is placed here and renders nothing, which may be a mistake.
    EmptyRender {
        digest: Digest,
    },
    /// The app exists and is placed on no cluster, which may be a mistake.
    PlacedNowhere {
        digest: Digest,
    },
}

impl StepReason {
    pub fn of_denial(denial: &PolicyDenial) -> Self {
        Self::Denied { policy: denial.policy.to_string(), message: denial.message.to_string() }
    }

    /// It waits for another object of its own app; that object shows the health.
    pub fn is_wait_for_own_app(&self) -> bool {
        matches!(
            self,
            Self::WaitsForHook { .. } | Self::WaitsForRelease { .. } | Self::WaitsForSyncWave { .. }
        )
    }

    /// The reason below all holds and waits.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Held { because, .. }
            | Self::WaitsForHook { because, .. }
            | Self::WaitsForRelease { because, .. }
            | Self::WaitsForSyncWave { because, .. } => because.cause(),
            cause => cause,
        }
    }

    /// The digest to approve, if only an approval is missing.
    pub fn approval_digest(&self) -> Option<Digest> {
        match self {
            Self::OverCap { digest, .. }
            | Self::KindNeedsApproval { digest, .. }
            | Self::ClaimsGoAlong { digest }
            | Self::RuleAsks { digest, .. }
            | Self::EmptyRender { digest }
            | Self::PlacedNowhere { digest } => Some(*digest),
            _ => None,
        }
    }
}

fn write_drift(drift: Drift, fields: &str, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    f.write_str(if fields.is_empty() { drift.words() } else { fields })
}

impl fmt::Display for StepReason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("new"),
            Self::Same => f.write_str("as rendered"),
            Self::HashChanged { from, to } => write!(f, "rendered {}, applied {}", to.short(), from.short()),
            Self::HashMissing => f.write_str("its hash annotation is missing"),
            Self::LabelsMissing => f.write_str("its label tutti.dev/managed-by is missing"),
            Self::Drifted { drift, fields } => write_drift(*drift, fields, f),
            Self::DriftReported { drift, fields } => {
                write_drift(*drift, fields, f)?;
                f.write_str("; the app only reports drift")
            }
            Self::Overruled => f.write_str(
                "the cluster keeps other values than the applied ones: a webhook or controller changes them",
            ),
            Self::TransferredFrom { app } => write!(f, "taken over from app {app}"),
            Self::Adopted(effect) => write_effect(effect, f),
            Self::AskedLately => f.write_str("its drift is checked once a minute"),
            Self::InstallationOver => {
                f.write_str("the installation is complete, and its annotation is updated")
            }
            Self::OnlyOnce => f.write_str("an install hook: the app is already installed here"),
            Self::OnlyLater => f.write_str("a hook of upgrades, and this is the first release here"),
            Self::WaitsForHook { hook, because, .. } => write!(f, "waits for hook {hook}: {because}"),
            Self::WaitsForRelease { object, because, .. } => {
                write!(f, "waits until {object} is healthy: {because}")
            }
            Self::WaitsForSyncWave { wave, object, because, .. } => {
                write!(f, "waits until {object} of sync wave {wave} is healthy: {because}")
            }
            Self::Terminating => f.write_str("it is being deleted"),
            Self::NamespaceTerminating { namespace } => {
                write!(f, "namespace {namespace} is being deleted")
            }
            Self::NamespacePending { namespace, app } => {
                write!(f, "namespace {namespace} does not exist yet, app {app} creates it")
            }
            Self::DefinitionPending { kind, app } => {
                write!(f, "{kind} is not served yet, app {app} defines it")
            }
            Self::KindPending { kind } => {
                write!(f, "{kind} is not served yet, an earlier sync wave may define it")
            }
            Self::NotLookedUp => f.write_str("the live object is not read yet"),
            Self::ObservationIncomplete => f.write_str("the cluster is not fully read yet"),
            Self::OwnerNotRendered { app } => {
                write!(f, "app {app} applied it last and could not be rendered")
            }
            Self::NotServed { kind, served } if served.is_empty() => {
                write!(f, "the cluster does not serve {kind}")
            }
            Self::NotServed { kind, served } => {
                write!(f, "the cluster does not serve {kind}, it serves {}", CommaList(served))
            }
            Self::ScopeMismatch { kind, namespaced: true } => write!(f, "{kind} needs a namespace"),
            Self::ScopeMismatch { kind, namespaced: false } => write!(f, "{kind} has no namespace"),
            Self::NotOurs { managers } if managers.is_empty() => {
                f.write_str("it exists, but tutti does not manage it; `adopt: true` in the app takes it over")
            }
            Self::NotOurs { managers } => write!(
                f,
                "tutti does not manage it (managers: {}); `adopt: true` in the app takes it over",
                CommaList(managers)
            ),
            Self::CannotAdopt { why } => write!(f, "it cannot be taken over: {why}"),
            Self::Replaced { fields } => {
                write!(f, "deleted and created again, because {} cannot change", CommaList(fields))
            }
            Self::CannotReplace { fields, why } => {
                write!(f, "{} cannot change, and it is not replaced: {why}", CommaList(fields))
            }
            Self::Denied { policy, message } => write!(f, "policy {policy} denies it: {message}"),
            Self::OtherInstance { name } => write!(f, "it belongs to instance {name}"),
            Self::OfOtherApp { owner } => {
                write!(f, "app {owner} already manages this object: remove it from one of the two apps")
            }
            Self::Unmanaged => f.write_str("the app is unmanaged"),
            Self::KeptOut { taint } => {
                write!(
                    f,
                    "the app does not tolerate the taint {taint} of the cluster, and has no objects there yet"
                )
            }
            Self::Held { by, would, because } => write!(f, "{by}, would {would}: {because}"),
            Self::KeepAnnotation => f.write_str("no longer rendered, kept by an annotation"),
            Self::PruneNever => f.write_str("no longer rendered, the app never prunes"),
            Self::Released { approval } => {
                write!(f, "no longer rendered, orphaned by {approval}")
            }
            Self::NoLongerRendered => f.write_str("no longer rendered"),
            Self::Approved { approval } => write!(f, "no longer rendered, approved by {approval}"),
            Self::WaitsForHealth { on, because } => {
                f.write_str("no longer rendered, deleted when its app is healthy")?;
                on.iter().try_for_each(|cluster| write!(f, " on {cluster}"))?;
                because.iter().try_for_each(|because| write!(f, ": {because}"))
            }
            Self::WaitsForReading { on } => write!(f, "nothing is deleted before cluster {on} was read"),
            Self::WaitsForCluster { cluster } => {
                write!(f, "{cluster} does not answer, deleted when it answers again")
            }
            Self::WaitsForContents { object: ContainedObject { object, is_wanted: true }, others: 0 } => {
                write!(f, "no longer rendered, kept while {object} in it is rendered")
            }
            Self::WaitsForContents { object: ContainedObject { object, is_wanted: true }, others } => {
                write!(
                    f,
                    "no longer rendered, kept while {object} in it is rendered; {others} more are rendered \
                     or still there"
                )
            }
            Self::WaitsForContents { object: ContainedObject { object, .. }, others: 0 } => {
                write!(f, "no longer rendered, deleted after {object}, which it contains")
            }
            Self::WaitsForContents { object: ContainedObject { object, .. }, others } => {
                write!(f, "no longer rendered, deleted after {object} and {others} more, which it contains")
            }
            Self::WaitsForRollout => {
                f.write_str("no longer rendered, deleted when the rollout of its app is over")
            }
            Self::FleetInvalid => f.write_str("nothing is deleted while the config repository has errors"),
            Self::OverCap { pending, cap, digest } if pending <= cap => {
                write!(f, "was over the cap before, waits for approval {}", digest.short())
            }
            Self::OverCap { pending, cap, digest } => write!(
                f,
                "{pending} deletes are more than the cap of {cap}, waits for approval {}",
                digest.short()
            ),
            Self::KindNeedsApproval { kind, digest } => {
                write!(f, "every {} waits for approval {}", kind.kind, digest.short())
            }
            Self::ClaimsGoAlong { digest } => {
                write!(f, "its volume claims would be deleted with it, waits for approval {}", digest.short())
            }
            Self::RuleAsks { asks, digest } => write!(f, "{asks}, approval {}", digest.short()),
            Self::EmptyRender { digest } => {
                write!(f, "its app renders to nothing here, waits for approval {}", digest.short())
            }
            Self::PlacedNowhere { digest } => {
                write!(f, "its app is placed on no cluster, waits for approval {}", digest.short())
            }
        }
    }
}

fn write_effect(effect: &AdoptionEffect, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    /// Further changes are only counted.
    const SHOWN: usize = 3;
    f.write_str("taken over")?;
    if !effect.from.is_empty() {
        write!(f, " from {}", CommaList(&effect.from))?;
    }
    match effect.changes.as_slice() {
        [] => f.write_str(", nothing changes")?,
        changes => {
            write!(f, ", changes {}", CommaList(changes.get(..SHOWN).unwrap_or(changes)))?;
            match changes.len().saturating_sub(SHOWN) {
                0 => {}
                more => write!(f, " and {more} more")?,
            }
        }
    }
    let scales = effect.changes.iter().any(|path| path == "spec.replicas");
    f.write_str(match (effect.replaces_pods, scales) {
        (None, _) => "",
        (Some(false), false) => "; its pods stay",
        (Some(false), true) => "; its pods are scaled",
        (Some(true), false) => "; its pods are replaced",
        (Some(true), true) => "; its pods are replaced and scaled",
    })
}

struct CommaList<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for CommaList<'_, T> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, item) in self.0.iter().enumerate() {
            if index > 0 {
                f.write_str(", ")?;
            }
            write!(f, "{item}")?;
        }
        Ok(())
    }
}

/// The code and fields for programs, and the text for people.
pub(super) fn with_words<S: Serializer>(reason: &StepReason, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithWords<'a> {
        #[serde(flatten)]
        reason: &'a StepReason,
        words: String,
    }
    WithWords { reason, words: reason.to_string() }.serialize(serializer)
}

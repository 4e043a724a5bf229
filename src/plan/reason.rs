//! Why a step is what it is: a closed list, and the words for it.

use std::fmt;

use serde::{Serialize, Serializer};

use super::prune::Content;
use super::{Action, Drift};
use crate::model::{AppId, ClusterName, Denial, Digest, Effect, Kind, ObjectId, RuleAsks, SyncWave};

/// What keeps a whole app or cluster from being written to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(rename_all = "camelCase")]
pub enum Hold {
    ObserveMode,
    ClusterMaintaining,
    ClusterRemoved,
    Paused,
}

impl fmt::Display for Hold {
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
pub enum Reason {
    // Applied or left as it is.
    New,
    Same,
    HashChanged {
        from: Digest,
        to: Digest,
    },
    /// Somebody took the annotation off, so it is not known what was applied.
    HashMissing,
    /// Somebody took our label off an object that we apply.
    LabelsMissing,
    /// Somebody changed what was applied, or may have: it is applied again, by force, as all of it was ours.
    Drifted {
        drift: Drift,
        /// Who has which fields of ours, where that is known.
        fields: String,
    },
    /// Another app of this instance applied it and renders it no longer.
    TransferredFrom {
        app: String,
    },
    /// Somebody else's, and the app says that it takes it over.
    Adopted(Effect),
    /// It is deleted, and created anew when it is gone: these fields never change.
    Replaced {
        fields: Vec<String>,
    },

    /// The first release has come to its end, which is noted on the object.
    InstallationOver,
    /// A hook of the installation, which was.
    OnlyOnce,
    /// A hook of upgrades, and nothing of its app was there before this release.
    OnlyLater,
    /// There is another doubt whether it is still what was applied, within a minute of the last.
    AskedLately,

    // Waits for something that comes by itself.
    /// A hook of its chart that comes before it has not come to a good end.
    WaitsForHook {
        hook: ObjectId,
        would: Action,
        because: Box<Reason>,
    },
    /// A hook that comes when the rest of its chart is as rendered and healthy; the object is not.
    WaitsForRelease {
        object: ObjectId,
        would: Action,
        because: Box<Reason>,
    },
    /// An object of its app with a lower sync wave is not there as rendered, or not healthy.
    WaitsForSyncWave {
        wave: SyncWave,
        object: ObjectId,
        would: Action,
        because: Box<Reason>,
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
        kind: Kind,
        app: AppId,
    },
    /// Its kind is not served, and its app has earlier waves: what runs in them may bring it.
    KindPending {
        kind: Kind,
    },
    /// The cluster has not been asked whether it is there.
    NotLookedUp,
    ObservationIncomplete,
    /// The app that applied it last could not be rendered: it may still want it.
    OwnerNotRendered {
        app: AppId,
    },

    // Refused until somebody changes something.
    NotServed {
        kind: Kind,
        served: Vec<Kind>,
    },
    ScopeMismatch {
        kind: Kind,
        namespaced: bool,
    },
    NotOurs {
        managers: Vec<String>,
    },
    /// The app would take it over, and the cluster refuses what that would do.
    CannotAdopt {
        why: String,
    },
    /// These fields never change, and the object cannot be deleted to be created anew.
    CannotReplace {
        fields: Vec<String>,
        why: String,
    },
    OtherInstance {
        name: String,
    },
    /// A policy of the repository denies the write, or the delete, which waits.
    Denied {
        policy: String,
        message: String,
    },
    /// Another app of the cluster renders it too, and keeps it.
    OfOtherApp {
        owner: AppId,
    },

    // Not touched on purpose.
    Unmanaged,
    /// A taint of the cluster, which the app does not tolerate; nothing of it is there.
    KeptOut {
        taint: String,
    },
    /// The app says that drift is only told.
    DriftReported {
        drift: Drift,
        fields: String,
    },
    /// It was put back, and admission changed it again in the same write.
    Overruled,
    Held {
        by: Hold,
        would: Action,
        because: Box<Reason>,
    },
    KeepAnnotation,
    PruneNever,
    /// It stays and is ours no longer: an approval says so.
    Released {
        approval: String,
    },

    // Deleted, or not yet.
    NoLongerRendered,
    Approved {
        approval: String,
    },
    /// Its app is not healthy on all clusters that count; `on` is another one than its own.
    WaitsForHealth {
        on: Option<ClusterName>,
        /// What is not well there, if that is known: object and words.
        because: Option<String>,
    },
    /// Its cluster does not answer.
    WaitsForCluster {
        cluster: ClusterName,
    },
    /// With it would go what is in it, or is to be.
    WaitsForContents {
        #[serde(flatten)]
        object: Content,
        others: usize,
    },
    /// The rollout of its app is open: nothing that it takes away goes before its end.
    WaitsForRollout,
    FleetInvalid,
    OverCap {
        pending: u64,
        cap: u64,
        digest: Digest,
    },
    /// Namespaces, volumes, claims and definitions take what is in them along.
    KindNeedsApproval {
        kind: Kind,
        digest: Digest,
    },
    /// The volume claims of its pods would be deleted with it: what is in them would be lost.
    ClaimsGoAlong {
        digest: Digest,
    },
    /// A rule says who must agree first.
    RuleAsks {
        #[serde(flatten)]
        asks: RuleAsks,
        digest: Digest,
    },
    /// The app still belongs here and renders to nothing: that may be a mistake.
    EmptyRender {
        digest: Digest,
    },
    /// The app is still in the config repository and placed on no cluster: that may be a mistake.
    PlacedNowhere {
        digest: Digest,
    },
}

impl Reason {
    pub fn of_denial(denial: &Denial) -> Self {
        Self::Denied { policy: denial.policy.to_string(), message: denial.message.to_string() }
    }

    /// It waits for another object of its own app, which tells how it fares.
    pub fn waits_for_its_app(&self) -> bool {
        matches!(
            self,
            Self::WaitsForHook { .. } | Self::WaitsForRelease { .. } | Self::WaitsForSyncWave { .. }
        )
    }

    /// Why it would be done, whatever holds it.
    pub fn cause(&self) -> &Self {
        match self {
            Self::Held { because, .. }
            | Self::WaitsForHook { because, .. }
            | Self::WaitsForRelease { because, .. }
            | Self::WaitsForSyncWave { because, .. } => because.cause(),
            cause => cause,
        }
    }

    /// The digest to approve, when a person's word is what is missing.
    pub fn approval(&self) -> Option<Digest> {
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

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::New => f.write_str("new"),
            Self::Same => f.write_str("as rendered"),
            Self::HashChanged { from, to } => write!(f, "rendered {}, applied {}", to.short(), from.short()),
            Self::HashMissing => f.write_str("its hash annotation is gone"),
            Self::LabelsMissing => f.write_str("our label is gone from it"),
            Self::Drifted { drift, fields } => write_drift(*drift, fields, f),
            Self::DriftReported { drift, fields } => {
                write_drift(*drift, fields, f)?;
                f.write_str("; the app only reports drift")
            }
            Self::Overruled => f.write_str("the cluster keeps other values than were applied: something changes them as they are written"),
            Self::TransferredFrom { app } => write!(f, "taken over from app {app}"),
            Self::Adopted(effect) => write_effect(effect, f),
            Self::AskedLately => f.write_str("whether it is still what was applied is asked once a minute"),
            Self::InstallationOver => f.write_str("the installation is over, which is noted on it"),
            Self::OnlyOnce => f.write_str("an install hook: the app is already installed here"),
            Self::OnlyLater => f.write_str("a hook of upgrades, and this is the first release here"),
            Self::WaitsForHook { hook, because, .. } => write!(f, "waits for hook {hook}: {because}"),
            Self::WaitsForRelease { object, because, .. } => {
                write!(f, "comes when {object} is healthy: {because}")
            }
            Self::WaitsForSyncWave { wave, object, because, .. } => {
                write!(f, "comes when {object} of sync wave {wave} is healthy: {because}")
            }
            Self::Terminating => f.write_str("it is being deleted"),
            Self::NamespaceTerminating { namespace } => {
                write!(f, "namespace {namespace} is being deleted")
            }
            Self::NamespacePending { namespace, app } => {
                write!(f, "namespace {namespace} is not there yet, app {app} creates it")
            }
            Self::DefinitionPending { kind, app } => {
                write!(f, "{kind} is not served yet, app {app} defines it")
            }
            Self::KindPending { kind } => {
                write!(f, "{kind} is not served yet, an earlier sync wave may bring it")
            }
            Self::NotLookedUp => f.write_str("not known yet whether it is there"),
            Self::ObservationIncomplete => f.write_str("the cluster has not been read whole yet"),
            Self::OwnerNotRendered { app } => {
                write!(f, "app {app} applied it last and could not be rendered")
            }
            Self::NotServed { kind, served } if served.is_empty() => {
                write!(f, "the cluster does not serve {kind}")
            }
            Self::NotServed { kind, served } => {
                write!(f, "the cluster does not serve {kind}, it serves {}", Listed(served))
            }
            Self::ScopeMismatch { kind, namespaced: true } => write!(f, "{kind} needs a namespace"),
            Self::ScopeMismatch { kind, namespaced: false } => write!(f, "{kind} has no namespace"),
            Self::NotOurs { managers } if managers.is_empty() => {
                f.write_str("it is there and not ours; `adopt: true` in the app takes it over")
            }
            Self::NotOurs { managers } => write!(
                f,
                "it is there and not ours, managed by {}; `adopt: true` in the app takes it over",
                Listed(managers)
            ),
            Self::CannotAdopt { why } => write!(f, "it cannot be taken over: {why}"),
            Self::Replaced { fields } => {
                write!(f, "deleted and created anew, as {} cannot change", Listed(fields))
            }
            Self::CannotReplace { fields, why } => {
                write!(f, "{} cannot change, and it is not replaced: {why}", Listed(fields))
            }
            Self::Denied { policy, message } => write!(f, "policy {policy} denies it: {message}"),
            Self::OtherInstance { name } => write!(f, "it belongs to instance {name}"),
            Self::OfOtherApp { owner } => {
                write!(f, "app {owner} already manages this object: remove it from one of the two apps")
            }
            Self::Unmanaged => f.write_str("the app is unmanaged"),
            Self::KeptOut { taint } => {
                write!(f, "the app does not tolerate the taint {taint} of the cluster, and is not there yet")
            }
            Self::Held { by, would, because } => write!(f, "{by}, would {would}: {because}"),
            Self::KeepAnnotation => f.write_str("no longer rendered, its annotation says keep"),
            Self::PruneNever => f.write_str("no longer rendered, the app never prunes"),
            Self::Released { approval } => {
                write!(f, "no longer rendered, stays and is no longer managed, as {approval} says")
            }
            Self::NoLongerRendered => f.write_str("no longer rendered"),
            Self::Approved { approval } => write!(f, "no longer rendered, approved by {approval}"),
            Self::WaitsForHealth { on, because } => {
                f.write_str("no longer rendered, goes when its app is healthy")?;
                on.iter().try_for_each(|cluster| write!(f, " on {cluster}"))?;
                because.iter().try_for_each(|because| write!(f, ": {because}"))
            }
            Self::WaitsForCluster { cluster } => {
                write!(f, "{cluster} does not answer, goes when it is back")
            }
            Self::WaitsForContents { object: Content { object, is_wanted: true }, others: 0 } => {
                write!(f, "no longer rendered, stays while {object} is wanted in it")
            }
            Self::WaitsForContents { object: Content { object, is_wanted: true }, others } => {
                write!(
                    f,
                    "no longer rendered, stays while {object} is wanted in it; {others} more are wanted or still there"
                )
            }
            Self::WaitsForContents { object: Content { object, .. }, others: 0 } => {
                write!(f, "no longer rendered, goes after {object}, which is in it")
            }
            Self::WaitsForContents { object: Content { object, .. }, others } => {
                write!(f, "no longer rendered, goes after {object} and {others} more, which are in it")
            }
            Self::WaitsForRollout => f.write_str("no longer rendered, goes when the rollout of its app is over"),
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

fn write_effect(effect: &Effect, f: &mut fmt::Formatter<'_>) -> fmt::Result {
    /// The rest is counted.
    const SHOWN: usize = 3;
    f.write_str("taken over")?;
    if !effect.from.is_empty() {
        write!(f, " from {}", Listed(&effect.from))?;
    }
    match effect.changes.as_slice() {
        [] => f.write_str(", nothing in it changes")?,
        changes => {
            write!(f, ", changes {}", Listed(changes.get(..SHOWN).unwrap_or(changes)))?;
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

struct Listed<'a, T>(&'a [T]);

impl<T: fmt::Display> fmt::Display for Listed<'_, T> {
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

/// Code and fields for programs, and the words for people beside them.
pub(super) fn with_words<S: Serializer>(reason: &Reason, serializer: S) -> Result<S::Ok, S::Error> {
    #[derive(Serialize)]
    struct WithWords<'a> {
        #[serde(flatten)]
        reason: &'a Reason,
        words: String,
    }
    WithWords { reason, words: reason.to_string() }.serialize(serializer)
}

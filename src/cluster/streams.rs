//! Which lists of a cluster come as streams: the server tells all objects as the first events of a watch, and goes on with what
//! becomes of them. One request takes the place of many pages and a watch, and nobody holds a page. And whether what is streamed
//! shows that the cluster answers.

use std::collections::BTreeSet;

use kube::discovery::ApiResource;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::budget::Account;
use super::catalog::name_of;
use super::watching;
use crate::model::KubeVersion;

/// Servers refuse before this minor version of Kubernetes 1, or have never heard of it. Some later ones refuse too.
const STREAMS_SINCE: u32 = 32;

/// What is known of it, of one connection; it is asked anew for each, and when the server is another version.
#[derive(Debug)]
pub(super) struct Streams {
    known: Mutex<Known>,
    /// How many objects its watches tell.
    pub objects: Account,
}

impl Default for Streams {
    fn default() -> Self {
        Self { known: Mutex::default(), objects: watching::account() }
    }
}

#[derive(Debug, Default)]
struct Known {
    /// The server's own, as it writes it; empty when nobody has asked.
    version: String,
    /// Kinds whose server has refused, or never said that it had told all: servers of aggregated APIs answer as they like.
    refused: BTreeSet<(String, String)>,
    /// When a watch last told something.
    told_at: Option<Instant>,
    /// When a request last was not answered, or its sender not known.
    troubled_at: Option<Instant>,
}

impl Streams {
    /// What the server says that it is.
    pub fn heard(&self, version: &str) {
        let mut known = self.known.lock();
        if known.version != version {
            *known = Known { version: version.to_owned(), refused: BTreeSet::new(), ..*known };
        }
    }

    /// Whether a list of this kind is asked for as a stream. A server of which nothing is known is asked: it says no, or the
    /// end of the list does not come in time.
    pub fn may_be_asked(&self, api: &ApiResource) -> bool {
        let known = self.known.lock();
        let is_old = KubeVersion::parse(&known.version)
            .is_some_and(|version| (version.major, version.minor) < (1, STREAMS_SINCE));
        !is_old && !known.refused.contains(&name_of(api))
    }

    /// A watch tells something.
    pub fn note_event(&self) {
        self.known.lock().told_at = Some(Instant::now());
    }

    /// A request was not answered, or its sender is not known there.
    pub fn note_trouble(&self) {
        self.known.lock().troubled_at = Some(Instant::now());
    }

    /// Whether a watch told something since `then`, and no request found the cluster otherwise since the last probe.
    pub fn shows_that_it_answers(&self, then: Instant, probed_at: Instant) -> bool {
        let known = self.known.lock();
        known.told_at.is_some_and(|at| at > then) && known.troubled_at.is_none_or(|at| at <= probed_at)
    }

    /// It is not asked for again as a stream.
    pub fn note_refusal(&self, api: &ApiResource) {
        self.known.lock().refused.insert(name_of(api));
    }
}

#[cfg(test)]
mod tests {
    use kube::core::GroupVersionKind;

    use super::*;

    fn resource(kind: &str) -> ApiResource {
        ApiResource::from_gvk(&GroupVersionKind::gvk("apps", "v1", kind))
    }

    #[track_caller]
    fn check(version: &str, expected: bool) {
        let streams = Streams::default();
        streams.heard(version);
        assert_eq!(streams.may_be_asked(&resource("Deployment")), expected, "{version}");
    }

    #[test]
    fn old_servers_are_not_asked() {
        check("v1.20.15", false);
        check("v1.31.9-gke.1200", false);
        check("v1.32.0", true);
        check("v1.36.0+k3s1", true);
        // Whoever writes something else is asked.
        check("", true);
        check("main", true);
    }

    #[test]
    fn who_refuses_is_asked_again_when_it_is_another_version() {
        let streams = Streams::default();
        streams.heard("v1.33.4");
        streams.note_refusal(&resource("Deployment"));
        streams.heard("v1.33.4");
        let asked = ["Deployment", "StatefulSet"].map(|kind| streams.may_be_asked(&resource(kind)));
        assert_eq!(asked, [false, true]);
        streams.heard("v1.34.0");
        assert!(streams.may_be_asked(&resource("Deployment")));
    }
}

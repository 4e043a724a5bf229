//! Which lists of a cluster come as streams. In a streamed list the server sends all objects as the first events of a
//! watch and continues with changes. One request replaces many pages and a watch, and no page is kept in memory. The
//! type also records whether watch events show that the cluster answers.

use std::collections::BTreeSet;

use kube::discovery::ApiResource;
use parking_lot::Mutex;
use tokio::time::Instant;

use super::budget::ClusterBudget;
use super::catalog::api_key;
use super::watch_loop::new_object_budget;
use crate::model::KubeVersion;

/// Servers before this minor version of Kubernetes 1 refuse or do not know streamed lists. Some later ones refuse
/// too.
const STREAMS_SINCE: u32 = 32;

/// Of one connection. It is asked again for each connection and server version.
#[derive(Debug)]
pub(super) struct StreamSupport {
    known: Mutex<StreamSupportState>,
    /// How many objects its watches report.
    pub objects: ClusterBudget,
}

impl Default for StreamSupport {
    fn default() -> Self {
        Self { known: Mutex::default(), objects: new_object_budget() }
    }
}

#[derive(Debug, Default)]
struct StreamSupportState {
    /// The server's version, as it reports it; empty if unknown.
    version: String,
    /// Kinds whose server refused, or never sent the end of the list: aggregated servers differ.
    refused: BTreeSet<(String, String)>,
    /// The last watch event.
    last_event_at: Option<Instant>,
    /// The last request without an answer, or with 401.
    last_failure_at: Option<Instant>,
}

impl StreamSupport {
    /// Records the server's version.
    pub fn note_version(&self, version: &str) {
        let mut known = self.known.lock();
        if known.version != version {
            *known = StreamSupportState { version: version.to_owned(), refused: BTreeSet::new(), ..*known };
        }
    }

    /// Whether to request a list of this kind as a stream. An unknown server is asked: it refuses, or the end of the
    /// list does not arrive in time.
    pub fn may_stream(&self, api: &ApiResource) -> bool {
        let known = self.known.lock();
        let is_old = KubeVersion::parse(&known.version)
            .is_some_and(|version| (version.major, version.minor) < (1, STREAMS_SINCE));
        !is_old && !known.refused.contains(&api_key(api))
    }

    /// Records a watch event.
    pub fn note_event(&self) {
        self.known.lock().last_event_at = Some(Instant::now());
    }

    /// Records a request without an answer, or with 401.
    pub fn note_failure(&self) {
        self.known.lock().last_failure_at = Some(Instant::now());
    }

    /// Whether a watch event arrived since `then`, and no request failed since the last probe.
    pub fn has_events_since(&self, then: Instant, probed_at: Instant) -> bool {
        let known = self.known.lock();
        known.last_event_at.is_some_and(|at| at > then)
            && known.last_failure_at.is_none_or(|at| at <= probed_at)
    }

    /// Lists of this kind come page by page from now on.
    pub fn note_refusal(&self, api: &ApiResource) {
        self.known.lock().refused.insert(api_key(api));
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
        let streams = StreamSupport::default();
        streams.note_version(version);
        assert_eq!(streams.may_stream(&resource("Deployment")), expected, "{version}");
    }

    #[test]
    fn old_servers_get_no_streamed_lists() {
        check("v1.20.15", false);
        check("v1.31.9-gke.1200", false);
        check("v1.32.0", true);
        check("v1.36.0+k3s1", true);
        // An unknown version is asked.
        check("", true);
        check("main", true);
    }

    #[test]
    fn refusal_expires_with_the_server_version() {
        let streams = StreamSupport::default();
        streams.note_version("v1.33.4");
        streams.note_refusal(&resource("Deployment"));
        streams.note_version("v1.33.4");
        let asked = ["Deployment", "StatefulSet"].map(|kind| streams.may_stream(&resource(kind)));
        assert_eq!(asked, [false, true]);
        streams.note_version("v1.34.0");
        assert!(streams.may_stream(&resource("Deployment")));
    }
}

//! The Lease of the leader in the home cluster: reads and writes it. `leader` decides who may take it and when.

use std::time::Duration;

use jiff::Timestamp;
use k8s_openapi::api::coordination::v1::{Lease as Object, LeaseSpec};
use k8s_openapi::apimachinery::pkg::apis::meta::v1::MicroTime;
use kube::api::{Api, PostParams};

use super::home::{HomeCluster, HomeError, explain};
use super::response_bounds::with_reservation;

/// The repository of the leader, for people and other candidates.
const REPOSITORY: &str = "tutti.dev/repository";
/// Written by other processes that received a webhook, for the leader.
const HINT: &str = "tutti.dev/hint";
/// The duration of a released lease.
const RELEASED: Duration = Duration::from_secs(1);
/// Of one request: the leader renews several times within its term.
const PATIENCE: Duration = Duration::from_secs(3);

#[derive(Clone, Debug, Default, PartialEq)]
pub struct Lease(Box<Object>);

impl Lease {
    /// Empty if nobody holds it.
    pub fn holder(&self) -> &str {
        self.spec().and_then(|spec| spec.holder_identity.as_deref()).unwrap_or_default()
    }

    /// The lease duration.
    pub fn duration(&self) -> Duration {
        let seconds = self.spec().and_then(|spec| spec.lease_duration_seconds).unwrap_or_default();
        Duration::from_secs(u64::try_from(seconds).unwrap_or_default())
    }

    pub fn repository(&self) -> Option<&str> {
        self.annotation(REPOSITORY)
    }

    /// Nobody took or renewed it in between. A hint may have been written.
    pub fn has_same_spec(&self, other: &Self) -> bool {
        self.spec() == other.spec()
    }

    pub fn hint(&self) -> Option<&str> {
        self.annotation(HINT)
    }

    /// Acquired or renewed by a process.
    pub fn with_holder(&self, holder: &str, lasts: Duration, repository: &str, now: Timestamp) -> Self {
        let is_new = self.holder() != holder;
        let mut lease = self.clone();
        let annotations = lease.0.metadata.annotations.get_or_insert_default();
        annotations.insert(REPOSITORY.to_owned(), repository.to_owned());
        let spec = lease.0.spec.get_or_insert_default();
        spec.holder_identity = Some(holder.to_owned());
        spec.lease_duration_seconds = i32::try_from(lasts.as_secs()).ok();
        spec.renew_time = Some(MicroTime(now));
        if is_new {
            spec.acquire_time = Some(MicroTime(now));
            spec.lease_transitions = Some(spec.lease_transitions.unwrap_or_default().saturating_add(1));
        }
        lease
    }

    /// The holder released it.
    pub fn is_released(&self) -> bool {
        self.holder().is_empty() && self.duration() <= RELEASED
    }

    /// Released: the next candidate may take it.
    pub fn without_holder(&self, now: Timestamp) -> Self {
        self.with_holder("", RELEASED, self.repository().unwrap_or_default(), now)
    }

    pub fn with_hint(&self, hint: &str) -> Self {
        let mut lease = self.clone();
        lease.0.metadata.annotations.get_or_insert_default().insert(HINT.to_owned(), hint.to_owned());
        lease
    }

    fn spec(&self) -> Option<&LeaseSpec> {
        self.0.spec.as_ref()
    }

    fn annotation(&self, name: &str) -> Option<&str> {
        self.0.metadata.annotations.as_ref()?.get(name).map(String::as_str)
    }
}

impl HomeCluster {
    /// The lease by name in the namespace of the connection, or by `namespace/name`; `None` if it does not exist.
    pub async fn lease(&self, at: &str) -> Result<Option<Lease>, HomeError> {
        let found = self.request_lease("read", at, async |leases, name| leases.get_opt(name).await).await?;
        Ok(found.map(|lease| Lease(Box::new(lease))))
    }

    /// Creates the lease, or replaces the version that was read. Returns `None` if another process was first.
    pub async fn write_lease(&self, at: &str, lease: &Lease) -> Result<Option<Lease>, HomeError> {
        let mut object = lease.0.clone();
        let written = self.request_lease("write", at, async |leases, name| {
            object.metadata.name = Some(name.to_owned());
            let parameters = PostParams::default();
            let is_there = object.metadata.resource_version.is_some();
            let written = match is_there {
                true => leases.replace(name, &parameters, &object).await,
                false => leases.create(&parameters, &object).await,
            };
            match written {
                Ok(written) => Ok(Some(written)),
                Err(kube::Error::Api(status)) if status.code == 409 || status.code == 404 && is_there => {
                    Ok(None)
                }
                Err(error) => Err(error),
            }
        });
        Ok(written.await?.map(|lease| Lease(Box::new(lease))))
    }

    async fn request_lease<T>(
        &self,
        action: &'static str,
        at: &str,
        ask: impl AsyncFnOnce(Api<Object>, &str) -> Result<T, kube::Error>,
    ) -> Result<T, HomeError> {
        let what = format!("the Lease {at}");
        let asked = async {
            let kube = self.client(&what).await?.kube().clone();
            Ok(match at.split_once('/') {
                Some((namespace, name)) => ask(Api::namespaced(kube, namespace), name).await,
                None => ask(Api::default_namespaced(kube), at).await,
            })
        };
        let (detail, is_transient) = match with_reservation(tokio::time::timeout(PATIENCE, asked)).await.0 {
            Ok(Ok(Ok(answer))) => return Ok(answer),
            Ok(Ok(Err(error))) => explain(&error),
            Ok(Err(error)) => return Err(error),
            Err(_) => {
                self.reconnect();
                ("it did not answer in time".to_owned(), true)
            }
        };
        Err(HomeError::Failed { action, what, detail, is_transient })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const LASTS: Duration = Duration::from_secs(10);

    #[test]
    fn renewal_keeps_fields_of_others() {
        let text = r#"{"metadata": {"name": "tutti", "resourceVersion": "7", "labels": {"team": "platform"},
            "annotations": {"note": "ours"}}, "spec": {"holderIdentity": "one", "leaseTransitions": 4}}"#;
        let lease = Lease(serde_json::from_str(text).expect("a lease"));
        let held = lease.with_holder("two", LASTS, "config.git", Timestamp::UNIX_EPOCH);
        assert_eq!((held.holder(), held.duration(), held.repository()), ("two", LASTS, Some("config.git")));
        let (object, spec) = (&held.0, held.spec().expect("a spec"));
        assert_eq!((spec.lease_transitions, &spec.acquire_time), (Some(5), &spec.renew_time));
        assert_eq!(object.metadata.resource_version.as_deref(), Some("7"));
        assert_eq!(object.metadata.labels, lease.0.metadata.labels);
        assert_eq!(held.annotation("note"), Some("ours"));
        // A renewal is no transition.
        let later = Timestamp::from_second(2).expect("a time");
        let renewed = held.with_holder("two", LASTS, "config.git", later);
        let renewed = renewed.spec().expect("a spec");
        assert_eq!((renewed.lease_transitions, &renewed.acquire_time), (Some(5), &spec.acquire_time));
        assert_eq!(renewed.renew_time, Some(MicroTime(later)));
        assert_eq!(
            (held.without_holder(later).holder(), held.without_holder(later).duration()),
            ("", Duration::from_secs(1))
        );
    }
}

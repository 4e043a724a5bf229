//! Single requests to one cluster: look up, list, apply, create, delete. Writes need the permit of the process.

use std::sync::Arc;
use std::time::Duration;

use kube::api::{
    Api, DeleteParams, ListParams, Patch, PatchParams, PostParams, Preconditions, PropagationPolicy,
};
use kube::core::response::StatusSummary;
use kube::discovery::ApiResource;
use serde_json::{Value, json};
use tokio::time::Instant;

use super::error::classify;
use super::login::Login;
use super::name_cache::NameCache;
use super::object::{MetadataObject, ServerObject, WholeObject};
use super::response_bounds::with_reservation;
use super::server_state::ServerState;
use super::stream_support::StreamSupport;
use super::{Credential, Error, Resource, WritePermit, watch_loop};
use crate::model::{ClusterName, Digest, ObjectId};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DeleteOutcome {
    Accepted,
    /// It did not exist.
    Gone,
    /// The object changed since it was observed, or another one has its name.
    Changed,
}

/// A connection without any request so far.
pub(super) struct OpenedConnection {
    pub kube: kube::Client,
    /// What responses say about the server.
    pub server_state: ServerState,
    pub login: Login,
    /// A digest of the kubeconfig context.
    pub kubeconfig_digest: Option<Digest>,
}

/// A connection to one cluster; clones share it.
#[derive(Clone)]
pub struct Client {
    name: ClusterName,
    kube: kube::Client,
    server_state: ServerState,
    login: Login,
    /// A digest of the kubeconfig context.
    pub(super) kubeconfig_digest: Option<Digest>,
    pub(super) name_cache: Arc<NameCache>,
    streams: Arc<StreamSupport>,
    permit: WritePermit,
}

impl std::fmt::Debug for Client {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "Client({})", self.name)
    }
}

#[derive(Debug, Default)]
pub struct PodPage {
    pub pods: Vec<Value>,
    /// More pods exist.
    pub is_truncated: bool,
}

impl Client {
    /// The timeout of one request.
    pub const REQUEST_TIMEOUT: Duration = Duration::from_secs(30);
    /// Pages of a list that is kept whole.
    const MAX_PAGES: usize = 100;
    /// The timeout of a probe.
    pub const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

    pub(super) fn new(name: ClusterName, opened: OpenedConnection, permit: WritePermit) -> Self {
        let OpenedConnection { kube, server_state: standing, login, kubeconfig_digest: mark } = opened;
        Self {
            name,
            kube,
            server_state: standing,
            login,
            kubeconfig_digest: mark,
            name_cache: Arc::default(),
            streams: Arc::default(),
            permit,
        }
    }

    /// Whether both come from the same kubeconfig, if they come from one.
    pub fn has_same_kubeconfig(&self, other: &Self) -> bool {
        self.kubeconfig_digest == other.kubeconfig_digest
    }

    /// The current credential, renewed if due.
    pub async fn renewed_credential(&self) -> Credential {
        self.login.renew_if_due().await;
        self.login.credential()
    }

    /// Until when the server wants no requests, if that is in the future.
    pub fn throttled_until(&self, now: Instant) -> Option<Instant> {
        self.server_state.throttled_until(now)
    }

    /// The same for writes of an API group.
    pub fn group_throttled_until(&self, group: &str, now: Instant) -> Option<Instant> {
        self.server_state.group_throttled_until(group, now)
    }

    /// The same for repeated reads.
    pub(super) fn reads_throttled_until(&self, now: Instant) -> Option<Instant> {
        self.server_state.reads_throttled_until(now)
    }

    /// The last response was 401.
    pub(super) fn is_unauthorized(&self) -> bool {
        self.server_state.is_unauthorized()
    }

    pub(super) fn is_same_connection(&self, other: &Self) -> bool {
        Arc::ptr_eq(&self.name_cache, &other.name_cache)
    }

    pub fn name(&self) -> &ClusterName {
        &self.name
    }

    /// The current credential.
    pub fn credential(&self) -> Credential {
        self.login.credential()
    }

    pub(super) fn kube(&self) -> &kube::Client {
        &self.kube
    }

    /// Whether a watch has delivered an event since `then`, and no request has failed since the last probe because
    /// the cluster is away or rejects our login.
    pub fn has_events_since(&self, then: Instant, probed_at: Instant) -> bool {
        self.streams.has_events_since(then, probed_at)
    }

    /// Whether lists come as streams here.
    pub(super) fn streams(&self) -> Arc<StreamSupport> {
        Arc::clone(&self.streams)
    }

    pub(super) fn timeout_error(&self) -> Error {
        Error::Unreachable { cluster: self.name.clone(), detail: "it did not answer in time".to_owned() }
    }

    /// Checks that the server answers and accepts our login. Every user may read the version document, which also
    /// reports the current version.
    pub async fn probe(&self) -> Result<String, Error> {
        match tokio::time::timeout(Self::PROBE_TIMEOUT, self.kube.apiserver_version()).await {
            Ok(Ok(info)) => Ok(info.git_version),
            Ok(Err(error)) => Err(classify(&self.name, "probe", None, &error)),
            Err(_) => Err(self.timeout_error()),
        }
    }

    /// The metadata of one object; `None` if it does not exist.
    pub async fn lookup(&self, resource: &Resource, id: &ObjectId) -> Result<Option<Value>, Error> {
        let api: Api<MetadataObject> = self.api(&resource.api, id);
        let found = self.with_timeout_about("look up", Some(id), api.get_opt(&id.name)).await?;
        Ok(found.map(|metadata| metadata.into_value(&resource.api)))
    }

    /// Like [`Client::lookup`], for names that most likely do not exist. Many names are answered by one list, so
    /// `None` means that the object did not exist some seconds ago.
    pub async fn lookup_new(&self, resource: &Resource, id: &ObjectId) -> Result<Option<Value>, Error> {
        if self.may_exist(resource, id).await? { self.lookup(resource, id).await } else { Ok(None) }
    }

    /// One whole object; `None` if it does not exist.
    pub async fn get(&self, resource: &Resource, id: &ObjectId) -> Result<Option<Value>, Error> {
        let api: Api<WholeObject> = self.api(&resource.api, id);
        let found = self.with_timeout_about("look up", Some(id), api.get_opt(&id.name)).await?;
        Ok(found.map(|object| object.into_value(&resource.api)))
    }

    /// All whole objects of a kind in a namespace.
    pub async fn list(&self, resource: &Resource, namespace: &str) -> Result<Vec<Value>, Error> {
        let api: Api<WholeObject> = Api::namespaced_with(self.kube.clone(), namespace, &resource.api);
        let mut parameters = ListParams::default().limit(watch_loop::PAGE);
        let mut objects = Vec::new();
        for _ in 0..Self::MAX_PAGES {
            let list = self.with_timeout("list", api.list(&parameters)).await?;
            objects.extend(list.items.into_iter().map(|object| object.into_value(&resource.api)));
            parameters.continue_token = list.metadata.continue_.filter(|token| !token.is_empty());
            if parameters.continue_token.is_none() {
                return Ok(objects);
            }
        }
        let detail = format!("a list of {} has more than {} pages", resource.plural(), Self::MAX_PAGES);
        Err(Error::OverBound { cluster: self.name.clone(), detail })
    }

    /// One server-side apply. Returns the object of the response.
    pub async fn apply(
        &self,
        resource: &Resource,
        id: &ObjectId,
        body: &Value,
        manager: &str,
    ) -> Result<Value, Error> {
        self.apply_with(resource, id, body, &PatchParams::apply(manager)).await
    }

    /// Like [`Client::apply`], with force: takes conflicting fields from other managers.
    pub async fn force_apply(
        &self,
        resource: &Resource,
        id: &ObjectId,
        body: &Value,
        manager: &str,
    ) -> Result<Value, Error> {
        self.apply_with(resource, id, body, &PatchParams::apply(manager).force()).await
    }

    /// A dry run of an apply.
    pub async fn dry_run_apply(
        &self,
        resource: &Resource,
        id: &ObjectId,
        body: &Value,
        manager: &str,
        force: bool,
    ) -> Result<Value, Error> {
        let parameters = PatchParams { force, ..PatchParams::apply(manager).dry_run() };
        self.apply_with(resource, id, body, &parameters).await
    }

    async fn apply_with(
        &self,
        resource: &Resource,
        id: &ObjectId,
        body: &Value,
        parameters: &PatchParams,
    ) -> Result<Value, Error> {
        match self.patch(resource, id, parameters, &Patch::Apply(body)).await {
            Err(Error::Rejected { code: 415, .. }) => Err(Error::NoServerSideApply { object: id.clone() }),
            result => result,
        }
    }

    /// Creates an object. `is_dry`: a dry run.
    pub async fn create(
        &self,
        resource: &Resource,
        id: &ObjectId,
        body: &Value,
        manager: &str,
        is_dry: bool,
    ) -> Result<Value, Error> {
        let object = WholeObject::from(body.clone());
        let parameters = PostParams { dry_run: is_dry, field_manager: Some(manager.to_owned()) };
        let api: Api<WholeObject> = self.api(&resource.api, id);
        let create = api.create(&parameters, &object);
        let created = self.write("create", id, is_dry, create).await?;
        Ok(created.into_value(&resource.api))
    }

    /// A dry run of a replacement, with all defaults filled in.
    pub async fn dry_run_replace(
        &self,
        resource: &Resource,
        id: &ObjectId,
        body: &Value,
        manager: &str,
    ) -> Result<Value, Error> {
        let object = WholeObject::from(body.clone());
        let parameters = PostParams { dry_run: true, field_manager: Some(manager.to_owned()) };
        let api: Api<WholeObject> = self.api(&resource.api, id);
        let replaced =
            self.with_timeout_about("replace", Some(id), api.replace(&id.name, &parameters, &object)).await?;
        Ok(replaced.into_value(&resource.api))
    }

    /// Whether the cluster would accept the object as a new one, by a dry run.
    pub async fn dry_run_create(
        &self,
        resource: &Resource,
        id: &ObjectId,
        body: &Value,
        manager: &str,
    ) -> Result<(), Error> {
        match self.create(resource, id, body, manager, true).await {
            Ok(_) => Ok(()),
            // The server checks this last, after all else.
            Err(Error::Rejected { code: 409, reason, .. }) if reason == "AlreadyExists" => Ok(()),
            Err(error) => Err(error),
        }
    }

    /// A merge patch of metadata, `managedFields` included; values stay. With a `resourceVersion` it is refused if
    /// the object changed.
    pub async fn set_metadata(
        &self,
        resource: &Resource,
        id: &ObjectId,
        metadata: &Value,
        manager: &str,
    ) -> Result<Value, Error> {
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.patch(resource, id, &parameters, &Patch::Merge(json!({"metadata": metadata}))).await
    }

    /// A JSON patch. It is refused as a whole if one of its tests fails.
    pub async fn json_patch(
        &self,
        resource: &Resource,
        id: &ObjectId,
        steps: Value,
        manager: &str,
    ) -> Result<Value, Error> {
        let steps = serde_json::from_value(steps).map_err(|error| Error::Request {
            cluster: self.name().clone(),
            action: "patch",
            code: 400,
            detail: error.to_string(),
        })?;
        let parameters = PatchParams { field_manager: Some(manager.to_owned()), ..PatchParams::default() };
        self.patch(resource, id, &parameters, &Patch::Json::<()>(steps)).await
    }

    async fn patch(
        &self,
        resource: &Resource,
        id: &ObjectId,
        parameters: &PatchParams,
        patch: &Patch<impl serde::Serialize + std::fmt::Debug>,
    ) -> Result<Value, Error> {
        let api: Api<WholeObject> = self.api(&resource.api, id);
        let applied = api.patch(&id.name, parameters, patch);
        let patched = self.write("apply", id, parameters.dry_run, applied).await?;
        Ok(patched.into_value(&resource.api))
    }

    /// Deletes exactly this object: uid and resourceVersion are preconditions.
    pub async fn delete(
        &self,
        resource: &Resource,
        id: &ObjectId,
        uid: &str,
        resource_version: &str,
    ) -> Result<DeleteOutcome, Error> {
        let parameters = DeleteParams {
            preconditions: Some(Preconditions {
                uid: Some(uid.to_owned()),
                resource_version: Some(resource_version.to_owned()),
            }),
            propagation_policy: Some(PropagationPolicy::Background),
            ..DeleteParams::default()
        };
        let api: Api<WholeObject> = self.api(&resource.api, id);
        // The timeout is around the permit, so that the permit counts writes without an answer.
        let deleted = self.permit.write(Box::pin(api.delete(&id.name, &parameters)));
        let deleted = with_reservation(tokio::time::timeout(Self::REQUEST_TIMEOUT, deleted)).await.0;
        match deleted.map(Option::transpose) {
            Ok(Ok(None)) => Err(Error::NotLeader { object: id.clone() }),
            Ok(Ok(Some(either))) => Ok(match either.right() {
                Some(status) if status.status == Some(StatusSummary::Failure) => DeleteOutcome::Changed,
                _ => DeleteOutcome::Accepted,
            }),
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(DeleteOutcome::Gone),
            Ok(Err(kube::Error::Api(status))) if status.code == 409 => Ok(DeleteOutcome::Changed),
            Ok(Err(error)) => Err(classify(&self.name, "delete", Some(id), &error)),
            Err(_) => Err(self.timeout_error()),
        }
    }

    /// Sends a write, or a dry run, which needs no permit.
    async fn write<T>(
        &self,
        action: &'static str,
        id: &ObjectId,
        is_dry: bool,
        request: impl Future<Output = Result<T, kube::Error>>,
    ) -> Result<T, Error> {
        if is_dry {
            return self.with_timeout_about(action, Some(id), request).await;
        }
        // Boxed: a caller that awaits several would become large. The timeout is around the permit, so that the
        // permit counts writes without an answer.
        let written = async { self.permit.write(Box::pin(request)).await.transpose() };
        let written = self.with_timeout_about(action, Some(id), written).await?;
        written.ok_or_else(|| Error::NotLeader { object: id.clone() })
    }

    /// At most `limit` pods of a namespace by label.
    pub async fn pods(&self, namespace: &str, selector: &str, limit: u32) -> Result<PodPage, Error> {
        let api = ApiResource {
            group: String::new(),
            version: "v1".to_owned(),
            api_version: "v1".to_owned(),
            kind: "Pod".to_owned(),
            plural: "pods".to_owned(),
        };
        let pods: Api<WholeObject> = Api::namespaced_with(self.kube.clone(), namespace, &api);
        let parameters = ListParams::default().labels(selector).limit(limit);
        let list = self.with_timeout("list pods", pods.list(&parameters)).await?;
        let is_cut = list.metadata.continue_.is_some_and(|token| !token.is_empty());
        Ok(PodPage {
            pods: list.items.into_iter().map(|pod| pod.into_value(&api)).collect(),
            is_truncated: is_cut,
        })
    }

    pub(super) fn api<const METADATA: bool>(
        &self,
        api: &ApiResource,
        id: &ObjectId,
    ) -> Api<ServerObject<METADATA>> {
        match &id.namespace {
            Some(namespace) => Api::namespaced_with(self.kube.clone(), namespace, api),
            None => Api::all_with(self.kube.clone(), api),
        }
    }
}

//! Kinds whose own server was found to know no server-side apply: some aggregated APIs answer it by 415.
//!
//! What knows no apply may not know dry runs either, and would do what it is only asked about. So it is asked first for a dry run
//! of a sort that there is not: who knows them refuses that before anything else.

use std::collections::{BTreeMap, BTreeSet};

use kube::api::Api;
use kube::core::Status;
use kube::discovery::ApiResource;
use parking_lot::Mutex;
use serde_json::Value;

use super::catalog::name_of;
use super::error::classify;
use super::object::Whole;
use super::{Client, Error, Resource};
use crate::model::ObjectId;

/// What one connection has learnt; clones share it. It is not kept any longer: a server may be replaced by a newer one.
#[derive(Debug, Default)]
pub(super) struct WithoutApply(Mutex<Known>);

#[derive(Debug, Default)]
struct Known {
    /// API version and plural.
    kinds: BTreeSet<(String, String)>,
    /// Of these, whether they take dry runs, once that was asked.
    take_dry_runs: BTreeMap<(String, String), bool>,
    /// Of the cluster, as it was told last; `None` until then.
    version: Option<String>,
}

impl WithoutApply {
    pub fn holds(&self, api: &ApiResource) -> bool {
        let known = self.0.lock();
        !known.kinds.is_empty() && known.kinds.contains(&name_of(api))
    }

    pub fn note(&self, api: &ApiResource) {
        if self.0.lock().kinds.insert(name_of(api)) {
            tracing::info!(api = api.api_version, kind = api.kind, "its server knows no server-side apply");
        }
    }

    /// The cluster's own version: with another one, all are asked again.
    pub fn note_version(&self, version: &str) {
        let mut known = self.0.lock();
        let before = known.version.replace(version.to_owned());
        if before.is_some_and(|before| before != version) {
            known.kinds.clear();
            known.take_dry_runs.clear();
        }
    }

    fn forget(&self, api: &ApiResource) {
        let (mut known, name) = (self.0.lock(), name_of(api));
        known.kinds.remove(&name);
        known.take_dry_runs.remove(&name);
    }

    fn takes_dry_runs(&self, api: &ApiResource) -> Option<bool> {
        self.0.lock().take_dry_runs.get(&name_of(api)).copied()
    }

    fn note_dry_runs(&self, api: &ApiResource, takes: bool) {
        self.0.lock().take_dry_runs.insert(name_of(api), takes);
    }
}

impl Client {
    /// Its server does know server-side apply: who said otherwise was something in between.
    pub fn forget_without_apply(&self, resource: &Resource) {
        self.without_apply.forget(&resource.api);
    }

    /// Refuses a dry run to a server that would not take it for one. Who knows server-side apply knows dry runs, which are older.
    pub(super) async fn check_dry_run(&self, resource: &Resource, id: &ObjectId) -> Result<(), Error> {
        if !self.without_apply.holds(&resource.api) {
            return Ok(());
        }
        let takes = match self.without_apply.takes_dry_runs(&resource.api) {
            Some(takes) => takes,
            None => {
                let takes = self.ask_for_no_dry_run(resource, id).await?;
                if let Some(takes) = takes {
                    self.without_apply.note_dry_runs(&resource.api, takes);
                }
                takes.unwrap_or_default()
            }
        };
        if takes {
            return Ok(());
        }
        let detail = "the API server of its kind takes no dry runs, so what would change cannot be told";
        let (object, reason, detail) = (id.clone(), "NotAcceptable".to_owned(), detail.to_owned());
        Err(Error::Rejected { action: "foresee", object, code: 406, reason, detail })
    }

    /// Whether a sort of dry run that there is not is refused; `None` when the answer tells nothing of it. The patch changes
    /// nothing, for the server that does not look.
    async fn ask_for_no_dry_run(&self, resource: &Resource, id: &ObjectId) -> Result<Option<bool>, Error> {
        let api: Api<Whole> = self.api(&resource.api, id);
        let path = format!("{}/{}?dryRun=Nothing", api.resource_url(), id.name);
        let request =
            http::Request::patch(path).header(http::header::CONTENT_TYPE, "application/merge-patch+json");
        let request = request.body(b"{}".to_vec()).map_err(|error| Error::Request {
            cluster: self.name().clone(),
            action: "foresee",
            code: 400,
            detail: error.to_string(),
        })?;
        match tokio::time::timeout(Self::PATIENCE, self.kube().request::<Value>(request)).await {
            Ok(Ok(_)) => Ok(Some(false)),
            Ok(Err(kube::Error::Api(status))) if [400, 422].contains(&status.code) => {
                Ok(names_dry_run(&status).then_some(true))
            }
            // It looked for the object first.
            Ok(Err(kube::Error::Api(status))) if status.code == 404 => Ok(None),
            Ok(Err(error)) => Err(classify(self.name(), "foresee", Some(id), &error)),
            Err(_) => Err(self.no_answer()),
        }
    }
}

/// A request may be refused for many reasons; only one that says so was refused for its dry run.
fn names_dry_run(status: &Status) -> bool {
    let details = status.details.iter();
    let mut causes = details.flat_map(|details| &details.causes);
    status.message.contains(DRY_RUN) || causes.any(|cause| cause.field.contains(DRY_RUN))
}

const DRY_RUN: &str = "dryRun";

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn only_what_was_refused_for_its_dry_run_shows_that_they_are_known() {
        let check = |message: &str, field: &str, expected: bool| {
            let details =
                json!({"causes": [{"reason": "FieldValueNotSupported", "message": "no", "field": field}]});
            let status = json!({"status": "Failure", "code": 422, "message": message, "details": details});
            let status = serde_json::from_value(status).expect("a status");
            assert_eq!(names_dry_run(&status), expected, "{message} {field}");
        };
        check("PatchOptions is invalid: dryRun: Unsupported value: \"Nothing\"", "", true);
        check("it is invalid", "dryRun", true);
        check("admission webhook denied the request", "spec.owner", false);
        assert!(!names_dry_run(&serde_json::from_value(json!({"code": 400})).expect("a status")));
    }

    #[test]
    fn another_version_of_the_cluster_is_asked_again() {
        let api = |plural: &str| ApiResource {
            group: "example.com".to_owned(),
            version: "v1".to_owned(),
            api_version: "example.com/v1".to_owned(),
            kind: "Account".to_owned(),
            plural: plural.to_owned(),
        };
        let known = WithoutApply::default();
        known.note(&api("accounts"));
        known.note_version("v1.30.0");
        known.note_version("v1.30.0");
        assert!(known.holds(&api("accounts")));
        assert!(!known.holds(&api("menus")));
        known.forget(&api("menus"));
        assert!(known.holds(&api("accounts")));
        known.note_version("v1.31.0");
        assert!(!known.holds(&api("accounts")));
    }
}

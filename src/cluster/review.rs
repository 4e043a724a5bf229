//! Asks a cluster for our rights and for its time.

use http::header::DATE;
use jiff::fmt::rfc2822;
use jiff::{SignedDuration, Timestamp};
use k8s_openapi::api::authorization::v1::{
    ResourceAttributes, SelfSubjectAccessReview, SelfSubjectAccessReviewSpec,
};
use kube::api::{Api, PostParams};
use kube::client::Body;

use super::{Client, Error};

/// A right to ask for.
#[derive(Clone, Copy, Debug)]
pub struct AccessQuestion<'a> {
    pub verb: &'a str,
    pub group: &'a str,
    /// The plural; with a subresource `pods/log`.
    pub resource: &'a str,
    /// `None`: in the whole cluster.
    pub namespace: Option<&'a str>,
    /// `None`: for every object.
    pub name: Option<&'a str>,
}

impl Client {
    /// The cluster's own answer, from any authorizer. Every user may ask about itself.
    pub async fn is_allowed(&self, question: AccessQuestion<'_>) -> Result<bool, Error> {
        let owned = |text: &str| Some(text.to_owned());
        let (resource, subresource) = match question.resource.split_once('/') {
            Some((resource, subresource)) => (resource, Some(subresource)),
            None => (question.resource, None),
        };
        let attributes = ResourceAttributes {
            verb: owned(question.verb),
            group: owned(question.group),
            resource: owned(resource),
            subresource: subresource.and_then(owned),
            namespace: question.namespace.and_then(owned),
            name: question.name.and_then(owned),
            ..ResourceAttributes::default()
        };
        let spec = SelfSubjectAccessReviewSpec {
            resource_attributes: Some(attributes),
            ..SelfSubjectAccessReviewSpec::default()
        };
        let review = SelfSubjectAccessReview { spec, ..SelfSubjectAccessReview::default() };
        let api: Api<SelfSubjectAccessReview> = Api::all(self.kube().clone());
        let parameters = PostParams::default();
        let answer =
            self.with_retries("review the rights of tutti", || api.create(&parameters, &review)).await?;
        Ok(answer.status.is_some_and(|status| status.allowed))
    }

    /// How far the cluster's clock is ahead of ours, to about a second; `None` if it reports no date.
    pub async fn clock_ahead(&self) -> Result<Option<SignedDuration>, Error> {
        let request = || http::Request::get("/version").body(Body::empty()).map_err(kube::Error::HttpError);
        let asked = Timestamp::now();
        let send = || async { self.kube().send(request()?).await };
        let response = self.with_retries("probe", send).await?;
        let answered = Timestamp::now();
        let date = response.headers().get(DATE).and_then(|date| date.to_str().ok());
        let Some(theirs) = date.and_then(|date| rfc2822::parse(date).ok()) else { return Ok(None) };
        // The date is cut to seconds, and written between request and response.
        let middle = asked + answered.duration_since(asked) / 2;
        Ok(Some(theirs.timestamp().duration_since(middle) + SignedDuration::from_millis(500)))
    }
}

//! The replica counts of an object. They may change without a rollout; while a rollout is open, the larger count of the two renders is
//! applied.

use serde_json::Value;

use super::{Digest, GroupVersionKind, ObjectBody, RenderedObject};

/// The paths of the replica counts of a kind.
fn scale_paths(kind: &GroupVersionKind) -> &'static [&'static [&'static str]] {
    match (&*kind.group, &*kind.kind) {
        ("autoscaling", "HorizontalPodAutoscaler") => &[&["spec", "minReplicas"], &["spec", "maxReplicas"]],
        ("keda.sh", "ScaledObject") => &[&["spec", "minReplicaCount"], &["spec", "maxReplicaCount"]],
        _ => &[&["spec", "replicas"]],
    }
}

/// The counts of one object, in the order of the paths of its kind; `None` for a missing one.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ObjectScale(Vec<Option<i64>>);

impl ObjectScale {
    /// The scale of an object with `spec.replicas` alone.
    pub fn of_replicas(count: i64) -> Self {
        Self(vec![Some(count)])
    }

    /// The larger count of both at each path. Where only one side has a count, the result is that of `self`.
    #[must_use]
    pub fn max_with(&self, other: &Self) -> Self {
        let larger = |(own, other): (&Option<i64>, &Option<i64>)| match (own, other) {
            (Some(own), Some(other)) => Some(*own.max(other)),
            (own, _) => *own,
        };
        if self.0.len() != other.0.len() {
            return self.clone();
        }
        Self(self.0.iter().zip(&other.0).map(larger).collect())
    }
}

impl RenderedObject {
    /// The digest without scale: two versions of an object that differ only in scale have equal contents.
    pub fn content(&self) -> Digest {
        if !self.may_have_scale() {
            return self.hash;
        }
        let mut fields = self.body.fields();
        if !remove_scale(&mut fields, &self.kind) {
            return self.hash;
        }
        self.digest_of(&fields)
    }

    pub fn scale(&self) -> ObjectScale {
        if !self.may_have_scale() {
            return ObjectScale(vec![None; scale_paths(&self.kind).len()]);
        }
        let fields = self.body.fields();
        let number = |path: &&[&str]| path.iter().try_fold(&fields, |value, key| value.get(key))?.as_i64();
        ObjectScale(scale_paths(&self.kind).iter().map(number).collect())
    }

    /// The same object with other counts, where it has counts.
    #[must_use]
    pub fn with_scale(&self, scale: &ObjectScale) -> Self {
        if self.scale() == *scale {
            return self.clone();
        }
        let mut fields = self.body.fields();
        for (path, number) in scale_paths(&self.kind).iter().zip(&scale.0) {
            let place = path.iter().try_fold(&mut fields, |value, key| value.get_mut(key));
            if let (Some(place), Some(number)) = (place.filter(|it| it.is_i64() || it.is_u64()), number) {
                *place = (*number).into();
            }
        }
        Self { body: ObjectBody::new(&fields), hash: self.digest_of(&fields), ..self.clone() }
    }

    fn digest_of(&self, fields: &Value) -> Digest {
        self.encrypted_values.as_ref().map_or_else(|| Digest::of_json(fields), |sealed| sealed.digest(fields))
    }

    /// A cheap text search, because most objects have no counts.
    fn may_have_scale(&self) -> bool {
        scale_paths(&self.kind).iter().any(|path| path.last().is_some_and(|key| self.body.contains_text(key)))
    }
}

/// Removes the counts from an object. Returns whether there were any.
pub fn remove_scale(fields: &mut Value, kind: &GroupVersionKind) -> bool {
    let mut any = false;
    for path in scale_paths(kind) {
        let Some((key, parents)) = path.split_last() else { continue };
        let parent = parents.iter().try_fold(&mut *fields, |value, key| value.get_mut(key));
        if let Some(parent) = parent.and_then(Value::as_object_mut)
            && parent.get(*key).is_some_and(Value::is_number)
        {
            parent.shift_remove(*key);
            any = true;
        }
    }
    any
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn deployment(replicas: &Value, image: &str) -> RenderedObject {
        let body = json!({"apiVersion": "apps/v1", "kind": "Deployment", "metadata": {"name": "web", "namespace": "shop"},
            "spec": {"replicas": replicas, "template": {"spec": {"containers": [{"name": "a", "image": image}]}}}});
        RenderedObject::for_test(&body, None)
    }

    #[test]
    fn content_is_the_same_at_every_scale() {
        let (one, two) = (deployment(&json!(1), "a:1"), deployment(&json!(2), "a:1"));
        assert_eq!((one.content() == two.content(), one.hash == two.hash), (true, false));
        assert_ne!(one.content(), deployment(&json!(1), "a:2").content());
        assert_eq!(one.with_scale(&two.scale()), two);
        assert_eq!(one.with_scale(&two.scale()).hash, two.hash);
    }

    #[test]
    fn content_without_scale_equals_hash() {
        let body = json!({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "web", "namespace": "shop"},
            "data": {"replicas": "3"}});
        let object = RenderedObject::for_test(&body, None);
        assert_eq!(object.content(), object.hash);
        assert_eq!(object.with_scale(&ObjectScale(vec![Some(3)])), object);
    }

    #[test]
    fn bounds_of_an_autoscaler_are_scale() {
        let body = |min: i64, max: i64| {
            json!({"apiVersion": "autoscaling/v2", "kind": "HorizontalPodAutoscaler",
                "metadata": {"name": "web", "namespace": "shop"}, "spec": {"minReplicas": min, "maxReplicas": max}})
        };
        let (small, large) =
            (RenderedObject::for_test(&body(2, 4), None), RenderedObject::for_test(&body(1, 8), None));
        assert_eq!(small.content(), large.content());
        assert_eq!(
            small.with_scale(&small.scale().max_with(&large.scale())).scale(),
            ObjectScale(vec![Some(2), Some(8)])
        );
    }

    #[test]
    fn count_of_one_side_is_the_own_one() {
        let check = |own: Option<i64>, other: Option<i64>, expected: Option<i64>| {
            assert_eq!(
                ObjectScale(vec![own]).max_with(&ObjectScale(vec![other])),
                ObjectScale(vec![expected])
            );
        };
        check(Some(3), Some(5), Some(5));
        check(Some(5), Some(3), Some(5));
        check(Some(3), None, Some(3));
        check(None, Some(5), None);
    }
}

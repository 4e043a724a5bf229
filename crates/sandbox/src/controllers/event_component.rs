//! The components of a cluster that record events.

use crate::verbs::WriteCaller;

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(super) enum EventComponent {
    CronJob,
    DaemonSet,
    Deployment,
    Disruption,
    HorizontalPodAutoscaler,
    Job,
    Kubelet,
    ReplicaSet,
    Scheduler,
    StatefulSet,
    Volumes,
}

impl EventComponent {
    pub(super) fn name(self) -> &'static str {
        match self {
            Self::CronJob => "cronjob-controller",
            Self::DaemonSet => "daemonset-controller",
            Self::Deployment => "deployment-controller",
            Self::Disruption => "controllermanager",
            Self::HorizontalPodAutoscaler => "horizontal-pod-autoscaler",
            Self::Job => "job-controller",
            Self::Kubelet => "kubelet",
            Self::ReplicaSet => "replicaset-controller",
            Self::Scheduler => "default-scheduler",
            Self::StatefulSet => "statefulset-controller",
            Self::Volumes => "persistentvolume-controller",
        }
    }

    pub(super) fn caller(self) -> WriteCaller {
        match self {
            Self::Kubelet => WriteCaller::kubelet(),
            Self::Scheduler => WriteCaller::scheduler(),
            _ => WriteCaller::controller(),
        }
    }
}

//! The right of a process to write: to clusters, and to the forge.
//!
//! A process has one permit, made where its settings are made. It is checked right before each apply, delete and post is sent.
//! A write that was sent is awaited: nobody can call it back.
//!
//! There are two views of it. The one of clusters is narrower: it is revoked when the process is told to stop, and the statuses
//! are still posted then. Revoking the permit itself stops both at once, for good. So does the loss of a leader's lease: the task that
//! renews the lease holds a clone of the permit, and revokes it before the lease can be another process's.

use tokio_util::sync::CancellationToken;

/// Held until it is revoked. All clones are one permit.
#[derive(Clone, Debug, Default)]
pub struct WritePermit(CancellationToken);

impl WritePermit {
    /// A permit that ends with this one, or before.
    #[must_use]
    pub fn narrowed(&self) -> Self {
        Self(self.0.child_token())
    }

    /// For one task that writes: cancelled with the permit, or alone.
    pub fn task(&self) -> CancellationToken {
        self.0.child_token()
    }

    /// No further write is sent.
    pub fn revoke(&self) {
        self.0.cancel();
    }

    pub fn is_revoked(&self) -> bool {
        self.0.is_cancelled()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn narrowed_permit_ends_alone_or_with_its_source() {
        let process = WritePermit::default();
        let clusters = process.narrowed();
        let task = clusters.task();
        task.cancel();
        assert!(!clusters.is_revoked() && !clusters.task().is_cancelled());
        let another = clusters.task();
        clusters.revoke();
        assert!(another.is_cancelled() && clusters.task().is_cancelled());
        assert!(!process.is_revoked());
        let clusters = process.narrowed();
        process.revoke();
        assert!(process.is_revoked() && clusters.is_revoked() && clusters.task().is_cancelled());
    }
}

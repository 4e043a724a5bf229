//! The manager of a write: name, operation, version and subresource.

#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum ManagerOperation {
    Apply,
    Update,
}

impl ManagerOperation {
    pub(super) fn text(self) -> &'static str {
        match self {
            Self::Apply => "Apply",
            Self::Update => "Update",
        }
    }

    pub(super) fn read(text: &str) -> Option<Self> {
        [Self::Apply, Self::Update].into_iter().find(|one| one.text() == text)
    }
}

#[derive(Debug, Clone, PartialEq)]
pub(crate) struct ManagedWriter {
    pub(crate) manager: String,
    pub(crate) operation: ManagerOperation,
    pub(crate) api_version: String,
    /// Empty for the object itself.
    pub(crate) subresource: String,
}

//! Two revisions compared.

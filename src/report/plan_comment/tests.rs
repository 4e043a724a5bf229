//! Comments.

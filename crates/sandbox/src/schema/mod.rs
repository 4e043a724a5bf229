//! The field schemas of all kinds: OpenAPI definitions of a real API server, embedded in the binary.
//!
//! `cargo xtask schema` writes one compressed file. A process inflates it once, at first use ([`built_in`]).
//! Server-side apply takes merge types from here ([`merge_type`](definitions::SchemaDefinitions::merge_type), and
//! [`custom_merge_type`] for CustomResourceDefinitions). Decoding and strategic merge patches walk an object by its
//! definition ([`FieldDeclaration`]). OpenAPI discovery publishes the definitions.
//!
//! The module never reads objects. Callers pass in the schemas of custom kinds.

mod convert;
mod custom;
mod declaration;
mod definitions;
mod reference;
#[cfg(test)]
mod tests;

pub(crate) use custom::custom_merge_type;
pub(crate) use declaration::FieldDeclaration;
pub(crate) use definitions::built_in;

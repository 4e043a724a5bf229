//! What the fields of the kinds are: the definitions of a real server, embedded.
//!
//! `cargo xtask schema` reads them from a kube-apiserver into one compressed file, which is inflated once per process,
//! when first asked for ([`built_in`]). Three readers: server-side apply takes merge types
//! ([`Definitions::merge_type`], and [`custom`] for kinds that a CustomResourceDefinition describes), decoding and
//! strategic merge patches walk along an object ([`Declaration`]), and the OpenAPI documents publish it all again.
//!
//! Never looks at an object; knows of custom kinds only what it is given.

mod convert;
mod custom;
mod declaration;
mod definitions;
#[cfg(test)]
mod tests;

pub(crate) use custom::custom;
pub(crate) use declaration::Declaration;
pub(crate) use definitions::{Definitions, built_in};

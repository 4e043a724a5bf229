//! Finds where each field of a rendered object comes from.
//!
//! A plain render keeps no records. To explain one, it is repeated. First with [`line_marks`] in the templates: they give the
//! template line of each field. Then once for each value of each input file ([`leaves`]), with that value altered ([`trace_session`]):
//! the value reaches the fields that change, through layers, templates, manifests and patches. [`explain`] combines both.
//!
//! This module never analyzes template code.

pub mod explain;
pub mod field_locations;
mod input_files;
pub mod leaves;
pub mod line_marks;
pub mod line_reports;
pub mod reach;
pub mod touched_objects;
pub mod trace_recorder;
mod trace_session;

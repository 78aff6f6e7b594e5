//! Tests of the findings: a small world per code, the documentation, and properties.

mod documentation;
mod fixture;
mod fuzz;
mod golden;
mod properties;

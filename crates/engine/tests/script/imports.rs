//! Endpoints of other namespaces (docs/spec.md, section 10). The consumer is `shop/db`, the source
//! `data/postgres`, whose slices somebody else writes.

mod condition;
mod consent;
mod copies;
pub mod pair;

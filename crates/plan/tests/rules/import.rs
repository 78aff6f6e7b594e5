//! The rules of the import controller (docs/spec.md, section 10). The consumer is `shop/db`, the
//! source `data/postgres`.

mod condition;
mod consent;
mod copies;
mod world;

//! Services of several clusters (docs/spec.md, section 11). The engine runs in `home`; `eu1` and `us1`
//! are other API servers, whose watches a script delivers.

mod contact;
mod life;
pub mod set;

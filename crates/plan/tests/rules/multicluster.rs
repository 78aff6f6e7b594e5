//! The rules of Services over many clusters (docs/spec.md, section 11). The key is `shop/web`, this
//! cluster is `home`.

mod exports;
mod lost;
mod merging;
mod mistakes;
mod publishing;
mod slices;
mod world;

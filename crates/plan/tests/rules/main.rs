//! One test per rule of `docs/spec.md`: a cluster state in the fixture language and the text of the
//! plan that it must give.

mod fixture;

mod endpoints;
mod hints;
mod import;
mod instances;
mod left_behind;
mod mirror;
mod multicluster;
mod services_seen;
mod slices;
mod tolerate_unready;

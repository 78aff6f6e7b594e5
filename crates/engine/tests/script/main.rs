//! Scripted tests: an engine, an in-memory cluster with scripted faults, and the expected writes.

mod batch_period;
mod cluster;
mod clusters;
mod contested;
mod dry_run;
mod imports;
mod late_responses;
mod leadership;
mod left_behind;
mod mass_deletions;
mod missing_objects;
mod normal_operation;
mod objects;
mod random_clusters;
mod random_faults;
mod random_imports;
mod refused_writes;
mod request_failures;
mod requests_in_flight;
mod rollout;
mod server_errors;
mod short_pod_lists;
mod starting;
mod throttling;
mod version_rollback;
mod write_order;

//! The whole daemon on a real control plane that misbehaves: a fault proxy between the two answers,
//! delays, and loses requests; webhooks, quotas, and policies refuse or rewrite objects; etcd has no
//! space. Every fault counts how often it fired, and a test fails if it never did. The F-numbers are
//! those of the table in `docs/control-plane.md`.

mod both_running;
mod connections;
mod credentials;
mod fights;
mod limits;
mod refusals;
mod server_errors;
mod shared;
mod short_lists;
mod silence;
mod storage;
mod terms;
mod throttling;
mod webhooks;

use endpointd_scenarios::harness::{self, Test};

/// The first test of a group starts the group's cluster; the tests of a group run in turns.
const TESTS: &[Test] = &[
    ("silent_watch_is_reopened", silence::silent_watch_is_reopened),
    (
        "flooded_status_port_delays_neither_probes_nor_removals",
        silence::flooded_status_port_delays_neither_probes_nor_removals,
    ),
    ("rewriting_webhook_causes_few_writes", fights::rewriting_webhook_causes_few_writes),
    (
        "contested_label_causes_few_writes_and_delays_no_removal",
        fights::contested_label_causes_few_writes_and_delays_no_removal,
    ),
    (
        "error_responses_and_lost_requests_leave_no_duplicates",
        server_errors::error_responses_and_lost_requests_leave_no_duplicates,
    ),
    (
        "recreated_services_are_published_despite_faults",
        server_errors::recreated_services_are_published_despite_faults,
    ),
    (
        "services_created_while_writes_fail_are_published_at_once_after",
        server_errors::services_created_while_writes_fail_are_published_at_once_after,
    ),
    (
        "cut_and_refused_connections_and_error_answers_lose_nothing",
        connections::cut_and_refused_connections_and_error_answers_lose_nothing,
    ),
    ("empty_list_of_pods_unpublishes_nothing", short_lists::empty_list_of_pods_unpublishes_nothing),
    (
        "removals_are_fast_while_everything_is_listed_again",
        connections::removals_are_fast_while_everything_is_listed_again,
    ),
    (
        "throttled_namespaces_wait_and_others_do_not",
        throttling::throttled_namespaces_wait_and_others_do_not,
    ),
    (
        "refused_slices_are_tried_rarely_and_delay_nobody",
        refusals::refused_slices_are_tried_rarely_and_delay_nobody,
    ),
    ("replaced_token_is_used", credentials::replaced_token_is_used),
    ("replaced_authority_is_trusted", credentials::replaced_authority_is_trusted),
    (
        "etcd_without_space_is_an_error_and_not_a_loop",
        storage::etcd_without_space_is_an_error_and_not_a_loop,
    ),
    ("replaced_client_certificate_is_used", credentials::replaced_client_certificate_is_used),
    (
        "service_with_thousands_of_ports_does_not_stop_its_neighbours",
        limits::service_with_thousands_of_ports_does_not_stop_its_neighbours,
    ),
    (
        "deleted_nodes_are_read_once_each_and_delay_no_removal",
        limits::deleted_nodes_are_read_once_each_and_delay_no_removal,
    ),
    ("lost_lease_stops_waiting_writes", terms::lost_lease_stops_waiting_writes),
    (
        "kube_controller_manager_beside_the_daemon_does_no_harm",
        both_running::kube_controller_manager_beside_the_daemon_does_no_harm,
    ),
    (
        "slow_webhook_does_not_delay_other_namespaces",
        server_errors::slow_webhook_does_not_delay_other_namespaces,
    ),
    (
        "few_file_descriptors_suffice_for_a_large_plan",
        limits::few_file_descriptors_suffice_for_a_large_plan,
    ),
];

fn main() {
    harness::run(TESTS)
}

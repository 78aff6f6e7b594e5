//! All scenarios. Each has a namespace of its own, so all can run at once on one cluster. They
//! converge only to states that upstream reaches, too; `tests/improvements.rs` has the states that
//! upstream does not reach.

mod families;
mod foreign;
mod hints;
mod lifecycle;
mod mirror;
mod namespace;
mod nodes;
mod pods;
mod ports;
mod selection;

use endpointd_control_plane::Release;

use crate::test_namespace::TestNamespace;

/// A scenario. Its namespace has the same name.
#[derive(Clone, Copy)]
pub struct Scenario {
    pub name: &'static str,
    pub run: fn(&mut TestNamespace<'_>),
    /// The first release whose API server accepts its objects by default.
    since: Release,
}

impl Scenario {
    pub fn runs_on(&self, release: Release) -> bool {
        self.since <= release
    }

    const fn since(self, since: Release) -> Self {
        Self { since, ..self }
    }
}

const fn scenario(name: &'static str, run: fn(&mut TestNamespace<'_>)) -> Scenario {
    Scenario { name, run, since: Release::V1_33 }
}

/// Longest first, so that the last one to end is a short one.
pub const SCENARIOS: &[Scenario] = &[
    scenario("fifteen-hundred", hints::fifteen_hundred_endpoints),
    scenario("namespace-deleted", namespace::deleted_with_all_in_it),
    scenario("topology", hints::topology_annotation),
    scenario("dual-stack", families::dual_stack),
    scenario("ipv6-alone", families::ipv6_alone),
    scenario("families-changed", families::families_changed),
    scenario("created", lifecycle::created),
    scenario("scaled", lifecycle::scaled_up_and_down),
    scenario("rolled", lifecycle::rolled),
    scenario("deleted", lifecycle::deleted),
    scenario("recreated", lifecycle::recreated_at_once),
    scenario("relabelled", lifecycle::relabelled),
    scenario("headless", ports::headless_with_ports),
    scenario("headless-portless", ports::headless_without_ports),
    scenario("named-ports", ports::named_ports_differ),
    scenario("ports-changed", ports::ports_changed),
    scenario("flapping", pods::ready_and_unready),
    scenario("not-ready-published", pods::not_ready_published),
    scenario("terminating", pods::terminating),
    scenario("ended", pods::ended),
    scenario("address-reused", pods::address_reused),
    scenario("pod-replaced", pods::replaced_under_the_same_name),
    scenario("pod-labels", pods::selected_by_changing_labels),
    scenario("hostnames", pods::hostnames),
    scenario("pending", pods::pending_until_it_has_an_address),
    scenario("late-node", nodes::node_appears_late),
    scenario("zone-changes", nodes::zone_label_changes),
    scenario("prefer-close", hints::prefer_close),
    scenario("prefer-same-zone", hints::prefer_same_zone).since(Release::V1_34),
    scenario("prefer-same-node", hints::prefer_same_node).since(Release::V1_34),
    scenario("selector", selection::selector_removed_and_added),
    scenario("selector-changed", selection::selector_changed),
    scenario("external-name", selection::external_name_back_and_forth),
    scenario("mirrored", mirror::lifecycle),
    scenario("mirrored-ipv6", mirror::both_families),
    scenario("mirrored-skipped", mirror::skip_label_on_and_off),
    scenario("mirrored-recreated", mirror::recreated_at_once),
    scenario("mirrored-deleted", mirror::service_deleted),
    scenario("foreign-edit", foreign::edited),
    scenario("foreign-delete", foreign::deleted),
    scenario("foreign-slices", foreign::slices_of_others),
    scenario("finalizer", foreign::finalizer_on_a_slice),
];

//! All histories. Each lives in a namespace of its own, so that all can be played at once on one
//! cluster, and settles only on states that upstream reaches too: what upstream leaves broken is in
//! `tests/beyond.rs`.

mod families;
mod foreign;
mod hints;
mod life;
mod mirror;
mod namespace;
mod nodes;
mod pods;
mod ports;
mod selection;

use crate::stage::Stage;

/// A history, and the name that its namespace has too.
#[derive(Clone, Copy)]
pub struct History {
    pub name: &'static str,
    pub play: fn(&mut Stage<'_>),
    pub needs: Needs,
}

/// What must run beside the controllers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Needs {
    Nothing,
    /// A garbage collector, and somebody who empties namespaces that are being deleted.
    Collectors,
}

const fn history(name: &'static str, play: fn(&mut Stage<'_>)) -> History {
    History { name, play, needs: Needs::Nothing }
}

const fn collected(name: &'static str, play: fn(&mut Stage<'_>)) -> History {
    History { name, play, needs: Needs::Collectors }
}

/// Longest first: then none of them is waited for alone at the end.
pub const HISTORIES: &[History] = &[
    history("fifteen-hundred", hints::fifteen_hundred_endpoints),
    collected("namespace-deleted", namespace::deleted_with_all_in_it),
    history("topology", hints::topology_annotation),
    history("dual-stack", families::dual_stack),
    history("ipv6-alone", families::ipv6_alone),
    history("families-changed", families::families_changed),
    history("created", life::created),
    history("scaled", life::scaled_up_and_down),
    history("rolled", life::rolled),
    collected("deleted", life::deleted),
    collected("recreated", life::recreated_at_once),
    history("relabelled", life::relabelled),
    history("headless", ports::headless_with_ports),
    history("headless-portless", ports::headless_without_ports),
    history("named-ports", ports::named_ports_differ),
    history("ports-changed", ports::ports_changed),
    history("flapping", pods::ready_and_unready),
    history("not-ready-published", pods::not_ready_published),
    history("terminating", pods::terminating),
    history("ended", pods::ended),
    history("address-reused", pods::address_reused),
    history("pod-replaced", pods::replaced_under_the_same_name),
    history("pod-labels", pods::selected_by_changing_labels),
    history("hostnames", pods::hostnames),
    history("pending", pods::pending_until_it_has_an_address),
    history("late-node", nodes::node_appears_late),
    history("zone-changes", nodes::zone_label_changes),
    history("prefer-close", hints::prefer_close),
    history("prefer-same-zone", hints::prefer_same_zone),
    history("prefer-same-node", hints::prefer_same_node),
    history("selector", selection::selector_removed_and_added),
    history("selector-changed", selection::selector_changed),
    history("external-name", selection::external_name_back_and_forth),
    history("mirrored", mirror::whole_life),
    history("mirrored-ipv6", mirror::both_families),
    history("mirrored-skipped", mirror::skip_label_on_and_off),
    history("mirrored-recreated", mirror::recreated_at_once),
    collected("mirrored-deleted", mirror::service_deleted),
    history("foreign-edit", foreign::edited),
    history("foreign-delete", foreign::deleted),
    history("foreign-slices", foreign::slices_of_others),
    collected("finalizer", foreign::finalizer_on_a_slice),
];

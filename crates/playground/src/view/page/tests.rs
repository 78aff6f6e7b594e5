//! Pages without colours.

use super::*;
use crate::view_state::{PodCounts, SliceCounts, Work, ZoneCounts};

fn session() -> SessionInfo {
    SessionInfo {
        scenario: "rollout",
        seed: 1,
        url: "http://127.0.0.1:4000".to_owned(),
        page: None,
        status_address: None,
        kubeconfig: "here/k".to_owned(),
        has_workload: true,
        clusters: Vec::new(),
    }
}

fn view_state() -> ViewState {
    let conditions =
        |n_ready, n_unready, n_terminating| Conditions { n_ready, n_unready, n_terminating };
    let slice = |address_type: &str, n_endpoints| SliceView {
        address_type: address_type.to_owned(),
        n_endpoints,
    };
    let zone = |n_ready| ZoneCounts { n_nodes: 4, n_ready };
    ViewState {
        elapsed: Duration::from_secs(65),
        zones: [("zone-a", zone(4)), ("zone-b", zone(0))].map(|(z, n)| (z.to_owned(), n)).into(),
        pods: PodCounts { n_pods: 20, n_ready: 17, n_terminating: 1 },
        services: vec![
            ServiceView {
                name: "shop/api".to_owned(),
                kind: "dual stack".to_owned(),
                by_zone: [("zone-a".to_owned(), conditions(4, 1, 0))].into(),
                slices: vec![slice("IPv4", 5), slice("IPv6", 5)],
            },
            ServiceView {
                name: "shop/web".to_owned(),
                kind: "plain".to_owned(),
                by_zone: [("zone-b".to_owned(), conditions(0, 3, 2))].into(),
                slices: vec![slice("IPv4", 100); 5],
            },
        ],
        slices: SliceCounts { n_slices: 7, n_endpoints: 510 },
        work: Work { is_ready: true, ..Work::default() },
        log: vec![(Duration::from_secs(60), "rollout of web to v2".to_owned())],
        ..ViewState::default()
    }
}

fn text(width: usize, height: usize) -> Vec<String> {
    let lines = page(&session(), &view_state(), width, height);
    lines.iter().map(|line| line.uncoloured().trim_end().to_owned()).collect()
}

#[test]
fn a_service_is_a_row_of_zones_and_slices() {
    let lines = text(100, 40);
    let row = |start: &str| lines.iter().find(|line| line.starts_with(start)).expect("a row");
    assert_eq!(row("SERVICE"), "SERVICE   KIND         ZONE-A   ZONE-B   SLICES");
    assert_eq!(row("shop/api"), "shop/api  dual stack   4 +1     ·        █░░░░ v4 5  █░░░░ v6 5");
    assert_eq!(
        row("shop/web"),
        "shop/web  plain        ·        0 +3 -2  █████ 5 slices, 500 of 500"
    );
    assert_eq!(row("nodes"), "nodes  zone-a 4/4  zone-b 0/4");
    assert_eq!(row("pods"), "pods   20  17 ready  2 not ready  1 terminating");
    assert!(row(" 1:00").contains("rollout of web to v2"));
    assert!(lines.iter().any(|line| line.contains("export KUBECONFIG=here/k")));
}

#[test]
fn a_page_is_never_larger_than_its_terminal() {
    for width in 0..120 {
        for height in 0..40 {
            let lines = page(&session(), &view_state(), width, height);
            assert!(lines.len() <= height, "{width}×{height}");
            assert!(lines.iter().all(|line| line.width() <= width), "{width}×{height}");
        }
    }
}

#[test]
fn services_that_do_not_fit_are_counted() {
    let mut many = view_state();
    let service = many.services[0].clone();
    many.services =
        (0..50).map(|n| ServiceView { name: format!("shop/s{n:02}"), ..service.clone() }).collect();
    let lines = page(&session(), &many, 80, 24);
    let lines: Vec<String> = lines.iter().map(Line::uncoloured).collect();
    let n_rows = lines.iter().filter(|line| line.starts_with("shop/s")).count();
    assert!(n_rows >= 5, "{lines:#?}");
    assert!(lines.iter().any(|line| *line == format!("… and {} more", 50 - n_rows)), "{lines:#?}");
}

#[test]
fn a_narrow_page_omits_the_kind() {
    assert!(text(60, 40).iter().all(|line| !line.contains("dual stack")));
    assert!(text(60, 40).iter().any(|line| line.contains("shop/api  4 +1")));
}

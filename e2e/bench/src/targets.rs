//! Targets, as ratios between subjects of one run.

use crate::record::{Record, Row, Scenario, rows};
use crate::scenarios::{cold_start, commands, engine, readers, restart};
use crate::subject::Subject;

/// One target and the measured value.
#[derive(Clone, Debug, PartialEq)]
pub struct Target {
    pub name: String,
    pub limit: String,
    pub measured: String,
    pub is_met: bool,
}

/// The targets for which this run has numbers.
pub fn targets(records: &[Record]) -> Vec<Target> {
    let mut targets = Vec::new();
    let of = |scenario| rows(records, scenario);
    for row in of(Scenario::ColdStart) {
        let shares = [("memory, settled", 10.0), ("CPU until complete", 8.0)];
        for (name, at_least) in shares {
            targets.extend(at_most_share(&row, name, at_least, Subject::KcmUnthrottled));
        }
    }
    for row in of(Scenario::WriteOnly) {
        targets.extend(near_lower_bound(&row));
    }
    targets.extend(of(Scenario::Restart).iter().filter_map(no_writes));
    for row in of(Scenario::Churn) {
        targets.extend(at_most_share(&row, "CPU per toggle", 10.0, Subject::KcmUnthrottled));
        if row.case.starts_with("50 ") {
            for name in ["removal, p99", "addition, p99"] {
                targets.extend(at_most_share(&row, name, 2.0, Subject::KcmUnthrottled));
            }
        }
    }
    for row in of(Scenario::Rollout) {
        for name in ["writes", "slice bytes to 1,000 nodes"] {
            targets.extend(at_most_share(&row, name, 2.0, Subject::KcmUnthrottled));
        }
    }
    targets.extend(constant_cost(&of(Scenario::ServicesPerNamespace)));
    targets.extend(cost_of_readers(&of(Scenario::Readers)));
    targets.extend(of(Scenario::Commands).iter().filter_map(explain_time));
    for row in of(Scenario::Engine) {
        targets.extend(bytes_per_pod(&row));
    }
    targets
}

/// kube-controller-manager needs at least `at_least` times as much. Without client limits it is
/// faster; its CPU and memory are about the same.
fn at_most_share(row: &Row, name: &str, at_least: f64, other: Subject) -> Option<Target> {
    let ratio = row.ratio_to_endpointd(other).filter(|_| row.name == name)?;
    Some(Target {
        name: format!("{name}, {}", row.case),
        limit: format!("at most 1/{at_least}"),
        measured: format!("1/{ratio:.1}"),
        is_met: ratio >= at_least,
    })
}

fn near_lower_bound(row: &Row) -> Option<Target> {
    const AT_MOST: f64 = 1.3;
    if row.name != cold_start::TIME {
        return None;
    }
    let times = row.median(Subject::Endpointd)? / row.median(Subject::WriteOnly)?;
    Some(Target {
        name: format!("cold start, {}", row.case),
        limit: format!("at most {AT_MOST} × the write-only lower bound"),
        measured: format!("{times:.2} ×"),
        is_met: times <= AT_MOST,
    })
}

/// A restart on a converged cluster writes nothing, in every round.
fn no_writes(row: &Row) -> Option<Target> {
    let (_, most) =
        row.of(Subject::Endpointd).filter(|_| row.name == restart::UNNECESSARY_WRITES)?.range()?;
    Some(Target {
        name: format!("{}, restart, {}", row.name, row.case),
        limit: "none".to_owned(),
        measured: format!("{most:.0}"),
        is_met: most == 0.0,
    })
}

/// The cost of a toggle does not depend on the number of Services.
fn constant_cost(rows: &[Row]) -> Option<Target> {
    const AT_MOST: f64 = 1.2;
    let cpu = rows.iter().filter(|row| row.name == "CPU per toggle");
    let costs: Vec<f64> = cpu.filter_map(|row| row.median(Subject::Endpointd)).collect();
    let (first, last) = (costs.first()?, costs.last()?);
    let growth = last / first;
    Some(Target {
        name: "CPU per toggle, most Services relative to fewest".to_owned(),
        limit: format!("at most {AT_MOST} ×"),
        measured: format!("{growth:.2} ×"),
        is_met: growth <= AT_MOST,
    })
}

/// Readers of the page do not delay syncs.
fn cost_of_readers(rows: &[Row]) -> Vec<Target> {
    const AT_MOST: f64 = 1.05;
    let median = |case: &str, name: &str| {
        let mut of_case = rows.iter().filter(|row| row.case == case && row.name == name);
        of_case.next()?.median(Subject::Endpointd)
    };
    let target = |name: &&str| {
        let growth = median(readers::WITH, name)? / median(readers::WITHOUT, name)?;
        Some(Target {
            name: format!("{name}, {} relative to none", readers::WITH),
            limit: format!("at most {AT_MOST} ×"),
            measured: format!("{growth:.2} ×"),
            is_met: growth <= AT_MOST,
        })
    };
    let names = ["removal, p50", "removal, p99", "addition, p50", "addition, p99"];
    names.iter().filter_map(target).collect()
}

fn explain_time(row: &Row) -> Option<Target> {
    const AT_MOST: f64 = 1.0;
    let time = row.median(Subject::Endpointd).filter(|_| row.name == commands::EXPLAIN_TIME)?;
    Some(Target {
        name: format!("{}, {}", row.name, row.case),
        limit: format!("less than {AT_MOST} s"),
        measured: format!("{time:.2} s"),
        is_met: time < AT_MOST,
    })
}

fn bytes_per_pod(row: &Row) -> Option<Target> {
    const AT_MOST: f64 = 500.0;
    let bytes = row.median(Subject::Endpointd).filter(|_| row.name.starts_with(engine::BYTES))?;
    Some(Target {
        name: format!("{}, {}", row.name, row.case),
        limit: format!("at most {AT_MOST:.0}"),
        measured: format!("{bytes:.0}"),
        is_met: bytes <= AT_MOST,
    })
}

/// One line per target.
pub fn show(targets: &[Target]) -> String {
    let mut text = String::new();
    for Target { name, limit, measured, is_met } in targets {
        let mark = if *is_met { "met   " } else { "MISSED" };
        text += &format!("{mark}  {name}: {measured} ({limit})\n");
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::record::{Measure, Unit};

    fn record(scenario: Scenario, who: Subject, name: &str, value: f64) -> Record {
        let measures = vec![Measure::new(name, Unit::Count, value)];
        Record { scenario, case: "50 toggles per second".into(), who, measures }
    }

    #[test]
    fn share_is_met_from_the_required_ratio_on() {
        let cpu = |endpointd, kcm| {
            targets(&[
                record(Scenario::Churn, Subject::Endpointd, "CPU per toggle", endpointd),
                record(Scenario::Churn, Subject::KcmUnthrottled, "CPU per toggle", kcm),
            ])
        };
        assert!(cpu(1.0, 10.0)[0].is_met);
        assert!(!cpu(1.0, 9.9)[0].is_met);
    }

    #[test]
    fn cold_start_is_compared_with_the_write_only_lower_bound() {
        let met = |seconds| {
            let time = cold_start::TIME;
            targets(&[
                record(Scenario::WriteOnly, Subject::Endpointd, time, seconds),
                record(Scenario::WriteOnly, Subject::WriteOnly, time, 10.0),
            ])[0]
                .is_met
        };
        assert!(met(13.0) && !met(13.1));
    }

    #[test]
    fn one_write_after_a_restart_misses_the_target() {
        let writes =
            |n| record(Scenario::Restart, Subject::Endpointd, restart::UNNECESSARY_WRITES, n);
        assert!(targets(&[writes(0.0), writes(0.0), writes(0.0)])[0].is_met);
        assert!(!targets(&[writes(0.0), writes(0.0), writes(1.0)])[0].is_met);
    }

    #[test]
    fn targets_without_records_is_empty() {
        assert_eq!(targets(&[]), []);
    }
}

//! Elections with scripted times, on a lease that several candidates share.

use endpointd_model::{FailureKind, Key};

use super::*;

/// The stored Lease, and a clock.
struct Cluster {
    stored: Option<Lease>,
    n_versions: u32,
    now: Now,
}

impl Cluster {
    fn new() -> Self {
        let wall = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { stored: None, n_versions: 0, now: Now { monotonic: Instant::now(), wall } }
    }

    fn pass(&mut self, secs: f64) {
        let time = Duration::from_secs_f64(secs);
        self.now = Now { monotonic: self.now.monotonic + time, wall: self.now.wall + time };
    }

    fn store(&mut self, lease: &Lease, expected: Option<&str>) -> Result<Lease, LeaseWriteError> {
        let version = self.stored.as_ref().map(|stored| &*stored.resource_version);
        if version != expected {
            return Err(LeaseWriteError::Conflict);
        }
        self.n_versions += 1;
        let mut lease = lease.clone();
        lease.resource_version = self.n_versions.to_string().into();
        self.stored = Some(lease.clone());
        Ok(lease)
    }

    /// Performs actions until the candidate waits or has lost.
    fn run(&mut self, election: &mut Election) -> Action {
        for _ in 0..10 {
            let now = self.now;
            match election.next_action(now) {
                Action::Read => election.on_read(Ok(self.stored.clone()), now.monotonic),
                Action::Create(lease) => {
                    let stored = self.store(&lease, None);
                    election.on_written(stored, now.monotonic, now.monotonic);
                }
                Action::Replace(lease) => {
                    let stored = self.store(&lease, Some(&lease.resource_version));
                    election.on_written(stored, now.monotonic, now.monotonic);
                }
                end @ (Action::Wait(_) | Action::Rejoin) => return end,
            }
        }
        panic!("no end of actions: {election:?}");
    }

    fn record(&self) -> &LeaderElectionRecord {
        &self.stored.as_ref().expect("there is a lease").record
    }
}

fn options(identity: &str) -> ElectionOptions {
    ElectionOptions {
        lease: Key::new("kube-system", "endpointd"),
        identity: identity.to_owned(),
        lease_duration: Duration::from_secs(15),
        renew_deadline: Duration::from_secs(10),
        retry_period: Duration::from_secs(2),
        release_on_exit: true,
    }
}

fn candidate(identity: &str) -> Election {
    Election::new(options(identity))
}

fn broken() -> Failure {
    Failure { kind: FailureKind::Unreachable, message: "down".into() }
}

/// Lets every request of this candidate fail until it waits or has lost.
fn run_cut_off(election: &mut Election, now: Now) -> Action {
    for _ in 0..10 {
        match election.next_action(now) {
            Action::Read => election.on_read(Err(broken()), now.monotonic),
            Action::Create(_) | Action::Replace(_) => {
                election.on_written(
                    Err(LeaseWriteError::Failed(broken())),
                    now.monotonic,
                    now.monotonic,
                );
            }
            end @ (Action::Wait(_) | Action::Rejoin) => return end,
        }
    }
    panic!("no end of actions: {election:?}");
}

#[test]
fn first_candidate_creates_the_lease_and_leads() {
    let mut cluster = Cluster::new();
    let mut a = candidate("a");
    assert_eq!(cluster.run(&mut a), Action::Wait(Duration::from_secs(2)));
    assert_eq!(*a.state(), LeadershipState::Leading);
    let expected = LeaderElectionRecord {
        holder: "a".to_owned(),
        duration_secs: 15,
        acquired: Some(cluster.now.wall),
        renewed: Some(cluster.now.wall),
        n_transitions: 0,
    };
    assert_eq!(*cluster.record(), expected);
}

#[test]
fn leader_renews_and_keeps_the_acquire_time() {
    let mut cluster = Cluster::new();
    let mut a = candidate("a");
    cluster.run(&mut a);
    let acquired = cluster.now.wall;
    for _ in 0..100 {
        cluster.pass(2.0);
        cluster.run(&mut a);
    }
    assert_eq!(*a.state(), LeadershipState::Leading);
    assert_eq!(cluster.record().acquired, Some(acquired));
    assert_eq!(cluster.record().renewed, Some(cluster.now.wall));
    assert_eq!(cluster.record().n_transitions, 0);
    assert_eq!(cluster.n_versions, 101);
}

#[test]
fn standby_waits_while_the_lease_is_renewed() {
    let mut cluster = Cluster::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    cluster.run(&mut a);
    for _ in 0..100 {
        cluster.pass(2.0);
        cluster.run(&mut a);
        cluster.run(&mut b);
        assert_eq!(*b.state(), LeadershipState::Standby { holder: Some("a".to_owned()) });
    }
}

#[test]
fn lease_is_acquired_only_after_its_whole_duration_without_change() {
    let mut cluster = Cluster::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    cluster.run(&mut a);
    // The record is old, but only the time since we first saw it counts.
    cluster.pass(1000.0);
    cluster.run(&mut b);
    cluster.pass(14.9);
    cluster.run(&mut b);
    assert_ne!(*b.state(), LeadershipState::Leading);
    cluster.pass(2.0);
    cluster.run(&mut b);
    assert_eq!(*b.state(), LeadershipState::Leading);
    assert_eq!(cluster.record().n_transitions, 1);
    assert_eq!(cluster.record().acquired, Some(cluster.now.wall));
}

#[test]
fn leader_that_cannot_renew_stops_before_another_can_lead() {
    let mut cluster = Cluster::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    cluster.run(&mut a);
    let mut lost_at = None;
    let mut acquired_at = None;
    for tenth in 0..400 {
        if run_cut_off(&mut a, cluster.now) == Action::Rejoin && lost_at.is_none() {
            lost_at = Some(tenth);
        }
        cluster.run(&mut b);
        if *b.state() == LeadershipState::Leading && acquired_at.is_none() {
            acquired_at = Some(tenth);
        }
        assert!(*a.state() != LeadershipState::Leading || *b.state() != LeadershipState::Leading);
        cluster.pass(0.1);
    }
    assert_eq!(lost_at, Some(100));
    assert!(acquired_at >= Some(150), "{acquired_at:?}");
}

#[test]
fn renew_deadline_starts_when_the_renewal_was_sent() {
    let mut cluster = Cluster::new();
    let mut a = candidate("a");
    assert_eq!(a.next_action(cluster.now), Action::Read);
    a.on_read(Ok(None), cluster.now.monotonic);
    let Action::Create(lease) = a.next_action(cluster.now) else { panic!("{a:?}") };
    let sent = cluster.now.monotonic;
    let stored = cluster.store(&lease, None);
    cluster.pass(9.0);
    a.on_written(stored, sent, cluster.now.monotonic);
    assert_eq!(a.leading_until(), Some(sent + Duration::from_secs(10)));
    cluster.pass(1.0);
    assert_eq!(a.next_action(cluster.now), Action::Rejoin);
}

#[test]
fn wait_ends_at_the_renew_deadline() {
    let mut cluster = Cluster::new();
    let mut a = candidate("a");
    cluster.run(&mut a);
    cluster.pass(9.5);
    assert_eq!(run_cut_off(&mut a, cluster.now), Action::Wait(Duration::from_millis(500)));
}

#[test]
fn leader_that_reads_another_holder_stops() {
    let mut cluster = Cluster::new();
    let mut a = candidate("a");
    cluster.run(&mut a);
    let mut stolen = cluster.stored.clone().unwrap();
    stolen.record.holder = "b".to_owned();
    cluster.store(&stolen, Some("1")).unwrap();
    cluster.pass(2.0);
    assert_eq!(cluster.run(&mut a), Action::Rejoin);
    assert_eq!(*a.state(), LeadershipState::Lost);
}

#[test]
fn renewal_without_response_is_read_back() {
    let mut cluster = Cluster::new();
    let mut a = candidate("a");
    cluster.run(&mut a);
    cluster.pass(2.0);
    let Action::Replace(lease) = a.next_action(cluster.now) else { panic!("{a:?}") };
    cluster.store(&lease, Some("1")).unwrap();
    let now = cluster.now.monotonic;
    a.on_written(Err(LeaseWriteError::Failed(broken())), now, now);
    cluster.pass(2.0);
    cluster.run(&mut a);
    assert_eq!(*a.state(), LeadershipState::Leading);
    assert_eq!(cluster.record().n_transitions, 0);
}

#[test]
fn deleted_lease_is_created_again() {
    let mut cluster = Cluster::new();
    let mut a = candidate("a");
    cluster.run(&mut a);
    cluster.stored = None;
    cluster.pass(2.0);
    cluster.run(&mut a);
    assert_eq!(*a.state(), LeadershipState::Leading);
    assert_eq!(cluster.record().holder, "a");
}

#[test]
fn one_of_two_concurrent_candidates_wins() {
    let mut cluster = Cluster::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    for election in [&mut a, &mut b] {
        assert_eq!(election.next_action(cluster.now), Action::Read);
        election.on_read(Ok(None), cluster.now.monotonic);
    }
    cluster.run(&mut b);
    cluster.run(&mut a);
    assert_eq!(*b.state(), LeadershipState::Leading);
    assert_eq!(*a.state(), LeadershipState::Standby { holder: Some("b".to_owned()) });
}

#[test]
fn released_lease_is_acquired_immediately() {
    let mut cluster = Cluster::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    cluster.run(&mut a);
    cluster.run(&mut b);
    assert!(a.stop(cluster.now.monotonic));
    let released = a.released(cluster.stored.as_ref().unwrap(), cluster.now).expect("it is ours");
    assert_eq!((released.record.holder.as_str(), released.record.duration_secs), ("", 1));
    cluster.store(&released, Some("1")).unwrap();
    assert_eq!(a.next_action(cluster.now), Action::Rejoin);
    cluster.pass(2.0);
    cluster.run(&mut b);
    assert_eq!(*b.state(), LeadershipState::Leading);
    assert_eq!(cluster.record().n_transitions, 1);
}

#[test]
fn lease_of_another_holder_is_not_released() {
    let mut cluster = Cluster::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    cluster.run(&mut a);
    cluster.run(&mut b);
    assert!(!b.stop(cluster.now.monotonic));
    assert_eq!(b.released(cluster.stored.as_ref().unwrap(), cluster.now), None);
    cluster.pass(10.0);
    assert!(!a.stop(cluster.now.monotonic), "after the deadline another process may hold it");
}

#[test]
fn times_that_allow_two_leaders_are_invalid() {
    use super::super::InvalidElectionConfig;
    let good = options("a");
    assert_eq!(good.check(), Ok(()));
    let secs = Duration::from_secs;
    for (lease_duration, renew_deadline, retry_period, error) in [
        (secs(10), secs(10), secs(2), InvalidElectionConfig::DeadlineTooLate),
        (
            Duration::from_millis(10_900),
            Duration::from_millis(10_500),
            secs(2),
            InvalidElectionConfig::DeadlineTooLate,
        ),
        (
            Duration::from_millis(900),
            Duration::from_millis(500),
            Duration::from_millis(100),
            InvalidElectionConfig::NoDuration,
        ),
        (secs(15), Duration::from_millis(2400), secs(2), InvalidElectionConfig::TriesTooRare),
        (secs(15), secs(10), Duration::ZERO, InvalidElectionConfig::NoPeriod),
    ] {
        let bad = ElectionOptions { lease_duration, renew_deadline, retry_period, ..good.clone() };
        assert_eq!(bad.check(), Err(error));
    }
    let nameless = ElectionOptions { identity: String::new(), ..good };
    assert_eq!(nameless.check(), Err(InvalidElectionConfig::NoIdentity));
}

//! Elections with scripted times: a lease that several machines share, and nobody sleeps.

use endpointd_model::{FailureKind, Key};

use super::*;

/// The lease as an API server keeps it, and a clock.
struct World {
    stored: Option<Lease>,
    n_versions: u32,
    now: Now,
}

impl World {
    fn new() -> Self {
        let wall = "2026-01-01T00:00:00Z".parse().unwrap();
        Self { stored: None, n_versions: 0, now: Now { instant: Instant::now(), wall } }
    }

    fn pass(&mut self, secs: f64) {
        let time = Duration::from_secs_f64(secs);
        self.now = Now { instant: self.now.instant + time, wall: self.now.wall + time };
    }

    fn store(&mut self, lease: &Lease, expected: Option<&str>) -> Result<Lease, LeaseWriteError> {
        let version = self.stored.as_ref().map(|stored| &*stored.resource_version);
        if version != expected {
            return Err(LeaseWriteError::Behind);
        }
        self.n_versions += 1;
        let mut lease = lease.clone();
        lease.resource_version = self.n_versions.to_string().into();
        self.stored = Some(lease.clone());
        Ok(lease)
    }

    /// Does what the machine says until it waits or stops.
    fn run(&mut self, election: &mut Election) -> Action {
        for _ in 0..10 {
            let now = self.now;
            match election.step(now) {
                Action::Read => election.read(Ok(self.stored.clone()), now.instant),
                Action::Create(lease) => {
                    let answer = self.store(&lease, None);
                    election.wrote(answer, now.instant, now.instant);
                }
                Action::Replace(lease) => {
                    let answer = self.store(&lease, Some(&lease.resource_version));
                    election.wrote(answer, now.instant, now.instant);
                }
                rest @ (Action::Wait(_) | Action::Stop) => return rest,
            }
        }
        panic!("the machine never rests: {election:?}");
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

/// Lets every request of this candidate fail until it rests.
fn run_cut_off(election: &mut Election, now: Now) -> Action {
    for _ in 0..10 {
        match election.step(now) {
            Action::Read => election.read(Err(broken()), now.instant),
            Action::Create(_) | Action::Replace(_) => {
                election.wrote(Err(LeaseWriteError::Failed(broken())), now.instant, now.instant);
            }
            rest @ (Action::Wait(_) | Action::Stop) => return rest,
        }
    }
    panic!("the machine never rests: {election:?}");
}

#[test]
fn the_first_candidate_creates_the_lease_and_leads() {
    let mut world = World::new();
    let mut a = candidate("a");
    assert_eq!(world.run(&mut a), Action::Wait(Duration::from_secs(2)));
    assert_eq!(*a.standing(), LeadershipState::Leading);
    let expected = LeaderElectionRecord {
        holder: "a".to_owned(),
        duration_secs: 15,
        acquired: Some(world.now.wall),
        renewed: Some(world.now.wall),
        n_transitions: 0,
    };
    assert_eq!(*world.record(), expected);
}

#[test]
fn a_leader_renews_and_keeps_the_time_it_began() {
    let mut world = World::new();
    let mut a = candidate("a");
    world.run(&mut a);
    let began = world.now.wall;
    for _ in 0..100 {
        world.pass(2.0);
        world.run(&mut a);
    }
    assert_eq!(*a.standing(), LeadershipState::Leading);
    assert_eq!(world.record().acquired, Some(began));
    assert_eq!(world.record().renewed, Some(world.now.wall));
    assert_eq!(world.record().n_transitions, 0);
    assert_eq!(world.n_versions, 101);
}

#[test]
fn others_stand_by_while_it_is_renewed() {
    let mut world = World::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    world.run(&mut a);
    for _ in 0..100 {
        world.pass(2.0);
        world.run(&mut a);
        world.run(&mut b);
        assert_eq!(*b.standing(), LeadershipState::Standby { holder: Some("a".to_owned()) });
    }
}

#[test]
fn a_lease_is_taken_only_after_its_whole_duration_without_change() {
    let mut world = World::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    world.run(&mut a);
    // As if written long ago: what counts is when *we* first saw it.
    world.pass(1000.0);
    world.run(&mut b);
    world.pass(14.9);
    world.run(&mut b);
    assert_ne!(*b.standing(), LeadershipState::Leading);
    world.pass(2.0);
    world.run(&mut b);
    assert_eq!(*b.standing(), LeadershipState::Leading);
    assert_eq!(world.record().n_transitions, 1);
    assert_eq!(world.record().acquired, Some(world.now.wall));
}

#[test]
fn a_leader_that_cannot_renew_stops_before_another_can_lead() {
    let mut world = World::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    world.run(&mut a);
    let mut lost_at = None;
    let mut taken_at = None;
    for tenth in 0..400 {
        if run_cut_off(&mut a, world.now) == Action::Stop && lost_at.is_none() {
            lost_at = Some(tenth);
        }
        world.run(&mut b);
        if *b.standing() == LeadershipState::Leading && taken_at.is_none() {
            taken_at = Some(tenth);
        }
        assert!(
            *a.standing() != LeadershipState::Leading || *b.standing() != LeadershipState::Leading
        );
        world.pass(0.1);
    }
    assert_eq!(lost_at, Some(100));
    assert!(taken_at >= Some(150), "{taken_at:?}");
}

#[test]
fn the_deadline_counts_from_when_the_renewal_was_sent() {
    let mut world = World::new();
    let mut a = candidate("a");
    assert_eq!(a.step(world.now), Action::Read);
    a.read(Ok(None), world.now.instant);
    let Action::Create(lease) = a.step(world.now) else { panic!("{a:?}") };
    let sent = world.now.instant;
    let answer = world.store(&lease, None);
    world.pass(9.0);
    a.wrote(answer, sent, world.now.instant);
    assert_eq!(a.leading_until(), Some(sent + Duration::from_secs(10)));
    world.pass(1.0);
    assert_eq!(a.step(world.now), Action::Stop);
}

#[test]
fn a_wait_never_goes_beyond_the_deadline() {
    let mut world = World::new();
    let mut a = candidate("a");
    world.run(&mut a);
    world.pass(9.5);
    assert_eq!(run_cut_off(&mut a, world.now), Action::Wait(Duration::from_millis(500)));
}

#[test]
fn a_leader_that_finds_another_holder_stops_at_once() {
    let mut world = World::new();
    let mut a = candidate("a");
    world.run(&mut a);
    let mut stolen = world.stored.clone().unwrap();
    stolen.record.holder = "b".to_owned();
    world.store(&stolen, Some("1")).unwrap();
    world.pass(2.0);
    assert_eq!(world.run(&mut a), Action::Stop);
    assert_eq!(*a.standing(), LeadershipState::Lost);
}

#[test]
fn a_renewal_whose_answer_was_lost_is_read_back_and_goes_on() {
    let mut world = World::new();
    let mut a = candidate("a");
    world.run(&mut a);
    world.pass(2.0);
    let Action::Replace(lease) = a.step(world.now) else { panic!("{a:?}") };
    world.store(&lease, Some("1")).unwrap();
    let now = world.now.instant;
    a.wrote(Err(LeaseWriteError::Failed(broken())), now, now);
    world.pass(2.0);
    world.run(&mut a);
    assert_eq!(*a.standing(), LeadershipState::Leading);
    assert_eq!(world.record().n_transitions, 0);
}

#[test]
fn a_lease_that_was_deleted_is_made_anew() {
    let mut world = World::new();
    let mut a = candidate("a");
    world.run(&mut a);
    world.stored = None;
    world.pass(2.0);
    world.run(&mut a);
    assert_eq!(*a.standing(), LeadershipState::Leading);
    assert_eq!(world.record().holder, "a");
}

#[test]
fn of_two_who_take_it_at_once_one_wins() {
    let mut world = World::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    for election in [&mut a, &mut b] {
        assert_eq!(election.step(world.now), Action::Read);
        election.read(Ok(None), world.now.instant);
    }
    world.run(&mut b);
    world.run(&mut a);
    assert_eq!(*b.standing(), LeadershipState::Leading);
    assert_eq!(*a.standing(), LeadershipState::Standby { holder: Some("b".to_owned()) });
}

#[test]
fn a_released_lease_is_taken_at_once() {
    let mut world = World::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    world.run(&mut a);
    world.run(&mut b);
    assert!(a.stop(world.now.instant));
    let back = a.released(world.stored.as_ref().unwrap(), world.now).expect("it is ours");
    assert_eq!((back.record.holder.as_str(), back.record.duration_secs), ("", 1));
    world.store(&back, Some("1")).unwrap();
    assert_eq!(a.step(world.now), Action::Stop);
    world.pass(2.0);
    world.run(&mut b);
    assert_eq!(*b.standing(), LeadershipState::Leading);
    assert_eq!(world.record().n_transitions, 1);
}

#[test]
fn what_is_not_ours_is_not_released() {
    let mut world = World::new();
    let (mut a, mut b) = (candidate("a"), candidate("b"));
    world.run(&mut a);
    world.run(&mut b);
    assert!(!b.stop(world.now.instant));
    assert_eq!(b.released(world.stored.as_ref().unwrap(), world.now), None);
    world.pass(10.0);
    assert!(!a.stop(world.now.instant), "after the deadline it may be anybody's");
}

#[test]
fn times_that_let_two_lead_are_refused() {
    use super::super::InvalidElectionConfig;
    let good = options("a");
    assert_eq!(good.check(), Ok(()));
    let secs = Duration::from_secs;
    for (lease_duration, renew_deadline, retry_period, complaint) in [
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
        assert_eq!(bad.check(), Err(complaint));
    }
    let nobody = ElectionOptions { identity: String::new(), ..good };
    assert_eq!(nobody.check(), Err(InvalidElectionConfig::NoIdentity));
}

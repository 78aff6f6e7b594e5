//! The state machine of a sync, one response at a time.

use endpointd_model::{DeleteTarget, FailureKind, Object, PublishedResource};

use super::*;

fn start() -> SyncStart {
    SyncStart { priority: Priority::Live, planned_at: MonotonicTime::START }
}

fn summary() -> Box<SyncSummary> {
    Box::new(SyncSummary::new(Controller::Slices, Key::new("ns", "web")))
}

fn delete(depends_on: &[u64]) -> DeferredWrite {
    DeferredWrite { write: deletion(), depends_on: ids(depends_on) }
}

fn deletion() -> Write {
    Write::Delete(DeleteTarget {
        resource: PublishedResource::Slices,
        key: Key::new("ns", "web-old"),
        uid: "uid-1".into(),
        resource_version: 7.into(),
    })
}

fn ids(numbers: &[u64]) -> Vec<RequestId> {
    numbers.iter().copied().map(RequestId).collect()
}

fn read(name: &str) -> LiveRead {
    LiveRead::Object(PublishedResource::Slices, Key::new("ns", name))
}

fn failure() -> Failure {
    Failure { kind: FailureKind::Forbidden, message: "quota exceeded".into() }
}

fn stored() -> WriteResult {
    WriteResult::Stored(Box::new(Object::Slice(Default::default())))
}

fn conflict() -> WriteResult {
    WriteResult::Conflict("conflict".into())
}

/// An update of version 5, or a create.
fn request(verb: Verb, name: &str) -> PendingWrite {
    PendingWrite {
        owner: Owner { controller: Controller::Slices, key: Key::new("ns", "web") },
        verb,
        resource: PublishedResource::Slices,
        key: Key::new("ns", name),
        n_bytes: 0,
        base_version: if verb == Verb::Create { 0.into() } else { 5.into() },
        deleted_uid: Default::default(),
        events: Vec::new(),
    }
}

/// Two writes are in flight, and a delete depends on the first.
fn writing() -> InFlightSync {
    InFlightSync::writing(start(), summary(), 2, vec![delete(&[1])])
}

fn answer(sync: &mut InFlightSync, results: &[WriteResult]) {
    for (id, result) in (1..).zip(results) {
        assert_eq!(sync.next_step(true), Step::Wait);
        sync.on_write_result(RequestId(id), &request(Verb::Create, "web-new"), result);
    }
}

#[test]
fn deletes_are_sent_after_all_other_writes_succeeded() {
    let mut sync = writing();
    answer(&mut sync, &[stored(), stored()]);
    assert_eq!(sync.next_step(true), Step::WriteDeferred(vec![deletion()]));
    assert_eq!(sync.next_step(true), Step::Wait);
    sync.on_write_result(RequestId(3), &request(Verb::Delete, "web-old"), &WriteResult::Deleted);
    assert_eq!(sync.next_step(true), Step::Finish);
    assert_eq!(sync.into_end().result, SyncResult::Written);
}

#[test]
fn failed_write_cancels_only_the_deletes_that_depend_on_it() {
    for (depends_on, is_sent) in [(1, false), (2, true)] {
        let mut sync = InFlightSync::writing(start(), summary(), 2, vec![delete(&[depends_on])]);
        answer(&mut sync, &[WriteResult::Failed(failure()), stored()]);
        assert_eq!(sync.next_step(true) != Step::Finish, is_sent);
    }
}

#[test]
fn conflict_cancels_all_deletes_and_is_read() {
    let mut sync = InFlightSync::writing(start(), summary(), 2, vec![delete(&[])]);
    answer(&mut sync, &[stored(), conflict()]);
    let reads = BTreeSet::from([read("web-new")]);
    assert_eq!(sync.next_step(true), Step::Read(reads));
    assert_eq!(sync.next_step(true), Step::Wait);
    assert_eq!(sync.on_read(&read("web-new"), ReadOutcome::Applied(Some(5.into()))), None);
    assert_eq!(sync.next_step(true), Step::Finish);
    let end = sync.into_end();
    assert_eq!((end.result, end.unconfirmed_reads), (SyncResult::ConflictRetry, [].into()));
}

#[test]
fn write_without_response_cancels_only_the_deletes_that_depend_on_it() {
    for (depends_on, is_sent) in [(1, false), (2, true)] {
        let mut sync = InFlightSync::writing(start(), summary(), 2, vec![delete(&[depends_on])]);
        answer(&mut sync, &[WriteResult::NoResponse(failure()), stored()]);
        assert_eq!(matches!(sync.next_step(true), Step::WriteDeferred(_)), is_sent);
    }
}

#[test]
fn write_without_response_is_a_failure_unless_the_read_shows_that_it_was_applied() {
    let retry = SyncResult::ConflictRetry;
    let failed = SyncResult::Failed(failure());
    let other = Failure { kind: FailureKind::Unreachable, message: "no response".into() };
    for (verb, outcome, want) in [
        (Verb::Create, ReadOutcome::Applied(None), &failed),
        (Verb::Create, ReadOutcome::Applied(Some(6.into())), &retry),
        (Verb::Update, ReadOutcome::Applied(Some(5.into())), &failed),
        (Verb::Update, ReadOutcome::Applied(Some(6.into())), &retry),
        (Verb::Update, ReadOutcome::Applied(None), &retry),
        (Verb::Delete, ReadOutcome::Applied(Some(5.into())), &failed),
        (Verb::Delete, ReadOutcome::Applied(None), &retry),
        (Verb::Update, ReadOutcome::Superseded, &retry),
        (Verb::Update, ReadOutcome::Failed(other), &failed),
    ] {
        let mut sync = InFlightSync::writing(start(), summary(), 1, Vec::new());
        let result = WriteResult::NoResponse(failure());
        sync.on_write_result(RequestId(1), &request(verb, "web-new"), &result);
        assert_eq!(sync.next_step(true), Step::Read([read("web-new")].into()));
        let reported = sync.on_read(&read("web-new"), outcome.clone());
        assert_eq!(reported.is_some(), *want == failed, "{verb:?} {outcome:?}");
        assert_eq!(sync.next_step(true), Step::Finish);
        assert_eq!(sync.into_end().result, *want, "{verb:?} {outcome:?}");
    }
}

#[test]
fn throttling_and_lost_leadership_cancel_all_deletes() {
    for (result, want) in [
        (WriteResult::Throttled { after_secs: 1 }, SyncResult::Throttled),
        (WriteResult::NotLeader, SyncResult::LeadershipLost),
    ] {
        let mut sync = InFlightSync::writing(start(), summary(), 1, vec![delete(&[])]);
        answer(&mut sync, &[result]);
        assert_eq!(sync.next_step(true), Step::Finish);
        assert_eq!(sync.into_end().result, want);
    }
}

#[test]
fn deletes_are_dropped_if_leadership_was_lost_meanwhile() {
    let mut sync = writing();
    answer(&mut sync, &[stored(), stored()]);
    assert_eq!(sync.next_step(false), Step::Finish);
}

#[test]
fn conflict_of_a_delete_is_read_as_well() {
    let mut sync = InFlightSync::writing(start(), summary(), 0, vec![delete(&[])]);
    assert_eq!(sync.next_step(true), Step::WriteDeferred(vec![deletion()]));
    sync.on_write_result(RequestId(1), &request(Verb::Delete, "web-old"), &conflict());
    assert_eq!(sync.next_step(true), Step::Read([read("web-old")].into()));
}

#[test]
fn failed_and_superseded_reads_stay_unconfirmed() {
    let reads = BTreeSet::from([read("a"), read("b"), read("c")]);
    let mut sync = InFlightSync::reading(start(), reads);
    sync.on_read(&read("a"), ReadOutcome::Applied(None));
    sync.on_read(&read("b"), ReadOutcome::Superseded);
    assert_eq!(sync.next_step(true), Step::Wait);
    sync.on_read(&read("c"), ReadOutcome::Failed(failure()));
    assert_eq!(sync.next_step(true), Step::Finish);
    let end = sync.into_end();
    assert_eq!(end.result, SyncResult::Failed(failure()));
    assert_eq!(end.unconfirmed_reads, [read("b"), read("c")].into());
}

#[test]
fn the_worst_result_counts_and_of_two_failures_the_first() {
    let results = [
        stored(),
        WriteResult::NamespaceTerminating("terminating".into()),
        conflict(),
        WriteResult::Throttled { after_secs: 1 },
        WriteResult::Failed(failure()),
        WriteResult::Failed(Failure { kind: FailureKind::Invalid, message: "later".into() }),
        WriteResult::NotLeader,
    ];
    let ends = [
        SyncResult::Written,
        SyncResult::NamespaceTerminating,
        SyncResult::ConflictRetry,
        SyncResult::Throttled,
        SyncResult::Failed(failure()),
        SyncResult::Failed(failure()),
        SyncResult::LeadershipLost,
    ];
    for (n, want) in (1..).zip(&ends) {
        for is_reversed in [false, true] {
            // The order of two failures matters, so the reversed order is compared by severity.
            let mut given = results[..n].to_vec();
            if is_reversed {
                given.reverse();
            }
            let mut sync = InFlightSync::writing(start(), summary(), n, Vec::new());
            answer(&mut sync, &given);
            let result = sync.into_end().result;
            assert_eq!(result.severity(), want.severity());
            assert!(is_reversed || result == *want);
        }
    }
}

#[test]
fn plan_without_writes_and_failed_plan_finish_at_once() {
    let mut unchanged = InFlightSync::writing(start(), summary(), 0, Vec::new());
    assert_eq!(unchanged.next_step(true), Step::Finish);
    let mut failed = InFlightSync::failed(start(), failure());
    assert_eq!(failed.next_step(true), Step::Finish);
    assert_eq!(failed.into_end().result, SyncResult::Failed(failure()));
}

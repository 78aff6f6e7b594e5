//! Deliberate bugs, one of which can be switched on for a thread. The code asks [`is_on`] where it
//! could go wrong; without the feature `on` the answer is a constant, and nothing is left of it.

/// The bugs, each named after what goes wrong and told in one sentence.
macro_rules! mutants {
    ($($name:ident: $words:literal,)*) => {
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        pub enum Mutant {
            $(#[doc = $words] $name,)*
        }

        impl Mutant {
            pub const ALL: &[Self] = &[$(Self::$name),*];

            /// One sentence.
            pub const fn words(self) -> &'static str {
                match self {
                    $(Self::$name => $words,)*
                }
            }
        }
    };
}

mutants! {
    TrustLateAnswer: "An answer brings back what the watch has shown gone since.",
    TrustLateRead: "A read counts although the watch has told more since.",
    BuryByName: "A deletion counts for whatever has the name by now.",
    NoTombstone: "An older event brings back what we deleted.",
    ForgetOwnWrite: "Our own write is not known until the watch shows it (k/k #100033).",
    OldEventWins: "An older event undoes a newer one (k/k #125638).",
    GiveUpKey: "A key is dropped after five failures, as upstream does after fifteen.",
    ActBeforeSynced: "Planning begins when one kind is known.",
    UpdateWithoutVersion: "Updates carry no resourceVersion.",
    DeleteWithoutUid: "Deletes carry neither uid nor resourceVersion.",
    FailureHoldsDeletes: "One failed write holds all deletes of a sync back.",
    DeletesFirst: "Deletes go out together with what replaces them.",
    NoLiveRead: "What is absent is deleted without looking (k/k #115801).",
    NoBrake: "Deletions from absence are not braked.",
    UnknownIsDone: "A write without answer counts as done.",
    KeepLeading: "A lost lease changes nothing.",
    IgnoreForeignDelete: "A slice someone else deleted is not created again (k/k #112143).",
    IgnoreForeignEdit: "A slice someone else edited is not repaired.",
    IgnoreContest: "Someone else's edit during our own write goes unnoticed.",
    LostNodeIsGone: "A node out of view takes its pods out at once (k/k #107927).",
    LateNodeIgnored: "A node that comes late does not publish its pods.",
    BelieveOldPicture: "A picture older than what is known counts.",
    NoDiffAfterPicture: "Pods that a new picture does not show stay.",
    DeleteLocks: "Leader election locks are leftovers (kubernetes e7ea942aacf).",
    IgnoreThrottle: "429 is no reason to wait.",
    RetryAtOnce: "A refused write is tried again at once, for ever (k/k #121231).",
    ForgetOtherAbsence: "Of two absences only the last one read counts.",
    NoLookAfterFlight: "A Service that changes during a sync is not looked at again.",
    RememberGoneKeys: "Keys of Services that are gone are remembered (kubernetes 08768258).",
    ReadyWhenLost: "A lost watch does not show in readiness (k/k #117008).",
    TopologyForgotten: "A change of nodes concerns no Service's hints.",
    ForceConflict: "The client answers 409 by sending the same again with the new version.",
    OfficeAsleep: "Writes leave without a look at the lease.",
    FirstPictureFromCache: "The first picture is whatever some cache had (k/k #59848).",
    HalfPicture: "A picture that breaks off counts as complete.",
    ResumeFromNow: "A watch that was cut goes on from now.",
    FailedReadIsAbsent: "A read that failed found nothing.",
    UnsentUnanswered: "A write that may not leave is never answered.",
}

/// Whether the bug is there.
#[cfg(not(feature = "on"))]
#[inline(always)]
pub const fn is_on(_: Mutant) -> bool {
    false
}

#[cfg(feature = "on")]
thread_local! {
    static CURRENT: std::cell::Cell<Option<Mutant>> = const { std::cell::Cell::new(None) };
}

/// Whether the bug is there, on this thread.
#[cfg(feature = "on")]
pub fn is_on(mutant: Mutant) -> bool {
    CURRENT.get() == Some(mutant)
}

/// Switches one bug on for this thread, and all others off.
#[cfg(feature = "on")]
pub fn switch(mutant: Option<Mutant>) {
    CURRENT.set(mutant);
}

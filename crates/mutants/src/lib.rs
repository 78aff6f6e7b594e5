//! Deliberate bugs, one of which can be switched on for a thread. The code asks [`is_on`] where it
//! could go wrong; without the feature `on` the answer is a constant, and nothing is left of it.

/// Each named after what goes wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Mutant {
    /// An answer brings back what the watch has shown gone since.
    TrustLateAnswer,
    /// A read counts although the watch has told more since.
    TrustLateRead,
    /// A deletion counts for whatever has the name by now.
    BuryByName,
    /// An older event brings back what we deleted.
    NoTombstone,
    /// Our own write is not known until the watch shows it (k/k #100033).
    ForgetOwnWrite,
    /// An older event undoes a newer one (k/k #125638).
    OldEventWins,
    /// A key is dropped after five failures, as upstream does after fifteen.
    GiveUpKey,
    /// Planning begins when one kind is known.
    ActBeforeSynced,
    /// Updates carry no resourceVersion.
    UpdateWithoutVersion,
    /// Deletes carry neither uid nor resourceVersion.
    DeleteWithoutUid,
    /// One failed write holds all deletes of a sync back.
    FailureHoldsDeletes,
    /// Deletes go out together with what replaces them.
    DeletesFirst,
    /// What is absent is deleted without looking (k/k #115801).
    NoLiveRead,
    /// Deletions from absence are not braked.
    NoBrake,
    /// A write without answer counts as done.
    UnknownIsDone,
    /// A lost lease changes nothing.
    KeepLeading,
    /// A slice someone else deleted is not created again (k/k #112143).
    IgnoreForeignDelete,
    /// A slice someone else edited is not repaired.
    IgnoreForeignEdit,
    /// Someone else's edit during our own write goes unnoticed.
    IgnoreContest,
    /// A node out of view takes its pods out at once (k/k #107927).
    LostNodeIsGone,
    /// A node that comes late does not publish its pods.
    LateNodeIgnored,
    /// A picture older than what is known counts.
    BelieveOldPicture,
    /// Pods that a new picture does not show stay.
    NoDiffAfterPicture,
    /// Leader election locks are leftovers (kubernetes e7ea942aacf).
    DeleteLocks,
    /// 429 is no reason to wait.
    IgnoreThrottle,
    /// A refused write is tried again at once, for ever (k/k #121231).
    RetryAtOnce,
    /// Of two absences only the last one read counts.
    ForgetOtherAbsence,
    /// A Service that changes during a sync is not looked at again.
    NoLookAfterFlight,
    /// Keys of Services that are gone are remembered (kubernetes 08768258).
    RememberGoneKeys,
    /// A lost watch does not show in readiness (k/k #117008).
    ReadyWhenLost,
    /// A slice of an older Service of the same name counts as ours (k/k #94720).
    OwnerUidIgnored,
    /// A pod that ends triggers nothing.
    PhaseIgnored,
    /// Failed and succeeded pods are published (k/k #109414).
    PublishFinished,
    /// Link-local and loopback addresses are sent (CVE-2021-25737).
    PublishBadAddress,
    /// No ports and an empty list of ports are not the same (kubernetes 4ba42116603).
    EmptyPortsDiffer,
    /// Endpoints of a Service with a selector are mirrored, too (kubernetes 794f0cb7f1f).
    MirrorDespiteSelector,
    /// An endpoint that stands for another pod is up to date (k/k #115907).
    TargetIgnored,
    /// What is published stays published (talos #12802).
    KeepUnwanted,
    /// Slices on their way out are filled.
    UseDeletingSlices,
    /// A Service of type ExternalName publishes its pods (k/k #105986).
    ExternalPublishes,
    /// The trigger time is a second late.
    WrongTriggerTime,
    /// A change of nodes concerns no Service's hints.
    TopologyForgotten,
    /// The client answers 409 by sending the same again with the new version.
    ForceConflict,
    /// Writes leave without a look at the lease.
    OfficeAsleep,
    /// The first picture is whatever some cache had (k/k #59848).
    FirstPictureFromCache,
    /// A picture that breaks off counts as complete.
    HalfPicture,
    /// A watch that was cut goes on from now.
    ResumeFromNow,
    /// A read that failed found nothing.
    FailedReadIsAbsent,
    /// A write that may not leave is never answered.
    UnsentUnanswered,
}

impl Mutant {
    pub const ALL: [Self; 49] = [
        Self::TrustLateAnswer,
        Self::TrustLateRead,
        Self::BuryByName,
        Self::NoTombstone,
        Self::ForgetOwnWrite,
        Self::OldEventWins,
        Self::GiveUpKey,
        Self::ActBeforeSynced,
        Self::UpdateWithoutVersion,
        Self::DeleteWithoutUid,
        Self::FailureHoldsDeletes,
        Self::DeletesFirst,
        Self::NoLiveRead,
        Self::NoBrake,
        Self::UnknownIsDone,
        Self::KeepLeading,
        Self::IgnoreForeignDelete,
        Self::IgnoreForeignEdit,
        Self::IgnoreContest,
        Self::LostNodeIsGone,
        Self::LateNodeIgnored,
        Self::BelieveOldPicture,
        Self::NoDiffAfterPicture,
        Self::DeleteLocks,
        Self::IgnoreThrottle,
        Self::RetryAtOnce,
        Self::ForgetOtherAbsence,
        Self::NoLookAfterFlight,
        Self::RememberGoneKeys,
        Self::ReadyWhenLost,
        Self::OwnerUidIgnored,
        Self::PhaseIgnored,
        Self::PublishFinished,
        Self::PublishBadAddress,
        Self::EmptyPortsDiffer,
        Self::MirrorDespiteSelector,
        Self::TargetIgnored,
        Self::KeepUnwanted,
        Self::UseDeletingSlices,
        Self::ExternalPublishes,
        Self::WrongTriggerTime,
        Self::TopologyForgotten,
        Self::ForceConflict,
        Self::OfficeAsleep,
        Self::FirstPictureFromCache,
        Self::HalfPicture,
        Self::ResumeFromNow,
        Self::FailedReadIsAbsent,
        Self::UnsentUnanswered,
    ];

    /// One sentence.
    pub fn words(self) -> &'static str {
        match self {
            Self::TrustLateAnswer => "An answer brings back what the watch has shown gone since.",
            Self::TrustLateRead => "A read counts although the watch has told more since.",
            Self::BuryByName => "A deletion counts for whatever has the name by now.",
            Self::NoTombstone => "An older event brings back what we deleted.",
            Self::ForgetOwnWrite => {
                "Our own write is not known until the watch shows it (k/k #100033)."
            }
            Self::OldEventWins => "An older event undoes a newer one (k/k #125638).",
            Self::GiveUpKey => {
                "A key is dropped after five failures, as upstream does after fifteen."
            }
            Self::ActBeforeSynced => "Planning begins when one kind is known.",
            Self::UpdateWithoutVersion => "Updates carry no resourceVersion.",
            Self::DeleteWithoutUid => "Deletes carry neither uid nor resourceVersion.",
            Self::FailureHoldsDeletes => "One failed write holds all deletes of a sync back.",
            Self::DeletesFirst => "Deletes go out together with what replaces them.",
            Self::NoLiveRead => "What is absent is deleted without looking (k/k #115801).",
            Self::NoBrake => "Deletions from absence are not braked.",
            Self::UnknownIsDone => "A write without answer counts as done.",
            Self::KeepLeading => "A lost lease changes nothing.",
            Self::IgnoreForeignDelete => {
                "A slice someone else deleted is not created again (k/k #112143)."
            }
            Self::IgnoreForeignEdit => "A slice someone else edited is not repaired.",
            Self::IgnoreContest => "Someone else's edit during our own write goes unnoticed.",
            Self::LostNodeIsGone => "A node out of view takes its pods out at once (k/k #107927).",
            Self::LateNodeIgnored => "A node that comes late does not publish its pods.",
            Self::BelieveOldPicture => "A picture older than what is known counts.",
            Self::NoDiffAfterPicture => "Pods that a new picture does not show stay.",
            Self::DeleteLocks => "Leader election locks are leftovers (kubernetes e7ea942aacf).",
            Self::IgnoreThrottle => "429 is no reason to wait.",
            Self::RetryAtOnce => "A refused write is tried again at once, for ever (k/k #121231).",
            Self::ForgetOtherAbsence => "Of two absences only the last one read counts.",
            Self::NoLookAfterFlight => {
                "A Service that changes during a sync is not looked at again."
            }
            Self::RememberGoneKeys => {
                "Keys of Services that are gone are remembered (kubernetes 08768258)."
            }
            Self::ReadyWhenLost => "A lost watch does not show in readiness (k/k #117008).",
            Self::OwnerUidIgnored => {
                "A slice of an older Service of the same name counts as ours (k/k #94720)."
            }
            Self::PhaseIgnored => "A pod that ends triggers nothing.",
            Self::PublishFinished => "Failed and succeeded pods are published (k/k #109414).",
            Self::PublishBadAddress => {
                "Link-local and loopback addresses are sent (CVE-2021-25737)."
            }
            Self::EmptyPortsDiffer => {
                "No ports and an empty list of ports are not the same (kubernetes 4ba42116603)."
            }
            Self::MirrorDespiteSelector => {
                "Endpoints of a Service with a selector are mirrored, too (kubernetes 794f0cb7f1f)."
            }
            Self::TargetIgnored => {
                "An endpoint that stands for another pod is up to date (k/k #115907)."
            }
            Self::KeepUnwanted => "What is published stays published (talos #12802).",
            Self::UseDeletingSlices => "Slices on their way out are filled.",
            Self::ExternalPublishes => {
                "A Service of type ExternalName publishes its pods (k/k #105986)."
            }
            Self::WrongTriggerTime => "The trigger time is a second late.",
            Self::TopologyForgotten => "A change of nodes concerns no Service's hints.",
            Self::ForceConflict => {
                "The client answers 409 by sending the same again with the new version."
            }
            Self::OfficeAsleep => "Writes leave without a look at the lease.",
            Self::FirstPictureFromCache => {
                "The first picture is whatever some cache had (k/k #59848)."
            }
            Self::HalfPicture => "A picture that breaks off counts as complete.",
            Self::ResumeFromNow => "A watch that was cut goes on from now.",
            Self::FailedReadIsAbsent => "A read that failed found nothing.",
            Self::UnsentUnanswered => "A write that may not leave is never answered.",
        }
    }
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

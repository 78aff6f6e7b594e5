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

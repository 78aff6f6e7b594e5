//! Our plans against upstream's decisions, on the same worlds.
//!
//! A [`Case`] is a world and what upstream did with it, recorded or just asked for. [`judge`] plans
//! the same world and lists the differences in canonical form, each with the chosen difference
//! (`B9`, `B18`, …) that explains it, or none.

mod answer;
mod canonical;
mod case;
mod choice;
mod judge;

pub use answer::Answer;
pub use case::{Case, Expected, Then, WorldText, add};
pub use choice::Choice;
pub use judge::{Aspect, Difference, judge};

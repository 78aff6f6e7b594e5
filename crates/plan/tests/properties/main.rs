//! Properties of every plan, tested on random and on all small cluster states.

mod checks;
mod generators;

mod exhaustive;
mod import;
mod in_place;
mod multicluster;
mod random;

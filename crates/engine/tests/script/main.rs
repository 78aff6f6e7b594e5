//! Scripts: an engine, a cluster that misbehaves on cue, and what must come of it.

mod absence;
mod cluster;
mod courtesy;
mod daily;
mod faults;
mod late;
mod leading;
mod objects;
mod storms;

//! What must hold for every world: the laws in `every_plan`, checked on random worlds and on all
//! small ones.

mod every_plan;
mod worlds;

mod exhaustive;
mod random;

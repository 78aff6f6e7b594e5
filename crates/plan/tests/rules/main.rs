//! The rules of the contract, one by one: a small world in words, and the plan it must give.

mod fixture;

mod endpoints;
mod hints;
mod mirror;
mod slices;

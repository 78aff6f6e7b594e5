//! The client against a server whose responses each test scripts, faults included.

mod continuity;
mod elections;
mod optional_resource;
mod requests;
mod scopes;
mod server;
mod term_ends;
mod watches;

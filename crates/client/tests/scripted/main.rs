//! The client against a server that does exactly what a test says, faults included.

mod feeds;
mod requests;
mod server;

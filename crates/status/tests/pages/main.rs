//! The pages, from a status to bytes on a socket, and a comparison of metric families with
//! upstream.

mod fixture;
mod server;

mod connections;
mod exposition;
mod health;
mod http;
mod monitoring;
mod reference;
mod upstream;

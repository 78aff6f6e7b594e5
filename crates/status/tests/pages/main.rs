//! What the pages say, from scripted reports to bytes on a socket, and whether upstream's names are
//! upstream's.

mod scripted;

mod exposition;
mod health;
mod http;
mod reference;
mod upstream;

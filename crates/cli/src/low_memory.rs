//! Panics with little memory. The standard hook prints a backtrace, if `RUST_BACKTRACE` asks for
//! it, and holds a lock meanwhile. An allocation that fails within waits for the same lock forever.

use std::hint::black_box;
use std::panic::{PanicHookInfo, set_hook, take_hook};

use crate::stderr;

/// More than the symbols of a debug build take.
const BACKTRACE_BYTES_MAX: usize = 256 << 20;

/// Panics print no backtrace while there is not enough memory for one.
pub fn set_panic_hook() {
    let standard = take_hook();
    set_hook(Box::new(move |panic| match has_memory() {
        true => standard(panic),
        false => print_without_backtrace(panic),
    }));
}

fn has_memory() -> bool {
    let mut bytes = Vec::<u8>::new();
    let is_reserved = bytes.try_reserve_exact(BACKTRACE_BYTES_MAX).is_ok();
    // Otherwise the compiler may remove the allocation.
    black_box(&mut bytes);
    is_reserved
}

/// Allocates nothing.
fn print_without_backtrace(panic: &PanicHookInfo<'_>) {
    let message = panic.payload_as_str().unwrap_or("panicked");
    match panic.location() {
        Some(location) => stderr::line(format_args!("error: {message} (panicked at {location})")),
        None => stderr::line(format_args!("error: {message} (panicked)")),
    }
    stderr::line(format_args!(
        "hint: memory may be short, so there is no backtrace; raise its limit (`ulimit -d`, `-v`)"
    ));
}

//! Opens a page in the browser of the user.

use std::process::{Command, Stdio};

/// Whether there is a desktop on which a browser could open: not on a server, and not over SSH.
pub fn has_desktop() -> bool {
    let is_set = |name| std::env::var_os(name).is_some_and(|value| !value.is_empty());
    let is_remote = is_set("SSH_CONNECTION") && !is_set("DISPLAY");
    let has_display = is_set("DISPLAY") || is_set("WAYLAND_DISPLAY");
    !is_remote && (has_display || cfg!(any(target_os = "macos", windows)))
}

/// Whether the program that opens pages could be started; it says itself what it cannot open.
pub fn open(url: &str) -> bool {
    let mut command = opener();
    command.arg(url).stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let Ok(mut child) = command.spawn() else { return false };
    // It may run as long as the browser does; its end has to be noticed all the same.
    std::thread::spawn(move || child.wait());
    true
}

#[cfg(target_os = "macos")]
fn opener() -> Command {
    Command::new("open")
}

#[cfg(windows)]
fn opener() -> Command {
    let mut command = Command::new("rundll32");
    command.arg("url.dll,FileProtocolHandler");
    command
}

#[cfg(not(any(target_os = "macos", windows)))]
fn opener() -> Command {
    Command::new("xdg-open")
}

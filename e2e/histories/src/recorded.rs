//! What kube-controller-manager made of each history on a real API server, kept in files, so that
//! histories can be judged where there is neither.

use std::fs;
use std::path::PathBuf;

use crate::histories::History;
use crate::play::Played;
use crate::stage::Settled;

/// Set when the files are to be written anew, as for other expectations here.
const UPDATE_VARIABLE: &str = "UPDATE_EXPECT";
/// Before the name of each moment; no canonical form begins a line like this.
const MOMENT: &str = "== ";

/// Compares what was played with the file, or writes the file if that was asked for.
pub fn keep(history: &History, played: &Played) -> Result<(), String> {
    if std::env::var_os(UPDATE_VARIABLE).is_some() {
        return fs::write(path(history), text(played)).map_err(|error| error.to_string());
    }
    if load(history)? == *played {
        return Ok(());
    }
    Err(format!("the recorded history is not what upstream does: set `{UPDATE_VARIABLE}=1`"))
}

pub fn load(history: &History) -> Result<Played, String> {
    let text = fs::read_to_string(path(history))
        .map_err(|error| format!("no recording: {error}; set `{UPDATE_VARIABLE}=1`"))?;
    let mut played = Played::new();
    for line in text.lines() {
        match line.strip_prefix(MOMENT) {
            Some(moment) => {
                played.push(Settled { moment: moment.to_owned(), form: String::new() });
            }
            None => {
                let settled = played.last_mut().ok_or("a recording begins with a moment")?;
                settled.form.push_str(line);
                settled.form.push('\n');
            }
        }
    }
    Ok(played)
}

fn text(played: &Played) -> String {
    let one = |settled: &Settled| format!("{MOMENT}{}\n{}", settled.moment, settled.form);
    played.iter().map(one).collect()
}

fn path(history: &History) -> PathBuf {
    let name = format!("recorded/{}.txt", history.name);
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join(name)
}

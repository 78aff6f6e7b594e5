//! Words and phrases of the project's early private vocabulary, which must not come back.
//! `docs/glossary.md` has the words to use.

use super::{Source, assert_none, files};

/// Phrases in lower case, and what to write instead. They are compared with the words of
/// identifiers, comments, documents, and file names: `give_way`, `GiveWay`, and "give way" are the
/// same phrase.
const BANNED: &[(&str, &str)] = &[
    ("anew", "again"),
    ("arranged by", "optimized with"),
    ("as it comes", "with default flags"),
    ("as it is shipped", "the dist build"),
    ("brake", "deletion limiter"),
    ("by itself", "name the actor"),
    ("campaign", "fuzz run, or leader election"),
    ("census", "coverage"),
    ("come to rest", "converge"),
    ("comes to rest", "converges"),
    ("contender", "subject"),
    ("contenders", "subjects"),
    ("courtesy", "write order"),
    ("errand", "request"),
    ("errands", "requests"),
    ("farewell", "shutdown"),
    ("flies", "is in flight"),
    ("flipper", "toggle sequence"),
    ("flying", "in flight"),
    ("for ever", "indefinitely"),
    ("garble", "corrupt"),
    ("gives way", "defers"),
    ("glimpse", "read baseline"),
    ("hasten", "expedite"),
    ("houses", "nodes"),
    ("is told", "receives"),
    ("lanes", "allowed dependencies"),
    ("limits raised", "no client limits"),
    ("meddled", "externally modified"),
    ("mishap", "fault"),
    ("office", "leadership"),
    ("peer raised", "kcm unthrottled"),
    ("picture", "list, snapshot, or chart"),
    ("pictures", "lists, snapshots, or charts"),
    ("polite", "deferred"),
    ("practise", "training run"),
    ("practised", "trained"),
    ("puppet", "driver"),
    ("says the same", "same content"),
    ("snare", "fault point"),
    ("soiled", "dirty"),
    ("stories", "scenarios"),
    ("story", "scenario, or trace"),
    ("take off", "start writes"),
    ("told bad", "reported invalid"),
    ("unseat", "unindex"),
    ("what holds it", "verified by"),
    ("whoever", "name the actor"),
];

/// Paths that still have banned words. Remove a path when its words are replaced; add none.
const UNFINISHED: &[&str] = &["crates/mutants/"];

/// The words of a line in lower case, each between two spaces. Identifiers are split into words.
fn words(line: &str) -> String {
    let mut words = String::from(" ");
    let mut was_lower = false;
    for c in line.chars() {
        if c.is_uppercase() && was_lower {
            words.push(' ');
        }
        was_lower = c.is_lowercase() || c.is_ascii_digit();
        match c.is_alphanumeric() {
            true => words.extend(c.to_lowercase()),
            false if words.ends_with(' ') => {}
            false => words.push(' '),
        }
    }
    words.push(' ');
    words
}

/// The banned phrases in a line.
fn banned(line: &str) -> Vec<&'static (&'static str, &'static str)> {
    let words = words(line);
    let is_used = |phrase: &str| words.contains(phrase) && words.contains(&format!(" {phrase} "));
    BANNED.iter().filter(|(phrase, _)| is_used(phrase)).collect()
}

#[test]
fn no_file_uses_banned_words() {
    let mut violations = Vec::new();
    for Source { path, text } in
        files(&[".rs", ".md", ".toml", ".yaml", "Dockerfile", ".css", ".js"])
    {
        let is_unfinished = UNFINISHED.iter().any(|unfinished| path.starts_with(unfinished));
        if is_unfinished || path == "xtask/tests/rules/wording.rs" {
            continue;
        }
        for (phrase, instead) in banned(&path) {
            violations.push(format!("{path}: the file name has \"{phrase}\"; use \"{instead}\""));
        }
        for (number, line) in (1..).zip(text.lines()) {
            for (phrase, instead) in banned(line) {
                violations.push(format!("{path}:{number}: \"{phrase}\"; use \"{instead}\""));
            }
        }
    }
    assert_none(&violations);
}

#[test]
fn banned_words_are_found_in_identifiers_comments_and_prose() {
    let found = |line: &str| banned(line).iter().map(|(phrase, _)| *phrase).collect::<Vec<_>>();
    assert_eq!(found("fn gives_way(&self) -> bool {"), ["gives way"]);
    assert_eq!(found("enum Alert { BrakeOn }"), ["brake"]);
    assert_eq!(found("// Whoever takes over writes nothing."), ["whoever"]);
    assert_eq!(found("src/courtesy.rs"), ["courtesy"]);
    assert_eq!(found("The rest, as it comes."), ["as it comes"]);
    assert_eq!(found("an officer by themselves, in flight"), [""; 0]);
}

#[test]
fn banned_phrases_are_written_as_they_are_compared() {
    for (phrase, _) in BANNED {
        assert_eq!(words(phrase), format!(" {phrase} "));
    }
}

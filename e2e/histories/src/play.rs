//! Playing a history, and comparing two plays of it.

use endpointd_control_plane::Api;

use crate::histories::History;
use crate::stage::{Settled, Stage};

/// What a history came to, rest by rest.
pub type Played = Vec<Settled>;

pub fn play(history: &History, api: &Api) -> Played {
    let mut stage = Stage::enter(api, history.name);
    (history.play)(&mut stage);
    let played = stage.leave();
    assert!(!played.is_empty(), "history `{}` never settles, so it shows nothing", history.name);
    played
}

/// The first moment at which two plays differ, as text for people; `None` when they are equal.
pub fn difference(one: (&str, &Played), other: (&str, &Played)) -> Option<String> {
    let ((one_name, one), (other_name, other)) = (one, other);
    assert_eq!(one.len(), other.len(), "a history settles at the same moments everywhere");
    let (one, other) = one.iter().zip(other).find(|(one, other)| one != other)?;
    let only = |form: &str, against: &str| -> String {
        let lines = form.lines().filter(|line| !against.lines().any(|other| other == *line));
        lines.map(|line| format!("{line}\n")).collect()
    };
    Some(format!(
        "they differ {}\n-- only {one_name}:\n{}-- only {other_name}:\n{}-- all of \
         {one_name}:\n{}-- all of {other_name}:\n{}",
        one.moment,
        only(&one.form, &other.form),
        only(&other.form, &one.form),
        one.form,
        other.form,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn played(forms: &[&str]) -> Played {
        let settled = |(n, form): (usize, &&str)| Settled {
            moment: format!("moment {n}"),
            form: (*form).to_owned(),
        };
        forms.iter().enumerate().map(settled).collect()
    }

    #[test]
    fn equal_plays_do_not_differ() {
        let play = played(&["a\n", "b\n"]);
        assert_eq!(difference(("one", &play), ("other", &play.clone())), None);
    }

    #[test]
    fn the_first_moment_that_differs_is_told_with_the_lines_of_each() {
        let (one, other) =
            (played(&["a\n", "same\nb\n", "c\n"]), played(&["a\n", "same\nx\n", "y\n"]));
        let told = difference(("one", &one), ("other", &other)).unwrap();
        assert!(
            told.starts_with("they differ moment 1\n-- only one:\nb\n-- only other:\nx\n"),
            "{told}"
        );
    }
}

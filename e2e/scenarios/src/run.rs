//! Runs a scenario, and compares two runs of it.

use endpointd_control_plane::Api;

use crate::scenarios::Scenario;
use crate::test_namespace::{Checkpoint, TestNamespace};

/// The checkpoints of one run.
pub type Checkpoints = Vec<Checkpoint>;

pub fn run_scenario(scenario: &Scenario, api: &Api) -> Checkpoints {
    let mut ns = TestNamespace::new(api, scenario.name);
    (scenario.run)(&mut ns);
    let checkpoints = ns.into_checkpoints();
    assert!(!checkpoints.is_empty(), "scenario `{}` has no checkpoint", scenario.name);
    checkpoints
}

/// The first checkpoint at which two runs differ, as readable text; `None` if they are equal.
pub fn difference(one: (&str, &Checkpoints), other: (&str, &Checkpoints)) -> Option<String> {
    let ((one_name, one), (other_name, other)) = (one, other);
    assert_eq!(one.len(), other.len(), "both runs have the same checkpoints");
    let (one, other) = one.iter().zip(other).find(|(one, other)| one != other)?;
    let only = |form: &str, against: &str| -> String {
        let lines = form.lines().filter(|line| !against.lines().any(|other| other == *line));
        lines.map(|line| format!("{line}\n")).collect()
    };
    Some(format!(
        "they differ {}\n-- only {one_name}:\n{}-- only {other_name}:\n{}-- all of \
         {one_name}:\n{}-- all of {other_name}:\n{}",
        one.name,
        only(&one.form, &other.form),
        only(&other.form, &one.form),
        one.form,
        other.form,
    ))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn checkpoints(forms: &[&str]) -> Checkpoints {
        let checkpoint = |(n, form): (usize, &&str)| Checkpoint {
            name: format!("checkpoint {n}"),
            form: (*form).to_owned(),
        };
        forms.iter().enumerate().map(checkpoint).collect()
    }

    #[test]
    fn difference_of_equal_runs_is_none() {
        let run = checkpoints(&["a\n", "b\n"]);
        assert_eq!(difference(("one", &run), ("other", &run.clone())), None);
    }

    #[test]
    fn difference_shows_the_first_differing_checkpoint_and_the_lines_of_each_run() {
        let (one, other) =
            (checkpoints(&["a\n", "same\nb\n", "c\n"]), checkpoints(&["a\n", "same\nx\n", "y\n"]));
        let text = difference(("one", &one), ("other", &other)).unwrap();
        assert!(
            text.starts_with("they differ checkpoint 1\n-- only one:\nb\n-- only other:\nx\n"),
            "{text}"
        );
    }
}

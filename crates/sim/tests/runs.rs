//! A run is what its seed says, and nothing else; and a few runs hold all rules.

use endpointd_sim::{Manner, play, play_with, script_of};

#[test]
fn one_seed_one_history() {
    for seed in [3, 26, 154] {
        let script = script_of(seed, 600);
        let manner = Manner { tells_story: true, ..Manner::default() };
        let (one, two) = (play_with(&script, manner), play_with(&script, manner));
        assert!(one.story.len() > 600, "a story is told");
        assert_eq!(one.story, two.story, "seed {seed}");
    }
}

#[test]
fn a_few_storms_hold_all_rules() {
    for seed in 0..40 {
        let verdict = play(&script_of(seed, 1000));
        assert_eq!(verdict.violation, None, "seed {seed}");
    }
}

//! Mutations of text by lines and tokens, with the tokens of YAML.

use endpointd_rng::SplitMix64;

const TOKENS: [&str; 34] = [
    "---\n",
    "...\n",
    "- ",
    ": ",
    "? ",
    "&a ",
    "*a",
    "<<: *a",
    "!!str ",
    "!!int ",
    "!x ",
    "|\n",
    ">-\n",
    "|9\n",
    "'",
    "\"",
    "{",
    "}",
    "[",
    "]",
    ", ",
    "#",
    "%YAML 1.2\n",
    "\t",
    "\u{feff}",
    "\\x",
    "~",
    "null",
    "0x10",
    "1e999",
    "&",
    "=",
    "%",
    "/",
];

pub fn mutate(input: &[u8], rng: &mut SplitMix64) -> Vec<u8> {
    let mut lines: Vec<Vec<u8>> =
        input.split_inclusive(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    if lines.is_empty() {
        return rng.pick(&TOKENS).as_bytes().to_vec();
    }
    let at = rng.index(lines.len());
    match rng.below(8) {
        0 => drop(lines.remove(at)),
        1 => lines.insert(at, lines[at].clone()),
        2 => {
            let with = rng.index(lines.len());
            lines.swap(at, with);
        }
        3 => indent(&mut lines[at], rng),
        4 => {
            let line = lines[at].clone();
            lines.extend(std::iter::repeat_n(line, rng.index(64)));
        }
        _ => insert(&mut lines[at], rng),
    }
    lines.concat()
}

fn indent(line: &mut Vec<u8>, rng: &mut SplitMix64) {
    if line.first() == Some(&b' ') && rng.percent(50) {
        line.remove(0);
    } else {
        line.splice(0..0, std::iter::repeat_n(b' ', 1 + rng.index(3)));
    }
}

/// Before a word, or anywhere.
fn insert(line: &mut Vec<u8>, rng: &mut SplitMix64) {
    let words: Vec<usize> =
        (1..line.len()).filter(|at| line[at - 1] == b' ' && line[*at] != b' ').collect();
    let at = match words.is_empty() || rng.percent(30) {
        true => rng.index(line.len() + 1),
        false => rng.pick(&words),
    };
    line.splice(at..at, rng.pick(&TOKENS).bytes());
}

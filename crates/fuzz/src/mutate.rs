//! Mutations that know the format of an input. What cannot be parsed is mutated as bytes.

mod bytes;
mod json;
mod protobuf;
mod text;

use endpointd_rng::SplitMix64;

/// The format of the inputs of a target.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    Json,
    /// A watch in JSON: one event per line.
    JsonLines,
    /// With or without the prefix `k8s\0`.
    Protobuf,
    /// A watch in protobuf: each event after its length in four bytes.
    ProtobufFrames,
    /// YAML and other text.
    Text,
}

/// One mutation; `other` is an input to copy from.
pub fn mutate(format: Format, input: &[u8], other: &[u8], rng: &mut SplitMix64) -> Vec<u8> {
    let is_structured = rng.percent(75);
    let mutated = match format {
        Format::Json if is_structured => json::mutate(input, other, rng),
        Format::JsonLines if is_structured => lines(input, other, rng),
        Format::Protobuf if is_structured => protobuf::mutate(input, other, rng),
        Format::ProtobufFrames if is_structured => protobuf::mutate_frames(input, other, rng),
        Format::Text if is_structured => Some(text::mutate(input, rng)),
        Format::Json if rng.percent(40) => Some(json::insert_token(input, rng)),
        Format::Json
        | Format::JsonLines
        | Format::Protobuf
        | Format::ProtobufFrames
        | Format::Text => None,
    };
    mutated.unwrap_or_else(|| bytes::mutate(input, other, rng))
}

/// Mutates one line as JSON.
fn lines(input: &[u8], other: &[u8], rng: &mut SplitMix64) -> Option<Vec<u8>> {
    let mut lines: Vec<Vec<u8>> = input.split(|&b| b == b'\n').map(<[u8]>::to_vec).collect();
    let at = rng.index(lines.len());
    let others: Vec<&[u8]> = other.split(|&b| b == b'\n').collect();
    lines[at] = json::mutate(&lines[at], rng.pick(&others), rng)?;
    Some(lines.join(&b'\n'))
}

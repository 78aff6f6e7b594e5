//! Mutations of protobuf messages. A field with a length is taken for a message if it can be
//! parsed as one, so that the lengths around a mutation stay right.

use endpointd_rng::SplitMix64;

use super::bytes;

const MAGIC: &[u8] = b"k8s\0";
const LENGTH_BYTES: usize = 4;
const DEPTH_MAX: usize = 12;
const NUMBERS: [u64; 10] = [0, 1, 2, 127, 128, 0xffff, 0x7fff_ffff, 0xffff_ffff, 1 << 63, u64::MAX];

#[derive(Clone, Debug)]
struct Field {
    number: u64,
    content: Content,
}

#[derive(Clone, Debug)]
enum Content {
    Varint(u64),
    Fixed64([u8; 8]),
    Bytes(Vec<u8>),
    Fixed32([u8; 4]),
}

pub fn mutate(input: &[u8], other: &[u8], rng: &mut SplitMix64) -> Option<Vec<u8>> {
    let Some(message) = input.strip_prefix(MAGIC) else {
        return message_mutated(input, other, rng, 0);
    };
    let other = other.strip_prefix(MAGIC).unwrap_or(other);
    let mutated = message_mutated(message, other, rng, 0)?;
    Some([MAGIC, mutated.as_slice()].concat())
}

/// Mutates one event of a watch, or the sequence of events.
pub fn mutate_frames(input: &[u8], other: &[u8], rng: &mut SplitMix64) -> Option<Vec<u8>> {
    let mut frames = frames_of(input)?;
    let others = frames_of(other).unwrap_or_default();
    if frames.is_empty() {
        return None;
    }
    let at = rng.index(frames.len());
    match rng.below(8) {
        0 => drop(frames.remove(at)),
        1 => frames.push(frames[at].clone()),
        2 => {
            let with = rng.index(frames.len());
            frames.swap(at, with);
        }
        3 if !others.is_empty() => frames.insert(at, others[rng.index(others.len())].clone()),
        _ => {
            let other = others.first().map_or(&[][..], Vec::as_slice);
            frames[at] = message_mutated(&frames[at], other, rng, 0)?;
        }
    }
    let mut output = Vec::new();
    for frame in frames {
        let length = if rng.percent(1) { rng.next_u64() as u32 } else { frame.len() as u32 };
        output.extend_from_slice(&length.to_be_bytes());
        output.extend_from_slice(&frame);
    }
    Some(output)
}

fn frames_of(mut input: &[u8]) -> Option<Vec<Vec<u8>>> {
    let mut frames = Vec::new();
    while !input.is_empty() {
        let (length, rest) = input.split_first_chunk::<LENGTH_BYTES>()?;
        let (frame, rest) = rest.split_at_checked(u32::from_be_bytes(*length) as usize)?;
        frames.push(frame.to_vec());
        input = rest;
    }
    Some(frames)
}

fn message_mutated(
    input: &[u8],
    other: &[u8],
    rng: &mut SplitMix64,
    depth: usize,
) -> Option<Vec<u8>> {
    let mut fields = fields_of(input)?;
    if fields.is_empty() || depth > DEPTH_MAX {
        return None;
    }
    let at = rng.index(fields.len());
    if let Content::Bytes(inner) = &fields[at].content
        && rng.percent(80)
        && let Some(mutated) = message_mutated(unenveloped(inner), other, rng, depth + 1)
    {
        let prefix = if inner.starts_with(MAGIC) { MAGIC } else { &[] };
        fields[at].content = Content::Bytes([prefix, mutated.as_slice()].concat());
        return Some(encoded(&fields));
    }
    match rng.below(8) {
        0 => drop(fields.remove(at)),
        1 => fields.push(fields[at].clone()),
        2 => {
            let with = rng.index(fields.len());
            fields.swap(at, with);
        }
        3 => fields[at].number = rng.between(1, 20),
        4 => fields[at].content = any_content(rng),
        5 => fields.extend(fields_of(unenveloped(other)).unwrap_or_default().into_iter().take(4)),
        _ => mutate_content(&mut fields[at].content, other, rng),
    }
    let mut output = encoded(&fields);
    if rng.percent(3) {
        output.extend_from_slice(&[0xa3; 3]);
    }
    Some(output)
}

/// An object inside a watch event has the prefix again.
fn unenveloped(inner: &[u8]) -> &[u8] {
    inner.strip_prefix(MAGIC).unwrap_or(inner)
}

fn mutate_content(content: &mut Content, other: &[u8], rng: &mut SplitMix64) {
    match content {
        Content::Varint(number) => *number = rng.pick(&NUMBERS),
        Content::Fixed64(bytes) => *bytes = rng.next_u64().to_le_bytes(),
        Content::Fixed32(bytes) => *bytes = (rng.next_u64() as u32).to_le_bytes(),
        Content::Bytes(inner) if rng.percent(20) => inner.push(rng.pick(&[0xff, 0xc3, 0, b'%'])),
        Content::Bytes(inner) => *inner = bytes::mutate(inner, other, rng),
    }
}

fn any_content(rng: &mut SplitMix64) -> Content {
    match rng.below(5) {
        0 => Content::Varint(rng.pick(&NUMBERS)),
        1 => Content::Fixed64([0xff; 8]),
        2 => Content::Fixed32([0x80; 4]),
        3 => Content::Bytes(Vec::new()),
        _ => Content::Bytes(vec![b'a'; rng.index(300)]),
    }
}

/// The fields of a message; `None` if the bytes are no message.
fn fields_of(mut input: &[u8]) -> Option<Vec<Field>> {
    let mut fields = Vec::new();
    while !input.is_empty() {
        let key = varint(&mut input)?;
        let content = match key & 7 {
            0 => Content::Varint(varint(&mut input)?),
            1 => Content::Fixed64(chunk(&mut input)?),
            2 => {
                let length = usize::try_from(varint(&mut input)?).ok()?;
                let (bytes, rest) = input.split_at_checked(length)?;
                input = rest;
                Content::Bytes(bytes.to_vec())
            }
            5 => Content::Fixed32(chunk(&mut input)?),
            _ => return None,
        };
        let number = key >> 3;
        if number == 0 {
            return None;
        }
        fields.push(Field { number, content });
    }
    Some(fields)
}

fn varint(input: &mut &[u8]) -> Option<u64> {
    let mut number = 0;
    for shift in (0..64).step_by(7) {
        let byte = *input.split_off_first()?;
        number |= u64::from(byte & 0x7f) << shift;
        if byte < 0x80 {
            return Some(number);
        }
    }
    None
}

fn chunk<const N: usize>(input: &mut &[u8]) -> Option<[u8; N]> {
    let (chunk, rest) = input.split_first_chunk::<N>()?;
    *input = rest;
    Some(*chunk)
}

fn encoded(fields: &[Field]) -> Vec<u8> {
    let mut output = Vec::new();
    for Field { number, content } in fields {
        let wire_type = match content {
            Content::Varint(_) => 0,
            Content::Fixed64(_) => 1,
            Content::Bytes(_) => 2,
            Content::Fixed32(_) => 5,
        };
        put_varint(number << 3 | wire_type, &mut output);
        match content {
            Content::Varint(number) => put_varint(*number, &mut output),
            Content::Fixed64(bytes) => output.extend_from_slice(bytes),
            Content::Fixed32(bytes) => output.extend_from_slice(bytes),
            Content::Bytes(bytes) => {
                put_varint(bytes.len() as u64, &mut output);
                output.extend_from_slice(bytes);
            }
        }
    }
    output
}

fn put_varint(mut number: u64, output: &mut Vec<u8>) {
    while number >= 0x80 {
        output.push((number & 0x7f) as u8 | 0x80);
        number >>= 7;
    }
    output.push(number as u8);
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_message_is_encoded_as_it_was() {
        let message = [0x08, 0x96, 0x01, 0x12, 0x03, b'a', b'b', b'c', 0x1d, 1, 2, 3, 4];
        let fields = fields_of(&message).expect("a message");
        assert_eq!(fields.len(), 3);
        assert_eq!(encoded(&fields), message);
        assert!(fields_of(&[0x12, 0x05, b'a']).is_none());
    }

    #[test]
    fn frames_keep_their_lengths() {
        let frames = [0, 0, 0, 2, 0x08, 1, 0, 0, 0, 0];
        assert_eq!(frames_of(&frames), Some(vec![vec![0x08, 1], vec![]]));
        assert_eq!(frames_of(&frames[..5]), None);
    }
}

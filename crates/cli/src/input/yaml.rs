//! Converts a stream of YAML 1.2 documents to JSON values. `saphyr-parser` parses the syntax; this
//! file adds merge keys, duplicate keys, and limits for nesting and for the size of aliases.
//!
//! `serde-saphyr` has no limit for the bytes that aliases copy (a file of 1 MiB took 10 GiB of
//! memory) and reads `1_000` and `0b11` as numbers, which are text in YAML 1.2.

use std::collections::BTreeMap;

use saphyr_parser::{Event, Marker, Parser, ScalarStyle, ScanError, StrInput};
use serde_json::{Map, Value};

use super::document::{Document, FromObject, Item, ParseError};
use super::yaml_scalar::scalar;

/// The limit of serde_json, too.
const DEPTH_MAX: usize = 128;
/// Limit for the bytes that the aliases of a file copy: protects from alias bombs.
const COPIED_BYTES_MAX: usize = 64 << 20;
/// Approximate size of a value without its text.
const NODE_BYTES: usize = 32;
/// Inserts the entries of other mappings: <https://yaml.org/type/merge.html>.
const MERGE_KEY: &str = "<<";

pub fn documents<T: FromObject>(text: &str) -> Result<Vec<Document<T>>, ParseError> {
    let parser = Parser::new_from_str(text);
    let mut composer = Composer { parser, anchors: BTreeMap::new(), n_copied_bytes: 0 };
    let mut documents = Vec::new();
    loop {
        match composer.next()? {
            (Event::StreamEnd, _) => return Ok(documents),
            (Event::DocumentStart(_), _) => documents.push(composer.document()?),
            (_, _) => {}
        }
    }
}

struct Composer<'t> {
    parser: Parser<'t, StrInput<'t>>,
    /// By the parser's number; cleared for each document.
    anchors: BTreeMap<usize, Value>,
    n_copied_bytes: usize,
}

impl<'t> Composer<'t> {
    fn next(&mut self) -> Result<(Event<'t>, Marker), ParseError> {
        match self.parser.next_event() {
            Some(Ok((event, span))) => Ok((event, span.start)),
            Some(Err(error)) => Err(scan_error(&error)),
            None => Ok((Event::StreamEnd, Marker::default())),
        }
    }

    fn document<T: FromObject>(&mut self) -> Result<Document<T>, ParseError> {
        self.anchors.clear();
        let (event, mark) = self.next()?;
        if !matches!(event, Event::MappingStart(..)) {
            return self.node(event, mark, 0).map(|value| match value {
                Value::Null => Document::Empty,
                Value::Array(_) => Document::Other("a bare list"),
                Value::String(_) => Document::Other("bare text"),
                Value::Number(_) => Document::Other("a bare number"),
                Value::Bool(_) => Document::Other("a bare boolean"),
                Value::Object(_) => Document::Other("an alias"),
            });
        }
        let mut items = None;
        let fields = self.mapping(|composer, key, event, mark| match event {
            // With an anchor, the list is needed as a value.
            Event::SequenceStart(0, _) if key == "items" => {
                let mut list = Vec::new();
                composer.sequence(1, |value| list.push(Item::of(value)))?;
                items = Some(list);
                Ok(None)
            }
            event => composer.node(event, mark, 1).map(Some),
        })?;
        Ok(Document::Object { fields, items })
    }

    fn node(&mut self, event: Event<'t>, mark: Marker, depth: usize) -> Result<Value, ParseError> {
        if depth > DEPTH_MAX {
            return Err(parse_error(mark, format!("nested more than {DEPTH_MAX} levels deep")));
        }
        let (value, anchor) = match event {
            Event::Scalar(text, style, anchor, tag) => {
                (scalar(&text, style, tag.as_deref()), anchor)
            }
            Event::SequenceStart(anchor, _) => {
                let mut list = Vec::new();
                self.sequence(depth, |value| list.push(value))?;
                (Value::Array(list), anchor)
            }
            Event::MappingStart(anchor, _) => {
                let fields = self.mapping(|composer, _, event, mark| {
                    composer.node(event, mark, depth + 1).map(Some)
                })?;
                (Value::Object(fields), anchor)
            }
            Event::Alias(anchor) => return self.copy_of(anchor, mark),
            other => return Err(parse_error(mark, format!("unexpected {other:?}"))),
        };
        if anchor != 0 {
            self.charge(&value, mark)?;
            self.anchors.insert(anchor, value.clone());
        }
        Ok(value)
    }

    fn sequence(&mut self, depth: usize, mut take: impl FnMut(Value)) -> Result<(), ParseError> {
        loop {
            match self.next()? {
                (Event::SequenceEnd, _) => return Ok(()),
                (event, mark) => take(self.node(event, mark, depth + 1)?),
            }
        }
    }

    /// `read` returns the value of a key, or consumes it itself.
    fn mapping(
        &mut self,
        mut read: impl FnMut(&mut Self, &str, Event<'t>, Marker) -> Result<Option<Value>, ParseError>,
    ) -> Result<Map<String, Value>, ParseError> {
        let mut fields = Map::new();
        let mut merged = Vec::new();
        loop {
            let (event, key_mark) = self.next()?;
            if event == Event::MappingEnd {
                break;
            }
            let is_merge = is_merge_key(&event);
            let key = self.key(event, key_mark)?;
            let (event, mark) = self.next()?;
            let Some(value) = read(self, &key, event, mark)? else { continue };
            if is_merge {
                merged.extend(mappings(value, mark)?);
            } else if fields.contains_key(&key) {
                return Err(parse_error(key_mark, format!("duplicate key: `{key}`")));
            } else {
                fields.insert(key, value);
            }
        }
        // The mapping's own entries take precedence, then earlier merged mappings.
        for (key, value) in merged.into_iter().flatten() {
            fields.entry(key).or_insert(value);
        }
        Ok(fields)
    }

    /// JSON keys are strings: `1: x` and `"1": x` have the same key.
    fn key(&mut self, event: Event<'t>, mark: Marker) -> Result<String, ParseError> {
        match event {
            Event::Scalar(text, _, 0, _) => Ok(text.into_owned()),
            event @ (Event::Scalar(..) | Event::Alias(_)) => match self.node(event, mark, 0)? {
                Value::String(text) => Ok(text),
                other => Err(parse_error(mark, format!("a key must be a string: `{other}`"))),
            },
            _ => Err(parse_error(mark, "a key must be a string".to_owned())),
        }
    }

    fn copy_of(&mut self, anchor: usize, mark: Marker) -> Result<Value, ParseError> {
        let Some(value) = self.anchors.get(&anchor).cloned() else {
            return Err(parse_error(mark, "an alias to an incomplete value".to_owned()));
        };
        self.charge(&value, mark)?;
        Ok(value)
    }

    fn charge(&mut self, value: &Value, mark: Marker) -> Result<(), ParseError> {
        self.n_copied_bytes += weight(value);
        if self.n_copied_bytes > COPIED_BYTES_MAX {
            let most = COPIED_BYTES_MAX >> 20;
            return Err(parse_error(mark, format!("aliases expand to more than {most} MiB")));
        }
        Ok(())
    }
}

fn is_merge_key(event: &Event<'_>) -> bool {
    matches!(event, Event::Scalar(text, ScalarStyle::Plain, 0, None) if text == MERGE_KEY)
}

fn mappings(value: Value, mark: Marker) -> Result<Vec<Map<String, Value>>, ParseError> {
    let values = match value {
        Value::Array(values) => values,
        value => vec![value],
    };
    let as_mapping = |value| match value {
        Value::Object(fields) => Ok(fields),
        _ => Err(parse_error(mark, format!("`{MERGE_KEY}` accepts mappings only"))),
    };
    values.into_iter().map(as_mapping).collect()
}

fn weight(value: &Value) -> usize {
    NODE_BYTES
        + match value {
            Value::Null | Value::Bool(_) | Value::Number(_) => 0,
            Value::String(text) => text.len(),
            Value::Array(values) => values.iter().map(weight).sum(),
            Value::Object(fields) => {
                fields.iter().map(|(key, value)| NODE_BYTES + key.len() + weight(value)).sum()
            }
        }
}

fn scan_error(error: &ScanError) -> ParseError {
    parse_error(*error.marker(), error.info().to_owned())
}

/// Columns are counted from 1.
fn parse_error(mark: Marker, reason: String) -> ParseError {
    ParseError { line: mark.line(), column: mark.col() + 1, reason }
}

//! Encoded pods from a template. The API server encodes a sample pod; the fields that differ
//! between pods have fixed lengths, so they can be overwritten in place.

use anyhow::{Context, Result, ensure};
use prost::bytes::Bytes;
use prost::encoding::{WireType, decode_key, decode_varint, encode_varint};

use super::layout::{self, Layout, PodNumber};
use super::pod;
use super::sender::{Encoded, JSON, PROTOBUF, Sender};

/// The sample's numbers. Their digits occur nowhere else in it.
const NAMESPACE: usize = 99;
const SERVICE: usize = 99_999;
const POD: usize = 999_999;
const NODE: usize = 9_999;

const MAGIC: &[u8] = b"k8s\0";

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Readiness {
    Ready,
    Unready,
}

/// A ready and an unready pod.
#[derive(Clone, Debug)]
pub struct Templates {
    ready: Template,
    unready: Template,
    pub sizes: Sizes,
}

/// Encoded sizes of the sample, including `managedFields`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sizes {
    /// Indented JSON.
    pub json: usize,
    /// As stored and watched.
    pub protobuf: usize,
}

#[derive(Clone, Debug)]
struct Template {
    bytes: Vec<u8>,
    holes: Vec<(usize, Hole)>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Hole {
    Namespace,
    Service,
    Pod,
    Node,
    Ip,
}

const HOLES: [Hole; 5] = [Hole::Namespace, Hole::Service, Hole::Pod, Hole::Node, Hole::Ip];

impl Hole {
    fn text(self, layout: &Layout, pod: PodNumber) -> String {
        let service = layout.service_of(pod);
        match self {
            Self::Namespace => layout.namespace_of(service),
            Self::Service => layout::service(service),
            Self::Pod => layout::pod_suffix(pod),
            Self::Node => layout::node(pod % layout.n_nodes),
            Self::Ip => layout::ip(pod),
        }
    }

    fn sample(self) -> String {
        match self {
            Self::Namespace => layout::namespace(NAMESPACE),
            Self::Service => layout::service(SERVICE),
            Self::Pod => layout::pod_suffix(POD),
            Self::Node => layout::node(NODE),
            Self::Ip => layout::ip(POD),
        }
    }
}

impl Templates {
    /// Creates a sample, reads its encodings, and deletes it.
    pub async fn make(sender: &Sender) -> Result<Self> {
        let namespace = layout::namespace(NAMESPACE);
        let body = serde_json::json!({"metadata": {"name": namespace}});
        let namespaces = "/api/v1/namespaces";
        sender.create(namespaces, Encoded::json(&body)).await?;
        let pods = format!("{namespaces}/{namespace}/pods");
        let path = format!("{pods}/{}", layout::pod(SERVICE, POD));
        let sample = |readiness| {
            let of = pod::Names {
                namespace: Hole::Namespace.sample(),
                service: Hole::Service.sample(),
                pod: layout::pod(SERVICE, POD),
                node: Hole::Node.sample(),
                ip: Hole::Ip.sample(),
            };
            Encoded::json(&pod::json(&of, readiness))
        };
        sender.create(&format!("{pods}?{CREATOR}"), sample(Readiness::Ready)).await?;
        let mut encoded = Vec::new();
        for readiness in [Readiness::Unready, Readiness::Ready] {
            sender.replace(&format!("{path}/status?{REPORTER}"), sample(readiness)).await?;
            encoded.push(sender.get(&path, PROTOBUF).await?);
        }
        let json = sender.get(&format!("{path}?pretty=true"), JSON).await?.len();
        sender.delete(&format!("{path}?gracePeriodSeconds=0")).await?;
        let sizes = Sizes { json, protobuf: encoded[1].len() };
        let template = |bytes: &Bytes| Template::new(without_server_fields(bytes)?);
        Ok(Self { unready: template(&encoded[0])?, ready: template(&encoded[1])?, sizes })
    }

    pub fn pod(&self, layout: &Layout, pod: PodNumber, readiness: Readiness) -> Encoded {
        let template = match readiness {
            Readiness::Ready => &self.ready,
            Readiness::Unready => &self.unready,
        };
        Encoded { content_type: PROTOBUF, bytes: template.fill(layout, pod).into() }
    }
}

/// As in a real cluster, a pod has two field managers.
pub const CREATOR: &str = "fieldManager=kube-controller-manager";
pub const REPORTER: &str = "fieldManager=kubelet";

impl Template {
    fn new(bytes: Vec<u8>) -> Result<Self> {
        let mut holes = Vec::new();
        for hole in HOLES {
            let sample = hole.sample();
            let found = positions(&bytes, sample.as_bytes());
            ensure!(!found.is_empty(), "the sample pod has no `{sample}`");
            holes.extend(found.into_iter().map(|position| (position, hole)));
        }
        Ok(Self { bytes, holes })
    }

    fn fill(&self, layout: &Layout, pod: PodNumber) -> Vec<u8> {
        let mut bytes = self.bytes.clone();
        let texts = HOLES.map(|hole| hole.text(layout, pod));
        for (position, hole) in &self.holes {
            let text = texts[*hole as usize].as_bytes();
            bytes[*position..*position + text.len()].copy_from_slice(text);
        }
        bytes
    }
}

fn positions(bytes: &[u8], sample: &[u8]) -> Vec<usize> {
    let windows = bytes.windows(sample.len()).enumerate();
    windows.filter(|(_, window)| *window == sample).map(|(position, _)| position).collect()
}

/// One field of a protobuf message.
struct Field<'a> {
    number: u32,
    /// Key and value.
    whole: &'a [u8],
    /// The bytes of a nested message or string; otherwise empty.
    payload: &'a [u8],
}

fn fields(message: &[u8]) -> Result<Vec<Field<'_>>> {
    let mut rest = message;
    let mut fields = Vec::new();
    while !rest.is_empty() {
        let start = rest;
        let (number, wire_type) = decode_key(&mut rest)?;
        let mut payload: &[u8] = &[];
        let n_skipped = match wire_type {
            WireType::Varint => {
                decode_varint(&mut rest)?;
                0
            }
            WireType::LengthDelimited => {
                let n = usize::try_from(decode_varint(&mut rest)?)?;
                payload = rest.get(..n).context("a field is cut off")?;
                n
            }
            WireType::SixtyFourBit => 8,
            WireType::ThirtyTwoBit => 4,
            WireType::StartGroup | WireType::EndGroup => anyhow::bail!("groups are not used"),
        };
        rest = rest.get(n_skipped..).context("a field is cut off")?;
        fields.push(Field { number, whole: &start[..start.len() - rest.len()], payload });
    }
    Ok(fields)
}

/// Applies `change` to the nested message in field `number` and copies all other fields.
fn with_field(
    message: &[u8],
    number: u32,
    change: impl Fn(&[u8]) -> Result<Vec<u8>>,
) -> Result<Vec<u8>> {
    let mut changed = Vec::with_capacity(message.len());
    for field in fields(message)? {
        if field.number != number {
            changed.extend_from_slice(field.whole);
            continue;
        }
        let payload = change(field.payload)?;
        prost::encoding::encode_key(number, WireType::LengthDelimited, &mut changed);
        encode_varint(payload.len() as u64, &mut changed);
        changed.extend(payload);
    }
    Ok(changed)
}

/// Removes the metadata fields that the server sets: uid, resourceVersion, generation,
/// creationTimestamp, managedFields.
fn without_server_fields(body: &[u8]) -> Result<Vec<u8>> {
    const RAW: u32 = 2;
    const METADATA: u32 = 1;
    const SERVER_FIELDS: [u32; 5] = [5, 6, 7, 8, 17];
    let unknown = body.strip_prefix(MAGIC).context("not a protobuf object")?;
    let stripped = with_field(unknown, RAW, |pod| {
        with_field(pod, METADATA, |metadata| {
            let kept = fields(metadata)?.into_iter();
            let kept = kept.filter(|field| !SERVER_FIELDS.contains(&field.number));
            Ok(kept.flat_map(|field| field.whole.to_vec()).collect())
        })
    })?;
    Ok([MAGIC, &stripped].concat())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn field(number: u32, payload: &[u8]) -> Vec<u8> {
        let mut bytes = Vec::new();
        prost::encoding::encode_key(number, WireType::LengthDelimited, &mut bytes);
        encode_varint(payload.len() as u64, &mut bytes);
        bytes.extend_from_slice(payload);
        bytes
    }

    #[test]
    fn server_fields_are_removed() {
        let metadata = [field(1, b"name"), field(5, b"uid"), field(17, b"managed")].concat();
        let pod = [field(1, &metadata), field(2, b"spec")].concat();
        let body = [MAGIC, &field(1, b"type"), &field(2, &pod)].concat();
        let want_pod = [field(1, &field(1, b"name")), field(2, b"spec")].concat();
        let want = [MAGIC, &field(1, b"type"), &field(2, &want_pod)].concat();
        assert_eq!(without_server_fields(&body).unwrap(), want);
    }

    #[test]
    fn truncated_message_is_an_error() {
        assert!(fields(&field(1, b"name")[..3]).is_err());
    }

    #[test]
    fn template_is_filled_with_the_names_of_another_pod() {
        let sample = |hole: Hole| hole.sample();
        let pod = layout::pod(SERVICE, POD);
        let text = format!(
            "{} {pod} {} {}",
            sample(Hole::Namespace),
            sample(Hole::Node),
            sample(Hole::Ip)
        );
        let template = Template::new(text.into_bytes()).unwrap();
        let layout = Layout::spread(10, 100);
        let filled = String::from_utf8(template.fill(&layout, 23)).unwrap();
        assert_eq!(filled, "bench-03 web-00003-7c9d8b6f5-000023 node-0002 10.100.100.123");
    }
}

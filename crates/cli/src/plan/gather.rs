//! From documents to a world: puts every object in its place and remembers what had none.

use std::collections::{BTreeMap, BTreeSet};

use endpointd_model::{EndpointSlice, Endpoints, Key, Node, Pod, Service, SharedStr};
use endpointd_plan::ClusterState;
use endpointd_wire::{AnyObject, Decoded, Identity, Malformed};

use super::DEFAULT_NAMESPACE;
use super::document::{Document, Read};
use super::read::Source;
use crate::refusal::Refusal;

/// Everything the files said.
#[derive(Default)]
pub struct Gathered {
    pub world: ClusterState,
    /// Keys whose Service or Endpoints is malformed: planned as if it were gone, they would lose
    /// what they have.
    pub malformed: BTreeSet<Key>,
    /// How often each kind was met that we have no use for.
    pub n_ignored_by_kind: BTreeMap<String, usize>,
    /// What people should know, in the order it was found.
    pub warnings: Vec<String>,
}

pub fn gather(sources: &[Source]) -> Result<Gathered, Refusal> {
    let mut gathered = Gathered::default();
    let mut n_documents = 0;
    for source in sources {
        for (at, document) in source.documents()?.into_iter().enumerate() {
            n_documents += usize::from(!matches!(document, Document::Empty));
            let read = document.objects().map_err(|reason| not_an_object(source, at, &reason))?;
            read.into_iter().for_each(|read| gathered.add(read));
        }
    }
    if n_documents == 0 {
        return Err(nothing_in(sources));
    }
    Ok(gathered)
}

fn not_an_object(source: &Source, at: usize, reason: &str) -> Refusal {
    Refusal::new(
        format!("document {} of {} is not a Kubernetes object: {reason}", at + 1, source.name()),
        "every document needs `apiVersion` and `kind`, as kubectl writes it with `-o yaml`",
    )
}

fn nothing_in(sources: &[Source]) -> Refusal {
    let names: Vec<String> = sources.iter().map(Source::name).collect();
    Refusal::new(
        format!("the input is empty: {}", names.join(", ")),
        "`kubectl get svc,pod,node,endpoints,endpointslices -A -o yaml` writes what is needed",
    )
}

impl Gathered {
    fn add(&mut self, read: Read) {
        match read {
            Read::Known(object) => self.place(*object),
            Read::Ignored(kind) => *self.n_ignored_by_kind.entry(kind).or_default() += 1,
            Read::Malformed(malformed) => self.leave_out(&malformed),
        }
    }

    fn place(&mut self, mut object: AnyObject) {
        let Parts { kind, namespace, name } = parts(&mut object);
        if name.is_empty() {
            return self.leave_out(&nameless(kind, namespace));
        }
        let identity = match namespace {
            Some(namespace) => {
                if namespace.is_empty() {
                    *namespace = DEFAULT_NAMESPACE.into();
                }
                format!("{kind} `{namespace}/{name}`")
            }
            None => format!("{kind} `{name}`"),
        };
        if self.put(object) == Before::Different {
            self.warnings
                .push(format!("two different objects of one name, the last counts: {identity}"));
        }
    }

    fn put(&mut self, object: AnyObject) -> Before {
        let ClusterState { services, pods, nodes, endpoints, slices, .. } = &mut self.world;
        match object {
            AnyObject::Service(one) => put(services, one.key(), one),
            AnyObject::Pod(one) => {
                let key = Key { namespace: one.namespace.clone(), name: one.name.clone() };
                put(pods, key, one)
            }
            AnyObject::Node(one) => put(nodes, one.name.clone(), one),
            AnyObject::Endpoints(one) => put(endpoints, one.meta.key(), one),
            AnyObject::EndpointSlice(one) => put(slices, one.meta.key(), one),
        }
    }

    fn leave_out(&mut self, malformed: &Malformed) {
        let Identity { kind, namespace, name, .. } = &*malformed.identity;
        let is_planned = [Service::KIND, Endpoints::KIND].contains(&kind.as_str());
        if is_planned && !name.is_empty() {
            let namespace = if namespace.is_empty() { DEFAULT_NAMESPACE } else { namespace };
            self.malformed.insert(Key::new(namespace, name.as_str()));
            self.warnings.push(format!("left out and not planned: {malformed}"));
        } else {
            self.warnings.push(format!("left out: {malformed}"));
        }
    }
}

/// What had the place of an object.
#[derive(PartialEq, Eq)]
enum Before {
    Nothing,
    Same,
    Different,
}

fn put<K: Ord, V: PartialEq>(objects: &mut BTreeMap<K, V>, key: K, object: V) -> Before {
    let before = match objects.get(&key) {
        None => Before::Nothing,
        Some(before) if *before == object => Before::Same,
        Some(_) => Before::Different,
    };
    objects.insert(key, object);
    before
}

/// What every object has; a node has no namespace.
struct Parts<'a> {
    kind: &'static str,
    namespace: Option<&'a mut SharedStr>,
    name: &'a SharedStr,
}

fn parts(object: &mut AnyObject) -> Parts<'_> {
    let (kind, namespace, name) = match object {
        AnyObject::Service(one) => (Service::KIND, Some(&mut one.namespace), &one.name),
        AnyObject::Pod(one) => (Pod::KIND, Some(&mut one.namespace), &one.name),
        AnyObject::Node(one) => (Node::KIND, None, &one.name),
        AnyObject::Endpoints(Endpoints { meta, .. }) => {
            (Endpoints::KIND, Some(&mut meta.namespace), &meta.name)
        }
        AnyObject::EndpointSlice(EndpointSlice { meta, .. }) => {
            (EndpointSlice::KIND, Some(&mut meta.namespace), &meta.name)
        }
    };
    Parts { kind, namespace, name }
}

fn nameless(kind: &str, namespace: Option<&mut SharedStr>) -> Malformed {
    let namespace = namespace.map_or_else(String::new, |namespace| namespace.to_string());
    let identity = Identity { kind: kind.to_owned(), namespace, ..Identity::default() };
    Malformed {
        identity: identity.into(),
        path: "metadata.name".to_owned(),
        reason: "missing".to_owned(),
    }
}

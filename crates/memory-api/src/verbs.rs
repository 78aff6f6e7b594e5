//! Create, update, and delete with the rules of kube-apiserver.

use endpointd_model::{
    DeleteTarget, EndpointSlice, Endpoints, Failure, FailureKind, Key, Meta, Object,
    PublishedResource, ResourceVersion, ServiceStatus, Uid, Write, WriteResult,
};

use crate::validation::invalid;
use crate::{MemoryApi, NamespaceState, Webhook};

/// The annotation or label that the webhook adds.
const WEBHOOK_MARK: &str = "example.com/seen-by-webhook";
/// The zone that it sets.
const WEBHOOK_ZONE: &str = "zone-of-webhook";

/// The response to a write.
#[derive(Clone, Debug, PartialEq)]
pub enum Response {
    Stored(Box<Object>),
    Removed,
    /// 409: resourceVersion or uid does not match.
    Conflict,
    /// 409: the name exists.
    AlreadyExists,
    /// 404.
    NotFound,
    /// 500: an update of missing Endpoints that names a resourceVersion.
    InternalError,
    /// 404: the namespace does not exist.
    NamespaceNotFound,
    /// 403 with the cause `NamespaceTerminating`.
    NamespaceTerminating,
    /// 422.
    Invalid(String),
}

impl MemoryApi {
    pub fn write(&mut self, write: &Write) -> Response {
        match write {
            Write::Create(object) => self.create(object),
            Write::Update(object) => self.update(object),
            Write::Delete(target) => self.delete(target),
        }
    }

    fn create(&mut self, object: &Object) -> Response {
        let mut object = object.clone();
        match self.namespaces.get(&object.meta().namespace) {
            Some(NamespaceState::Active) => {}
            Some(NamespaceState::Terminating) => return Response::NamespaceTerminating,
            None => return Response::NamespaceNotFound,
        }
        if object.meta().name.is_empty() {
            let suffix = self.revision();
            let meta = meta_mut(&mut object);
            let prefix = meta.generate_name.clone().unwrap_or_default();
            meta.name = format!("{prefix}{suffix:05}").into();
        }
        if !object.meta().resource_version.is_none() {
            return Response::Invalid("resourceVersion should not be set on a create".into());
        }
        if let Some(reason) = invalid(&object) {
            return Response::Invalid(reason);
        }
        if self.object(object.resource(), &object.meta().key()).is_some() {
            return Response::AlreadyExists;
        }
        let (uid, created) = (self.new_uid(), self.now.timestamp(self.skew_secs));
        let meta = meta_mut(&mut object);
        (meta.uid, meta.created, meta.deleted) = (uid, Some(created), None);
        meta.generation = Some(1);
        self.admit(&mut object);
        Response::Stored(Box::new(self.store(object)))
    }

    fn update(&mut self, object: &Object) -> Response {
        let (resource, key) = (object.resource(), object.meta().key());
        let Some(known) = self.object(resource, &key) else {
            // Upstream: Endpoints allow creation by update, slices do not.
            let is_endpoints = resource == PublishedResource::Endpoints;
            return if is_endpoints { Response::InternalError } else { Response::NotFound };
        };
        let Meta { resource_version, uid, .. } = object.meta();
        let is_other =
            |given: ResourceVersion, known: ResourceVersion| !given.is_none() && given != known;
        let is_other_uid = |given: &Uid, known: &Uid| !given.is_empty() && given != known;
        if is_other(*resource_version, known.meta().resource_version)
            || is_other_uid(uid, &known.meta().uid)
        {
            return Response::Conflict;
        }
        let mut object = object.clone();
        inherit(meta_mut(&mut object), known.meta());
        if let (Object::Slice(new), Object::Slice(old)) = (&object, &known)
            && new.address_type != old.address_type
        {
            return Response::Invalid("addressType: field is immutable".into());
        }
        if let Some(reason) = invalid(&object) {
            return Response::Invalid(reason);
        }
        self.stamp(&mut object);
        self.admit(&mut object);
        if object == known {
            return Response::Stored(Box::new(known));
        }
        let meta = object.meta();
        if meta.is_deleting() && meta.finalizers.is_empty() {
            self.drop_object(resource, &key);
            return Response::Stored(Box::new(object));
        }
        if resource == PublishedResource::Slices && has_other_content(&object, &known) {
            let meta = meta_mut(&mut object);
            meta.generation = meta.generation.map(|number| number + 1);
        }
        Response::Stored(Box::new(self.store(object)))
    }

    fn delete(&mut self, target: &DeleteTarget) -> Response {
        let DeleteTarget { resource, key, uid, resource_version } = target;
        let Some(known) = self.object(*resource, key) else { return Response::NotFound };
        let meta = known.meta();
        if (!uid.is_empty() && *uid != meta.uid)
            || (!resource_version.is_none() && *resource_version != meta.resource_version)
        {
            return Response::Conflict;
        }
        self.remove(*resource, key)
    }

    /// A delete without preconditions. Finalizers keep the object.
    pub fn remove(&mut self, resource: PublishedResource, key: &Key) -> Response {
        let Some(mut object) = self.object(resource, key) else { return Response::NotFound };
        self.n_external_writes += 1;
        if object.meta().finalizers.is_empty() {
            self.drop_object(resource, key);
            return Response::Removed;
        }
        if object.meta().is_deleting() {
            return Response::Stored(Box::new(object));
        }
        let deleted = self.now.timestamp(self.skew_secs);
        let meta = meta_mut(&mut object);
        (meta.deleted, meta.deletion_grace_secs) = (Some(deleted), Some(0));
        Response::Stored(Box::new(self.store(object)))
    }

    /// Removes the annotations that the webhook added.
    pub fn undo_webhook(&mut self) {
        let is_marked = |slice: &&EndpointSlice| slice.meta.annotations.contains_key(WEBHOOK_MARK);
        let marked: Vec<EndpointSlice> = self.slices.values().filter(is_marked).cloned().collect();
        for mut slice in marked {
            slice.meta.annotations = slice.meta.annotations.with(WEBHOOK_MARK, None);
            self.force(Object::Slice(slice));
        }
    }

    /// The client writes the time of a transition.
    fn stamp(&self, object: &mut Object) {
        if let Object::ServiceStatus(ServiceStatus { condition: Some(condition), .. }) = object {
            condition.last_transition.get_or_insert(self.now.timestamp(self.skew_secs));
        }
    }

    fn admit(&self, object: &mut Object) {
        let (Some(webhook), Object::Slice(slice)) = (self.webhook, object) else { return };
        let EndpointSlice { meta, endpoints, .. } = slice;
        match webhook {
            Webhook::Annotates => {
                meta.annotations = meta.annotations.with(WEBHOOK_MARK, Some("true"));
            }
            Webhook::Relabels => meta.labels = meta.labels.with(WEBHOOK_MARK, Some("true")),
            Webhook::Rezones => {
                endpoints.iter_mut().for_each(|one| one.zone = Some(WEBHOOK_ZONE.into()));
            }
        }
    }
}

/// The result of a write as `endpointd-client` classifies the response.
pub fn write_result(write: &Write, response: Response) -> WriteResult {
    let is_delete = matches!(write, Write::Delete(_));
    match response {
        Response::Stored(object) if is_delete && object.meta().finalizers.is_empty() => {
            WriteResult::Deleted
        }
        Response::Stored(object) => WriteResult::Stored(object),
        Response::Removed => WriteResult::Deleted,
        Response::NotFound if is_delete => WriteResult::Deleted,
        Response::Conflict | Response::AlreadyExists | Response::NotFound => {
            WriteResult::Conflict("409".into())
        }
        Response::InternalError => WriteResult::NoResponse(failure(FailureKind::ServerError)),
        Response::NamespaceNotFound | Response::NamespaceTerminating => {
            WriteResult::NamespaceTerminating("terminating".into())
        }
        Response::Invalid(_) => WriteResult::Failed(failure(FailureKind::Invalid)),
    }
}

fn failure(kind: FailureKind) -> Failure {
    Failure { kind, message: kind.as_str().into() }
}

/// Copies the fields that a client cannot change.
fn inherit(meta: &mut Meta, known: &Meta) {
    meta.uid = known.uid.clone();
    meta.resource_version = known.resource_version;
    meta.generation = known.generation;
    meta.created = known.created;
    meta.deleted = known.deleted;
    meta.deletion_grace_secs = known.deletion_grace_secs;
    meta.generate_name = known.generate_name.clone();
}

fn has_other_content(a: &Object, b: &Object) -> bool {
    match (a, b) {
        (Object::Slice(a), Object::Slice(b)) => {
            let EndpointSlice { meta: _, address_type, endpoints, ports } = a;
            (address_type, endpoints, ports) != (&b.address_type, &b.endpoints, &b.ports)
        }
        (Object::Endpoints(a), Object::Endpoints(b)) => {
            let Endpoints { meta: _, subsets } = a;
            *subsets != b.subsets
        }
        (Object::ServiceStatus(a), Object::ServiceStatus(b)) => a.condition != b.condition,
        (Object::MultiCluster(a), Object::MultiCluster(b)) => a != b,
        (
            Object::Slice(_)
            | Object::Endpoints(_)
            | Object::ServiceStatus(_)
            | Object::MultiCluster(_),
            _,
        ) => true,
    }
}

pub fn meta_mut(object: &mut Object) -> &mut Meta {
    match object {
        Object::Slice(slice) => &mut slice.meta,
        Object::Endpoints(endpoints) => &mut endpoints.meta,
        Object::ServiceStatus(status) => &mut status.meta,
        Object::MultiCluster(object) => object.meta_mut(),
    }
}

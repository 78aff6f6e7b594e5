//! Records what the controllers do, for pages. While nobody watches, a sync that wrote or failed
//! costs one small record, and its writes are not looked at.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::{Instant, SystemTime};

use endpointd_engine::{
    Engine, Input, MonotonicTime, RequestId, SyncResult, SyncSummary, WriteMode,
};
use endpointd_model::{
    Controller, Key, PublishedResource, ResourceEvent, SharedStr, WatchSignal, Write, names,
};
use endpointd_status::{
    Change, ChangeLog, EndpointDiff, LoopState, Notice, WriteRecord, WrittenSlice, slice_of,
};

/// Syncs whose writes are being recorded. With more, those of the oldest keys are forgotten.
const OPEN_SYNCS_MAX: usize = 4096;

pub struct ChangeRecorder {
    log: ChangeLog,
    write_mode: WriteMode,
    sent: BTreeMap<RequestId, SentWrite>,
    /// Writes with a response, of syncs that have not ended.
    open: BTreeMap<(Controller, Key), Vec<WriteRecord>>,
}

/// A write without a response.
struct SentWrite {
    /// Of the sync.
    owner: (Controller, Key),
    verb: &'static str,
    resource: PublishedResource,
    name: SharedStr,
    endpoints: EndpointDiff,
    at: Instant,
}

impl ChangeRecorder {
    pub fn new(log: ChangeLog, write_mode: WriteMode) -> Self {
        Self { log, write_mode, sent: BTreeMap::new(), open: BTreeMap::new() }
    }

    /// What a page's question may read.
    pub fn state<'a>(&'a self, engine: &'a Engine, now: MonotonicTime) -> LoopState<'a> {
        LoopState { engine, changes: &self.log, now }
    }

    /// Before the engine takes it in.
    pub fn on_signal(&self, signal: &WatchSignal) {
        if !self.log.is_watched() {
            return;
        }
        match signal {
            WatchSignal::Event(event) => {
                if let Some(key) = service_of(event) {
                    self.log.notify(Notice::Observed(key));
                }
            }
            WatchSignal::InitDone(_) => self.log.notify(Notice::Listed),
            WatchSignal::InitStarted
            | WatchSignal::DecodeError { .. }
            | WatchSignal::Bookmark(_)
            | WatchSignal::Disconnected(_)
            | WatchSignal::Reconnected => {}
        }
    }

    pub fn on_send(
        &mut self,
        engine: &Engine,
        id: RequestId,
        controller: Controller,
        write: &Arc<Write>,
    ) {
        if !self.log.is_watched() {
            return;
        }
        let object_key = write.key();
        let before = match write.resource() {
            PublishedResource::Slices => engine.encoded_slice(&object_key),
            PublishedResource::Endpoints
            | PublishedResource::ServiceStatus
            | PublishedResource::MultiCluster(_) => None,
        };
        let service = match slice_of(write) {
            Some(slice) => service_label(&slice.meta.labels),
            // Of a slice that is deleted: rare enough to be decoded here.
            None => before.as_ref().and_then(|one| service_label(&one.decode().meta.labels)),
        };
        let owner = service.unwrap_or_else(|| object_key.name.clone());
        let is_slice = write.resource() == PublishedResource::Slices;
        let slice = is_slice.then(|| WrittenSlice { before, write: Arc::clone(write) });
        let sent = SentWrite {
            owner: (controller, Key { namespace: object_key.namespace, name: owner }),
            verb: write.verb(),
            resource: write.resource(),
            name: object_key.name,
            endpoints: slice.map(EndpointDiff::new).unwrap_or_default(),
            at: Instant::now(),
        };
        self.sent.insert(id, sent);
    }

    pub fn on_result(&mut self, input: &Input) {
        let Input::WriteResult(id, result) = input else { return };
        let Some(sent) = self.sent.remove(id) else { return };
        let record = WriteRecord {
            verb: sent.verb,
            resource: sent.resource.as_str(),
            name: sent.name,
            result: result.as_str(),
            took: sent.at.elapsed(),
            endpoints: sent.endpoints,
        };
        if self.open.len() >= OPEN_SYNCS_MAX {
            self.open.pop_first();
        }
        self.open.entry(sent.owner).or_default().push(record);
    }

    pub fn on_sync(&mut self, sync: &SyncSummary) {
        let writes = match self.open.is_empty() {
            true => None,
            false => self.open.remove(&(sync.controller, sync.key.clone())),
        };
        if self.is_notable(sync) {
            let writes = writes.unwrap_or_default();
            self.log.push(Change { at: SystemTime::now(), sync: sync.clone(), writes });
        }
    }

    /// Pages end their streams.
    pub fn stop(&self) {
        self.log.notify(Notice::Stopping);
    }

    fn is_notable(&self, sync: &SyncSummary) -> bool {
        match (&sync.result, self.write_mode) {
            // In a dry run the writes were not sent.
            (_, WriteMode::DryRun) | (SyncResult::Unchanged, WriteMode::Send) => false,
            (_, WriteMode::Send) => true,
        }
    }
}

/// The Service whose row a page shows.
fn service_of(event: &ResourceEvent) -> Option<Key> {
    match event {
        ResourceEvent::Service(event) => Some(event.object().key()),
        ResourceEvent::Slice(event) => {
            let meta = &event.object().meta;
            let name = service_label(&meta.labels)?;
            Some(Key { namespace: meta.namespace.clone(), name })
        }
        ResourceEvent::Pod(_)
        | ResourceEvent::Node(_)
        | ResourceEvent::Endpoints(_)
        | ResourceEvent::ReferenceGrant(_)
        | ResourceEvent::Namespace(_)
        | ResourceEvent::ServiceExport(_)
        | ResourceEvent::ServiceImport(_)
        | ResourceEvent::DerivedService(_) => None,
    }
}

fn service_label(labels: &endpointd_model::Labels) -> Option<SharedStr> {
    labels.get(names::SERVICE_NAME).cloned()
}

//! A list in pages, for servers without streaming lists.

use std::time::Duration;

use endpointd_model::{FailureKind, ObjectEvent};
use endpointd_wire::{Page, decode_list};

use super::watched::Watched;
use super::{ReceiverGone, WatchEnd, Watcher, end_of_error, undecodable};
use crate::request::{ApiRequest, Start};
use crate::transport::TransportError;

/// As client-go's pager.
pub(super) const OBJECTS_MAX: u32 = 500;
/// A page that is too long is requested with fewer objects.
const PAGE_SHRINKING: u32 = 5;
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// A page of pods of a quarter of a megabyte each.
const PAGE_BYTES_MAX: usize = 128 << 20;

impl Watcher {
    pub(super) async fn list<T: Watched>(&mut self) -> Result<WatchEnd, ReceiverGone> {
        let mut token = None;
        loop {
            let page: Page<T> = match self.read_page(token.as_deref()).await {
                Ok(page) => page,
                Err(end) => return Ok(end),
            };
            if token.is_none() {
                self.on_connected::<T>(Start::Everything).await?;
            }
            let Page { resource_version, continue_token, items, malformed } = page;
            for item in items {
                self.emit_object(ObjectEvent::Applied(item)).await?;
            }
            for one in &malformed {
                self.report_decode_error::<T>(one).await?;
            }
            if continue_token.is_none() {
                self.finish_list::<T>(resource_version).await?;
                return Ok(WatchEnd::ListDone);
            }
            token = continue_token;
        }
    }

    async fn read_page<T: Watched>(&mut self, token: Option<&str>) -> Result<Page<T>, WatchEnd> {
        let request = ApiRequest::of_page(self.location, token, self.n_page_objects);
        let request = self.client.with_accept(request.in_scope(T::RESOURCE, &self.client.scope));
        let response = self.client.transport.request(&request, PAGE_TIMEOUT, PAGE_BYTES_MAX).await;
        let response = match response {
            Ok(response) if response.code == 200 => response,
            // An expired continue token starts the list again.
            Ok(response) => return Err(end_of_error(&request, Start::Everything, &response)),
            Err(TransportError { failure, .. }) if failure.kind == FailureKind::Unreadable => {
                // The page is too long. The list starts again, because its token may be old by then.
                self.n_page_objects = (self.n_page_objects / PAGE_SHRINKING).max(1);
                return Err(WatchEnd::Failed { failure, retry_after: Duration::ZERO });
            }
            Err(TransportError { failure, .. }) => {
                return Err(WatchEnd::Failed { failure, retry_after: Duration::ZERO });
            }
        };
        self.client.stats().count_received(T::RESOURCE, response.body.len());
        let encoding = response.encoding;
        let encoding =
            encoding.ok_or_else(|| undecodable(&request, "neither JSON nor protobuf"))?;
        let page: Page<T> = decode_list(encoding, &response.body)
            .map_err(|malformed| undecodable(&request, &malformed.to_string()))?;
        if page.resource_version.is_none() {
            return Err(undecodable(&request, "a list without resourceVersion"));
        }
        Ok(page)
    }
}

//! The picture page by page, for servers that do not stream it.

use std::time::Duration;

use endpointd_model::ObjectEvent;
use endpointd_wire::{Page, decode_list};

use super::watched::Watched;
use super::{ReceiverGone, WatchEnd, Watcher, refused, unreadable};
use crate::ask::{ApiRequest, Start};
use crate::transport::TransportError;

/// As client-go's pager.
const OBJECTS_MAX: u32 = 500;
const PAGE_TIMEOUT: Duration = Duration::from_secs(60);
/// A page of pods with a quarter of a megabyte each.
const PAGE_BYTES_MAX: usize = 128 << 20;

impl Watcher {
    pub(super) async fn list<T: Watched>(&mut self) -> Result<WatchEnd, ReceiverGone> {
        let mut token = None;
        loop {
            let ask = ApiRequest::of_page(T::WATCHED, token.as_deref(), OBJECTS_MAX);
            let ask = self.client.accepting(ask);
            let answer = self.client.transport.ask(&ask, PAGE_TIMEOUT, PAGE_BYTES_MAX).await;
            let answer = match answer {
                Ok(answer) if answer.code == 200 => answer,
                // A token that is too old is a picture to be taken anew.
                Ok(answer) => return Ok(refused(&ask, Start::Everything, &answer)),
                Err(TransportError { failure, .. }) => {
                    return Ok(WatchEnd::Failed { failure, after: Duration::ZERO });
                }
            };
            let Some(encoding) = answer.encoding else {
                return Ok(unreadable(&ask, "neither JSON nor protobuf"));
            };
            let page: Page<T> = match decode_list(encoding, &answer.body) {
                Ok(page) => page,
                Err(malformed) => return Ok(unreadable(&ask, &malformed.to_string())),
            };
            if page.resource_version.is_none() {
                return Ok(unreadable(&ask, "a list without resourceVersion"));
            }
            if token.is_none() {
                self.begin::<T>(Start::Everything).await?;
            }
            let Page { resource_version, continue_token, items, malformed } = page;
            for item in items {
                self.see(ObjectEvent::Applied(item)).await?;
            }
            for one in &malformed {
                self.give_up_on::<T>(one).await?;
            }
            if continue_token.is_none() {
                self.complete::<T>(resource_version).await?;
                return Ok(WatchEnd::ListDone);
            }
            token = continue_token;
        }
    }
}

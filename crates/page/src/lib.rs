//! The live page: all Services, one Service with its slices and findings, changes as they happen,
//! and what waits. Start at [`router`].
//!
//! A collector asks the event loop for rows and turns its notices into messages, once for all
//! readers, and only while there is a reader. Readers have a position in a shared list of messages:
//! one that is too slow loses messages and receives their number. The page itself is a few files in
//! `ui`, served as they are.

mod api;
mod assets;
mod guard;

mod collector;
mod hub;
mod messages;
mod rates;
mod stream;

mod change_json;
mod detail_json;
mod import_json;
mod overview_json;
mod status_json;

mod details;
mod findings;
mod playground_api;

use std::sync::Arc;

use axum::Router;
use axum::middleware::from_fn;
use endpointd_client::ConnectOptions;
use endpointd_status::StatusHandle;

pub use playground_api::{Action, ActionError, ActionRequest, Performed, PlaygroundControls};

/// The version of the JSON at `/api/v1`. New fields may appear; others keep their meaning.
pub const API_VERSION: &str = "v1";

/// The path of the page.
pub const PATH: &str = "/ui/";

/// What the page needs besides the status of the process.
pub struct PageOptions {
    /// Where findings read complete objects.
    pub connect: ConnectOptions,
    /// What the controllers plan with.
    pub settings: endpointd_plan::Settings,
    /// Buttons; only in the playground.
    pub playground: Option<PlaygroundControls>,
}

/// The page and its API, for the loopback server ([`endpointd_status::AddedPages`]).
pub fn router(options: PageOptions, status: &StatusHandle) -> Router {
    let state = api::ApiState::new(options, status.clone());
    Router::new()
        .merge(assets::router())
        .merge(api::router(Arc::new(state)))
        .layer(from_fn(guard::check))
}

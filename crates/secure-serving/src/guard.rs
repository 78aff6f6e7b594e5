//! Who sends a request, and may that user see the page? The API server decides both: TokenReview and
//! SubjectAccessReview. Upstream: `DelegatingAuthenticationOptions`, `DelegatingAuthorizationOptions`.

use std::future::Future;
use std::pin::Pin;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use axum::extract::Request;
use axum::http::{HeaderMap, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};
use serde_json::{Value, json};
use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::cache::Cache;
use crate::subject::ClientCertificate;

/// Reviews in flight. Clients with random tokens must not flood the API server.
const REVIEWS_MAX: usize = 8;
/// For a place and for the answer of the API server.
const REVIEW_MAX: Duration = Duration::from_secs(10);
const TOKEN_REVIEWS: &str = "/apis/authentication.k8s.io/v1/tokenreviews";
const ACCESS_REVIEWS: &str = "/apis/authorization.k8s.io/v1/subjectaccessreviews";

pub type ReviewFuture<'a> = Pin<Box<dyn Future<Output = Result<Value, String>> + Send + 'a>>;

/// Sends a review to the API server.
pub trait ReviewApi: Send + Sync + 'static {
    /// The stored review with its status, or why there is none.
    fn create(&self, path: &'static str, review: Value) -> ReviewFuture<'_>;
}

#[derive(Clone, Debug)]
pub struct GuardOptions {
    /// Served to everybody. A path that ends with `*` is a prefix.
    pub always_allow_paths: Vec<String>,
    pub token_ttl: Duration,
    pub authorized_ttl: Duration,
    pub unauthorized_ttl: Duration,
}

/// Clones share the caches.
#[derive(Clone)]
pub struct Guard(Arc<Inner>);

struct Inner {
    api: Box<dyn ReviewApi>,
    options: GuardOptions,
    reviews: Semaphore,
    /// The last review had no answer; logged when it changes.
    is_failing: AtomicBool,
    /// By token; `None` for one that the API server does not accept.
    users: Mutex<Cache<String, Option<User>>>,
    /// By user, verb, and path.
    decisions: Mutex<Cache<(User, String, String), bool>>,
}

#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
struct User {
    name: String,
    uid: String,
    groups: Vec<String>,
}

/// Why a request is refused.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Refusal {
    Unauthenticated,
    Forbidden(String),
    /// The API server did not answer.
    Unknown(StatusCode),
}

impl Guard {
    pub fn new(api: impl ReviewApi, options: GuardOptions) -> Self {
        Self(Arc::new(Inner {
            api: Box::new(api),
            options,
            reviews: Semaphore::new(REVIEWS_MAX),
            is_failing: AtomicBool::new(false),
            users: Mutex::default(),
            decisions: Mutex::default(),
        }))
    }

    /// Passes on what the sender may see.
    pub async fn check(self, request: Request, next: Next) -> Response {
        let path = request.uri().path().to_owned();
        let verb = request.method().as_str().to_lowercase();
        let certificate = request.extensions().get::<ClientCertificate>().cloned();
        let token = bearer_token(request.headers()).map(ToOwned::to_owned);
        match self.0.decide(&verb, &path, certificate, token).await {
            Ok(()) => next.run(request).await,
            Err(refusal) => refusal.into_response(),
        }
    }
}

impl Inner {
    async fn decide(
        &self,
        verb: &str,
        path: &str,
        certificate: Option<ClientCertificate>,
        token: Option<String>,
    ) -> Result<(), Refusal> {
        if self.options.always_allow_paths.iter().any(|allowed| covers(allowed, path)) {
            return Ok(());
        }
        let user = match (certificate.and_then(|one| one.user()), token) {
            // As the API server, which adds the group to every user it has authenticated.
            (Some((name, mut groups)), _) => {
                groups.push("system:authenticated".to_owned());
                User { name, uid: String::new(), groups }
            }
            (None, Some(token)) => self.authenticate(token).await?,
            (None, None) => return Err(Refusal::Unauthenticated),
        };
        self.authorize(user, verb, path).await
    }

    async fn authenticate(&self, token: String) -> Result<User, Refusal> {
        let known = lock(&self.users).get(&token);
        if let Some(user) = known {
            return user.ok_or(Refusal::Unauthenticated);
        }
        let review = json!({
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenReview",
            "spec": {"token": token},
        });
        // An API server that does not answer has not accepted the token.
        let unknown = |()| Refusal::Unknown(StatusCode::UNAUTHORIZED);
        let answer = self.review(TOKEN_REVIEWS, review).await.map_err(unknown)?;
        let user = user_of(&answer["status"]);
        lock(&self.users).insert(token, user.clone(), self.options.token_ttl);
        user.ok_or(Refusal::Unauthenticated)
    }

    async fn authorize(&self, user: User, verb: &str, path: &str) -> Result<(), Refusal> {
        let question = (user, verb.to_owned(), path.to_owned());
        let known = lock(&self.decisions).get(&question);
        let (user, ..) = &question;
        let is_allowed = match known {
            Some(is_allowed) => is_allowed,
            None => {
                let review = json!({
                    "apiVersion": "authorization.k8s.io/v1",
                    "kind": "SubjectAccessReview",
                    "spec": {
                        "user": user.name,
                        "uid": user.uid,
                        "groups": user.groups,
                        "nonResourceAttributes": {"path": path, "verb": verb},
                    },
                });
                let unknown = |()| Refusal::Unknown(StatusCode::INTERNAL_SERVER_ERROR);
                let answer = self.review(ACCESS_REVIEWS, review).await.map_err(unknown)?;
                answer["status"]["allowed"] == true
            }
        };
        let refusal =
            Refusal::Forbidden(format!("user \"{}\" cannot {verb} path \"{path}\"", user.name));
        if known.is_none() {
            let GuardOptions { authorized_ttl, unauthorized_ttl, .. } = self.options;
            let ttl = if is_allowed { authorized_ttl } else { unauthorized_ttl };
            lock(&self.decisions).insert(question, is_allowed, ttl);
        }
        if is_allowed { Ok(()) } else { Err(refusal) }
    }

    async fn review(&self, path: &'static str, review: Value) -> Result<Value, ()> {
        let reviewed = timeout(REVIEW_MAX, async {
            let _place = self.reviews.acquire().await.map_err(|error| error.to_string())?;
            self.api.create(path, review).await
        });
        let answer = reviewed.await.unwrap_or_else(|_| Err("no response in time".to_owned()));
        let was_failing = self.is_failing.swap(answer.is_err(), Ordering::Relaxed);
        match (&answer, was_failing) {
            (Err(error), false) => tracing::warn!(path, error, "pages are refused: no review"),
            (Ok(_), true) => tracing::info!("the API server reviews requests again"),
            (Err(_), true) | (Ok(_), false) => {}
        }
        answer.map_err(drop)
    }
}

fn user_of(status: &Value) -> Option<User> {
    if status["authenticated"] != true {
        return None;
    }
    let user = &status["user"];
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    let groups = user["groups"].as_array().into_iter().flatten().map(text).collect();
    Some(User { name: text(&user["username"]), uid: text(&user["uid"]), groups })
}

fn covers(allowed: &str, path: &str) -> bool {
    match allowed.strip_suffix('*') {
        Some(prefix) => path.starts_with(prefix),
        None => path == allowed,
    }
}

fn bearer_token(headers: &HeaderMap) -> Option<&str> {
    let value = headers.get(header::AUTHORIZATION)?.to_str().ok()?;
    let (scheme, token) = value.trim().split_once(' ')?;
    let token = token.trim();
    (scheme.eq_ignore_ascii_case("bearer") && !token.is_empty()).then_some(token)
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

impl IntoResponse for Refusal {
    fn into_response(self) -> Response {
        match self {
            Self::Unauthenticated => {
                (StatusCode::UNAUTHORIZED, [(header::WWW_AUTHENTICATE, "Bearer")], "Unauthorized\n")
                    .into_response()
            }
            Self::Forbidden(reason) => {
                (StatusCode::FORBIDDEN, format!("Forbidden: {reason}\n")).into_response()
            }
            Self::Unknown(status) => {
                (status, "the API server could not be asked who may see this page\n")
                    .into_response()
            }
        }
    }
}

#[cfg(test)]
mod tests;

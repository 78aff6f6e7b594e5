//! The guard with an API server that can be down.

use std::sync::atomic::AtomicUsize;

use tokio::time::advance;

use super::*;

const TTL: Duration = Duration::from_secs(10);

/// Knows the token `good` of `prometheus`, who may get `/metrics`.
#[derive(Clone, Default)]
struct Api(Arc<ApiState>);

#[derive(Default)]
struct ApiState {
    is_down: AtomicBool,
    n_token_reviews: AtomicUsize,
    n_access_reviews: AtomicUsize,
}

impl ReviewApi for Api {
    fn create(&self, path: &'static str, review: Value) -> ReviewFuture<'_> {
        let answer = self.answer(path, &review);
        Box::pin(async move {
            tokio::time::sleep(Duration::from_millis(1)).await;
            answer
        })
    }
}

impl Api {
    fn answer(&self, path: &str, review: &Value) -> Result<Value, String> {
        if self.0.is_down.load(Ordering::Relaxed) {
            return Err("connection refused".to_owned());
        }
        let spec = &review["spec"];
        if path == TOKEN_REVIEWS {
            self.0.n_token_reviews.fetch_add(1, Ordering::Relaxed);
            let user = json!({"username": "prometheus", "uid": "u", "groups": ["g"]});
            let is_good = spec["token"] == "good";
            return Ok(json!({"status": {"authenticated": is_good, "user": user}}));
        }
        self.0.n_access_reviews.fetch_add(1, Ordering::Relaxed);
        let is_known = spec["user"] == "prometheus" && spec["groups"][0] == "g";
        let allowed =
            is_known && spec["nonResourceAttributes"] == json!({"path": "/metrics", "verb": "get"});
        Ok(json!({"status": {"allowed": allowed}}))
    }

    fn guard(&self) -> Guard {
        let options = GuardOptions {
            always_allow_paths: vec!["/livez".to_owned(), "/open/*".to_owned()],
            token_ttl: TTL,
            authorized_ttl: TTL,
            unauthorized_ttl: TTL,
        };
        Guard::new(self.clone(), options)
    }

    fn n_reviews(&self) -> (usize, usize) {
        let get = |n: &AtomicUsize| n.load(Ordering::Relaxed);
        (get(&self.0.n_token_reviews), get(&self.0.n_access_reviews))
    }
}

async fn get(guard: &Guard, path: &str, token: Option<&str>) -> Result<(), Refusal> {
    guard.0.decide("get", path, None, token.map(ToOwned::to_owned)).await
}

fn forbidden(path: &str) -> Result<(), Refusal> {
    Err(Refusal::Forbidden(format!("user \"prometheus\" cannot get path \"{path}\"")))
}

#[tokio::test(start_paused = true)]
async fn the_api_server_decides() {
    let api = Api::default();
    let guard = api.guard();
    assert_eq!(get(&guard, "/metrics", None).await, Err(Refusal::Unauthenticated));
    assert_eq!(get(&guard, "/metrics", Some("bad")).await, Err(Refusal::Unauthenticated));
    assert_eq!(get(&guard, "/metrics", Some("good")).await, Ok(()));
    assert_eq!(get(&guard, "/report", Some("good")).await, forbidden("/report"));
    let put = guard.0.decide("put", "/metrics", None, Some("good".to_owned())).await;
    assert!(matches!(put, Err(Refusal::Forbidden(_))));
}

#[tokio::test(start_paused = true)]
async fn probes_ask_nobody() {
    let api = Api::default();
    let guard = api.guard();
    api.0.is_down.store(true, Ordering::Relaxed);
    assert_eq!(get(&guard, "/livez", None).await, Ok(()));
    assert_eq!(get(&guard, "/open/page", None).await, Ok(()));
    assert_eq!(get(&guard, "/livez/more", None).await, Err(Refusal::Unauthenticated));
    assert_eq!(api.n_reviews(), (0, 0));
}

#[tokio::test(start_paused = true)]
async fn answers_are_kept_for_their_time() {
    let api = Api::default();
    let guard = api.guard();
    for _ in 0..3 {
        assert_eq!(get(&guard, "/metrics", Some("good")).await, Ok(()));
        assert_eq!(get(&guard, "/metrics", Some("bad")).await, Err(Refusal::Unauthenticated));
    }
    assert_eq!(api.n_reviews(), (2, 1));
    advance(TTL).await;
    assert_eq!(get(&guard, "/metrics", Some("good")).await, Ok(()));
    assert_eq!(api.n_reviews(), (3, 2));
}

#[tokio::test(start_paused = true)]
async fn without_the_api_server_known_answers_count_until_they_expire() {
    let api = Api::default();
    let guard = api.guard();
    assert_eq!(get(&guard, "/metrics", Some("good")).await, Ok(()));
    api.0.is_down.store(true, Ordering::Relaxed);
    assert_eq!(get(&guard, "/metrics", Some("good")).await, Ok(()));
    let unknown = |status| Err(Refusal::Unknown(status));
    let report = get(&guard, "/report", Some("good")).await;
    assert_eq!(report, unknown(StatusCode::INTERNAL_SERVER_ERROR));
    advance(TTL).await;
    let metrics = get(&guard, "/metrics", Some("good")).await;
    assert_eq!(metrics, unknown(StatusCode::UNAUTHORIZED), "an error is not kept");
    api.0.is_down.store(false, Ordering::Relaxed);
    assert_eq!(get(&guard, "/metrics", Some("good")).await, Ok(()));
}

#[tokio::test(start_paused = true)]
async fn random_tokens_do_not_flood_the_api_server() {
    let api = Api::default();
    let guard = api.guard();
    let started = tokio::time::Instant::now();
    let all = (0..100).map(|n| {
        let guard = guard.clone();
        tokio::spawn(async move { get(&guard, "/metrics", Some(&format!("bad-{n}"))).await })
    });
    for one in all.collect::<Vec<_>>() {
        assert_eq!(one.await.unwrap(), Err(Refusal::Unauthenticated));
    }
    // Each review takes a millisecond, and REVIEWS_MAX run at the same time.
    assert!(started.elapsed() >= Duration::from_millis(100 / REVIEWS_MAX as u64));
}

#[test]
fn a_bearer_token_is_read_from_the_header() {
    let token = |value: &str| {
        let headers = [(header::AUTHORIZATION, value.parse().unwrap())].into_iter().collect();
        bearer_token(&headers).map(ToOwned::to_owned)
    };
    assert_eq!(token("Bearer abc").as_deref(), Some("abc"));
    assert_eq!(token("bearer  abc ").as_deref(), Some("abc"));
    assert_eq!(token("Basic abc"), None);
    assert_eq!(token("Bearer "), None);
    assert_eq!(bearer_token(&HeaderMap::new()), None);
}

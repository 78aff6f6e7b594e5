//! Who may ask, and what a browser may do with the answer.
//!
//! The server listens on the loopback interface. Any web page can make a browser send requests
//! there, and with DNS rebinding even read the answers, under a host name of its own: only requests
//! for a loopback name are answered. Nothing but the playground changes anything.

use axum::extract::Request;
use axum::http::{HeaderMap, HeaderName, HeaderValue, StatusCode, header};
use axum::middleware::Next;
use axum::response::{IntoResponse, Response};

/// Scripts and styles are files of this server; nothing is inline and nothing is evaluated.
const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; \
     connect-src 'self'; img-src 'self'; base-uri 'none'; form-action 'none'; \
     frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'";

const HEADERS: [(HeaderName, &str); 6] = [
    (header::CONTENT_SECURITY_POLICY, CONTENT_SECURITY_POLICY),
    (header::X_CONTENT_TYPE_OPTIONS, "nosniff"),
    (header::REFERRER_POLICY, "no-referrer"),
    (HeaderName::from_static("cross-origin-opener-policy"), "same-origin"),
    (HeaderName::from_static("cross-origin-resource-policy"), "same-origin"),
    (header::CACHE_CONTROL, "no-store"),
];

pub async fn check(request: Request, next: Next) -> Response {
    let mut response = match is_for_loopback(request.headers()) {
        true => next.run(request).await,
        false => {
            let text = "this page is served for 127.0.0.1, localhost, and [::1] only\n";
            (StatusCode::MISDIRECTED_REQUEST, text).into_response()
        }
    };
    for (name, value) in HEADERS {
        response.headers_mut().insert(name, HeaderValue::from_static(value));
    }
    response
}

/// With any port: a port-forward chooses its own.
fn is_for_loopback(headers: &HeaderMap) -> bool {
    let mut hosts = headers.get_all(header::HOST).iter();
    let (Some(host), None) = (hosts.next(), hosts.next()) else { return false };
    host.to_str().is_ok_and(|host| is_loopback(without_port(host)))
}

fn is_loopback(host: &str) -> bool {
    ["127.0.0.1", "localhost", "[::1]"].iter().any(|known| host.eq_ignore_ascii_case(known))
}

fn without_port(host: &str) -> &str {
    let is_port = |port: &str| !port.is_empty() && port.bytes().all(|byte| byte.is_ascii_digit());
    match host.rsplit_once(':') {
        Some((name, port)) if is_port(port) && !name.ends_with(':') => name,
        Some(_) | None => host,
    }
}

/// Whether a request that changes something comes from this page: a page of another origin cannot
/// set this header without asking first, and nobody answers that question.
pub fn is_from_this_page(headers: &HeaderMap) -> bool {
    let host = headers.get(header::HOST).and_then(|host| host.to_str().ok()).unwrap_or_default();
    let origin = headers.get(header::ORIGIN).map(HeaderValue::to_str);
    let is_own_origin = match origin {
        None => true,
        Some(Ok(origin)) => origin.strip_prefix("http://") == Some(host),
        Some(Err(_)) => false,
    };
    is_own_origin && headers.contains_key("x-endpointd")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn with_host(host: &str) -> HeaderMap {
        HeaderMap::from_iter([(header::HOST, HeaderValue::from_str(host).unwrap())])
    }

    #[test]
    fn only_loopback_names_are_answered() {
        for host in ["127.0.0.1:10271", "localhost", "LOCALHOST:1", "[::1]:80", "[::1]"] {
            assert!(is_for_loopback(&with_host(host)), "{host}");
        }
        for host in [
            "evil.example",
            "127.0.0.1.evil.example:80",
            "10.0.0.1",
            "::1",
            "",
            "localhost:x",
            "[::1]:80:80",
        ] {
            assert!(!is_for_loopback(&with_host(host)), "{host}");
        }
        assert!(!is_for_loopback(&HeaderMap::new()));
        let mut two = with_host("localhost");
        two.append(header::HOST, HeaderValue::from_static("evil.example"));
        assert!(!is_for_loopback(&two));
    }

    #[test]
    fn a_page_of_another_origin_cannot_act() {
        let mut headers = with_host("127.0.0.1:8080");
        assert!(!is_from_this_page(&headers), "a form of another page");
        headers.insert("x-endpointd", HeaderValue::from_static("1"));
        assert!(is_from_this_page(&headers), "a program");
        headers.insert(header::ORIGIN, HeaderValue::from_static("http://127.0.0.1:8080"));
        assert!(is_from_this_page(&headers));
        headers.insert(header::ORIGIN, HeaderValue::from_static("http://127.0.0.1:9090"));
        assert!(!is_from_this_page(&headers));
    }
}

//! Fuzz target: the query of `/report` and the health pages.

use endpointd_fuzz::{Format, Target, fuzz};

use super::*;

#[test]
fn fuzz_status_query() {
    let recorded =
        ["/report?key=shop/web", "/report?pretty&key=a%2Fb", "/livez?verbose=1&x=%C3%A4"];
    let recorded = recorded.map(|text| text.as_bytes().to_vec()).to_vec();
    fuzz(&Target { name: "status_query", format: Format::Text, recorded }, |input| {
        let Ok(uri) = Uri::try_from(input) else { return "no URI".to_owned() };
        let Ok(parameters) = Parameters::try_from_uri(&uri) else { return "no query".to_owned() };
        let key = parameters.get("key").and_then(|text| parse_key(text));
        if let Some(key) = &key {
            assert_eq!(parse_key(&key.to_string()).as_ref(), Some(key));
            let page = json_page(StatusCode::OK, &render_key_json(key, &[]), &parameters);
            assert_eq!(page.status(), StatusCode::OK);
        }
        format!("{} {} {}", key.is_some(), parameters.len(), parameters.contains_key("pretty"))
    });
}

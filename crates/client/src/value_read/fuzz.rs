//! Fuzz target: pages of complete objects.

use endpointd_fuzz::{Format, Target, fuzz, outcome_of};
use endpointd_wire::{Bytes, Encoding};

use super::*;

#[test]
fn fuzz_value_lists() {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../wire/testdata");
    let read = |name| std::fs::read(format!("{folder}/{name}")).expect("a recorded list");
    let recorded = ["podlist.json", "endpointslicelist.json"].map(read).to_vec();
    let request = request(Method::GET, "/api/v1/pods", Accept::Json);
    fuzz(&Target { name: "value_lists", format: Format::Json, recorded }, |input| {
        let response = ApiResponse {
            code: 200,
            encoding: Some(Encoding::Json),
            retry_after: Some(String::from_utf8_lossy(input).into_owned()),
            body: Bytes::copy_from_slice(input),
        };
        assert!(retry_after(&response) <= RETRY_AFTER_MAX);
        match parse::<Page>(&request, &response) {
            Ok(page) => format!("{:?} {}", page.metadata.token.is_some(), page.items.is_some()),
            Err(error) => outcome_of(&error.message),
        }
    });
}

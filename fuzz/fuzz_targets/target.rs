//! Request targets: no bytes make the normal form panic, and the normal form of a normal form is the same.
#![no_main]

use ifmatch::core::http::request_target::{KeptInNames, normalize, split_query};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let (path, _query) = split_query(input);
    for kept in [KeptInNames::NOTHING, KeptInNames::ALL] {
        let Ok(normal) = normalize(path, kept) else { continue };
        let again = normalize(normal.as_str().as_bytes(), kept);
        assert_eq!(again.map(|again| again.as_str().to_owned()), Ok(normal.as_str().to_owned()));
    }
});

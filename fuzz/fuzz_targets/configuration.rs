//! Configuration files: no text makes the reader panic.
#![no_main]

use libfuzzer_sys::fuzz_target;

fuzz_target!(|text: &str| {
    let _configuration = ifmatch::config::parse("ifmatch.toml", text);
});

//! The requests of WebDAV clients, and the answers of backends (`readers/webdav.rs`).
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../readers/webdav.rs"]
mod webdav;

fuzz_target!(|input: &[u8]| webdav::read(input));

//! The requests of clients of Azure queues, and the documents that backends keep for them.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/azure_queue.rs"]
mod checks;

fuzz_target!(|input: &[u8]| checks::check(input));

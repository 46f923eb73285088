//! What clients of Azure queues send, and what backends keep for them.
#![no_main]

use libfuzzer_sys::fuzz_target;

#[path = "../checks/azure_queue.rs"]
mod checks;

fuzz_target!(|input: &[u8]| checks::check(input));

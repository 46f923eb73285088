//! Request targets: no bytes make the normal form panic.
#![no_main]

use ifmatch::core::target::{PathParameters, normalize};
use libfuzzer_sys::fuzz_target;

fuzz_target!(|input: &[u8]| {
    let _normal_form = normalize(input, PathParameters::Keep);
});

//! Request heads and chunks: whatever pieces they come in, each ends at the same byte, and a head where the parser says.
//!
//! The first byte of the input is the length of a piece.
#![no_main]

use httparse::{EMPTY_HEADER, Request, Status};
use ifmatch::core::wire::{
    chunks::ChunkScan,
    head::{HeadScan, HeadState},
    request_line::fault_of_target,
};
use libfuzzer_sys::fuzz_target;

/// More than any input has.
const FIELDS_MAX: usize = 1_024;

fuzz_target!(|input: &[u8]| {
    let Some((&length, bytes)) = input.split_first() else { return };
    let length = usize::from(length).max(1);
    head(length, bytes);
    chunks(length, bytes);
    let _fault = fault_of_target(bytes);
});

fn head(length: usize, bytes: &[u8]) {
    let mut at_once = HeadScan::default();
    let state = at_once.look(bytes);
    let (mut by_pieces, mut seen) = (HeadScan::default(), HeadState::Unfinished);
    for end in (length..bytes.len()).step_by(length).chain([bytes.len()]) {
        if seen == HeadState::Unfinished {
            seen = by_pieces.look(&bytes[..end]);
        }
    }
    assert_eq!(seen, state);
    if state == HeadState::Complete {
        assert_eq!(by_pieces.end(), at_once.end());
    }
    let mut fields = [EMPTY_HEADER; FIELDS_MAX];
    match Request::new(&mut fields).parse(bytes) {
        Ok(Status::Complete(end)) => assert_eq!((state, at_once.end()), (HeadState::Complete, end)),
        Ok(Status::Partial) => assert_ne!(state, HeadState::Complete, "whoever waits for the parser waits for ever"),
        Err(_malformed) => {}
    }
}

fn chunks(length: usize, bytes: &[u8]) {
    let in_order = ChunkScan::default().look(bytes);
    let mut scan = ChunkScan::default();
    let mut seen = 0;
    for piece in bytes.chunks(length) {
        let taken = scan.look(piece);
        seen += taken;
        if taken < piece.len() {
            break;
        }
    }
    assert_eq!(seen, in_order);
}

//! Tests of frames that arrive in pieces of any size, and of the limits on their number.

use super::*;

const PING: u8 = 0x6;
const WINDOW_UPDATE: u8 = 0x8;

fn frame(kind: u8, flags: u8, payload: usize) -> Vec<u8> {
    let length = u32::try_from(payload).unwrap().to_be_bytes();
    let mut bytes = vec![length[1], length[2], length[3], kind, flags, 0, 0, 0, 1];
    bytes.resize(bytes.len() + payload, b'x');
    bytes
}

fn beginning(kind: u8, flags: u8, length: u32) -> Frame {
    Frame { length, kind, flags }
}

#[test]
fn frames_are_found_in_pieces_of_any_size() {
    let bytes = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n".to_vec(),
        frame(HEADERS, END_HEADERS, 70_000),
        frame(DATA, 0, 0),
        frame(PING, 0, 8),
    ]
    .concat();
    let expected = [beginning(HEADERS, END_HEADERS, 70_000), beginning(DATA, 0, 0), beginning(PING, 0, 8)];
    for size in [1, 2, 8, 9, 10, 1_000, 100_000] {
        let (mut scan, mut found) = (FrameScan::default(), Vec::new());
        for mut piece in bytes.chunks(size) {
            while let Some(frame) = scan.next(&mut piece) {
                found.push(frame);
            }
            assert!(piece.is_empty());
        }
        assert_eq!(found, expected, "in pieces of {size} bytes");
        assert_eq!(scan.within(), None);
    }
}

#[test]
fn a_list_of_fields_goes_on_until_its_last_frame_is_complete() {
    let bytes = [frame(HEADERS, 0, 3), frame(CONTINUATION, 0, 0), frame(CONTINUATION, END_HEADERS, 2)].concat();
    let mut scan = FrameScan { skip: 0, ..FrameScan::default() };
    for (number, byte) in bytes.iter().enumerate() {
        let mut piece = std::slice::from_ref(byte);
        while scan.next(&mut piece).is_some() {}
        assert_eq!(scan.within(), (number + 1 < bytes.len()).then_some(1), "after byte {number}");
    }
}

#[test]
fn a_body_may_take_its_time() {
    let mut scan = FrameScan { skip: 0, ..FrameScan::default() };
    let bytes = frame(DATA, 0, 100);
    assert_eq!(scan.next(&mut &bytes[..50]), Some(beginning(DATA, 0, 100)));
    assert_eq!(scan.within(), None);
}

/// Returns how many of these frames pass at once.
fn passing(kind: u8, flags: u8, length: u32) -> usize {
    let mut budget = FrameBudget::default();
    (0..100_000).take_while(|_| budget.count(beginning(kind, flags, length)).is_ok()).count()
}

#[test]
fn frames_that_carry_nothing_have_a_limit() {
    for kind in [0x2, 0x4, PING, WINDOW_UPDATE, 0x10, 0xff] {
        assert_eq!(passing(kind, 0, 8), 1_000, "{kind:#x}");
    }
    assert_eq!(passing(DATA, 0, 0), 1_000, "data without data");
    assert_eq!(passing(RST_STREAM, 0, 4), 200);
}

#[test]
fn requests_and_bodies_have_none_here() {
    for (kind, flags, length) in [(HEADERS, END_HEADERS, 10), (DATA, 0, 1), (DATA, END_STREAM, 0)] {
        assert_eq!(passing(kind, flags, length), 100_000, "{kind}");
    }
}

#[test]
fn who_gives_up_each_request_is_cut_off_and_who_gives_up_less_than_half_is_not() {
    let give_up = |each: usize| {
        let mut budget = FrameBudget::default();
        (0..100_000).find(|request| {
            budget.count(beginning(HEADERS, END_HEADERS, 10)).unwrap();
            request % each == 0 && budget.count(beginning(RST_STREAM, 0, 4)).is_err()
        })
    };
    assert_eq!(give_up(1), Some(399));
    assert_eq!(give_up(2), None);
}

#[test]
fn an_eager_reader_is_never_cut_off() {
    let mut budget = FrameBudget::default();
    for _ in 0..100_000 {
        budget.refill(Duration::ZERO, 4_096);
        for _ in 0..4 {
            budget.count(beginning(WINDOW_UPDATE, 0, 4)).unwrap();
        }
    }
}

#[test]
fn time_makes_good() {
    let mut budget = FrameBudget::default();
    while budget.count(beginning(PING, 0, 8)).is_ok() {}
    budget.refill(Duration::from_millis(10), 0);
    assert_eq!(budget.count(beginning(PING, 0, 8)), Ok(()));
    assert_eq!(budget.count(beginning(PING, 0, 8)), Err(Excess::Control));
    while budget.count(beginning(RST_STREAM, 0, 4)).is_ok() {}
    budget.refill(Duration::from_secs(1), 0);
    assert_eq!((0..100).take_while(|_| budget.count(beginning(RST_STREAM, 0, 4)).is_ok()).count(), 7);
}

/// A client that sends its lists in sequence is never slow, no matter where the pieces end.
#[test]
fn each_list_of_fields_has_a_number_of_its_own() {
    let list = frame(HEADERS, END_HEADERS, 10);
    let bytes = list.repeat(3);
    let mut scan = FrameScan { skip: 0, ..FrameScan::default() };
    let mut seen = Vec::new();
    for piece in [&bytes[..15], &bytes[15..34], &bytes[34..50]] {
        let mut piece = piece;
        while scan.next(&mut piece).is_some() {}
        seen.push(scan.within());
    }
    assert_eq!(seen, [Some(1), Some(2), Some(3)]);
}

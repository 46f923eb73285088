//! The requests of `WebDAV` clients, and the answers of backends: nothing makes a reader panic, and a multistatus reads
//! the same, no matter where it is cut.
//!
//! The first byte of an input says which reader gets the rest. `tests/webdav_properties.rs` tries some inputs at each run of
//! the tests.

use ifmatch::core::tags::precondition::Preconditions;
use ifmatch::dialect::webdav::{
    Cutter, If, ListPiece, MalformedMultistatus, MultistatusResponse, Place, Question, ResourceFacts, Truth,
    WantedLock, all_succeeded, judge, narrowed,
};

fn cut(document: &[u8], length: usize) -> Result<Vec<u8>, MalformedMultistatus> {
    let (mut cutter, mut told) = (Cutter::default(), Vec::new());
    for part in document.chunks(length) {
        for piece in cutter.push(part)? {
            match piece {
                ListPiece::Other(octets) => told.extend(octets),
                ListPiece::Element(element) => match MultistatusResponse::read(cutter.root(), &element)? {
                    Some(response) => told.extend(response.with(Question::ALL, &ResourceFacts::default()).into_bytes()),
                    None => told.extend(element),
                },
            }
        }
    }
    cutter.finish().map(|()| told)
}

/// Lets a reader have an input, and panics if the reader does, or contradicts itself.
pub(crate) fn read(input: &[u8]) {
    let Some((which, rest)) = input.split_first() else { return };
    match which % 4 {
        0 => {
            let Ok(conditions) = If::parse(rest) else { return };
            let submitted: Vec<_> = conditions.submitted().collect();
            if let Truth::ByTags(lists) = judge(&conditions, |_| Place::Target(submitted.clone())) {
                let _conditions = narrowed(&lists, [&Preconditions::default(), &Preconditions::default()]);
            }
        }
        1 => {
            let _info = WantedLock::parse(rest);
        }
        2 => {
            let _question = Question::parse(rest);
            let _done = all_succeeded(rest);
        }
        _ => {
            let whole = cut(rest, rest.len().max(1));
            assert_eq!(whole.is_ok(), cut(rest, 1).is_ok());
            assert_eq!(whole.ok(), cut(rest, 7).ok());
        }
    }
}

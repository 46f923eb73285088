//! The search for a method in a form (`_method`), in both encodings of forms.
//!
//! # Design
//!
//! *Why is a form of several parts only searched?* Servers differ in where its parts begin. So each line that could be
//! the beginning of such a part counts, and no method is taken from it.

use memchr::memmem;
use percent_encoding::percent_decode;

use super::{method::is_parameter, named_method::NamedMethod, query_names::form_decode};

/// The number of bytes of a name and of a value that are kept. A longer one names no method.
const KEPT_BYTES: usize = 256;

/// The number of bytes of a line about a part that are kept. No browser sends a longer one.
const LINE_BYTES: usize = 4096;

/// The field in a line about a part.
const OF_PART: &[u8] = b"content-disposition";

/// A search through the bytes of a form.
#[derive(Default)]
pub(super) struct FormSearch {
    name: Vec<u8>,
    value: Option<Vec<u8>>,
    line: Vec<u8>,
    is_line_too_long: bool,
    /// True if the line is at its end, unless the next one begins with a blank (RFC 5322 section 2.2.3).
    is_line_over: bool,
    found: NamedMethod,
}

impl FormSearch {
    /// Takes the next octet.
    pub(super) fn take(&mut self, octet: u8) {
        self.take_of_parameter(octet);
        self.take_of_line(octet);
    }

    /// Returns the method that the form names, after its last octet.
    pub(super) fn found(mut self) -> NamedMethod {
        self.end_parameter();
        self.end_line();
        self.found
    }

    fn take_of_parameter(&mut self, octet: u8) {
        match octet {
            b'&' | b';' => self.end_parameter(),
            b'=' if self.value.is_none() => self.value = Some(Vec::new()),
            _ => {
                let kept = self.value.as_mut().unwrap_or(&mut self.name);
                if kept.len() >= KEPT_BYTES {
                    drop_blanks(kept);
                }
                if kept.len() < KEPT_BYTES {
                    kept.push(octet);
                }
            }
        }
    }

    fn take_of_line(&mut self, octet: u8) {
        match octet {
            b'\r' | b'\n' => self.is_line_over = true,
            _ => {
                if std::mem::take(&mut self.is_line_over) && !octet.is_ascii_whitespace() {
                    self.end_line();
                }
                if self.line.len() < LINE_BYTES {
                    self.line.push(octet);
                } else {
                    self.is_line_too_long = true;
                }
            }
        }
    }

    fn end_parameter(&mut self) {
        let (name, value) = (std::mem::take(&mut self.name), self.value.take());
        if is_parameter(name.trim_ascii()) {
            self.found.add(&form_decode(value.unwrap_or_default().trim_ascii()));
        }
    }

    fn end_line(&mut self) {
        let is_too_long = std::mem::take(&mut self.is_line_too_long);
        let line = std::mem::take(&mut self.line).to_ascii_lowercase();
        let is_of_part = memmem::find(&line, OF_PART).is_some();
        if is_of_part && (is_too_long || line.split(|&octet| octet == b';').any(is_part)) {
            self.found = NamedMethod::Unclear;
        }
    }
}

/// Removes the beginning of a text that some reader skips.
fn drop_blanks(text: &mut Vec<u8>) {
    let is_blank = |octet: u8| octet <= b' ' || b"+?[]".contains(&octet);
    let mut rest = &text[..];
    while let Some((first, after)) = rest.split_first() {
        let encoded = rest.get(..3).filter(|_| *first == b'%').and_then(|triplet| percent_decode(triplet).next());
        rest = match encoded {
            Some(octet) if is_blank(octet) => rest.get(3..).unwrap_or_default(),
            _ if is_blank(*first) => after,
            _ => break,
        };
    }
    let skipped = text.len() - rest.len();
    text.drain(..skipped);
}

/// True if a parameter of Content-Disposition names a part that may hold a method. An encoded word (RFC 2047) and a piece
/// of a name (RFC 2231) could stand for anything.
fn is_part(parameter: &[u8]) -> bool {
    let mut halves = parameter.splitn(2, |&octet| octet == b'=');
    let key = halves.next().unwrap_or_default().trim_ascii();
    let value = halves.next().unwrap_or_default();
    let value = value.rsplit(|&octet| octet == b'\'').next().unwrap_or_default();
    let bare = value.iter().filter(|octet| !matches!(octet, b'"' | b'\\')).copied().collect::<Vec<_>>();
    let name = bare.trim_ascii();
    let is_piece = matches!(key, [b'n', b'a', b'm', b'e', b'*', b'0'..=b'9', ..]);
    is_piece || key.starts_with(b"name") && (is_parameter(name) || name.starts_with(b"=?"))
}

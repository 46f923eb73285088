//! The search for a method in JSON: the member `_method` of the outermost object.
//!
//! # Design
//!
//! *Why no parser?* Readers differ in what they still take for JSON, and in how deep it may be nested. The places of its
//! strings and brackets are the same to all of them.
//!
//! *Why are zero octets skipped?* A body in UTF-16 or UTF-32 has the octets of ASCII between them.

use super::{folding::simple_fold, named_method::NamedMethod};

/// The number of bytes of a string that are kept. A longer one names nothing.
const KEPT_BYTES: usize = 256;

/// The members that name a method. The second is Salesforce's.
const MEMBERS: [&str; 2] = ["_method", "_httpmethod"];

/// A search through the octets of a body.
#[derive(Default)]
pub(super) struct JsonSearch {
    /// The number of open brackets.
    depth: usize,
    is_over: bool,
    /// The string that is being read, as it is spelled.
    text: Option<Vec<u8>>,
    is_escaped: bool,
    /// The last string of the outermost object, if nothing has come after it.
    last: Option<Vec<u8>>,
    /// True if the value that comes next is a method.
    is_awaited: bool,
    found: NamedMethod,
}

impl JsonSearch {
    /// True if the rest of the body names nothing.
    pub(super) const fn is_over(&self) -> bool {
        self.is_over
    }

    /// Returns the method that the body names.
    pub(super) fn found(self) -> NamedMethod {
        self.found
    }

    /// Takes the next octet.
    pub(super) fn take(&mut self, octet: u8) {
        if self.is_over || octet == 0 {
            return;
        }
        match &mut self.text {
            Some(text) => {
                let (is_end, was_escaped) = (octet == b'"', std::mem::take(&mut self.is_escaped));
                if is_end && !was_escaped {
                    self.end_string();
                    return;
                }
                self.is_escaped = octet == b'\\' && !was_escaped;
                if text.len() < KEPT_BYTES {
                    text.push(octet);
                }
            }
            None => self.take_outside(octet),
        }
    }

    fn take_outside(&mut self, octet: u8) {
        match octet {
            b' ' | b'\t' | b'\r' | b'\n' => {}
            // A byte order mark.
            0x80.. if self.depth == 0 => {}
            b'{' if self.depth == 0 => self.depth = 1,
            _ if self.depth == 0 => self.is_over = true,
            b'"' => self.text = Some(Vec::new()),
            b':' => {
                let name = self.last.take().unwrap_or_default();
                self.is_awaited = self.depth == 1 && is_member(&unescaped(&name));
            }
            _ => {
                if std::mem::take(&mut self.is_awaited) {
                    self.found = NamedMethod::Unclear;
                }
                self.last = None;
                match octet {
                    b'{' | b'[' => self.depth += 1,
                    b'}' | b']' => self.depth -= 1,
                    _ => {}
                }
                self.is_over = self.depth == 0;
            }
        }
    }

    fn end_string(&mut self) {
        self.last = self.text.take().filter(|_| self.depth == 1);
        if std::mem::take(&mut self.is_awaited) {
            let method = unescaped(&self.last.take().unwrap_or_default());
            self.found.add(method.as_bytes());
        }
    }
}

/// Reads a string as it is spelled. One that cannot be read is left as it is.
fn unescaped(spelled: &[u8]) -> String {
    let text = String::from_utf8_lossy(spelled);
    serde_json::from_str(&format!("\"{text}\"")).unwrap_or_else(|_error| text.into_owned())
}

/// True if some reader takes a name for that of the method. Readers written in C end it at NUL.
fn is_member(name: &str) -> bool {
    let name = simple_fold(name.split('\0').next().unwrap_or_default());
    MEMBERS.iter().any(|member| *member == name)
}

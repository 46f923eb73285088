//! JSON objects that are written by hand.
//!
//! # Design
//!
//! *Why not by serde?* It took 10,000 instructions for the text of a lease, which was 40 % of a swap of the `disk`
//! store. What few records have, and all that is read, is left to serde.

use serde::Serialize;

use crate::core::digits::{push_decimal, push_hexadecimal};

/// An object that is being written. Writing to memory never fails.
pub(super) struct ObjectWriter<'a>(&'a mut Vec<u8>);

impl ObjectWriter<'_> {
    /// Adds an object with these members to the text.
    pub(super) fn write(text: &mut Vec<u8>, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        text.push(b'{');
        members(&mut ObjectWriter(text));
        text.push(b'}');
    }

    /// Adds a number, or `null`.
    pub(super) fn number_or_null(&mut self, name: &str, number: Option<u64>) {
        self.name(name);
        match number {
            Some(number) => push_decimal(self.0, number),
            None => self.0.extend_from_slice(b"null"),
        }
    }

    /// Adds a number.
    pub(super) fn number(&mut self, name: &str, number: u64) {
        self.number_or_null(name, Some(number));
    }

    /// Adds a number that may be negative.
    pub(super) fn signed(&mut self, name: &str, number: i64) {
        self.name(name);
        push_decimal(self.0, number);
    }

    /// Adds `true` or `false`.
    pub(super) fn flag(&mut self, name: &str, flag: bool) {
        self.name(name);
        self.0.extend_from_slice(if flag { b"true" } else { b"false" });
    }

    /// Adds a text that needs no escapes.
    pub(super) fn word(&mut self, name: &str, word: &str) {
        self.quoted(name, |text| text.extend_from_slice(word.as_bytes()));
    }

    /// Adds bytes as hexadecimal digits.
    pub(super) fn hexadecimal(&mut self, name: &str, bytes: &[u8]) {
        self.quoted(name, |text| push_hexadecimal(text, bytes));
    }

    /// Adds an object with these members.
    pub(super) fn object(&mut self, name: &str, members: impl FnOnce(&mut ObjectWriter<'_>)) {
        self.name(name);
        ObjectWriter::write(self.0, members);
    }

    /// Adds a list of objects, unless it is empty.
    pub(super) fn objects<T>(
        &mut self,
        name: &str,
        items: impl IntoIterator<Item = T>,
        members: impl Fn(T, &mut ObjectWriter<'_>),
    ) {
        let mut items = items.into_iter().peekable();
        if items.peek().is_none() {
            return;
        }
        self.name(name);
        self.0.push(b'[');
        for (place, item) in items.enumerate() {
            if place > 0 {
                self.0.push(b',');
            }
            ObjectWriter::write(self.0, |object| members(item, object));
        }
        self.0.push(b']');
    }

    /// Adds any value that serde can write, if it is there.
    pub(super) fn value(&mut self, name: &str, value: Option<impl Serialize>) {
        if let Some(value) = value {
            self.name(name);
            // JSON can express all numbers, strings and lists.
            let _ = serde_json::to_writer(&mut *self.0, &value);
        }
    }

    fn quoted(&mut self, name: &str, push: impl FnOnce(&mut Vec<u8>)) {
        self.name(name);
        self.0.push(b'"');
        push(self.0);
        self.0.push(b'"');
    }

    fn name(&mut self, name: &str) {
        // No value ends with a brace that opens.
        if self.0.last() != Some(&b'{') {
            self.0.push(b',');
        }
        self.0.push(b'"');
        self.0.extend_from_slice(name.as_bytes());
        self.0.extend_from_slice(b"\":");
    }
}

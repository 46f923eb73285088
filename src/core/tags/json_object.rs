//! The places of the members of a JSON object in its text, so that one can be edited and all other bytes stay.

use std::ops::Range;

use serde::de::IgnoredAny;

/// An object, by the places of its parts.
pub struct JsonObject {
    /// The place after its opening brace.
    pub open: usize,
    /// Its members, in their order.
    pub members: Vec<JsonMember>,
}

/// A member, by the places of its parts.
pub struct JsonMember {
    /// Its name, with the quotes.
    pub name: Range<usize>,
    /// Its value.
    pub value: Range<usize>,
}

impl JsonObject {
    /// Finds the members of a text that is one JSON object in UTF-8.
    pub fn of_text(text: &[u8]) -> Option<Self> {
        serde_json::from_str::<IgnoredAny>(std::str::from_utf8(text).ok()?).ok()?;
        Self::at(text, text.iter().position(|byte| !byte.is_ascii_whitespace())?)
    }

    /// Finds the members of the object that begins at this place of a JSON text; `None` if none begins there.
    pub fn at(text: &[u8], start: usize) -> Option<Self> {
        let mut scan = Scan { text, at: start };
        let (open, mut members) = (start.checked_add(1)?, Vec::new());
        let mut next = scan.step().filter(|byte| *byte == b'{')?;
        while next != b'}' && scan.skip_blanks()? != b'}' {
            let name = scan.value()?;
            scan.skip_blanks()?;
            scan.step()?;
            scan.skip_blanks()?;
            members.push(JsonMember { name, value: scan.value()? });
            scan.skip_blanks()?;
            next = scan.step()?;
        }
        Some(Self { open, members })
    }

    /// The members of this name, as a reader finds them.
    pub fn named<'a>(&'a self, text: &'a [u8], name: &'a str) -> impl Iterator<Item = &'a JsonMember> {
        self.members.iter().filter(move |member| member.is_named(text, name))
    }
}

impl JsonMember {
    /// True if a reader finds this name, in any spelling.
    pub fn is_named(&self, text: &[u8], name: &str) -> bool {
        let spelled = text.get(self.name.clone()).unwrap_or_default();
        serde_json::from_slice::<String>(spelled).is_ok_and(|read| read == name)
    }
}

/// A walk through a valid JSON text.
struct Scan<'a> {
    text: &'a [u8],
    at: usize,
}

impl Scan<'_> {
    /// Goes over the next byte, and returns it.
    fn step(&mut self) -> Option<u8> {
        let byte = self.text.get(self.at).copied()?;
        self.at += 1;
        Some(byte)
    }

    /// Goes to the next byte that is no white space, and returns it.
    fn skip_blanks(&mut self) -> Option<u8> {
        while self.text.get(self.at)?.is_ascii_whitespace() {
            self.at += 1;
        }
        self.text.get(self.at).copied()
    }

    /// Goes over a value.
    fn value(&mut self) -> Option<Range<usize>> {
        let (start, mut depth) = (self.at, 0_usize);
        loop {
            match self.step()? {
                b'"' => self.rest_of_string()?,
                b'{' | b'[' => depth += 1,
                b'}' | b']' => depth = depth.checked_sub(1)?,
                _ => {}
            }
            let next = self.text.get(self.at)?;
            let is_scalar_at_end = matches!(next, b',' | b':' | b'}' | b']') || next.is_ascii_whitespace();
            if depth == 0 && is_scalar_at_end {
                return Some(start..self.at);
            }
        }
    }

    fn rest_of_string(&mut self) -> Option<()> {
        loop {
            match self.step()? {
                b'"' => return Some(()),
                b'\\' => _ = self.step()?,
                _ => {}
            }
        }
    }
}

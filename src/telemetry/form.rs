//! The format of an access log line: text in the form of all other records, or a JSON object.

use std::{
    io::Write as _,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use super::timestamp::Timestamp;
use crate::core::digits::{push_decimal, push_hexadecimal, push_octet, push_padded};

/// The name of a field, with the characters around it in each form.
#[derive(Clone, Copy, Debug)]
pub(super) struct LineField {
    pub(super) text: &'static str,
    pub(super) json: &'static str,
}

/// Makes the name of a field from a literal.
macro_rules! field_name {
    ($name:literal) => {
        $crate::telemetry::form::LineField { text: concat!(" ", $name, "="), json: concat!(",\"", $name, "\":") }
    };
}
pub(super) use field_name;

/// Returns whether all bytes need no escape in either form. Sixteen are looked at with each instruction, which is faster
/// than a search for the first other one.
fn are_plain(bytes: &[u8]) -> bool {
    let (whole, rest) = bytes.as_chunks::<16>();
    let mut last = [b' '; 16];
    for (place, octet) in last.iter_mut().zip(rest) {
        *place = *octet;
    }
    !whole.iter().chain([&last]).any(has_escaped)
}

/// Returns whether some of these bytes need an escape. There is no branch, so that no byte waits for another.
fn has_escaped(bytes: &[u8; 16]) -> bool {
    let count =
        |octet: u8| u8::from(!(b' '..=b'~').contains(&octet)) | u8::from(octet == b'"') | u8::from(octet == b'\\');
    bytes.iter().fold(0, |escaped, octet| escaped | count(*octet)) > 0
}

/// A line that is being written: a JSON object, or text. Writing to memory never fails.
///
/// The form is a constant, so that each name with all around it is one text of known length.
#[derive(Debug)]
pub(super) struct LineWriter<'a, const IS_JSON: bool>(&'a mut Vec<u8>);

impl<'a, const IS_JSON: bool> LineWriter<'a, IS_JSON> {
    /// Begins a line with this time.
    pub(super) fn begin(line: &'a mut Vec<u8>, timestamp: &mut Timestamp, now: SystemTime) -> Self {
        let (before, after) = if IS_JSON {
            (r#"{"timestamp":""#, r#"","level":"INFO","target":"ifmatch::access""#)
        } else {
            ("", "  INFO ifmatch::access:")
        };
        line.extend_from_slice(before.as_bytes());
        timestamp.push(line, now);
        line.extend_from_slice(after.as_bytes());
        Self(line)
    }

    /// Ends the line.
    pub(super) fn end(self) {
        self.0.extend_from_slice(if IS_JSON { b"}\n" } else { b"\n" });
    }

    /// Adds a text of any kind.
    #[inline]
    pub(super) fn text(&mut self, name: LineField, text: &str) {
        self.name(name);
        self.push_text(text);
    }

    /// Adds a text that needs no escapes.
    #[inline]
    pub(super) fn word(&mut self, name: LineField, word: &str) {
        self.name(name);
        self.quoted(|line| line.extend_from_slice(word.as_bytes()));
    }

    /// Adds the path of a request, whose bytes are mostly ASCII. In text it has always been without quotes, because it
    /// has no spaces.
    pub(super) fn path(&mut self, name: LineField, path: &[u8]) {
        self.name(name);
        match (IS_JSON, are_plain(path)) {
            (false, true) if !path.contains(&b'\'') => self.0.extend_from_slice(path),
            (false, _) => {
                let _ = write!(self.0, "{}", path.escape_ascii());
            }
            (true, true) => self.quoted(|line| line.extend_from_slice(path)),
            (true, false) => {
                let _ = serde_json::to_writer(&mut *self.0, &path.escape_ascii().to_string());
            }
        }
    }

    /// Adds an id, as hexadecimal digits.
    #[inline]
    pub(super) fn id(&mut self, name: LineField, bytes: &[u8]) {
        self.name(name);
        self.quoted(|line| push_hexadecimal(line, bytes));
    }

    /// Adds a number.
    #[inline]
    pub(super) fn count(&mut self, name: LineField, count: u64) {
        self.name(name);
        push_decimal(self.0, count);
    }

    /// Adds a duration, in milliseconds.
    #[inline]
    pub(super) fn time(&mut self, name: LineField, time: Duration) {
        self.name(name);
        push_milliseconds(self.0, time);
    }

    /// Adds an address with its port.
    #[inline]
    pub(super) fn address(&mut self, name: LineField, address: SocketAddr) {
        self.name(name);
        if IS_JSON { self.quoted(|line| push_address(line, address)) } else { push_address(self.0, address) }
    }

    #[inline]
    fn name(&mut self, name: LineField) {
        self.0.extend_from_slice(if IS_JSON { name.json } else { name.text }.as_bytes());
    }

    fn push_text(&mut self, text: &str) {
        if are_plain(text.as_bytes()) {
            self.quoted(|line| line.extend_from_slice(text.as_bytes()));
        } else if IS_JSON {
            let _ = serde_json::to_writer(&mut *self.0, text);
        } else {
            let _ = write!(self.0, "{text:?}");
        }
    }

    #[inline]
    fn quoted(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.0.push(b'"');
        push(self.0);
        self.0.push(b'"');
    }
}

fn push_milliseconds(line: &mut Vec<u8>, time: Duration) {
    let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
    push_decimal(line, micros / 1000);
    line.push(b'.');
    push_padded::<3>(line, micros);
}

fn push_address(line: &mut Vec<u8>, address: SocketAddr) {
    let SocketAddr::V4(address) = address else {
        let _ = write!(line, "{address}");
        return;
    };
    for (octet, after) in address.ip().octets().into_iter().zip(*b"...:") {
        push_octet(line, octet);
        line.push(after);
    }
    push_decimal(line, u64::from(address.port()));
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::{field_name as name, *};

    fn line<const IS_JSON: bool>(fields: impl FnOnce(&mut LineWriter<'_, IS_JSON>)) -> String {
        let mut bytes = Vec::new();
        let mut line = LineWriter::begin(&mut bytes, &mut Timestamp::default(), SystemTime::UNIX_EPOCH);
        fields(&mut line);
        line.end();
        String::from_utf8(bytes).expect("it is text")
    }

    fn fields<const IS_JSON: bool>(line: &mut LineWriter<'_, IS_JSON>) {
        line.text(name!("key"), "docs\"\n\u{e9}");
        line.path(name!("path"), b"/a\"\xff");
        line.word(name!("word"), "passed");
        line.count(name!("count"), 7);
        line.time(name!("time"), Duration::from_nanos(1_234_567));
        line.id(name!("id"), b"\x00\xa9");
        line.address(name!("client"), SocketAddr::new(IpAddr::V4(Ipv4Addr::new(10, 0, 255, 1)), 80));
    }

    #[test]
    fn a_line_of_text_stays_one_line() {
        assert_eq!(
            line::<false>(fields),
            "1970-01-01T00:00:00.000000Z  INFO ifmatch::access: key=\"docs\\\"\\n\u{e9}\" path=/a\\\"\\xff \
             word=\"passed\" count=7 time=1.234 id=\"00a9\" client=10.0.255.1:80\n"
        );
    }

    #[test]
    fn a_line_of_json_is_one_object() {
        let line = line::<true>(fields);
        let object: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        let text = |name| object.get(name).and_then(serde_json::Value::as_str);
        assert_eq!(text("key"), Some("docs\"\n\u{e9}"));
        assert_eq!(text("path"), Some("/a\\\"\\xff"));
        assert_eq!(object.get("count").and_then(serde_json::Value::as_u64), Some(7));
        assert_eq!(object.get("time").map(ToString::to_string).as_deref(), Some("1.234"));
        assert_eq!(text("id"), Some("00a9"));
        assert_eq!(text("client"), Some("10.0.255.1:80"));
        assert_eq!(line.matches('\n').count(), 1);
    }

    #[test]
    fn a_path_in_text_is_escaped_as_the_formatter_does_it() {
        for path in [&b"/docs/42"[..], b"/it's", b"/a\tb", b"/\x7f", b"/a b", b""] {
            let written = line::<false>(|line| line.path(name!("path"), path));
            assert!(written.ends_with(&format!(" path={}\n", path.escape_ascii())), "{written}");
        }
    }

    #[test]
    fn an_address_is_as_the_formatter_writes_it() {
        for ip in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
        {
            let address = SocketAddr::new(ip, 65_535);
            let written = line::<false>(|line| line.address(name!("client"), address));
            assert!(written.ends_with(&format!(" client={address}\n")), "{written}");
        }
    }
}

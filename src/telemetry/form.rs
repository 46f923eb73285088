//! The format of an access log line: text in the form of all other records, or a JSON object.

use std::{
    io::Write as _,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use super::timestamp::Timestamp;
use crate::{
    config::LogForm as Form,
    core::digits::{push_decimal, push_hexadecimal, push_padded},
};

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

/// Returns whether a byte needs no escape in either form.
const fn is_plain(octet: u8) -> bool {
    octet.is_ascii_graphic() && octet != b'"' && octet != b'\\' || octet == b' '
}

/// Returns whether all bytes are plain. One look at all of them is faster than a search for the first other one.
fn are_plain(bytes: &[u8]) -> bool {
    bytes.iter().fold(true, |all, &octet| all & is_plain(octet))
}

/// A line that is being written. Writing to memory never fails.
#[derive(Debug)]
pub(super) struct LineWriter<'a> {
    line: &'a mut Vec<u8>,
    form: Form,
}

impl<'a> LineWriter<'a> {
    /// Begins a line with this time.
    pub(super) fn begin(line: &'a mut Vec<u8>, form: Form, timestamp: &mut Timestamp, now: SystemTime) -> Self {
        let (before, after) = match form {
            Form::Text => ("", "  INFO ifmatch::access:"),
            Form::Json => (r#"{"timestamp":""#, r#"","level":"INFO","target":"ifmatch::access""#),
        };
        line.extend_from_slice(before.as_bytes());
        timestamp.push(line, now);
        line.extend_from_slice(after.as_bytes());
        Self { line, form }
    }

    /// Ends the line.
    pub(super) fn end(self) {
        self.line.extend_from_slice(if self.form == Form::Json { b"}\n" } else { b"\n" });
    }

    /// Adds a text of any kind.
    pub(super) fn text(&mut self, name: LineField, text: &str) {
        self.name(name);
        if are_plain(text.as_bytes()) {
            self.quoted(|line| line.extend_from_slice(text.as_bytes()));
        } else if self.form == Form::Json {
            let _ = serde_json::to_writer(&mut *self.line, text);
        } else {
            let _ = write!(self.line, "{text:?}");
        }
    }

    /// Adds a text that needs no escapes.
    pub(super) fn word(&mut self, name: LineField, word: &str) {
        self.name(name);
        self.quoted(|line| line.extend_from_slice(word.as_bytes()));
    }

    /// Adds the path of a request, whose bytes are mostly ASCII. In text it has always been without quotes, because it
    /// has no spaces.
    pub(super) fn path(&mut self, name: LineField, path: &[u8]) {
        self.name(name);
        match (self.form, are_plain(path)) {
            (Form::Text, true) if !path.contains(&b'\'') => self.line.extend_from_slice(path),
            (Form::Text, _) => {
                let _ = write!(self.line, "{}", path.escape_ascii());
            }
            (Form::Json, true) => self.quoted(|line| line.extend_from_slice(path)),
            (Form::Json, false) => {
                let _ = serde_json::to_writer(&mut *self.line, &path.escape_ascii().to_string());
            }
        }
    }

    /// Adds an id, as hexadecimal digits.
    pub(super) fn id(&mut self, name: LineField, bytes: &[u8]) {
        self.name(name);
        self.quoted(|line| push_hexadecimal(line, bytes));
    }

    /// Adds a number.
    pub(super) fn count(&mut self, name: LineField, count: u64) {
        self.name(name);
        push_decimal(self.line, count);
    }

    /// Adds a duration, in milliseconds.
    pub(super) fn time(&mut self, name: LineField, time: Duration) {
        let micros = u64::try_from(time.as_micros()).unwrap_or(u64::MAX);
        self.name(name);
        push_decimal(self.line, micros / 1000);
        self.line.push(b'.');
        push_padded(self.line, micros, 3);
    }

    /// Adds an address with its port.
    pub(super) fn address(&mut self, name: LineField, address: SocketAddr) {
        self.name(name);
        match self.form {
            Form::Text => push_address(self.line, address),
            Form::Json => self.quoted(|line| push_address(line, address)),
        }
    }

    fn name(&mut self, name: LineField) {
        let name = if self.form == Form::Json { name.json } else { name.text };
        self.line.extend_from_slice(name.as_bytes());
    }

    fn quoted(&mut self, push: impl FnOnce(&mut Vec<u8>)) {
        self.line.push(b'"');
        push(self.line);
        self.line.push(b'"');
    }
}

fn push_address(line: &mut Vec<u8>, address: SocketAddr) {
    let SocketAddr::V4(address) = address else {
        let _ = write!(line, "{address}");
        return;
    };
    for (octet, after) in address.ip().octets().into_iter().zip(*b"...:") {
        push_decimal(line, u64::from(octet));
        line.push(after);
    }
    push_decimal(line, u64::from(address.port()));
}

#[cfg(test)]
mod tests {
    use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

    use super::{field_name as name, *};

    fn line(form: Form, fields: impl FnOnce(&mut LineWriter<'_>)) -> String {
        let mut bytes = Vec::new();
        let mut line = LineWriter::begin(&mut bytes, form, &mut Timestamp::default(), SystemTime::UNIX_EPOCH);
        fields(&mut line);
        line.end();
        String::from_utf8(bytes).expect("it is text")
    }

    fn fields(line: &mut LineWriter<'_>) {
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
            line(Form::Text, fields),
            "1970-01-01T00:00:00.000000Z  INFO ifmatch::access: key=\"docs\\\"\\n\u{e9}\" path=/a\\\"\\xff \
             word=\"passed\" count=7 time=1.234 id=\"00a9\" client=10.0.255.1:80\n"
        );
    }

    #[test]
    fn a_line_of_json_is_one_object() {
        let line = line(Form::Json, fields);
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
            let written = line(Form::Text, |line| line.path(name!("path"), path));
            assert!(written.ends_with(&format!(" path={}\n", path.escape_ascii())), "{written}");
        }
    }

    #[test]
    fn an_address_is_as_the_formatter_writes_it() {
        for ip in [IpAddr::V4(Ipv4Addr::UNSPECIFIED), IpAddr::V4(Ipv4Addr::BROADCAST), IpAddr::V6(Ipv6Addr::LOCALHOST)]
        {
            let address = SocketAddr::new(ip, 65_535);
            let written = line(Form::Text, |line| line.address(name!("client"), address));
            assert!(written.ends_with(&format!(" client={address}\n")), "{written}");
        }
    }
}

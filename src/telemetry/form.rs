//! The format of an access log line: text in the form of all other records, or a JSON object.

use std::{
    io::Write as _,
    net::SocketAddr,
    time::{Duration, SystemTime},
};

use crate::config::LogForm as Form;

/// A value of a field.
#[derive(Clone, Copy, Debug)]
pub(super) enum FieldValue<'a> {
    /// A text of any kind.
    Text(&'a str),
    /// A text that needs no escapes.
    Word(&'a str),
    /// The bytes of a request, most of them ASCII.
    Bytes(&'a [u8]),
    /// A number.
    Count(u64),
    /// A duration, in milliseconds.
    Time(Duration),
    /// An address with its port.
    Address(SocketAddr),
}

/// Returns whether a byte needs no escape in either form.
const fn is_plain(octet: u8) -> bool {
    octet.is_ascii_graphic() && octet != b'"' && octet != b'\\' || octet == b' '
}

/// Begins a line with this time. Writing to memory never fails.
pub(super) fn begin(line: &mut Vec<u8>, form: Form, now: SystemTime) {
    let now = humantime::format_rfc3339_micros(now);
    let _ = match form {
        Form::Text => write!(line, "{now}  INFO ifmatch::access:"),
        Form::Json => {
            write!(line, r#"{{"timestamp":"{now}","level":"INFO","target":"ifmatch::access""#)
        }
    };
}

/// Adds a field.
pub(super) fn field(line: &mut Vec<u8>, form: Form, name: &str, value: FieldValue<'_>) {
    let (before, after) = match form {
        Form::Text => (" ", "="),
        Form::Json => (",\"", "\":"),
    };
    for part in [before, name, after] {
        line.extend_from_slice(part.as_bytes());
    }
    match value {
        FieldValue::Word(word) => quoted(line, word.as_bytes()),
        FieldValue::Text(text) if text.bytes().all(is_plain) => quoted(line, text.as_bytes()),
        FieldValue::Text(text) if form == Form::Json => {
            let _ = serde_json::to_writer(line, text);
        }
        FieldValue::Text(text) => {
            let _ = write!(line, "{text:?}");
        }
        // In text a path has always been without quotes, because it has no spaces.
        FieldValue::Bytes(bytes) if form == Form::Text => {
            let _ = write!(line, "{}", bytes.escape_ascii());
        }
        FieldValue::Bytes(bytes) if bytes.iter().copied().all(is_plain) => quoted(line, bytes),
        FieldValue::Bytes(bytes) => {
            let _ = serde_json::to_writer(line, &bytes.escape_ascii().to_string());
        }
        FieldValue::Count(count) => {
            let _ = write!(line, "{count}");
        }
        FieldValue::Time(time) => {
            let micros = time.as_micros();
            let _ = write!(line, "{}.{:03}", micros / 1000, micros % 1000);
        }
        FieldValue::Address(address) => {
            let _ = if form == Form::Json { write!(line, "\"{address}\"") } else { write!(line, "{address}") };
        }
    }
}

/// Ends a line.
pub(super) fn end(line: &mut Vec<u8>, form: Form) {
    line.extend_from_slice(if form == Form::Json { b"}\n" } else { b"\n" });
}

fn quoted(line: &mut Vec<u8>, text: &[u8]) {
    line.push(b'"');
    line.extend_from_slice(text);
    line.push(b'"');
}

#[cfg(test)]
mod tests {
    use super::*;

    fn line(form: Form, fields: &[(&str, FieldValue<'_>)]) -> String {
        let mut line = Vec::new();
        begin(&mut line, form, SystemTime::UNIX_EPOCH);
        for (name, value) in fields {
            field(&mut line, form, name, *value);
        }
        end(&mut line, form);
        String::from_utf8(line).expect("it is text")
    }

    const FIELDS: [(&str, FieldValue<'static>); 5] = [
        ("key", FieldValue::Text("docs\"\n\u{e9}")),
        ("path", FieldValue::Bytes(b"/a\"\xff")),
        ("word", FieldValue::Word("passed")),
        ("count", FieldValue::Count(7)),
        ("time", FieldValue::Time(Duration::from_nanos(1_234_567))),
    ];

    #[test]
    fn a_line_of_text_stays_one_line() {
        assert_eq!(
            line(Form::Text, &FIELDS),
            "1970-01-01T00:00:00.000000Z  INFO ifmatch::access: key=\"docs\\\"\\n\u{e9}\" path=/a\\\"\\xff \
             word=\"passed\" count=7 time=1.234\n"
        );
    }

    #[test]
    fn a_line_of_json_is_one_object() {
        let line = line(Form::Json, &FIELDS);
        let object: serde_json::Value = serde_json::from_str(&line).expect("it is JSON");
        assert_eq!(object.get("key").and_then(serde_json::Value::as_str), Some("docs\"\n\u{e9}"));
        assert_eq!(object.get("path").and_then(serde_json::Value::as_str), Some("/a\\\"\\xff"));
        assert_eq!(object.get("count").and_then(serde_json::Value::as_u64), Some(7));
        assert_eq!(object.get("time").map(ToString::to_string).as_deref(), Some("1.234"));
        assert_eq!(line.matches('\n').count(), 1);
    }
}

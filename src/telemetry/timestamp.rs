//! The time of a log line, to the microsecond (RFC 3339).

use std::{
    fmt::Write as _,
    time::{Duration, SystemTime},
};

use crate::core::digits::push_padded;

/// The text of the last second. Hundreds of lines share it, and the calendar costs as much as the rest of a line.
#[derive(Debug, Default)]
pub(super) struct Timestamp {
    second: Option<u64>,
    text: String,
}

impl Timestamp {
    /// Adds a time to a line. A time before 1970 counts as its beginning.
    pub(super) fn push(&mut self, line: &mut Vec<u8>, now: SystemTime) {
        let since = now.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        if self.second != Some(since.as_secs()) {
            self.second = Some(since.as_secs());
            self.text.clear();
            let second = SystemTime::UNIX_EPOCH + Duration::from_secs(since.as_secs());
            // Writing to memory never fails.
            let _ = write!(self.text, "{}", humantime::format_rfc3339_seconds(second));
            self.text.truncate(self.text.trim_end_matches('Z').len());
        }
        line.extend_from_slice(self.text.as_bytes());
        line.push(b'.');
        push_padded::<6>(line, u64::from(since.subsec_micros()));
        line.push(b'Z');
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_time_is_as_the_formatter_writes_it() {
        let mut timestamp = Timestamp::default();
        for micros in [0, 1, 999_999, 1_000_000, 1_000_001, 1_700_000_000_123_456, 1_700_000_000_123_457, 7] {
            let now = SystemTime::UNIX_EPOCH + Duration::from_micros(micros);
            let mut line = Vec::new();
            timestamp.push(&mut line, now);
            let written = String::from_utf8(line).expect("it is text");
            assert_eq!(written, humantime::format_rfc3339_micros(now).to_string());
        }
    }
}

//! Dates of HTTP, in whole seconds (RFC 9110 section 5.6.7).

use std::{
    fmt,
    time::{Duration, UNIX_EPOCH},
};

/// The last second of the year 9999: the format has four digits for a year.
const LAST_UNIX_SECONDS: u64 = 253_402_300_799;

/// A second between 1970 and 9999.
///
/// Its `Display` is the one form that may be sent, an IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpDate(u64);

impl HttpDate {
    /// Reads a field value in any of the three forms that recipients must know.
    ///
    /// `None` if it is in none of them, names a day that does not exist or a wrong weekday, or lies before 1970.
    /// The two-digit years of the second form are 1970 to 2069.
    pub fn parse(field_value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(field_value).ok()?;
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(UNIX_EPOCH).ok().map(|since| Self(since.as_secs()))
    }

    /// The date of a Unix time. All that come after the year 9999 are its last second.
    pub const fn from_unix_seconds(seconds: u64) -> Self {
        Self(if seconds < LAST_UNIX_SECONDS { seconds } else { LAST_UNIX_SECONDS })
    }

    /// Seconds since 1970-01-01T00:00:00Z.
    pub const fn unix_seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(self.0)))
    }
}

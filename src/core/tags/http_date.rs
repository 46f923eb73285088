//! HTTP dates, in whole seconds (RFC 9110 section 5.6.7).

use std::{
    fmt,
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName};

/// The last second of the year 9999: the format has four digits for a year.
const LAST_UNIX_SECONDS: u64 = 253_402_300_799;

/// A second between 1970 and 9999.
///
/// `Display` writes the only form that may be sent, an IMF-fixdate: `Sun, 06 Nov 1994 08:49:37 GMT`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct HttpDate(u64);

impl HttpDate {
    /// Reads a field value in any of the three forms that recipients must accept.
    ///
    /// Returns `None` if the value has none of these forms, names a wrong weekday or a day that does not exist, or lies
    /// before 1970. The two-digit years of the second form are 1970 to 2069.
    pub fn parse(field_value: &[u8]) -> Option<Self> {
        let text = std::str::from_utf8(field_value).ok()?;
        let date = httpdate::parse_http_date(text).ok()?;
        date.duration_since(UNIX_EPOCH).ok().map(|since| Self(since.as_secs()))
    }

    /// Returns the date of a Unix time. Any time after the year 9999 becomes the last second of that year.
    pub const fn from_unix_seconds(seconds: u64) -> Self {
        Self(if seconds < LAST_UNIX_SECONDS { seconds } else { LAST_UNIX_SECONDS })
    }

    /// Returns the seconds since 1970-01-01T00:00:00Z.
    pub const fn unix_seconds(self) -> u64 {
        self.0
    }
}

impl fmt::Display for HttpDate {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(&httpdate::fmt_http_date(UNIX_EPOCH + Duration::from_secs(self.0)))
    }
}

/// The date of a field that occurs exactly once; `None` if it cannot be read.
pub(in crate::core) fn single_date(headers: &HeaderMap, name: &HeaderName) -> Option<HttpDate> {
    let mut lines = headers.get_all(name).iter();
    let (only, None) = (lines.next()?, lines.next()) else { return None };
    HttpDate::parse(only.as_bytes())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// RFC 9110 section 5.6.7.
    #[test]
    fn all_three_forms_name_one_second() {
        for value in ["Sun, 06 Nov 1994 08:49:37 GMT", "Sunday, 06-Nov-94 08:49:37 GMT", "Sun Nov  6 08:49:37 1994"] {
            assert_eq!(HttpDate::parse(value.as_bytes()).map(HttpDate::unix_seconds), Some(784_111_777), "{value}");
        }
    }

    /// RFC 9110 section 5.6.7: dates are case-sensitive, in GMT, and on days that exist.
    #[test]
    fn what_is_no_date_is_none() {
        for value in [
            &b""[..],
            b"0",
            b"784111777",
            b"1994-11-06T08:49:37Z",
            b"sun, 06 nov 1994 08:49:37 gmt",
            b"Sun, 06 Nov 1994 08:49:37 UTC",
            b"Sun, 06 Nov 1994 08:49:37 +0000",
            b"Mon, 06 Nov 1994 08:49:37 GMT",
            b"Sun, 31 Feb 2021 00:00:00 GMT",
            b"Wed, 31 Dec 1969 23:59:59 GMT",
            b"Sun, 06 Nov 1994 24:00:00 GMT",
            b"Sun, 06 Nov 1994 08:49:37 GMT, Sun, 06 Nov 1994 08:49:37 GMT",
            b"Sun, 06 Nov 1994 08:49:37 GM\xff",
        ] {
            assert_eq!(HttpDate::parse(value), None, "{}", value.escape_ascii());
        }
    }

    /// RFC 9110 section 5.6.7: senders generate only the IMF-fixdate form.
    #[test]
    fn it_is_printed_as_imf_fixdate() {
        assert_eq!(HttpDate::from_unix_seconds(784_111_777).to_string(), "Sun, 06 Nov 1994 08:49:37 GMT");
    }

    #[test]
    fn a_time_after_the_year_9999_is_its_last_second() {
        assert_eq!(HttpDate::from_unix_seconds(u64::MAX).to_string(), "Fri, 31 Dec 9999 23:59:59 GMT");
    }
}

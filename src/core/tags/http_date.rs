//! HTTP dates, in whole seconds (RFC 9110 section 5.6.7).

use std::{
    fmt,
    time::{Duration, UNIX_EPOCH},
};

use http::{HeaderMap, HeaderName};

use crate::core::digits::decimal_number;

/// The last second of the year 9999: the format has four digits for a year.
const LAST_UNIX_SECONDS: u64 = 253_402_300_799;

const WEEKDAYS: [[u8; 3]; 7] = [*b"Mon", *b"Tue", *b"Wed", *b"Thu", *b"Fri", *b"Sat", *b"Sun"];
/// The months, with their days in a common year.
const MONTHS: [([u8; 3], u64); 12] = [
    (*b"Jan", 31),
    (*b"Feb", 28),
    (*b"Mar", 31),
    (*b"Apr", 30),
    (*b"May", 31),
    (*b"Jun", 30),
    (*b"Jul", 31),
    (*b"Aug", 31),
    (*b"Sep", 30),
    (*b"Oct", 31),
    (*b"Nov", 30),
    (*b"Dec", 31),
];
/// The days from the first of March of the year 0 to 1970.
const DAYS_BEFORE_1970: u64 = 719_468;

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
        fixdate(field_value).map(Self).or_else(|| Self::parse_any(field_value))
    }

    fn parse_any(field_value: &[u8]) -> Option<Self> {
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

/// Returns the Unix time of a well-formed IMF-fixdate. Each answer has two of these dates. The library, which reads all three
/// forms, takes 838 instructions for one in place of 432: together nearly 1 % of a guarded GET.
fn fixdate(value: &[u8]) -> Option<u64> {
    let &[
        w0,
        w1,
        w2,
        b',',
        b' ',
        d0,
        d1,
        b' ',
        m0,
        m1,
        m2,
        b' ',
        y0,
        y1,
        y2,
        y3,
        b' ',
        h0,
        h1,
        b':',
        n0,
        n1,
        b':',
        s0,
        s1,
        b' ',
        b'G',
        b'M',
        b'T',
    ] = value
    else {
        return None;
    };
    let (day, year) = (decimal_number(&[d0, d1])?, decimal_number(&[y0, y1, y2, y3]).filter(|year| *year >= 1970)?);
    let month = (0..).zip(MONTHS).find(|(_, (name, _))| *name == [m0, m1, m2]);
    let (month, (_, days)) = month?;
    let is_leap = year % 4 == 0 && (year % 100 != 0 || year % 400 == 0);
    let last = if month == 1 && is_leap { 29 } else { days };
    let (hour, minute, second) = (decimal_number(&[h0, h1])?, decimal_number(&[n0, n1])?, decimal_number(&[s0, s1])?);
    if !(1..=last).contains(&day) || hour >= 24 || minute >= 60 || second >= 60 {
        return None;
    }
    let days = days_since_1970(year, month, day);
    // The first of January 1970 was a Thursday.
    let weekday = WEEKDAYS.get(usize::try_from((days + 3) % 7).ok()?)?;
    (*weekday == [w0, w1, w2]).then_some(((days * 24 + hour) * 60 + minute) * 60 + second)
}

/// Returns the number of days before this one. The first month is 0.
fn days_since_1970(year: u64, month: u64, day: u64) -> u64 {
    // A year that begins in March ends with the day that only some years have.
    let (year, month) = if month < 2 { (year - 1, month + 10) } else { (year, month - 2) };
    let days_of_years = year * 365 + year / 4 - year / 100 + year / 400;
    days_of_years + (153 * month + 2) / 5 + day - 1 - DAYS_BEFORE_1970
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

    /// Steps of a day and a few hours meet each month, leap day and weekday.
    #[test]
    fn the_usual_form_is_read_as_the_library_reads_it() {
        for seconds in (0..LAST_UNIX_SECONDS).step_by(1_000_003).chain([LAST_UNIX_SECONDS]) {
            let text = HttpDate(seconds).to_string();
            assert_eq!(fixdate(text.as_bytes()), Some(seconds), "{text}");
        }
        let dates = ["Sun, 06 Nov 1994 08:49:37 GMT", "Thu, 29 Feb 2024 23:59:59 GMT", "Wed, 28 Feb 2100 00:00:00 GMT"];
        for date in dates {
            for place in 0..date.len() {
                for octet in (0..=u8::MAX).filter(u8::is_ascii) {
                    let mut value = date.as_bytes().to_vec();
                    value[place] = octet;
                    let expected = HttpDate::parse_any(&value);
                    assert_eq!(HttpDate::parse(&value), expected, "{}", value.escape_ascii());
                }
            }
        }
        for (date, expected) in [("Thu, 29 Feb 1900 00:00:00 GMT", None), ("Mon, 29 Feb 2100 00:00:00 GMT", None)] {
            assert_eq!(HttpDate::parse(date.as_bytes()), expected, "{date}");
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

//! The parameters of a query.

use std::time::Duration;

use percent_encoding::percent_decode;

use super::refusals::{missing_parameter, out_of_range};
use crate::{core::refusal::Refusal, dialect::azure};

/// The parameters that operations take. `timeout` is for a server, which has its own limits here.
const KNOWN: [&str; 12] = [
    "comp",
    "restype",
    "timeout",
    "numofmessages",
    "visibilitytimeout",
    "messagettl",
    "peekonly",
    "popreceipt",
    "prefix",
    "marker",
    "maxresults",
    "include",
];

/// The parameters of one request, with decoded values.
#[derive(Debug, Default, PartialEq, Eq)]
pub(super) struct Parameters(Vec<(&'static str, String)>);

impl Parameters {
    /// Reads a query. A shared access signature in it is left out: it is for another URL than those of the backend.
    ///
    /// # Errors
    ///
    /// A parameter is unknown, or occurs twice, or its value is no text.
    pub(super) fn read(query: &[u8]) -> Result<Self, Refusal> {
        let mut read = Self::default();
        for pair in query.split(|&octet| octet == b'&').filter(|pair| !pair.is_empty()) {
            let mut halves = pair.splitn(2, |&octet| octet == b'=');
            let name = halves.next().unwrap_or_default().to_ascii_lowercase();
            if azure::is_of_signature(&name) {
                continue;
            }
            let name = KNOWN.into_iter().find(|known| known.as_bytes() == name).ok_or_else(azure::unknown_query)?;
            let value = percent_decode(halves.next().unwrap_or_default()).decode_utf8();
            let value = value.map_err(|_error| azure::bad_query(name))?.into_owned();
            if read.value(name).is_some() {
                return Err(azure::bad_query(name));
            }
            read.0.push((name, value));
        }
        Ok(read)
    }

    /// The value of a parameter.
    pub(super) fn value(&self, name: &str) -> Option<&str> {
        self.0.iter().find(|(known, _)| *known == name).map(|(_, value)| value.as_str())
    }

    /// The value of a parameter that the operation needs.
    pub(super) fn required(&self, name: &str) -> Result<&str, Refusal> {
        self.value(name).ok_or_else(|| missing_parameter(name))
    }

    /// A number, if the parameter is there.
    pub(super) fn number(&self, name: &'static str, (least, most): (i64, i64)) -> Result<Option<i64>, Refusal> {
        let Some(text) = self.value(name) else { return Ok(None) };
        let is_number = text.strip_prefix('-').unwrap_or(text).bytes().all(|octet| octet.is_ascii_digit());
        if text.is_empty() || !is_number {
            return Err(azure::bad_query(name));
        }
        // A number without an end is outside of each range.
        let number = text.parse().ok().filter(|number| (least..=most).contains(number));
        number.map(Some).ok_or_else(|| out_of_range(name, least, most))
    }

    /// A time in seconds, if the parameter is there.
    pub(super) fn seconds(&self, name: &'static str, range: (i64, i64)) -> Result<Option<Duration>, Refusal> {
        let number = self.number(name, range)?;
        Ok(number.map(|number| Duration::from_secs(number.unsigned_abs())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[expect(clippy::needless_pass_by_value, reason = "map_err passes it so")]
    fn name_of(refusal: Refusal) -> &'static str {
        refusal.service.expect("a name").code
    }

    #[test]
    fn each_parameter_has_one_value() {
        let read = Parameters::read(b"PopReceipt=a%2Bb+c&sv=1&sig=2&&comp=metadata").expect("parameters");
        assert_eq!((read.value("popreceipt"), read.value("comp")), (Some("a+b+c"), Some("metadata")));
        assert_eq!(read.required("prefix").map_err(name_of), Err("MissingRequiredQueryParameter"));
        for (query, name) in [
            ("comp=a&comp=b", "InvalidQueryParameterValue"),
            ("comp=%ff", "InvalidQueryParameterValue"),
            ("other=1", "UnsupportedQueryParameter"),
        ] {
            assert_eq!(Parameters::read(query.as_bytes()).map_err(name_of), Err(name), "{query}");
        }
    }

    #[test]
    fn a_number_is_in_its_range() {
        let number = |text: &str| {
            let read = Parameters::read(format!("numofmessages={text}").as_bytes()).expect("parameters");
            read.number("numofmessages", (-1, 32)).map_err(name_of)
        };
        assert_eq!((number("1"), number("-1"), number("32")), (Ok(Some(1)), Ok(Some(-1)), Ok(Some(32))));
        for text in ["33", "-2", "99999999999999999999999999"] {
            assert_eq!(number(text), Err("OutOfRangeQueryParameterValue"), "{text}");
        }
        for text in ["", "-", "a", "1.5", "+1", "%201"] {
            assert_eq!(
                number(text),
                if text == "-" { Err("OutOfRangeQueryParameterValue") } else { Err("InvalidQueryParameterValue") },
                "{text}"
            );
        }
        assert_eq!(Parameters::default().number("numofmessages", (1, 32)).map_err(name_of), Ok(None));
    }
}

//! The smaller fields of the protocol: `Depth`, `Timeout` and `Lock-Token`.

use std::time::Duration;

use http::{HeaderMap, HeaderName, HeaderValue};

use super::{DEPTH, LOCK_TOKEN, TIMEOUT, if_field::StateToken};
use crate::core::{lease::LeaseDuration, policy::LeaseRules};

/// How deep a request reaches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LockDepth {
    /// The resource alone.
    Zero,
    /// The resource and its members.
    One,
    /// The resource and all below it.
    Infinity,
}

/// The reason why a field cannot be read.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
pub enum MalformedField {
    /// `Depth` is none of its values.
    #[error("Depth is 0, 1 or infinity, once")]
    Depth,
    /// `Lock-Token` is no token.
    #[error("Lock-Token is the token of one lock: <opaquelocktoken:UUID>")]
    LockToken,
}

/// Reads `Depth`; `None` if it is absent.
///
/// # Errors
///
/// The field has another value, or is there twice.
pub fn depth(headers: &HeaderMap) -> Result<Option<LockDepth>, MalformedField> {
    let Some(value) = single(headers, &DEPTH).map_err(|Repeated| MalformedField::Depth)? else { return Ok(None) };
    match value.as_bytes().trim_ascii() {
        b"0" => Ok(Some(LockDepth::Zero)),
        b"1" => Ok(Some(LockDepth::One)),
        word if word.eq_ignore_ascii_case(b"infinity") => Ok(Some(LockDepth::Infinity)),
        _ => Err(MalformedField::Depth),
    }
}

/// Reads `Lock-Token`; `None` if it is absent. Some clients leave the angle brackets out.
///
/// # Errors
///
/// The field is no URI, or is there twice.
pub fn lock_token(headers: &HeaderMap) -> Result<Option<StateToken>, MalformedField> {
    let Some(value) = single(headers, &LOCK_TOKEN).map_err(|Repeated| MalformedField::LockToken)? else {
        return Ok(None);
    };
    let text = value.to_str().map_err(|_error| MalformedField::LockToken)?.trim();
    let uri = match text.strip_prefix('<') {
        Some(rest) => rest.strip_suffix('>').ok_or(MalformedField::LockToken)?,
        None => text,
    };
    let is_uri = uri.contains(':') && !uri.contains(['<', '>', ' ', ',']);
    is_uri.then(|| Some(StateToken::of_uri(uri))).ok_or(MalformedField::LockToken)
}

/// Returns the duration for a lock: the first time in `Timeout` that can be read, within the limits of the route, else
/// its default. An endless lock is one of the longest duration, unless the route grants endless ones.
pub fn timeout(headers: &HeaderMap, rules: &LeaseRules) -> LeaseDuration {
    let lines = headers.get_all(TIMEOUT).iter().filter_map(|line| line.to_str().ok());
    let wanted = lines.flat_map(|line| line.split(',')).find_map(|time| {
        let time = time.trim();
        if time.eq_ignore_ascii_case("infinite") {
            return Some(if rules.infinite { LeaseDuration::Infinite } else { LeaseDuration::Fixed(rules.max) });
        }
        let (word, number) = time.split_at_checked(7)?;
        let is_number = !number.is_empty() && number.bytes().all(|octet| octet.is_ascii_digit());
        if !word.eq_ignore_ascii_case("second-") || !is_number {
            return None;
        }
        // A longer number is longer than any limit.
        let seconds = Duration::from_secs(number.parse().unwrap_or(u64::MAX));
        Some(LeaseDuration::Fixed(seconds.clamp(rules.min, rules.max.max(rules.min))))
    });
    wanted.unwrap_or(LeaseDuration::Fixed(rules.default))
}

struct Repeated;

fn single<'a>(headers: &'a HeaderMap, name: &HeaderName) -> Result<Option<&'a HeaderValue>, Repeated> {
    let mut lines = headers.get_all(name).iter();
    match (lines.next(), lines.next()) {
        (value, None) => Ok(value),
        (_, Some(_)) => Err(Repeated),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    const UUID: &str = "181d4fae-7d8c-11d0-a765-00a0c91e6bf2";

    #[test]
    fn a_depth_has_three_values() {
        for (lines, expected) in [
            (&[][..], Ok(None)),
            (&["0"], Ok(Some(LockDepth::Zero))),
            (&["1"], Ok(Some(LockDepth::One))),
            (&["infinity"], Ok(Some(LockDepth::Infinity))),
            (&[" Infinity "], Ok(Some(LockDepth::Infinity))),
            (&["2"], Err(MalformedField::Depth)),
            (&["1,noroot"], Err(MalformedField::Depth)),
            (&["0", "0"], Err(MalformedField::Depth)),
            (&[""], Err(MalformedField::Depth)),
        ] {
            let lines: Vec<_> = lines.iter().map(|line| ("depth", *line)).collect();
            assert_eq!(depth(&fields(&lines)), expected, "{lines:?}");
        }
    }

    /// Windows and `webdav` of npm send the token bare.
    #[test]
    fn a_token_has_two_spellings() {
        for (line, expected) in [
            (format!("<opaquelocktoken:{UUID}>"), Ok(Some(UUID))),
            (format!("opaquelocktoken:{UUID}"), Ok(Some(UUID))),
            (format!(" <urn:uuid:{UUID}> "), Ok(Some(UUID))),
            ("<opaquelocktoken:foobar>".to_owned(), Ok(None)),
            (format!("<opaquelocktoken:{UUID}"), Err(MalformedField::LockToken)),
            (format!("opaquelocktoken:{UUID}>"), Err(MalformedField::LockToken)),
            (format!("<opaquelocktoken:{UUID}>, <a:b>"), Err(MalformedField::LockToken)),
            (UUID.to_owned(), Err(MalformedField::LockToken)),
            (String::new(), Err(MalformedField::LockToken)),
        ] {
            let read = lock_token(&HeaderMap::from_iter([(LOCK_TOKEN, line.parse().expect("visible"))]));
            let read = read.map(|token| match token {
                Some(StateToken::Lock(id)) => Some(id.reveal()),
                Some(StateToken::Unknown) | None => None,
            });
            assert_eq!(read, expected.map(|uuid| uuid.map(str::to_owned)), "{line}");
        }
        assert_eq!(lock_token(&HeaderMap::new()), Ok(None));
        assert_eq!(
            lock_token(&fields(&[("lock-token", "<a:b>"), ("lock-token", "<a:b>")])),
            Err(MalformedField::LockToken)
        );
    }

    #[test]
    fn a_time_is_granted_within_limits() {
        let seconds = Duration::from_secs;
        let rules = LeaseRules {
            default: seconds(600),
            min: seconds(2),
            max: seconds(3600),
            infinite: false,
            ..crate::core::lease::testing::rules()
        };
        for (line, expected) in [
            ("Second-1800", 1800),
            ("second-1800", 1800),
            ("Second-1", 2),
            ("Second-0", 2),
            ("Second-4100000000", 3600),
            ("Second-99999999999999999999999", 3600),
            ("Infinite", 3600),
            ("Infinite, Second-4100000000", 3600),
            ("Second-180, Infinite", 180),
            ("Extend, Second-20", 20),
            ("Second-", 600),
            ("Second-+5", 600),
            ("Minute-1", 600),
            ("", 600),
        ] {
            let granted = timeout(&fields(&[("timeout", line)]), &rules);
            assert_eq!(granted, LeaseDuration::Fixed(seconds(expected)), "{line}");
        }
        assert_eq!(timeout(&HeaderMap::new(), &rules), LeaseDuration::Fixed(seconds(600)));
        let endless = LeaseRules { infinite: true, ..rules };
        assert_eq!(timeout(&fields(&[("timeout", "Infinite")]), &endless), LeaseDuration::Infinite);
    }
}

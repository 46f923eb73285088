//! Durations and sizes. Both need a unit, because a bare number means milliseconds to one reader and seconds to the
//! next.

use std::{ops::RangeInclusive, time::Duration};

use bytesize::ByteSize;

pub(super) const KIB: u64 = 1 << 10;
pub(super) const MIB: u64 = 1 << 20;
pub(super) const GIB: u64 = 1 << 30;
pub(super) const TIB: u64 = 1 << 40;
pub(super) const ZERO: Duration = Duration::ZERO;

/// Returns a number of milliseconds.
pub(super) const fn ms(count: u64) -> Duration {
    Duration::from_millis(count)
}

/// Returns a number of seconds.
pub(super) const fn seconds(count: u64) -> Duration {
    Duration::from_secs(count)
}

/// Returns a number of hours.
pub(super) const fn hours(count: u64) -> Duration {
    Duration::from_secs(count * 3600)
}

/// The hint for a text that is not a duration.
pub(super) const DURATION_HINT: &str = r#"write a number and a unit: "500ms", "30s", "5m", "1h 30m", "7d""#;
/// The hint for a text that is not a size.
pub(super) const SIZE_HINT: &str = r#"write a number and a unit: "512B", "64KiB", "1MiB", "10GiB""#;

/// Parses a duration, for example `30s`; `None` if the text has no unit or is not a duration.
pub(super) fn duration(text: &str) -> Option<Duration> {
    has_unit(text).then(|| humantime::parse_duration(text.trim()).ok()).flatten()
}

/// Parses a number of bytes, for example `1MiB`; `None` if the text has no unit or is not a size.
pub(super) fn size(text: &str) -> Option<u64> {
    has_unit(text).then(|| text.trim().parse::<ByteSize>().ok()).flatten().map(|size| size.as_u64())
}

/// Parses a status, for example `204`, or a class of statuses, for example `2xx`.
pub(super) fn status_range(text: &str) -> Option<RangeInclusive<u16>> {
    let (first, rest) = text.split_at_checked(1)?;
    let class = first.parse::<u16>().ok().filter(|class| (1..=5).contains(class))? * 100;
    match rest {
        "xx" => Some(class..=class + 99),
        _ if text.len() == 3 => text.parse().ok().map(|status| status..=status),
        _ => None,
    }
}

/// Formats a duration as a user would write it.
pub fn show_duration(duration: Duration) -> String {
    humantime::format_duration(duration).to_string()
}

/// Formats a number of bytes as a user would write it.
pub fn show_size(bytes: u64) -> String {
    const UNITS: [(&str, u64); 4] = [("TiB", 1 << 40), ("GiB", 1 << 30), ("MiB", 1 << 20), ("KiB", 1 << 10)];
    let whole = UNITS.iter().find(|(_, unit)| bytes >= *unit && bytes.is_multiple_of(*unit));
    whole.map_or_else(|| format!("{bytes}B"), |(name, unit)| format!("{}{name}", bytes / unit))
}

fn has_unit(text: &str) -> bool {
    text.trim_end().ends_with(|last: char| last.is_ascii_alphabetic())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_need_a_unit() {
        assert_eq!(duration("30s"), Some(Duration::from_secs(30)));
        assert_eq!(duration("0s"), Some(Duration::ZERO));
        assert_eq!(duration("1h 30m"), Some(Duration::from_secs(5400)));
        for bad in ["", "30", "0", "s", "-1s", "30 parsecs", "1s30", "99999999999999999999999s"] {
            assert_eq!(duration(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn statuses_are_one_or_a_class() {
        assert_eq!(status_range("2xx"), Some(200..=299));
        assert_eq!(status_range("204"), Some(204..=204));
        for bad in ["", "2", "2x", "20", "2000", "6xx", "0xx", "+20", "xx2", "2é"] {
            assert_eq!(status_range(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn sizes_need_a_unit() {
        assert_eq!(size("1MiB"), Some(1 << 20));
        assert_eq!(size("64 KiB"), Some(1 << 16));
        assert_eq!(size("512B"), Some(512));
        assert_eq!(size("1MB"), Some(1_000_000));
        for bad in ["", "30", "0", "MiB", "-1MiB", "3 pounds"] {
            assert_eq!(size(bad), None, "{bad:?}");
        }
    }

    #[test]
    fn what_is_shown_is_read_again() {
        for bytes in [0, 1, 1000, 1024, 1536, 1 << 20, (1 << 30) + 1, 10 << 30, 3 << 40] {
            assert_eq!(size(&show_size(bytes)), Some(bytes));
        }
        for milliseconds in [0, 1, 999, 1000, 90_000, 86_400_000] {
            let each = Duration::from_millis(milliseconds);
            assert_eq!(duration(&show_duration(each)), Some(each));
        }
    }
}

//! The fields of the native lease protocol in the head of a request.

use http::{HeaderMap, HeaderName, HeaderValue};

use crate::core::{
    lease::{
        LeaseId,
        field_names::{self as names, FieldName},
    },
    refusal::{Code, Refusal},
};

/// A field that a lease operation may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum LeaseField {
    Id,
    ProposedId,
    DeletePending,
    Mode,
    Access,
    Share,
    Duration,
    Holder,
    BreakPeriod,
}

/// The name of each field, at its place.
const NAMES: [FieldName; 9] = [
    names::LEASE_ID,
    names::PROPOSED_LEASE_ID,
    names::DELETE_PENDING,
    names::LEASE_MODE,
    names::LEASE_ACCESS,
    names::LEASE_SHARE,
    names::LEASE_DURATION,
    names::LEASE_HOLDER,
    names::LEASE_BREAK_PERIOD,
];

impl LeaseField {
    /// Returns the usual spelling of the field's name.
    pub(super) fn title(self) -> &'static str {
        NAMES.get(self as usize).map_or("", |name| name.title)
    }
}

/// The lines of one field.
#[derive(Clone, Copy, Default)]
enum FieldLines<'a> {
    #[default]
    None,
    One(&'a HeaderValue),
    Several,
}

impl<'a> FieldLines<'a> {
    const fn and(self, value: &'a HeaderValue) -> Self {
        match self {
            Self::None => Self::One(value),
            Self::One(_) | Self::Several => Self::Several,
        }
    }

    fn value(self, title: &str) -> Result<Option<&'a HeaderValue>, Refusal> {
        match self {
            Self::None => Ok(None),
            Self::One(value) => Ok(Some(value)),
            Self::Several => Err(malformed(format!("send {title} once"))),
        }
    }
}

/// The fields of a head that say what its operation is. One look at each line finds them all. A look for each name would
/// take as long as the step of the lease itself.
pub(super) struct LeaseFields<'a>([FieldLines<'a>; NAMES.len()]);

impl<'a> LeaseFields<'a> {
    pub(super) fn of(headers: &'a HeaderMap) -> Self {
        let mut fields = [FieldLines::None; NAMES.len()];
        for (name, value) in headers {
            let known = fields.iter_mut().zip(&NAMES).find(|(_, known)| known.lower == name.as_str());
            if let Some((lines, _)) = known {
                *lines = lines.and(value);
            }
        }
        Self(fields)
    }

    /// Returns the only value of a field.
    pub(super) fn value(&self, field: LeaseField) -> Result<Option<&'a HeaderValue>, Refusal> {
        self.0.get(field as usize).copied().unwrap_or_default().value(field.title())
    }

    /// Returns the only value of a field as text.
    pub(super) fn text(&self, field: LeaseField) -> Result<Option<&'a str>, Refusal> {
        self.value(field)?.map(|value| text(value, field.title())).transpose()
    }

    /// Returns the id in a field.
    pub(super) fn id(&self, field: LeaseField) -> Result<Option<LeaseId>, Refusal> {
        self.value(field)?.map(|value| id(value, field.title())).transpose()
    }

    /// Returns the id in a field that must be there.
    pub(super) fn required_id(&self, field: LeaseField) -> Result<LeaseId, Refusal> {
        self.id(field)?.ok_or_else(|| malformed(format!("send {}", field.title())))
    }
}

/// Returns the id in one field, whose name is spelled like this.
pub(super) fn presented(headers: &HeaderMap, name: &HeaderName, title: &str) -> Result<Option<LeaseId>, Refusal> {
    let lines = headers.get_all(name).iter().fold(FieldLines::None, FieldLines::and);
    lines.value(title)?.map(|value| id(value, title)).transpose()
}

fn id(value: &HeaderValue, title: &str) -> Result<LeaseId, Refusal> {
    LeaseId::parse(text(value, title)?.as_bytes()).map_err(|error| malformed(format!("{title}: {error}")))
}

fn text<'a>(value: &'a HeaderValue, title: &str) -> Result<&'a str, Refusal> {
    value.to_str().map(str::trim).map_err(|_error| malformed(format!("{title} is visible ASCII")))
}

pub(super) fn malformed(detail: String) -> Refusal {
    Refusal::new(Code::MalformedLeaseHeader, detail)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::testing::fields;

    #[test]
    fn each_field_is_found_by_its_name() {
        for (place, name) in NAMES.into_iter().enumerate() {
            let headers = fields(&[("host", "a"), (name.lower, "1"), ("x-lease-id", "2")]);
            let found = LeaseFields::of(&headers);
            for (other, lines) in found.0.iter().enumerate() {
                assert_eq!(matches!(lines, FieldLines::One(value) if *value == "1"), other == place, "{}", name.lower);
            }
        }
        assert_eq!(LeaseField::BreakPeriod.title(), "Lease-Break-Period");
    }

    #[test]
    fn a_field_with_two_lines_is_refused_where_it_is_read() {
        let headers = fields(&[("lease-holder", "a"), ("lease-duration", "20"), ("lease-holder", "b")]);
        let found = LeaseFields::of(&headers);
        assert_eq!(found.text(LeaseField::Duration), Ok(Some("20")));
        let refusal = found.value(LeaseField::Holder).expect_err("it has two values");
        assert_eq!((refusal.code, &*refusal.detail), (Code::MalformedLeaseHeader, "send Lease-Holder once"));
    }
}

//! The member of a JSON body that names a resource, as libraries of many languages read it.
//!
//! # Design
//!
//! *Why is a member with another name an error?* Go and .NET find a member without regard to letter case, and of two
//! the last one counts. Readers written in C end a name at NUL. JavaScript takes the members of `__proto__` for those of
//! the object itself, once it has been copied.
//!
//! *Why are integers bounded?* JavaScript and PHP read each number as a double: 9007199254740993 is 9007199254740992.
//!
//! *Why are values read that name nothing?* Octets that are not UTF-8 and halves of surrogate pairs have several
//! readings, and some of them swallow the quotation mark that follows. A text that is nested more deeply than readers
//! go is an error too.

use std::fmt;

use serde::de::{Deserialize, DeserializeSeed, Deserializer, Error, MapAccess, SeqAccess, Visitor};

use super::folding::simple_fold;
use crate::core::tags::json::JsonPointer;

/// The largest magnitude up to which each integer has a double of its own.
const DOUBLE_MAX: u64 = 1 << 53;

/// The value of a member of a JSON object, as the text that names a resource: a string, or an integer as it is spelled.
/// `None` if the object lacks the member. The text is read as a stream (`IoRead`).
///
/// # Errors
///
/// The text is not one JSON object, the member is neither a string nor an integer, or another reader could find another
/// value.
pub fn name_from_json<'de>(
    text: impl serde_json::de::Read<'de>,
    pointer: &JsonPointer,
) -> Result<Option<String>, serde_json::Error> {
    match member_of(text, pointer)? {
        NamedMember::Text(name) => Ok(Some(name)),
        NamedMember::Absent => Ok(None),
        NamedMember::Null => Err(Error::custom("null is no name")),
    }
}

/// The value of a member of a JSON object, as the text of a version. `None` if the object lacks the member, or if it is null
/// or an empty text: readers take each of these for no version.
///
/// # Errors
///
/// Those of [`name_from_json`] that do not concern null.
pub fn version_from_json<'de>(
    text: impl serde_json::de::Read<'de>,
    pointer: &JsonPointer,
) -> Result<Option<String>, serde_json::Error> {
    match member_of(text, pointer)? {
        NamedMember::Text(version) => Ok(Some(version).filter(|version| !version.is_empty())),
        NamedMember::Absent | NamedMember::Null => Ok(None),
    }
}

fn member_of<'de>(
    text: impl serde_json::de::Read<'de>,
    pointer: &JsonPointer,
) -> Result<NamedMember, serde_json::Error> {
    let mut deserializer = serde_json::Deserializer::new(text);
    let member = NameBelow(pointer.tokens()).deserialize(&mut deserializer)?;
    deserializer.end()?;
    Ok(member)
}

/// The value of the member that a pointer names.
enum NamedMember {
    /// The object lacks it.
    Absent,
    /// It is null.
    Null,
    /// A string, or an integer as it is spelled.
    Text(String),
}

/// True if some reader takes a member for one of this name.
fn may_be_read_as(member: &str, name: &str) -> bool {
    let until_nul = member.split('\0').next().unwrap_or_default();
    member == "__proto__" || [member, until_nul].into_iter().any(|read| simple_fold(read) == simple_fold(name))
}

/// Returns the spelling of an integer, if every reader finds the same one: doubles can distinguish it from its
/// neighbours.
fn exact<E: Error>(magnitude: u64, spelling: String) -> Result<String, E> {
    if magnitude <= DOUBLE_MAX { Ok(spelling) } else { Err(E::custom("readers differ on the integer")) }
}

/// The place of the name below the value that is read next.
#[derive(Clone, Copy)]
struct NameBelow<'a>(&'a [String]);

impl<'de> DeserializeSeed<'de> for NameBelow<'_> {
    type Value = NamedMember;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        match self.0 {
            [] => deserializer.deserialize_any(Name),
            _ => deserializer.deserialize_any(self),
        }
    }
}

impl<'de> Visitor<'de> for NameBelow<'_> {
    type Value = NamedMember;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("an object")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self::Value, A::Error> {
        let Some((name, below)) = self.0.split_first() else { return Ok(NamedMember::Absent) };
        let (mut found, mut was_read) = (NamedMember::Absent, false);
        while let Some(member) = members.next_key()? {
            let NextMember::Named(member) = member else { return Err(A::Error::custom("a number has no members")) };
            if member == *name && !was_read {
                (found, was_read) = (members.next_value_seed(NameBelow(below))?, true);
            } else if may_be_read_as(&member, name) {
                return Err(A::Error::custom(format!("the member {member:?} may be read as {name:?}")));
            } else {
                members.next_value::<Skipped>()?;
            }
        }
        Ok(found)
    }
}

/// Reads the name itself. A number with a fraction or an exponent is none, and neither is `-0`: readers spell them in
/// different ways.
struct Name;

impl Visitor<'_> for Name {
    type Value = NamedMember;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a string or an integer that a double can hold")
    }

    fn visit_unit<E: Error>(self) -> Result<NamedMember, E> {
        Ok(NamedMember::Null)
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NamedMember, E> {
        Ok(NamedMember::Text(text.to_owned()))
    }

    fn visit_u64<E: Error>(self, integer: u64) -> Result<NamedMember, E> {
        exact(integer, integer.to_string()).map(NamedMember::Text)
    }

    fn visit_i64<E: Error>(self, integer: i64) -> Result<NamedMember, E> {
        exact(integer.unsigned_abs(), integer.to_string()).map(NamedMember::Text)
    }
}

/// The key of the next member. `serde_json` shows a number that is no integer of 64 bits as an object with one member.
/// Only the key of that one is borrowed, because the text is a stream.
pub(super) enum NextMember {
    /// A member of an object.
    Named(String),
    /// The digits of a number follow.
    OfNumber,
}

impl<'de> Deserialize<'de> for NextMember {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(NextMemberVisitor)
    }
}

struct NextMemberVisitor;

impl<'de> Visitor<'de> for NextMemberVisitor {
    type Value = NextMember;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("the name of a member")
    }

    fn visit_str<E: Error>(self, text: &str) -> Result<NextMember, E> {
        Ok(NextMember::Named(text.to_owned()))
    }

    fn visit_borrowed_str<E: Error>(self, _text: &'de str) -> Result<NextMember, E> {
        Ok(NextMember::OfNumber)
    }
}

/// A value that names nothing. It is read all the same, because its text must have one reading.
struct Skipped;

impl<'de> Deserialize<'de> for Skipped {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(Self)
    }
}

impl<'de> Visitor<'de> for Skipped {
    type Value = Self;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("any value")
    }

    fn visit_bool<E: Error>(self, _value: bool) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_u64<E: Error>(self, _value: u64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_i64<E: Error>(self, _value: i64) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_unit<E: Error>(self) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_str<E: Error>(self, _text: &str) -> Result<Self, E> {
        Ok(self)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut elements: A) -> Result<Self, A::Error> {
        while elements.next_element::<Self>()?.is_some() {}
        Ok(self)
    }

    fn visit_map<A: MapAccess<'de>>(self, mut members: A) -> Result<Self, A::Error> {
        while members.next_entry::<Self, Self>()?.is_some() {}
        Ok(self)
    }
}

#[cfg(test)]
#[path = "body_name_tests.rs"]
mod tests;

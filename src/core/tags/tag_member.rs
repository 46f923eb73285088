//! The member of a JSON object that has its tag (`tag_member`), for clients that look for the tag there.
//!
//! # Design
//!
//! *Why is the text edited, and not written anew?* All other bytes stay: numbers that no program can hold, escapes, white
//! space and the order of members. A text without the member is the same after the member was put in and taken out.
//!
//! *What becomes of the objects around the member?* They are made if they are absent. One that holds nothing but the
//! member goes with it.

use std::ops::Range;

use serde_json::Value;

use super::{
    entity_tag::EntityTag,
    json::JsonPointer,
    json_object::{JsonMember, JsonObject},
};

/// A text from which a member was taken.
#[derive(Debug, PartialEq, Eq)]
pub struct WithoutTag {
    /// The text without the member.
    pub rest: Vec<u8>,
    /// The value of the member. `None` if it, or an object around it, occurs twice: readers differ on which one counts.
    pub value: Option<Value>,
}

/// Takes the member out of a JSON object. `None` if the text is no JSON object in UTF-8, or has no such member.
pub fn without_tag(text: &[u8], place: &JsonPointer) -> Option<WithoutTag> {
    let mut found = TagSearch::default();
    found.look(text, &JsonObject::of_text(text)?, place.tokens());
    let value = found.values.first()?.clone();
    found.cuts.sort_by_key(|cut| cut.start);
    let (mut rest, mut at) = (Vec::with_capacity(text.len()), 0);
    for cut in found.cuts {
        rest.extend_from_slice(text.get(at..cut.start)?);
        at = cut.end;
    }
    rest.extend_from_slice(text.get(at..)?);
    let value = if found.is_ambiguous { None } else { serde_json::from_slice(text.get(value)?).ok() };
    Some(WithoutTag { rest, value })
}

/// Puts the tag into a JSON object, in place of the member's value. Without a tag the member is taken out. `None` if
/// the text is no JSON object, or stays as it is: no member has a place below a value that is no object.
pub fn with_tag(text: &[u8], place: &JsonPointer, tag: Option<&EntityTag>) -> Option<Vec<u8>> {
    let rest = without_tag(text, place).map(|taken| taken.rest);
    let tag = tag.and_then(|tag| serde_json::to_string(tag.to_header_value().to_str().ok()?).ok());
    let tagged = tag.and_then(|tag| put_in(rest.as_deref().unwrap_or(text), place.tokens(), &tag));
    tagged.or(rest)
}

/// Puts a value into a JSON object that has no such member.
fn put_in(text: &[u8], place: &[String], value: &str) -> Option<Vec<u8>> {
    let (mut object, mut tokens) = (JsonObject::of_text(text)?, place);
    while let Some(around) = tokens.first().and_then(|token| object.named(text, token).next()) {
        (object, tokens) = (JsonObject::at(text, around.value.start)?, tokens.get(1..)?);
    }
    let names: Option<Vec<String>> = tokens.iter().map(|token| serde_json::to_string(token).ok()).collect();
    let ends = "}".repeat(tokens.len().checked_sub(1)?);
    let member = format!("{}:{value}{ends}", names?.join(":{"));
    let (at, separator) = object.members.last().map_or((object.open, ""), |last| (last.value.end, ","));
    let (before, after) = text.split_at_checked(at)?;
    Some([before, separator.as_bytes(), member.as_bytes(), after].concat())
}

/// The parts of a text that are to be taken out.
#[derive(Default)]
struct TagSearch {
    /// The values of the member.
    values: Vec<Range<usize>>,
    /// The parts of the text to remove, each with one comma if there is one.
    cuts: Vec<Range<usize>>,
    /// True if a name on the way occurs twice.
    is_ambiguous: bool,
}

impl TagSearch {
    /// Looks for the member below an object, and returns whether nothing of the object is left.
    fn look(&mut self, text: &[u8], object: &JsonObject, tokens: &[String]) -> bool {
        let Some((token, below)) = tokens.split_first() else { return false };
        self.is_ambiguous |= object.named(text, token).nth(1).is_some();
        let goes = |found: &mut Self, member: &JsonMember| {
            if !member.is_named(text, token) {
                return false;
            }
            if below.is_empty() {
                found.values.push(member.value.clone());
                return true;
            }
            let (inner, cuts_before) = (JsonObject::at(text, member.value.start), found.cuts.len());
            let goes = inner.is_some_and(|inner| found.look(text, &inner, below));
            if goes {
                found.cuts.truncate(cuts_before);
            }
            goes
        };
        let mut end_of_last_kept = None;
        let mut start_of_cut: Option<usize> = None;
        let mut end_of_cut = object.open;
        for member in &object.members {
            if goes(self, member) {
                start_of_cut = start_of_cut.or(end_of_last_kept).or(Some(member.name.start));
                end_of_cut = member.value.end;
            } else {
                if let Some(start) = start_of_cut.take() {
                    // Without one that is kept before it, the next one takes its place.
                    let end = if end_of_last_kept.is_none() { member.name.start } else { end_of_cut };
                    self.cuts.push(start..end);
                }
                end_of_last_kept = Some(member.value.end);
            }
        }
        if let Some(start) = start_of_cut {
            self.cuts.push(start..end_of_cut);
        }
        start_of_cut.is_some() && end_of_last_kept.is_none()
    }
}

#[cfg(test)]
#[path = "tag_member_tests.rs"]
mod tests;

//! The result of the `If` field of a request: true, false, or a matter of tags (RFC 4918 section 10.4.3).
//!
//! # Design
//!
//! *Why do tags remain?* The record of a resource shows its locks. Its tag is judged under the claim, as that of
//! `If-Match` is: otherwise a write could come between. So the remaining conditions have the form of RFC 9110.

use super::if_field::{If, IfPart, State, StateToken};
use crate::core::{
    lease::LeaseId,
    tags::{
        entity_tag::EntityTag,
        precondition::{Preconditions, TagCondition},
    },
};

/// The resource that a group of lists is about.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Place {
    /// The target of the request, which is in the scope of these locks.
    Target(Vec<LeaseId>),
    /// The destination of the COPY or MOVE, which is in the scope of these locks.
    Destination(Vec<LeaseId>),
    /// Another resource of this proxy, which is in the scope of these locks.
    Other(Vec<LeaseId>),
    /// A resource of another server. No condition on it is true.
    Foreign,
}

/// The result of a request's conditions by the locks alone.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Truth {
    /// One list is true, no matter what the tag of the target is.
    True,
    /// No list can be true.
    False,
    /// The tags of the target and of the destination decide: one of these lists must be true.
    ByTags(Vec<OpenList>),
}

/// The rest of a list after the judgement of its tokens.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct OpenList {
    /// The tags that it demands of the target.
    pub target: TagList,
    /// The tags that it demands of the destination.
    pub destination: TagList,
}

/// The tags that a list demands of a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct TagList {
    /// The tags that it must have.
    pub is: Vec<EntityTag>,
    /// The tags that it must not have.
    pub is_not: Vec<EntityTag>,
}

/// Judges conditions by the locks on the resources that they name. `place` tells what a reference names.
pub fn judge(conditions: &If, mut place: impl FnMut(Option<&str>) -> Place) -> Truth {
    let mut open: Vec<OpenList> = Vec::new();
    for group in conditions.groups() {
        let place = place(group.resource.as_deref());
        for list in group.lists.iter().filter_map(|list| left_of(list, &place)) {
            if list == OpenList::default() {
                return Truth::True;
            }
            if !open.contains(&list) {
                open.push(list);
            }
        }
    }
    if open.is_empty() { Truth::False } else { Truth::ByTags(open) }
}

/// Returns the rest of a list after the judgement of its tokens; `None` if it is false.
fn left_of(list: &[IfPart], place: &Place) -> Option<OpenList> {
    let mut left = OpenList::default();
    for IfPart { is_negated, state } in list {
        let is_true = match (state, place) {
            // The tag of another resource is not known under the claim of this one.
            (_, Place::Foreign) | (State::Tagged(_), Place::Other(_)) => false,
            (State::Locked(token), Place::Target(locks) | Place::Destination(locks) | Place::Other(locks)) => {
                let is_locked = matches!(token, StateToken::Lock(id) if locks.contains(id));
                is_locked != *is_negated
            }
            (State::Tagged(tag), Place::Target(_)) => left.target.add(tag, *is_negated),
            (State::Tagged(tag), Place::Destination(_)) => left.destination.add(tag, *is_negated),
        };
        if !is_true {
            return None;
        }
    }
    Some(left)
}

impl TagList {
    /// Adds a tag, and returns whether the list can be true.
    fn add(&mut self, tag: &EntityTag, is_negated: bool) -> bool {
        let tags = if is_negated { &mut self.is_not } else { &mut self.is };
        if !tags.contains(tag) {
            tags.push(tag.clone());
        }
        // A resource has one tag, so that it never has two.
        self.is.len() <= 1
    }

    fn is_one_tag(&self) -> bool {
        self.is.len() == 1 && self.is_not.is_empty()
    }
}

/// Returns pairs of conditions in the form of RFC 9110, on the target and on the destination, together with the
/// request's own. One pair must be true. There is none if the conditions contradict each other.
pub fn narrowed(lists: &[OpenList], [own, at_destination]: [&Preconditions; 2]) -> Vec<[Preconditions; 2]> {
    let is_of_target = |list: &OpenList| list.target.is_one_tag() && list.destination == TagList::default();
    if lists.iter().all(is_of_target) {
        let is = lists.iter().flat_map(|list| list.target.is.iter().cloned()).collect();
        let narrowed = with(TagList { is, is_not: Vec::new() }, own);
        return narrowed.map(|own| [own, at_destination.clone()]).into_iter().collect();
    }
    let both =
        |list: &OpenList| Some([with(list.target.clone(), own)?, with(list.destination.clone(), at_destination)?]);
    lists.iter().filter_map(both).collect()
}

/// Adds to conditions that their resource has one of the first tags, and none of the others.
fn with(TagList { is, is_not }: TagList, own: &Preconditions) -> Option<Preconditions> {
    let if_match = match &own.if_match {
        own if is.is_empty() => own.clone(),
        None | Some(TagCondition::Any) => Some(TagCondition::Tags(is)),
        Some(TagCondition::Tags(tags)) => {
            let both: Vec<_> = is.into_iter().filter(|tag| tags.contains(tag)).collect();
            if both.is_empty() {
                return None;
            }
            Some(TagCondition::Tags(both))
        }
    };
    let if_none_match = match &own.if_none_match {
        own if is_not.is_empty() => own.clone(),
        Some(TagCondition::Any) => Some(TagCondition::Any),
        None => Some(TagCondition::Tags(is_not)),
        Some(TagCondition::Tags(tags)) => Some(TagCondition::Tags([&tags[..], &is_not].concat())),
    };
    Some(Preconditions { if_match, if_none_match, ..own.clone() })
}

#[cfg(test)]
mod tests {
    use super::*;

    const HELD: &str = "181d4fae-7d8c-11d0-a765-00a0c91e6bf2";
    const LOST: &str = "58f202ac-22cf-11d1-b12d-002035b29092";

    fn id(uuid: &str) -> LeaseId {
        LeaseId::parse(uuid.as_bytes()).expect("a UUID")
    }

    /// The truth of a field in which `t` is the token of a lock on the target and on `/other`, and `x` one of another.
    fn truth(field: &str) -> Truth {
        let field = field.replace("<t>", &format!("<opaquelocktoken:{HELD}>"));
        let field = field.replace("<x>", &format!("<opaquelocktoken:{LOST}>"));
        judge(&If::parse(field.as_bytes()).expect("well-formed"), |resource| match resource {
            None | Some("/here") => Place::Target(vec![id(HELD)]),
            Some("/there") => Place::Destination(vec![id(LOST)]),
            Some("/free") => Place::Other(Vec::new()),
            Some("/other") => Place::Other(vec![id(HELD)]),
            Some(_) => Place::Foreign,
        })
    }

    fn tags(tags: &[&str]) -> Vec<EntityTag> {
        tags.iter().map(|tag| EntityTag::parse(tag.as_bytes()).expect("a tag")).collect()
    }

    #[test]
    fn tokens_are_judged_by_the_locks_of_the_resource_that_they_are_said_of() {
        for (field, expected) in [
            ("(<t>)", true),
            ("(<x>)", false),
            ("(<DAV:no-lock>)", false),
            ("(Not <DAV:no-lock>)", true),
            ("(Not <t>)", false),
            ("(Not <x>)", true),
            ("(<t> <x>)", false),
            ("(<x>) (<t>)", true),
            ("(<x>) (Not <DAV:no-lock>)", true),
            ("</here> (<t>)", true),
            ("</other> (<t>)", true),
            ("</there> (<x>)", true),
            ("</there> (<t>)", false),
            ("</free> (<t>)", false),
            ("</free> (Not <t>)", true),
            ("</free> (<t>) </here> (<t>)", true),
            ("<//elsewhere/> (<t>)", false),
            ("<//elsewhere/> (Not <t>)", false),
            ("</other> ([\"a\"])", false),
            ("</other> (Not [\"a\"])", false),
        ] {
            assert_eq!(truth(field), if expected { Truth::True } else { Truth::False }, "{field}");
        }
    }

    #[test]
    fn tags_of_the_target_are_left() {
        let list = |is: &[&str], is_not: &[&str]| TagList { is: tags(is), is_not: tags(is_not) };
        let left = |is: &[&str], is_not: &[&str]| OpenList { target: list(is, is_not), ..OpenList::default() };
        for (field, expected) in [
            ("([\"a\"])", vec![left(&["\"a\""], &[])]),
            ("(<t> [\"a\"]) (Not <DAV:no-lock> [\"a\"])", vec![left(&["\"a\""], &[])]),
            ("([\"a\"]) ([\"b\"])", vec![left(&["\"a\""], &[]), left(&["\"b\""], &[])]),
            ("(<x> [\"a\"]) ([W/\"b\"])", vec![left(&["W/\"b\""], &[])]),
            ("(Not [\"a\"] [\"b\"] [\"b\"])", vec![left(&["\"b\""], &["\"a\""])]),
        ] {
            assert_eq!(truth(field), Truth::ByTags(expected), "{field}");
        }
        let there = OpenList { destination: list(&["\"a\""], &["\"b\""]), ..OpenList::default() };
        assert_eq!(truth("</there> (<x> [\"a\"] Not [\"b\"])"), Truth::ByTags(vec![there]));
        assert_eq!(truth("([\"a\"] [\"b\"])"), Truth::False);
        assert_eq!(truth("(<x> [\"a\"])"), Truth::False);
        assert_eq!(truth("([\"a\"]) (<t>)"), Truth::True);
    }

    #[test]
    fn what_is_left_joins_the_conditions_of_the_request() {
        let own = |if_match: Option<&[&str]>| Preconditions {
            if_match: if_match.map(|list| TagCondition::Tags(tags(list))),
            ..Preconditions::default()
        };
        let lists = |field| match truth(field) {
            Truth::ByTags(lists) => lists,
            other => panic!("{other:?}"),
        };
        let nothing = Preconditions::default();
        let narrowed_own = |lists: &[OpenList], own: &Preconditions| -> Vec<_> {
            narrowed(lists, [own, &nothing]).into_iter().map(|[own, _]| own).collect()
        };
        let one_or_other = lists("([\"a\"]) ([\"b\"])");
        assert_eq!(narrowed_own(&one_or_other, &own(None)), [own(Some(&["\"a\"", "\"b\""]))]);
        assert_eq!(narrowed_own(&one_or_other, &own(Some(&["\"b\"", "\"c\""]))), [own(Some(&["\"b\""]))]);
        assert_eq!(narrowed_own(&one_or_other, &own(Some(&["\"c\""]))), []);
        let any = Preconditions { if_match: Some(TagCondition::Any), ..Preconditions::default() };
        assert_eq!(narrowed_own(&lists("([\"a\"])"), &any), [own(Some(&["\"a\""]))]);
        let not = Preconditions { if_none_match: Some(TagCondition::Tags(tags(&["\"a\""]))), ..own(None) };
        assert_eq!(narrowed_own(&lists("(Not [\"a\"])"), &own(None)), std::slice::from_ref(&not));
        assert_eq!(narrowed_own(&lists("([\"b\"]) (Not [\"a\"])"), &own(None)), [own(Some(&["\"b\""])), not.clone()]);
        let both = Preconditions { if_none_match: Some(TagCondition::Tags(tags(&["\"a\"", "\"b\""]))), ..own(None) };
        assert_eq!(narrowed_own(&lists("(Not [\"b\"])"), &not), [both]);
        let absent = Preconditions { if_none_match: Some(TagCondition::Any), ..own(None) };
        assert_eq!(narrowed_own(&lists("(Not [\"b\"])"), &absent), std::slice::from_ref(&absent));
    }
    #[test]
    fn a_tag_of_the_destination_is_a_condition_of_the_destination() {
        let nothing = Preconditions::default();
        let is = |tag| Preconditions { if_match: Some(TagCondition::Tags(tags(&[tag]))), ..Preconditions::default() };
        let Truth::ByTags(lists) = truth("</here> ([\"a\"]) </there> ([\"b\"])") else { panic!("tags decide") };
        let expected = [[is("\"a\""), nothing.clone()], [nothing.clone(), is("\"b\"")]];
        assert_eq!(narrowed(&lists, [&nothing, &nothing]), expected);
        let absent = Preconditions { if_none_match: Some(TagCondition::Any), ..Preconditions::default() };
        let Truth::ByTags(lists) = truth("</there> (Not [\"b\"])") else { panic!("tags decide") };
        assert_eq!(narrowed(&lists, [&nothing, &absent]), [[nothing.clone(), absent.clone()]]);
    }
}

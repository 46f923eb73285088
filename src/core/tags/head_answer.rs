//! The worth of an answer to HEAD: alone it decides nothing against a client (DESIGN, section 3, rule 19).
//!
//! # Design
//!
//! *Why not believe it?* Routers that register GET alone answer HEAD with 404, 400 or 204. Others leave out the tag, or
//! make another one. A creation would then overwrite what exists, and a client with the right tag could never write.
//!
//! *When is it believed?* If it shows the very tag that the client names. An equal tag proves itself; absence, a
//! missing tag and a difference do not. So a HEAD costs nothing more as long as writes pass, and a GET confirms each
//! refusal.
//!
//! *Why is a HEAD not always sent first?* The result for a creation, or for a write that names no tag, always rests on
//! what GET shows. An upstream that judges its own tags also gets the tag that `If-Match: *` was judged by.
//!
//! *Why is a contradiction not remembered?* It may be a write that came between the two requests. A route with large
//! bodies would then always be read by GET.

use http::{Method, StatusCode};

use super::{
    precondition::{MatchRule, Preconditions, TagCondition},
    validators::Representation,
};
use crate::core::{
    policy::{GuardRules, ProbeAuth, ReadConsistency, Require, TagSource},
    verdict::{Verdict, judge_write},
};

/// The purpose of a probe.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Aim {
    /// The right of the client to use the resource.
    Right,
    /// The tag, if there is one to learn.
    Tag,
    /// The verdict on the conditions of the request. Some conditions need no tag.
    Verdict,
}

/// Returns the method of the first request of a probe.
pub fn first_method(aim: Aim, guard: &GuardRules, conditions: &Preconditions) -> Method {
    let may_suffice = match aim {
        Aim::Right | Aim::Tag => true,
        Aim::Verdict if conditions.is_empty() => guard.require == Require::Never,
        Aim::Verdict => {
            matches!(conditions.if_match, Some(TagCondition::Tags(_)))
                && conditions.if_none_match.is_none()
                && conditions.if_modified_since.is_none()
                && conditions.if_unmodified_since.is_none()
        }
    };
    if may_suffice && !keeps_state(aim, guard) && !guard.etag.needs_body() { Method::HEAD } else { Method::GET }
}

/// True if the proxy keeps the answer to a probe for the reads beside the write. They get what the backend shows to their
/// own client, so a probe with other credentials is of no use to them.
pub fn keeps_state(aim: Aim, guard: &GuardRules) -> bool {
    aim == Aim::Verdict && guard.reads == ReadConsistency::Last && guard.probe_auth == ProbeAuth::Client
}

/// True if an answer to HEAD with this status, which shows this representation, decides for the client of a request.
/// Otherwise GET decides.
pub fn head_decides(
    aim: Aim,
    guard: &GuardRules,
    (method, conditions): (&Method, &Preconditions),
    (status, current, rule): (StatusCode, &Representation, MatchRule),
) -> bool {
    let Representation::Present(validators) = current else { return false };
    matches!(status, StatusCode::OK | StatusCode::NON_AUTHORITATIVE_INFORMATION)
        && match aim {
            Aim::Right => true,
            Aim::Tag => validators.tag.is_some(),
            // HEAD has no part in the tag.
            Aim::Verdict if guard.etag == TagSource::Version => true,
            Aim::Verdict => judge_write(guard, method, conditions, current, rule) == Verdict::Pass,
        }
}

#[cfg(test)]
mod tests {
    use http::{HeaderMap, HeaderName};

    use super::*;
    use crate::{
        core::tags::{entity_tag::EntityTag, validators::Validators},
        testing::guard,
    };

    const DATE: &str = "Sun, 06 Nov 1994 08:49:37 GMT";

    fn rules() -> GuardRules {
        GuardRules { etag: TagSource::Upstream, ..guard() }
    }

    fn conditions(fields: &[(&'static str, &'static str)]) -> Preconditions {
        let field = |(name, value): &(&'static str, &str)| (HeaderName::from_static(name), value.parse().unwrap());
        Preconditions::parse(&fields.iter().map(field).collect::<HeaderMap>()).unwrap()
    }

    /// Rule 19: only an equal tag proves itself, so what rests on absence or on a difference is asked by GET at once.
    #[test]
    fn only_a_named_tag_is_worth_a_head() {
        for (fields, expected) in [
            (&[("if-match", "\"a\"")][..], Method::HEAD),
            (&[("if-match", "*")], Method::GET),
            (&[], Method::GET),
            (&[("if-none-match", "*")], Method::GET),
            (&[("if-none-match", "\"a\"")], Method::GET),
            (&[("if-match", "\"a\""), ("if-none-match", "\"b\"")], Method::GET),
            (&[("if-unmodified-since", DATE)], Method::GET),
            (&[("if-match", "\"a\""), ("if-unmodified-since", DATE)], Method::GET),
            (&[("if-match", "\"a\""), ("if-modified-since", DATE)], Method::GET),
        ] {
            assert_eq!(first_method(Aim::Verdict, &rules(), &conditions(fields)), expected, "{fields:?}");
            for aim in [Aim::Right, Aim::Tag] {
                assert_eq!(first_method(aim, &rules(), &conditions(fields)), Method::HEAD, "{aim:?} {fields:?}");
            }
        }
        let free = GuardRules { require: Require::Never, ..rules() };
        let without = Preconditions::default();
        assert_eq!(first_method(Aim::Verdict, &free, &without), Method::HEAD, "it asks whether there is a resource");
        let by_bytes = GuardRules { etag: TagSource::Content, ..guard() };
        assert_eq!(first_method(Aim::Right, &by_bytes, &Preconditions::default()), Method::GET);
    }

    /// Rule 19: absence, a missing tag, another tag and every other status than that of a representation are confirmed.
    #[test]
    fn a_head_decides_for_a_client_alone() {
        let tagged = |tag: Option<&str>| {
            let tag = tag.map(|tag| EntityTag::strong(tag).unwrap());
            Representation::Present(Validators { tag, modified: None })
        };
        let decides = |aim, status: u16, current: &Representation| {
            let (status, conditions) = (StatusCode::from_u16(status).unwrap(), conditions(&[("if-match", "\"a\"")]));
            head_decides(aim, &rules(), (&Method::PUT, &conditions), (status, current, MatchRule::Strong))
        };
        let aims = [Aim::Right, Aim::Tag, Aim::Verdict];
        for (status, current, expected) in [
            (200, tagged(Some("a")), [true, true, true]),
            (203, tagged(Some("a")), [true, true, true]),
            (200, tagged(Some("b")), [true, true, false]),
            (200, tagged(None), [true, false, false]),
            (204, tagged(Some("a")), [false; 3]),
            (404, Representation::Absent, [false; 3]),
            (200, Representation::Unknown, [false; 3]),
        ] {
            assert_eq!(aims.map(|aim| decides(aim, status, &current)), expected, "{status} {current:?}");
        }
        let (by_version, conditions) =
            (GuardRules { etag: TagSource::Version, ..guard() }, conditions(&[("if-match", "\"1-6-a\"")]));
        let current = tagged(Some("1-7-a"));
        let seen = |status| (status, &current, MatchRule::Version);
        for (status, expected) in [(StatusCode::OK, true), (StatusCode::NO_CONTENT, false)] {
            let decides = head_decides(Aim::Verdict, &by_version, (&Method::PUT, &conditions), seen(status));
            assert_eq!(decides, expected, "{status}: the record makes the tag");
        }
    }
}

//! The comparison of a condition's tags with that of the current representation (RFC 9110 section 8.8.3.2).

use http::Method;

use super::TagCondition;
use crate::core::tags::{
    coarse_tag::bare, entity_tag::EntityTag, issued_tag::bytes_of_content_tag, validators::Validators,
};

/// How `If-Match` compares tags, and which tags `If-None-Match` of a write takes for one state. In a read
/// `If-None-Match` always compares weakly, because a read requests one variant. `If-Range` always compares strongly.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MatchRule {
    /// Strong comparison (section 8.8.3.2).
    Strong,
    /// Both tags are strong and equal up to their last `-`: tags `"<incarnation>-<version>-<variant>"` of one version
    /// match for any variants.
    Version,
    /// Both tags are strong and of the same bytes: content tags of one state match for any variants.
    Content,
    /// Both tags are spelled alike, weak or not. This is for origins whose tags are weak and must match
    /// (`compare = "opaque"`).
    Opaque,
}

/// True if a false `If-None-Match` or `If-Modified-Since` means that the client's copy is current.
pub(super) fn reads(method: &Method) -> bool {
    matches!(*method, Method::GET | Method::HEAD)
}

/// True if a condition names the current representation. Only `*` names a representation without a tag.
pub(super) fn names_current(
    condition: &TagCondition,
    representation: Option<&Validators>,
    same: impl Fn(&EntityTag, &EntityTag) -> bool,
) -> bool {
    let Some(validators) = representation else { return false };
    match (condition, &validators.tag) {
        (TagCondition::Any, _) => true,
        (TagCondition::Tags(tags), Some(current)) => tags.iter().any(|tag| same(tag, current)),
        (TagCondition::Tags(_), None) => false,
    }
}

pub(super) fn names_current_weakly(
    condition: &TagCondition,
    representation: Option<&Validators>,
    rule: MatchRule,
) -> bool {
    names_current(condition, representation, |tag, current| tag.is_weak() && same_state(rule, tag, current))
}

pub(super) fn matches_by(rule: MatchRule, tag: &EntityTag, current: &EntityTag) -> bool {
    match rule {
        MatchRule::Opaque => tag == current,
        MatchRule::Strong | MatchRule::Version | MatchRule::Content => {
            !tag.is_weak() && !current.is_weak() && same_state(rule, tag, current)
        }
    }
}

/// True if a tag in `If-None-Match` makes the condition false. Reads and writes both use the weak comparison (section
/// 13.1.2).
pub(super) fn is_excluded(method: &Method, rule: MatchRule, tag: &EntityTag, current: &EntityTag) -> bool {
    // A doubt gives a state another suffix, and may have left the state unchanged.
    let may_be_same = || match rule {
        MatchRule::Strong | MatchRule::Opaque => bare(tag.opaque()) == bare(current.opaque()),
        MatchRule::Version | MatchRule::Content => false,
    };
    if reads(method) { tag.weak_matches(current) } else { same_state(rule, tag, current) || may_be_same() }
}

/// True if the opaque bytes name the same state. Those without a `-` have no variant to leave out.
fn same_state(rule: MatchRule, tag: &EntityTag, current: &EntityTag) -> bool {
    let same_version = || {
        let version = version_of(tag.opaque());
        version.is_some() && version == version_of(current.opaque())
    };
    let same_bytes = || {
        let bytes = bytes_of_content_tag(tag.opaque());
        bytes.is_some() && bytes == bytes_of_content_tag(current.opaque())
    };
    tag.weak_matches(current)
        || rule == MatchRule::Version && same_version()
        || rule == MatchRule::Content && same_bytes()
}

/// The part before the last `-`.
fn version_of(opaque: &[u8]) -> Option<&[u8]> {
    opaque.rsplitn(2, |&byte| byte == b'-').nth(1)
}

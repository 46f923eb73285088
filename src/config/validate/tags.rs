//! The rules over several keys for the source of tags, and their comparison.

use super::{check::Check, keys::RouteLayers};
use crate::core::{
    policy::{Compare, GuardRules, ProbeAuth, RepeatedWrites, TagSource},
    quirks::ServiceKind,
};

/// Reports combinations of keys that have no meaning.
pub(super) fn go_together(check: &mut Check<'_>, keys: RouteLayers<'_>, guard: &GuardRules) {
    check.refuse(
        keys.get(|raw| &raw.etag),
        guard.etag == TagSource::Version && guard.other_writers,
        "etag = \"version\" needs other_writers = false",
        "the store's version does not count writes that bypass ifmatch; if there are such writers, use etag = \
         \"content\"",
    );
    check.refuse(
        keys.get(|raw| &raw.compare),
        guard.compare == Compare::Opaque && matches!(guard.etag, TagSource::Content | TagSource::Version),
        "compare = \"opaque\" needs etag = \"upstream\", \"header:NAME\" or \"json:/pointer\"",
        "leave it out: the tags that ifmatch makes are strong",
    );
    check.refuse(
        keys.get(|raw| &raw.accept_weak_own),
        guard.accept_weak_own && guard.compare == Compare::Opaque,
        "accept_weak_own has no effect with compare = \"opaque\"",
        "leave it out: with compare = \"opaque\" a weak tag and its strong form are two tags",
    );
    check.refuse(
        keys.own.ignored_json.as_ref(),
        guard.etag != TagSource::Content && !guard.ignored_json.is_empty(),
        "ignore_json needs etag = \"content\"",
        "leave it out: no other tag is made of the whole body",
    );
    check.refuse(
        keys.own.unique_tags.as_ref(),
        guard.unique_tags && !guard.etag.is_backends(),
        "unique_tags needs etag = \"upstream\", \"header:NAME\", \"json:/pointer\" or \"delegate\"",
        "leave it out: ifmatch makes the tags of this route itself, and no two states share one",
    );
    check.refuse(
        keys.own.tag_member.as_ref(),
        guard.tag_member.is_some() && guard.quirks.service != ServiceKind::Plain,
        "tag_member needs dialect = \"native\"",
        "leave it out: clients of the other dialects look for tags in the field ETag alone",
    );
    check.refuse(
        keys.own.repeated_writes.as_ref(),
        guard.repeated_writes == RepeatedWrites::Succeed
            && (guard.etag != TagSource::Content || guard.probe_auth != ProbeAuth::Client),
        "repeated_writes = \"succeed\" needs etag = \"content\" and probe_auth = \"client\"",
        "leave it out: what a write has sent is compared with the bytes that its client may read",
    );
    check.refuse(
        keys.get(|raw| &raw.other_writers),
        guard.etag == TagSource::Delegate && !guard.other_writers,
        "other_writers = false has no effect with etag = \"delegate\"",
        "leave it out: the backend judges each request; to judge them here, use etag = \"upstream\"",
    );
}

//! Requests that state their conditions elsewhere or otherwise than RFC 9110 does: the version in the body or in the query
//! (`precondition`), and tags without quotes (`lenient_tags`). They are restated first, and then judged as any other. So
//! are requests whose bodies, or whose answers, have the tag in a member (`tag_member`).
//!
//! # Design
//!
//! *Why does the query lose its version?* The target names the resource and its variant, and a probe reads it. A
//! backend that keeps old versions would show the very version that the write names, even a stale one.

use http::{HeaderMap, header};
use pingora::http::RequestHeader;
use serde_json::de::IoRead;

use super::{
    Service,
    tag_member::{ask_for_whole, may_have_tag, take_tag},
};
use crate::{
    body::{Body, Client},
    core::{
        http::readings::{
            body_name::version_from_json,
            content_type,
            declared_json::{is_declared_json, is_declared_json_patch},
            query,
            version::{malformed, stated_condition, version_of, versions_in_query},
        },
        policy::{Compare, GuardRules},
        refusal::{Code, Refusal},
        tags::{entity_tag::EntityTag, json::JsonPointer, precondition::well_written, version_source::VersionSource},
    },
    guard::{Answer, Halt, ReceivedClient, refusals, rules_of},
    routing::GuardedRequest,
    telemetry::Seldom,
};

static LENIENT: Seldom = Seldom::usual();

/// True if a request may have to be restated, on a route that restates some.
pub(super) fn may_be_needed(headers: &HeaderMap, guarded: &GuardedRequest, rules: &GuardRules) -> bool {
    let has_tags = || headers.contains_key(header::IF_MATCH) || headers.contains_key(header::IF_NONE_MATCH);
    may_name_version(guarded, rules) || rules.lenient_tags && has_tags() || has_tagged_bodies(guarded, rules)
}

fn has_tagged_bodies(guarded: &GuardedRequest, rules: &GuardRules) -> bool {
    rules.tag_member.is_some() && !guarded.is_lease()
}

fn may_name_version(guarded: &GuardedRequest, rules: &GuardRules) -> bool {
    let is_write = guarded.methods.usages.changes() || guarded.destination.is_some();
    !rules.version_sources.is_empty() && !guarded.is_lease() && is_write
}

impl Service<'_> {
    /// Answers such a request.
    pub(super) async fn answer_restated(
        &self,
        client: &mut dyn Client,
        guarded: &GuardedRequest,
    ) -> Result<Answer, Halt> {
        let rules = rules_of(guarded)?;
        let (mut head, has_content, mut guarded) =
            (RequestHeader::clone(client.head()), client.has_content(), guarded.clone());
        if rules.lenient_tags {
            quote_tags(&mut head, &guarded, rules)?;
        }
        if has_tagged_bodies(&guarded, rules) {
            ask_for_whole(&mut head)?;
        }
        let mut body = None;
        if may_name_version(&guarded, rules) {
            let mut versions = Vec::new();
            for name in rules.version_sources.iter().filter_map(VersionSource::parameter) {
                versions.extend(take_from_query(&mut head, &mut guarded, name)?);
            }
            let mut members = rules.version_sources.iter().filter_map(VersionSource::member).peekable();
            if members.peek().is_some() && has_content && may_have_version(&head.headers)? {
                let received = self.guard.bodies().receive(client).await.map_err(refusals::of_body)?;
                for pointer in members {
                    versions.extend(version_in(&received, pointer).await?);
                }
                body = Some(received);
            }
            if let Some(value) = stated_condition(&head.headers, &versions)? {
                head.insert_header(header::IF_MATCH, value)?;
            }
        }
        if has_tagged_bodies(&guarded, rules)
            && guarded.methods.usages.changes()
            && has_content
            && may_have_tag(&head.headers, rules)
        {
            let received = match body {
                Some(received) => received,
                None => self.guard.bodies().receive(client).await.map_err(refusals::of_body)?,
            };
            body = Some(take_tag(&head, rules, received).await?);
        }
        // The body may have named the method or the resource, and was received for that.
        let body = body.or_else(|| client.received());
        let mut client = ReceivedClient { client, head: head.into(), has_content, body };
        self.answer_as_stated(&mut client, &guarded).await
    }
}

/// Gives the tags of the conditions the quotes that they lack.
fn quote_tags(head: &mut RequestHeader, guarded: &GuardedRequest, rules: &GuardRules) -> pingora::Result<()> {
    for name in [header::IF_MATCH, header::IF_NONE_MATCH] {
        let weakens = name == header::IF_MATCH && rules.compare == Compare::Opaque;
        let Some(value) = well_written(&head.headers, &name, weakens) else { continue };
        if let Some(left_out) = LENIENT.due() {
            tracing::warn!(
                route = %guarded.route.name, field = name.as_str(), left_out,
                "a client writes its tags otherwise than RFC 9110 demands; lenient_tags = true accepts them"
            );
        }
        head.insert_header(name, value)?;
    }
    Ok(())
}

/// Takes the versions that this parameter names out of the target. The upstream gets the target as it came.
fn take_from_query(
    head: &mut RequestHeader,
    guarded: &mut GuardedRequest,
    name: &String,
) -> Result<Vec<EntityTag>, Halt> {
    let versions = versions_in_query(head.raw_path(), name)?;
    let target = query::without(head.raw_path(), |parameter| query::is_one_of(parameter, &[name]));
    if target != head.raw_path() && guarded.forwarded_target.is_none() {
        guarded.forwarded_target = Some(guarded.target_at_upstream(head.raw_path()).into());
    }
    head.set_raw_path(&target)?;
    Ok(versions)
}

/// True if content with these fields can name a version. What some server reads as JSON must be readable to all: a client
/// whose version is not found could take its write for a checked one.
fn may_have_version(headers: &HeaderMap) -> Result<bool, Refusal> {
    if is_declared_json(headers) {
        return Ok(!is_declared_json_patch(headers));
    }
    if !content_type::may_be_json(headers) {
        return Ok(false);
    }
    let detail = "the body may name the version that the write is based on: send JSON in UTF-8, as application/json or \
                  another type application/…+json, with no other charset than utf-8 and without Content-Encoding";
    Err(Refusal::new(Code::UnsupportedMediaType, detail))
}

/// Returns the version that a member of a JSON body names.
async fn version_in(body: &Body, pointer: &JsonPointer) -> Result<Option<EntityTag>, Halt> {
    let wanted = pointer.clone();
    let read = body.read_with(move |text| version_from_json(IoRead::new(text), &wanted)).await;
    match read.map_err(|error| refusals::of_spool(&error))? {
        Ok(version) => Ok(version.map(|text| version_of(text.as_bytes())).transpose()?),
        Err(_) => Err(malformed(format!(
            "the member {pointer} of the body names the version that the write is based on: send one JSON object in UTF-8 \
             that has it once, as a string or an integer of at most 2^53; if there is no version yet, leave the member out"
        ))
        .into()),
    }
}

//! A request that rests for long, in little memory.
//!
//! # Design
//!
//! *Why not the request itself?* A client may watch a resource for hours, and its right is asked for each few minutes. As a
//! map, the fields of a browser take several kibibytes; as lines, a few hundred bytes.

use bytes::Bytes;
use http::{Method, Version};
use pingora::http::RequestHeader;

use super::{Affinity, AnnouncedContent, GuardedRoute, Request, Sender};
use crate::{
    core::{policy::GuardRules, resource::ResourceKey, tags::precondition::Preconditions},
    upstream::fields::FieldsOfHead as _,
};

/// A request that rests.
pub(crate) struct RestingRequest {
    place: GuardedRoute,
    key: ResourceKey,
    judged: Method,
    sender: Sender,
    method: Method,
    version: Version,
    target: Box<[u8]>,
    /// A line for each field: its name, a colon, and its value.
    fields: Box<[u8]>,
}

impl Request {
    /// Lays a request to rest that has no content, no preconditions and no destination.
    pub(crate) fn rest(self) -> RestingRequest {
        // The variant is found once, and is kept.
        self.variant();
        let mut fields = Vec::new();
        for (name, value) in self.head.spelled_fields() {
            fields.extend_from_slice(name.as_bytes());
            fields.push(b':');
            fields.extend_from_slice(value.as_bytes());
            fields.push(b'\n');
        }
        RestingRequest {
            place: self.place,
            key: self.key,
            judged: self.method,
            sender: self.sender,
            method: self.head.method.clone(),
            version: self.head.version,
            target: self.head.raw_path().into(),
            fields: fields.into(),
        }
    }
}

impl RestingRequest {
    /// The rules of the route.
    pub(crate) fn rules(&self) -> &GuardRules {
        &self.place.rules
    }

    /// Returns the request as it was.
    pub(crate) fn wake(&self) -> pingora::Result<Request> {
        let mut head = RequestHeader::build(self.method.clone(), &self.target, None)?;
        head.set_version(self.version);
        for line in self.fields.split(|octet| *octet == b'\n') {
            if let Some(end) = line.iter().position(|octet| *octet == b':') {
                let (name, value) = line.split_at(end);
                head.append_header(Bytes::copy_from_slice(name), value.get(1..).unwrap_or_default())?;
            }
        }
        Ok(Request {
            place: self.place.without_destination(),
            key: self.key.clone(),
            method: self.judged.clone(),
            head: head.into(),
            content: AnnouncedContent::none(),
            conditions: Preconditions::default(),
            sender: self.sender.clone(),
            affinity: Affinity::default(),
        })
    }
}

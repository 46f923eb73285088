//! Removals of several objects by one request (`DeleteObjects`): the list in its body, and the result in its answer.
//!
//! # Design
//!
//! *Why is so little read?* What the proxy judges must be what the server removes. Some lists have several readings: an
//! element that one reader knows and another does not, a prefix, or an object with two keys. Such a list is refused.

use std::collections::HashMap;

use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use percent_encoding::{NON_ALPHANUMERIC, percent_encode};
use quick_xml::events::{BytesStart, Event};

use crate::{
    core::{
        http::{
            readings::{query, query_names::is_only_read_as},
            request_target::{RESERVED_IN_PATH, split_query},
        },
        policy::TagSource,
        records::steps::Outcome,
        refusal::{Code, Refusal},
    },
    dialect::{
        Incoming, Response,
        markup::{Unreadable, content_of, next, reader, text_of},
        xml,
    },
};

/// The largest number of objects in a list, as S3 has it.
pub const REMOVALS_MAX: usize = 1_000;

/// The longest list that is read, in bytes: a thousand of the longest names, with each second character escaped.
pub const LIST_BYTES_MAX: usize = 4 * 1024 * 1024;

/// The namespace of S3's documents, which their writers may leave out.
const NAMESPACE: &str = "http://s3.amazonaws.com/doc/2006-03-01/";

/// One object of a list, as its request names it.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Removal {
    /// The name in its bucket.
    pub key: String,
    /// The version that is removed, if it is not the current state.
    pub version: Option<String>,
    /// The tag that the object must have.
    pub tag: Option<HeaderValue>,
}

/// A list of objects to remove.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RemovalList {
    /// The objects.
    pub removals: Vec<Removal>,
    /// True if the answer tells only of objects that are still there.
    pub is_quiet: bool,
}

/// The reason why an object of a list is not removed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotRemoved {
    /// The name of the error.
    pub code: &'static str,
    /// The remedy.
    pub message: String,
}

/// True if every reader takes a request for a removal of the objects that its body lists.
pub(super) fn is_list(request: Incoming<'_>) -> bool {
    let (_, query) = split_query(request.target);
    let parameters = || query.into_iter().flat_map(query::parameters).filter(|parameter| !parameter.is_empty());
    let is_delete = |parameter: &&[u8]| matches!(*parameter, b"delete" | b"delete=");
    let is_beside = |parameter: &[u8]| {
        let name = query::name_of(parameter);
        is_only_read_as(name, "x-id") || signs(&parameter)
    };
    *request.method == Method::POST
        && request.other_methods.is_empty()
        && parameters().filter(is_delete).count() == 1
        && parameters().filter(|parameter| !is_delete(parameter)).all(is_beside)
        && !request.headers.contains_key(header::CONTENT_ENCODING)
        && is_utf8(request.headers)
}

/// True if a parameter of a query is a part of its signature.
fn signs(parameter: &&[u8]) -> bool {
    parameter.get(..6).is_some_and(|start| start.eq_ignore_ascii_case(b"x-amz-"))
}

/// True if the media type names no other encoding than UTF-8.
fn is_utf8(headers: &HeaderMap) -> bool {
    let mut types = headers.get_all(header::CONTENT_TYPE).iter().map(|value| value.as_bytes().to_ascii_lowercase());
    types.all(|value| {
        let is_named = |name: &[u8]| value.windows(name.len()).any(|part| part == name);
        !is_named(b"charset") || is_named(b"utf-8")
    })
}

impl RemovalList {
    /// Reads a list. `etag` is where the tags of the bucket come from.
    ///
    /// # Errors
    ///
    /// The list cannot be read in one way alone, is too long, or has a condition that would not be judged.
    pub fn parse(document: &[u8], etag: &TagSource) -> Result<Self, Refusal> {
        let Ok(S3Document { root, elements }) = S3Document::read(document) else { return Err(malformed()) };
        let mut list = Self { removals: Vec::new(), is_quiet: false };
        let mut quiet = None;
        for element in elements {
            match (&*element.name, &*element.text) {
                ("Object", _) => list.removals.push(removal(&element, etag)?),
                ("Quiet", text @ ("true" | "false")) if element.members.is_empty() && quiet.is_none() => {
                    quiet = Some(text == "true");
                }
                _ => return Err(malformed()),
            }
        }
        list.is_quiet = quiet.unwrap_or_default();
        if root == "Delete" && (1..=REMOVALS_MAX).contains(&list.removals.len()) { Ok(list) } else { Err(malformed()) }
    }
}

fn removal(element: &Element, etag: &TagSource) -> Result<Removal, Refusal> {
    let mut found = (None, None, None);
    for (name, text) in &element.members {
        let place = match &**name {
            "Key" => &mut found.0,
            "VersionId" => &mut found.1,
            "ETag" => &mut found.2,
            "Size" | "LastModifiedTime" if *etag == TagSource::Delegate => continue,
            "Size" | "LastModifiedTime" => return Err(not_judged()),
            _ => return Err(malformed()),
        };
        if place.replace(text.clone()).is_some() {
            return Err(malformed());
        }
    }
    let (Some(key), version, tag) = found else { return Err(malformed()) };
    // Some readers trim what they read.
    let is_plain = |text: &String| !text.is_empty() && text.trim() == text;
    if ![&key].into_iter().chain(&version).chain(&tag).all(is_plain) {
        return Err(malformed());
    }
    let tag = tag.map(HeaderValue::try_from).transpose().map_err(|_error| malformed())?;
    Ok(Removal { key, version, tag })
}

fn malformed() -> Refusal {
    let detail = format!(
        "send a Delete document in UTF-8 of one to {REMOVALS_MAX} elements Object, each with one Key and at most one \
         VersionId and ETag, and with no prefixes, comments or blanks around a text"
    );
    Refusal::new(Code::MalformedRequest, detail).called(400, "MalformedXML")
}

fn not_judged() -> Refusal {
    let detail = "this proxy cannot judge the Size or LastModifiedTime of an object, and the server behind it may ignore \
                  them: send the ETag of each object";
    Refusal::new(Code::NotSupported, detail)
}

impl Removal {
    /// Returns the target of a request that removes the object alone. `list` is that of the request for the list, whose
    /// signature it keeps: it says who the client is.
    pub fn target(&self, list: &[u8]) -> Vec<u8> {
        let (bucket, query) = split_query(list);
        let bucket = bucket.strip_suffix(b"/").unwrap_or(bucket);
        let name = percent_encode(self.key.as_bytes(), RESERVED_IN_PATH).to_string();
        let mut target = [bucket, b"/", name.as_bytes()].concat();
        let mut parameters: Vec<&[u8]> = query.into_iter().flat_map(query::parameters).filter(signs).collect();
        let version = self
            .version
            .as_ref()
            .map(|version| ["versionId=", &percent_encode(version.as_bytes(), NON_ALPHANUMERIC).to_string()].concat());
        parameters.extend(version.as_ref().map(String::as_bytes));
        if !parameters.is_empty() {
            target.extend([b"?", &*parameters.join(&b'&')].concat());
        }
        target
    }
}

/// Returns the path of the bucket that a target names: it has one segment.
pub fn bucket_of(target: &[u8]) -> Option<&[u8]> {
    let (path, _) = split_query(target);
    let path = path.strip_suffix(b"/").unwrap_or(path);
    path.strip_prefix(b"/").is_some_and(|name| !name.is_empty() && !name.contains(&b'/')).then_some(path)
}

/// Returns the answer to a list of which nothing was removed. Each object has its reason.
pub fn none_removed(objects: &[(&Removal, NotRemoved)]) -> Response {
    let mut document = xml::Writer::begin_with("DeleteResult", &[("xmlns", NAMESPACE)]);
    for (Removal { key, version, .. }, NotRemoved { code, message }) in objects {
        document.element("Error", |error| {
            error.text("Key", key);
            if let Some(version) = version {
                error.text("VersionId", version);
            }
            error.text("Code", code);
            error.text("Message", message);
        });
    }
    Response::document(StatusCode::OK, xml::CONTENT_TYPE, document.end("DeleteResult"))
}

/// Returns what became of each object of a list, by the answer of the server: its status and, if it is whole, its body.
pub fn outcomes(list: &RemovalList, status: StatusCode, body: Option<&[u8]>) -> Vec<Outcome> {
    let of_status = Outcome::of_status(status);
    let read = body.filter(|_| of_status == Outcome::Applied).and_then(|body| S3Document::read(body).ok());
    let Some(S3Document { elements, .. }) = read.filter(|document| document.root == "DeleteResult") else {
        let outcome = if of_status == Outcome::Applied { Outcome::Unclear } else { of_status };
        return vec![outcome; list.removals.len()];
    };
    let mut told: HashMap<&str, Vec<&Element>> = HashMap::new();
    for element in &elements {
        told.entry(element.member("Key").unwrap_or_default()).or_default().push(element);
    }
    let of = |removal: &Removal| {
        let told = told.get(&*removal.key).map(Vec::as_slice).unwrap_or_default();
        let version = |element: &&&Element| element.member("VersionId") == removal.version.as_deref();
        let mut outcomes = told.iter().filter(version).map(|element| element.outcome());
        match (outcomes.next(), told) {
            (Some(first), _) if outcomes.all(|other| other == first) => first,
            // A quiet answer does not list the removed objects.
            (None, []) if list.is_quiet => Outcome::Applied,
            _ => Outcome::Unclear,
        }
    };
    list.removals.iter().map(of).collect()
}

/// A document of S3: a root, whose elements hold a text, or elements that hold one.
#[derive(Default)]
struct S3Document {
    root: String,
    elements: Vec<Element>,
}

/// An element below the root.
#[derive(Default)]
struct Element {
    name: String,
    text: String,
    members: Vec<(String, String)>,
}

impl S3Document {
    fn read(document: &[u8]) -> Result<Self, Unreadable> {
        let mut reader = reader(text_of(document)?);
        let (mut found, mut depth) = (Self::default(), 0_usize);
        loop {
            let event = next(&mut reader)?;
            match &event {
                Event::Start(start) => {
                    found.begin(depth, start)?;
                    depth += 1;
                }
                Event::Empty(start) => found.begin(depth, start)?,
                Event::End(_) => depth = depth.checked_sub(1).ok_or(Unreadable::Markup)?,
                Event::Eof if depth == 0 && !found.root.is_empty() => return found.without_mixed_text(),
                Event::Eof | Event::Comment(_) | Event::PI(_) => return Err(Unreadable::Markup),
                other => found.add(depth, &content_of(other).ok_or(Unreadable::Markup)?)?,
            }
        }
    }

    /// Begins an element at this depth. Only the names of S3 are known, without a prefix.
    fn begin(&mut self, depth: usize, start: &BytesStart<'_>) -> Result<(), Unreadable> {
        let name = start.name().into_inner().to_owned();
        let are_plain = start.attributes().all(|attribute| {
            attribute.is_ok_and(|found| found.key.into_inner() == "xmlns" && *found.value == *NAMESPACE)
        });
        match (depth, self.elements.last_mut()) {
            _ if !are_plain || name.contains(':') => return Err(Unreadable::Markup),
            (0, _) if self.root.is_empty() => self.root = name,
            (1, _) => self.elements.push(Element { name, ..Element::default() }),
            (2, Some(element)) => element.members.push((name, String::new())),
            _ => return Err(Unreadable::Markup),
        }
        Ok(())
    }

    fn add(&mut self, depth: usize, text: &str) -> Result<(), Unreadable> {
        match (depth, self.elements.last_mut()) {
            (2, Some(element)) => element.text.push_str(text),
            (3, Some(element)) => element.members.iter_mut().last().ok_or(Unreadable::Markup)?.1.push_str(text),
            _ if text.trim().is_empty() => {}
            _ => return Err(Unreadable::Markup),
        }
        Ok(())
    }

    fn without_mixed_text(self) -> Result<Self, Unreadable> {
        let is_mixed = |element: &Element| !element.members.is_empty() && !element.text.trim().is_empty();
        if self.elements.iter().any(is_mixed) { Err(Unreadable::Markup) } else { Ok(self) }
    }
}

impl Element {
    fn member(&self, name: &str) -> Option<&str> {
        self.members.iter().find(|(other, _)| other == name).map(|(_, text)| &**text)
    }

    /// Returns the outcome for its object, by this element of a result.
    fn outcome(&self) -> Outcome {
        match (&*self.name, self.member("Code")) {
            ("Deleted", _) => Outcome::Applied,
            ("Error", Some("AccessDenied")) => Outcome::NotApplied,
            ("Error", Some("PreconditionFailed" | "NoSuchKey" | "NoSuchVersion")) => Outcome::NotAppliedAsKnown,
            _ => Outcome::Unclear,
        }
    }
}

#[cfg(test)]
#[path = "removals_tests.rs"]
mod tests;

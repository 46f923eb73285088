//! The backend: a few resources that change when it acts on a write, and the tags that it shows for them.

use std::{
    collections::{BTreeMap, BTreeSet},
    time::Duration,
};

use http::Method;

use crate::{
    dates::{self, Dates},
    heads::Heads,
    metadata, next_member, trees,
    world::{Response, Sent},
};

/// How precise the backend's own tags are.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Tags {
    /// Each state has its own tag.
    Precise,
    /// A modification time in seconds.
    Seconds,
    /// Two tags that alternate.
    Alternating,
    /// Like [`Tags::Alternating`], but one of the two is spelled like the other with a suffix of ifmatch.
    LikeSuffixed,
}

/// The properties of a backend.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub tags: Tags,
    /// True if the answer to a write contains the new tag.
    pub tells_tag: bool,
    /// True if it judges `If-Match` itself.
    pub judges: bool,
    /// True if the body shows the tag too.
    pub tag_in_body: bool,
    /// The number of different contents: later states repeat them.
    pub contents: u32,
    /// True if a write of an item changes its document too, and the reverse.
    pub item_touches_document: bool,
    pub document_touches_item: bool,
    /// True if a second server has none of the resources.
    pub has_servers_apart: bool,
    pub dates: Dates,
    /// True if others write without ifmatch.
    pub others_write: bool,
    /// How much later than `late_write_window` an abandoned write may be applied. The promise is for none.
    pub later_by: Duration,
    pub heads: Heads,
    /// The number of changes of a resource of which one keeps another content than was sent; `None` if all keep it.
    pub changes_each: Option<u64>,
}

/// The way in which a resource was changed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A write that replaces the state that it was based on.
    Replaced,
    /// A write that appends: it runs beside any writes in flight.
    Beside,
    /// A write of another resource. No write of this one may replace it unseen.
    Touched,
}

/// One change of a resource.
#[derive(Clone, Copy, Debug, Hash)]
pub struct Change {
    pub by: Option<usize>,
    pub kind: Kind,
    /// The content after the change; `None` if it left no representation.
    pub content: Option<u32>,
    /// The metadata after the change; `None` if it left no document with them.
    pub metadata: Option<u32>,
    pub second: u64,
}

#[derive(Clone, Debug, Default, Hash)]
pub struct Resource {
    pub changes: Vec<Change>,
}

impl Resource {
    pub fn content(&self) -> Option<u32> {
        self.changes.last().and_then(|change| change.content)
    }

    pub fn metadata(&self) -> Option<u32> {
        self.changes.last().and_then(|change| change.metadata)
    }

    /// Returns the last change of this number of changes.
    pub fn change_at(&self, serial: u64) -> Option<&Change> {
        self.changes.get(usize::try_from(serial).unwrap().checked_sub(1)?)
    }

    /// Returns the content after this number of changes.
    pub fn content_at(&self, serial: u64) -> Option<u32> {
        self.change_at(serial).and_then(|change| change.content)
    }

    /// Returns the number of changes so far.
    pub fn serial(&self) -> u64 {
        self.changes.len() as u64
    }
}

pub struct Backend {
    pub style: Style,
    pub resources: BTreeMap<String, Resource>,
    /// Milliseconds since the beginning.
    pub now: u64,
    /// The incarnation of the proxies' store.
    pub incarnation: u64,
    /// The credentials that may read and write nothing.
    pub denied: BTreeSet<String>,
    /// The files of a queue, with the number of the write that made each, and how many there were.
    pub files: BTreeMap<String, (u64, String)>,
    pub file_writes: u64,
}

/// Returns the resource behind a target, on any of its paths: `/docs/1`, `/alias/1` and `/docs/1/parts/2` are one, with
/// the document beside it.
pub fn resource_of(target: &str) -> String {
    let path = target.split('?').next().unwrap();
    let path = path.strip_suffix(metadata::SUFFIX).unwrap_or(path);
    let path = path.strip_prefix("/.leases").unwrap_or(path);
    let mut segments = path.split('/').skip(1);
    let (collection, id) = (segments.next().unwrap(), segments.next().unwrap_or_default());
    match collection {
        "tree" | "other" => format!("{collection} {id}"),
        "items" => format!("item {id}"),
        _ => format!("document {id}"),
    }
}

impl Backend {
    pub fn new(style: Style) -> Self {
        Self {
            style,
            resources: BTreeMap::new(),
            now: 0,
            incarnation: 0,
            denied: BTreeSet::new(),
            files: BTreeMap::new(),
            file_writes: 0,
        }
    }

    pub fn resource(&self, name: &str) -> Resource {
        self.resources.get(name).cloned().unwrap_or_default()
    }

    /// Acts on a request at this second. Also returns the resources that a write has changed: the target's own first.
    pub fn act(&mut self, sent: &Sent, second: u64) -> (Response, Vec<String>) {
        if sent.is_elsewhere {
            return (response(404), Vec::new());
        }
        if sent.credentials.as_ref().is_some_and(|credentials| self.denied.contains(credentials)) {
            return (response(403), Vec::new());
        }
        if sent.method.as_str() == "PROPFIND" {
            return (trees::type_of(&sent.target), Vec::new());
        }
        if sent.target == next_member::COLLECTION {
            return (self.index_of_members(), Vec::new());
        }
        let name = resource_of(&sent.target);
        let resource = self.resource(&name);
        if sent.target.ends_with(metadata::SUFFIX) {
            return self.act_on_document(sent, (name, &resource), second);
        }
        let current = resource.content().map(|_| self.tag(&resource));
        let is_dated_before = || dates::is_dated_after(&self.style, &resource, sent);
        if self.style.judges && (!passes(sent, current.as_deref()) || is_dated_before()) {
            let status = if !sent.writes() && sent.if_match.is_none() { 304 } else { 412 };
            return (response(status), Vec::new());
        }
        if !sent.writes() {
            let shown = self.show(&resource);
            let shown = if sent.method == Method::HEAD { self.style.heads.answer(shown) } else { shown };
            return (shown, Vec::new());
        }
        if resource.content().is_none() && (sent.method == Method::PATCH || sent.method == Method::DELETE) {
            return (response(404), Vec::new());
        }
        let created = resource.content().is_none();
        let is_part = sent.target.contains("/parts/");
        let content = sent.value.map(|value| value % self.style.contents);
        let content = content.map(|content| self.style.kept(&sent.method, content, resource.serial()));
        let content = if sent.method == Method::DELETE && !is_part { None } else { content.or(resource.content()) };
        let kind = if sent.method == Method::POST { Kind::Beside } else { Kind::Replaced };
        let (by, metadata) = (sent.request.filter(|_| !sent.is_late_delete), resource.metadata());
        self.change(&name, Change { by, kind, content, metadata, second });
        let mut changed = vec![name.clone()];
        if let Some(other) = self.touched(&name).filter(|other| self.resource(other).content().is_some()) {
            let content = self.resource(&other).content();
            let metadata = self.resource(&other).metadata();
            self.change(&other, Change { by: sent.request, kind: Kind::Touched, content, metadata, second });
            changed.push(other);
        }
        let resource = self.resource(&name);
        let mut answer = response(if created { 201 } else { 204 });
        answer.fields.push(("x-serial", resource.serial().to_string()));
        answer.fields.extend(self.style.dates.sent(self.now));
        if self.style.tells_tag && content.is_some() && sent.method != Method::POST {
            answer.fields.extend(self.tag_fields(&resource));
        }
        (answer, changed)
    }

    /// Acts on a request for the document with the metadata of a resource. A plain backend knows of no such thing, and
    /// keeps a document without its resource.
    fn act_on_document(
        &mut self,
        sent: &Sent,
        (name, resource): (String, &Resource),
        second: u64,
    ) -> (Response, Vec<String>) {
        let Some(metadata) = resource.metadata() else {
            if sent.method != Method::PUT {
                return (response(404), Vec::new());
            }
            return self.describe(sent, (name, resource), second);
        };
        if sent.writes() {
            return self.describe(sent, (name, resource), second);
        }
        (Response { body: metadata::document(metadata), ..response(200) }, Vec::new())
    }

    fn describe(&mut self, sent: &Sent, (name, resource): (String, &Resource), second: u64) -> (Response, Vec<String>) {
        let metadata = sent.value.filter(|_| sent.method == Method::PUT);
        let content = resource.content();
        self.change(&name, Change { by: sent.request, kind: Kind::Replaced, content, metadata, second });
        (response(204), vec![name])
    }

    /// Returns the resource that a write of this one changes too.
    pub fn touched(&self, name: &str) -> Option<String> {
        match name.split_once(' ').unwrap() {
            ("item", id) if self.style.item_touches_document => Some(format!("document {id}")),
            ("document", id) if self.style.document_touches_item => Some(format!("item {id}")),
            _ => None,
        }
    }

    pub fn change(&mut self, name: &str, change: Change) {
        self.resources.entry(name.to_owned()).or_default().changes.push(change);
    }

    fn show(&self, resource: &Resource) -> Response {
        let Some(content) = resource.content() else { return response(404) };
        let tag = self.tag(resource);
        let body = if self.style.tag_in_body {
            format!("{{\"is\":{content},\"rev\":\"{tag}\"}}")
        } else {
            content.to_string()
        };
        let mut fields = self.tag_fields(resource);
        fields.push(("x-serial", resource.serial().to_string()));
        fields.extend(self.style.dates.sent(self.now));
        fields.extend(resource.changes.last().and_then(|change| self.style.dates.modified(change)));
        Response { status: 200, fields, body }
    }

    fn tag_fields(&self, resource: &Resource) -> Vec<(&'static str, String)> {
        let tag = self.tag(resource);
        vec![("etag", format!("\"{tag}\"")), ("x-rev", tag)]
    }

    pub fn tag(&self, resource: &Resource) -> String {
        match self.style.tags {
            Tags::Precise => format!("s{}", resource.serial()),
            Tags::Seconds => format!("t{}", resource.changes.last().map_or(0, |change| change.second)),
            Tags::Alternating => format!("a{}", resource.serial() % 2),
            Tags::LikeSuffixed if resource.serial().is_multiple_of(2) => "a".to_owned(),
            // The second number of most versions is about that of the changes.
            Tags::LikeSuffixed => format!("a~{:016x}-{}", self.incarnation, 2 * resource.serial() + 2),
        }
    }
}

pub fn response(status: u16) -> Response {
    Response { status, fields: Vec::new(), body: String::new() }
}

pub fn passes(sent: &Sent, current: Option<&str>) -> bool {
    let names = |list: &str| match current {
        Some(current) => list == "*" || list.split(", ").any(|tag| tag == format!("\"{current}\"")),
        None => false,
    };
    sent.if_match.as_deref().is_none_or(names) && !sent.if_none_match.as_deref().is_some_and(names)
}

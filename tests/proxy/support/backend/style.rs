//! Backends as they are in the field: coarse tags in one place or another, several targets of one content, and writes that
//! change more than their target.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use super::Answer;

/// How good its tags are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Tags {
    /// Each state has its own.
    Precise,
    /// A modification time in seconds.
    Seconds,
    /// Two tags that take turns.
    Alternating,
}

/// How good its modification dates are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Dates {
    /// It has none.
    Absent,
    /// The second of the last change.
    Seconds,
    /// The same, cut to steps of this many seconds: later states share one.
    Steps(u64),
}

/// The places where it shows its tags.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Shown {
    Nowhere,
    /// In `ETag`.
    Entity,
    /// In `X-Rev`.
    Field,
    /// In the member `rev` of a JSON object, whose member `is` is the content.
    Member,
}

/// The resource that a target stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Named {
    /// The name of what is kept; several targets may share it.
    pub own: String,
    /// The name of what a write of it changes too. Without that there is nothing to write to.
    pub whole: Option<String>,
}

/// The properties of a backend.
#[derive(Clone, Copy, Debug)]
pub struct Style {
    pub tags: Tags,
    pub dates: Dates,
    pub shown: Shown,
    /// True if the answer to a PUT shows the new tag, in a field.
    pub tells: bool,
    pub named: fn(&str) -> Named,
}

/// The resources of such a backend.
pub(super) struct Kept {
    style: Style,
    resources: BTreeMap<String, Resource>,
}

#[derive(Default)]
struct Resource {
    content: Option<Vec<u8>>,
    changes: u64,
    changed_second: u64,
}

impl Resource {
    fn change(&mut self, content: Option<Vec<u8>>) {
        self.content = content;
        self.changes += 1;
        self.changed_second = SystemTime::now().duration_since(UNIX_EPOCH).expect("it is after 1970").as_secs();
    }
}

impl Kept {
    pub(super) fn new(style: Style) -> Self {
        Self { style, resources: BTreeMap::new() }
    }

    pub(super) fn body(&self, target: &str) -> Option<Vec<u8>> {
        self.resources.get(&(self.style.named)(target).own)?.content.clone()
    }

    /// The answer to a write, and whether it was applied: PUT and POST put their content there, and in the place of the
    /// whole; DELETE removes; only PUT creates.
    pub(super) fn apply(&mut self, method: &str, target: &str, body: &[u8]) -> (Answer, bool) {
        let Named { own, whole } = (self.style.named)(target);
        let is_there = |name: &str| self.resources.get(name).is_some_and(|resource| resource.content.is_some());
        let existed = is_there(&own);
        if whole.as_ref().is_some_and(|whole| !is_there(whole)) || !existed && method != "PUT" {
            return (Answer::status(404), false);
        }
        let content = (method != "DELETE").then(|| body.to_vec());
        if let Some(whole) = whole {
            self.resources.entry(whole).or_default().change(content.clone());
        }
        let resource = self.resources.entry(own).or_default();
        resource.change(content);
        let answer = Answer::status(if existed { 204 } else { 201 });
        if self.style.tells && method == "PUT" { (label(self.style, resource, answer), true) } else { (answer, true) }
    }

    pub(super) fn read(&self, target: &str) -> Answer {
        let resource = self.resources.get(&(self.style.named)(target).own);
        let Some((resource, content)) = resource.and_then(|found| Some((found, found.content.as_ref()?))) else {
            return Answer::status(404).header("Content-Type", "text/plain").body("there is nothing here\n");
        };
        let answer = if self.style.shown == Shown::Member {
            let is = String::from_utf8(content.clone()).expect("the content is text");
            let json = serde_json::json!({ "is": is, "rev": tag(self.style, resource) });
            Answer::status(200).header("Content-Type", "application/json").body(json.to_string())
        } else {
            Answer::status(200).header("Content-Type", "text/plain").body(content)
        };
        label(self.style, resource, answer)
    }
}

fn label(style: Style, resource: &Resource, answer: Answer) -> Answer {
    let tag = tag(style, resource);
    let answer = dated(style, resource, answer);
    match style.shown {
        Shown::Entity => answer.header("ETag", &format!("\"{tag}\"")),
        Shown::Field => answer.header("X-Rev", &tag),
        Shown::Nowhere | Shown::Member => answer,
    }
}

fn dated(style: Style, resource: &Resource, answer: Answer) -> Answer {
    let step = match style.dates {
        Dates::Absent => return answer,
        Dates::Seconds => 1,
        Dates::Steps(seconds) => seconds,
    };
    let modified = UNIX_EPOCH + Duration::from_secs(resource.changed_second / step * step);
    answer.header("Last-Modified", &httpdate::fmt_http_date(modified))
}

fn tag(style: Style, resource: &Resource) -> String {
    match style.tags {
        Tags::Precise => format!("s{}", resource.changes),
        Tags::Seconds => format!("t{}", resource.changed_second),
        Tags::Alternating => format!("a{}", resource.changes % 2),
    }
}

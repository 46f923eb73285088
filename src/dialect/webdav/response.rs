//! One response of a multistatus (RFC 4918 section 14.24), as the client gets it: with the locks and the tag that this
//! proxy knows in place of those of the backend.

use std::ops::Range;

use quick_xml::{NsReader, events::Event};

use super::{
    NAMESPACE,
    documents::{ShownLock, active_locks, supported_locks},
    markup::{NESTING_MAX, Unreadable, content_of, escaped, name_in, next, reader, text_of},
    multistatus::MalformedMultistatus,
    question::Question,
};

/// The properties that this proxy answers.
const OWN: [&str; 3] = ["lockdiscovery", "supportedlock", "getetag"];

/// The facts that this proxy knows about a resource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ResourceFacts {
    /// Its locks.
    pub locks: Vec<ShownLock>,
    /// True if it can be locked.
    pub can_be_locked: bool,
    /// The tag that a GET of it would answer.
    pub etag: Option<String>,
}

/// A response of the backend about one resource.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MultistatusResponse {
    text: String,
    href: String,
    etag: Option<String>,
    /// The parts that are left out, in order.
    cuts: Vec<Range<usize>>,
    /// The place at which properties are added, if it shows properties.
    end_of_properties: Option<usize>,
    /// True if one of the lists of properties stays.
    keeps_properties: bool,
}

impl From<Unreadable> for MalformedMultistatus {
    fn from(_unreadable: Unreadable) -> Self {
        Self
    }
}

impl MultistatusResponse {
    /// Reads an element below the root, whose start tag is `root`. `None`: it is no response about one resource.
    ///
    /// # Errors
    ///
    /// The element cannot be read.
    pub fn read(root: &[u8], element: &[u8]) -> Result<Option<Self>, MalformedMultistatus> {
        let text = [root, element].concat();
        let (text, skipped) = (text_of(&text)?, root.len());
        let mut reader = reader(text);
        next(&mut reader)?;
        let mut reading = ResponseReading::default();
        reading.read(&mut reader, skipped)?;
        if !reading.is_response || reading.hrefs != 1 {
            return Ok(None);
        }
        let text = text.get(skipped..).ok_or(MalformedMultistatus)?.to_owned();
        let ResponseReading { href, etag, cuts, end_of_properties, keeps_properties, end_of_href, has_status, .. } =
            reading;
        // Some servers leave the lists out if they know none of the properties.
        let end_of_properties = end_of_properties.or((!has_status).then_some(end_of_href));
        let href = href.trim().to_owned();
        Ok(Some(Self { text, href, etag, cuts, end_of_properties, keeps_properties }))
    }

    /// The reference to the resource.
    pub fn href(&self) -> &str {
        &self.href
    }

    /// The tag of the resource, as the backend tells it.
    pub fn etag(&self) -> Option<&str> {
        self.etag.as_deref()
    }

    /// Returns the element with these facts.
    pub fn with(&self, question: Question, facts: &ResourceFacts) -> String {
        let Some(end) = self.end_of_properties else { return self.text.clone() };
        let added = added(question, facts, self.keeps_properties);
        let mut element = String::with_capacity(self.text.len() + added.len());
        let mut from = 0;
        for cut in self.cuts.iter().filter(|cut| cut.start < end) {
            element.push_str(self.text.get(from..cut.start).unwrap_or_default());
            from = cut.end;
        }
        element.push_str(self.text.get(from..end.max(from)).unwrap_or_default());
        element.push_str(&added);
        element.push_str(self.text.get(end.max(from)..).unwrap_or_default());
        element
    }
}

/// The lists of properties that this proxy adds.
fn added(question: Question, facts: &ResourceFacts, keeps_properties: bool) -> String {
    let named = |name: &str| format!("<D:{name}/>");
    let mut found = String::new();
    if question.lockdiscovery {
        found.push_str(&if question.is_of_names { named("lockdiscovery") } else { active_locks(&facts.locks) });
    }
    if question.supportedlock {
        let told = || supported_locks(facts.can_be_locked);
        found.push_str(&if question.is_of_names { named("supportedlock") } else { told() });
    }
    let mut missing = "";
    match &facts.etag {
        _ if !question.getetag => {}
        Some(_) if question.is_of_names => found.push_str("<D:getetag/>"),
        Some(etag) => found.push_str(&["<D:getetag>", &escaped(etag), "</D:getetag>"].concat()),
        None if question.is_by_name => missing = "<D:getetag/>",
        None => {}
    }
    let list = |properties: &str, status: &str| {
        format!(
            "<D:propstat xmlns:D=\"{NAMESPACE}\"><D:prop>{properties}</D:prop>\
             <D:status>HTTP/1.1 {status}</D:status></D:propstat>"
        )
    };
    let mut lists = String::new();
    // A response has one list at least.
    if !found.is_empty() || missing.is_empty() && !keeps_properties {
        lists.push_str(&list(&found, "200 OK"));
    }
    if !missing.is_empty() {
        lists.push_str(&list(missing, "404 Not Found"));
    }
    lists
}

/// The parts of a response that were found so far.
#[derive(Default)]
struct ResponseReading {
    is_response: bool,
    hrefs: usize,
    href: String,
    etag: Option<String>,
    cuts: Vec<Range<usize>>,
    end_of_properties: Option<usize>,
    keeps_properties: bool,
    /// The end of the reference, after which lists of properties stand.
    end_of_href: usize,
    has_status: bool,
    /// The list of properties that is being read.
    list: PropertyList,
    /// The place where the property of this proxy begins that is being read.
    own_from: Option<usize>,
}

/// A list of properties.
#[derive(Default)]
struct PropertyList {
    from: usize,
    cuts: Vec<Range<usize>>,
    others: usize,
}

/// The elements from the response down to the one that is being read, if they matter.
type ElementPath = Vec<Option<&'static str>>;

fn known(name: &str) -> Option<&'static str> {
    const NAMES: [&str; 5] = ["response", "href", "propstat", "prop", "status"];
    NAMES.into_iter().chain(OWN).find(|known| *known == name)
}

impl ResponseReading {
    fn read(&mut self, reader: &mut NsReader<&[u8]>, skipped: usize) -> Result<(), MalformedMultistatus> {
        let place = |reader: &NsReader<&[u8]>| {
            let place = usize::try_from(reader.buffer_position()).map_err(|_error| MalformedMultistatus)?;
            place.checked_sub(skipped).ok_or(MalformedMultistatus)
        };
        let mut path: ElementPath = Vec::new();
        loop {
            let from = place(reader)?;
            let event = next(reader)?;
            match &event {
                Event::Start(start) | Event::Empty(start) => {
                    path.push(name_in(reader, start, NAMESPACE).and_then(known));
                    self.begin(&path, from);
                    if path.len() > NESTING_MAX {
                        return Err(MalformedMultistatus);
                    }
                    if matches!(event, Event::Empty(_)) {
                        self.end(&path, place(reader)?);
                        path.pop();
                    }
                }
                Event::End(_) => {
                    self.end(&path, place(reader)?);
                    path.pop();
                }
                Event::Eof => return Err(MalformedMultistatus),
                other => self.content(&path, content_of(other).ok_or(MalformedMultistatus)?.as_str()),
            }
            if path.is_empty() {
                return Ok(());
            }
        }
    }

    fn begin(&mut self, path: &[Option<&'static str>], from: usize) {
        match path {
            [Some("response")] => self.is_response = true,
            [_, Some("href")] => self.hrefs += 1,
            [_, Some("status")] => self.has_status = true,
            [_, Some("propstat")] => self.list = PropertyList { from, ..PropertyList::default() },
            [_, Some("propstat"), Some("prop"), property] => match property {
                Some(name) if OWN.contains(name) => self.own_from = Some(from),
                _ => self.list.others += 1,
            },
            _ => {}
        }
    }

    fn content(&mut self, path: &[Option<&'static str>], text: &str) {
        match path {
            [_, Some("href")] => self.href.push_str(text),
            [_, Some("propstat"), Some("prop"), Some("getetag")] if !text.is_empty() => {
                self.etag.get_or_insert_default().push_str(text);
            }
            _ => {}
        }
    }

    fn end(&mut self, path: &[Option<&'static str>], to: usize) {
        match path {
            [_, Some("href")] => self.end_of_href = to,
            [_, Some("propstat"), Some("prop"), Some(_)] => {
                self.list.cuts.extend(self.own_from.take().map(|from| from..to));
            }
            [_, Some("propstat")] => {
                let list = std::mem::take(&mut self.list);
                self.end_of_properties = Some(to);
                if list.others == 0 && !list.cuts.is_empty() {
                    self.cuts.push(list.from..to);
                } else {
                    self.keeps_properties = true;
                    self.cuts.extend(list.cuts);
                }
            }
            _ => {}
        }
    }
}

/// True if a multistatus tells that all was done: each status in it is one of success.
pub fn all_succeeded(multistatus: &[u8]) -> bool {
    let statuses = || {
        let mut reader = reader(text_of(multistatus)?);
        let (mut statuses, mut depth, mut is_status) = (Vec::new(), 0_usize, false);
        loop {
            let event = next(&mut reader)?;
            match &event {
                Event::Start(start) => {
                    depth += 1;
                    is_status = name_in(&reader, start, NAMESPACE) == Some("status");
                    if is_status {
                        statuses.push(String::new());
                    }
                }
                Event::End(_) => {
                    depth = depth.checked_sub(1).ok_or(Unreadable::Markup)?;
                    is_status = false;
                }
                Event::Eof if depth == 0 => return Ok::<_, Unreadable>(statuses),
                Event::Eof => return Err(Unreadable::Markup),
                other => {
                    let text = content_of(other).ok_or(Unreadable::Markup)?;
                    if let Some(status) = statuses.last_mut().filter(|_| is_status) {
                        status.push_str(&text);
                    }
                }
            }
        }
    };
    let is_success = |status: &String| {
        let code = status.split_ascii_whitespace().nth(1).unwrap_or_default();
        code.len() == 3 && code.starts_with('2') && code != "207" && code != "202"
    };
    statuses().is_ok_and(|statuses| !statuses.is_empty() && statuses.iter().all(is_success))
}

#[cfg(test)]
#[path = "response_tests.rs"]
mod tests;

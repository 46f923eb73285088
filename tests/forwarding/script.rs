//! Cases: the steps of a client, and those of the backend meanwhile.

use crate::{invariants::Rule, stage::When};

pub type Fields = Vec<(String, String)>;

/// The fields of a table.
pub fn fields(pairs: &[(&str, &str)]) -> Fields {
    pairs.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect()
}

/// The form of the end of a request's body over HTTP/1.1.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Framing {
    /// HTTP/2 ends the stream with the head.
    Nothing,
    /// HTTP/2 tells it too.
    Length(usize),
    /// HTTP/2 has no field for it.
    Chunked,
}

/// A step of a client.
#[derive(Clone, Debug)]
pub enum Step {
    /// Bytes as they are; over HTTP/1.1 alone. `{host}` in them is the host that leads to the backend.
    Raw(Vec<u8>),
    /// The head of the case's request.
    Head,
    /// A piece of its body: a chunk, or a frame.
    Part(Vec<u8>),
    /// The end of its body, with these trailers.
    End(Fields),
    Wait(When),
    /// Waits until the proxy has read what was sent.
    IsRead,
    /// FIN: nothing more is sent.
    HalfClose,
    /// RST, or `RST_STREAM`: the client goes away.
    Abort,
}

/// A step of the backend.
#[derive(Clone, Debug)]
pub enum Act {
    Wait(When),
    Interim(u16, Fields),
    /// The final head. Its fields tell how the body ends; over HTTP/2 those of the connection are left out.
    Head(u16, Fields),
    Data(Vec<u8>),
    /// The end of the answer, with these trailers.
    End(Fields),
    /// Bytes as they are; over HTTP/1.1 alone.
    Raw(Vec<u8>),
    /// FIN.
    Close,
    /// RST, or `RST_STREAM`.
    Abort,
    /// Sends each piece of the body back as it comes.
    Echo,
    /// Sends data until the other side takes no more; so many mebibytes at most.
    Flood(usize),
}

/// One odd exchange.
#[derive(Clone, Debug)]
#[allow(clippy::struct_excessive_bools, reason = "each is a property of its own")]
pub struct Case {
    /// A family, a stroke, and what is odd.
    pub name: String,
    pub method: String,
    pub target: String,
    pub fields: Fields,
    pub framing: Framing,
    pub steps: Vec<Step>,
    /// For each request that comes, in their order; further ones get the last.
    pub acts: Vec<Vec<Act>>,
    /// The methods of the requests that are answered, in their order.
    pub methods: Vec<&'static str>,
    pub is_tunnel: bool,
    /// True if connections of the backend are used again.
    pub keeps_connections: bool,
    pub only_client_of_http_1: bool,
    pub only_backend_of_http_1: bool,
    /// The rules for it, beside those for all cases.
    pub rules: Vec<Rule>,
}

impl Case {
    /// A request without a body, and a plain answer.
    pub fn new(name: impl Into<String>, method: &str) -> Self {
        let name = name.into();
        Self {
            method: method.to_owned(),
            target: format!("/{name}"),
            fields: Fields::new(),
            framing: Framing::Nothing,
            steps: vec![Step::Head],
            acts: vec![plain(200, "plain")],
            methods: vec![],
            is_tunnel: false,
            keeps_connections: false,
            only_client_of_http_1: false,
            only_backend_of_http_1: false,
            rules: vec![],
            name,
        }
    }

    /// Requests as bytes, over HTTP/1.1: so many of them.
    pub fn raw(name: impl Into<String>, bytes: impl AsRef<[u8]>) -> Self {
        let mut case = Self::new(name, "GET");
        case.steps = vec![Step::Raw(bytes.as_ref().to_vec())];
        case.only_client_of_http_1 = true;
        case
    }

    pub fn with(mut self, pairs: &[(&str, &str)]) -> Self {
        self.fields.extend(fields(pairs));
        self
    }

    /// A body that is sent at once.
    pub fn body(self, framing: Framing, body: impl AsRef<[u8]>) -> Self {
        self.parts(framing, &[body.as_ref()])
    }

    pub fn parts(self, framing: Framing, parts: &[&[u8]]) -> Self {
        // A chunk without content would be the last one.
        let parts = parts.iter().filter(|part| !part.is_empty()).map(|part| Step::Part(part.to_vec()));
        let steps = [Step::Head].into_iter().chain(parts).chain([Step::End(Fields::new())]).collect();
        self.steps(framing, steps)
    }

    pub fn steps(mut self, framing: Framing, steps: Vec<Step>) -> Self {
        (self.framing, self.steps) = (framing, steps);
        self
    }

    pub fn acts(mut self, acts: Vec<Act>) -> Self {
        self.acts = vec![acts];
        self
    }

    /// An answer as bytes, once the request has come; over HTTP/1.1 alone.
    pub fn answer(mut self, bytes: impl AsRef<[u8]>) -> Self {
        self.acts = vec![vec![Act::Wait(When::Whole), Act::Raw(bytes.as_ref().to_vec()), Act::Close]];
        self.only_backend_of_http_1 = true;
        self
    }

    /// The methods of several requests, or of one that is sent as bytes.
    pub fn methods(mut self, methods: &[&'static str]) -> Self {
        self.methods = methods.to_vec();
        self
    }

    pub fn rule(mut self, rule: Rule) -> Self {
        self.rules.push(rule);
        self
    }

    /// True if the client leaves its request without an end.
    pub fn is_unfinished(&self) -> bool {
        self.framing != Framing::Nothing && !self.steps.iter().any(|step| matches!(step, Step::End(_)))
    }

    /// True if the answer may come before the end of the request, which then goes on or does not.
    pub fn is_overtaken(&self) -> bool {
        let mut acts = self.acts[0].iter().filter(|act| !matches!(act, Act::Interim(..) | Act::Wait(When::Played)));
        !matches!(acts.next(), Some(Act::Wait(When::Whole))) && !acts.any(|act| matches!(act, Act::Echo | Act::Raw(_)))
    }

    /// The body that the client sends if it comes to its end.
    pub fn sent_body(&self) -> Option<Vec<u8>> {
        let is_ended = self.framing == Framing::Nothing || self.steps.iter().any(|step| matches!(step, Step::End(_)));
        let is_plain = !self.steps.iter().any(|step| matches!(step, Step::Raw(_)));
        let part = |step: &Step| if let Step::Part(bytes) = step { bytes.clone() } else { Vec::new() };
        (is_ended && is_plain).then(|| self.steps.iter().flat_map(part).collect())
    }

    /// The body of the one answer if it comes to its end.
    pub fn answered_body(&self) -> Option<Vec<u8>> {
        let [acts] = self.acts.as_slice() else { return None };
        let is_ended = acts.iter().any(|act| matches!(act, Act::End(_)));
        let is_plain = !acts.iter().any(|act| matches!(act, Act::Raw(_) | Act::Echo | Act::Flood(_)));
        let data = |act: &Act| if let Act::Data(bytes) = act { bytes.clone() } else { Vec::new() };
        (is_ended && is_plain && self.method != "HEAD").then(|| acts.iter().flat_map(data).collect())
    }

    /// How many requests the client sends.
    pub fn sent(&self) -> usize {
        self.methods.len().max(1)
    }
}

/// An answer with a length, once the request has come.
pub fn plain(status: u16, body: &str) -> Vec<Act> {
    let length = body.len().to_string();
    vec![
        Act::Wait(When::Whole),
        Act::Head(status, fields(&[("Content-Length", &length)])),
        Act::Data(body.as_bytes().to_vec()),
        Act::End(Fields::new()),
    ]
}

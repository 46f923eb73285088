//! The resources that a backend keeps.

use std::{
    collections::BTreeMap,
    time::{Duration, SystemTime},
};

use super::{
    Answer,
    style::{Kept, Style},
};

/// The validators that label the answers to GET and HEAD.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Validators {
    #[default]
    None,
    /// An entity-tag that is new with each write.
    Tags,
    /// A Last-Modified an hour ago and a second later with each write: strong (RFC 9110 section 8.8.2.2).
    Dates,
    /// Both.
    TagsAndDates,
}

/// Representations by the exact spelling of their targets.
#[derive(Default)]
pub(super) struct Contents {
    pub(super) validators: Validators,
    representations: BTreeMap<String, Representation>,
    writes: u64,
    /// All of that is replaced if a test says what the backend is like.
    kept: Option<Kept>,
}

struct Representation {
    body: Vec<u8>,
    write: u64,
}

impl Contents {
    pub(super) fn of(style: Style) -> Self {
        Self { kept: Some(Kept::new(style)), ..Self::default() }
    }

    pub(super) fn body(&self, target: &str) -> Option<Vec<u8>> {
        if let Some(kept) = &self.kept {
            return kept.body(target);
        }
        Some(self.representations.get(target)?.body.clone())
    }

    /// Applies a write, and tells its answer and whether anything was done. PUT replaces, DELETE removes, POST and PATCH
    /// append.
    pub(super) fn apply(&mut self, method: &str, target: &str, body: &[u8]) -> (Answer, bool) {
        if let Some(kept) = &mut self.kept {
            return kept.apply(method, target, body);
        }
        (Answer::status(self.apply_plainly(method, target, body)), true)
    }

    fn apply_plainly(&mut self, method: &str, target: &str, body: &[u8]) -> u16 {
        let old = self.representations.remove(target);
        let existed = old.is_some();
        let new = match method {
            "DELETE" => return if existed { 204 } else { 404 },
            "PUT" => body.to_vec(),
            _ => [old.map(|old| old.body).unwrap_or_default().as_slice(), body].concat(),
        };
        self.writes += 1;
        self.representations.insert(target.to_owned(), Representation { body: new, write: self.writes });
        if existed { 204 } else { 201 }
    }

    /// Copies or moves what is at one target to another, and tells the status and whether anything was done.
    pub(super) fn transfer(&mut self, method: &str, from: &str, to: &str, overwrites: bool) -> (Answer, bool) {
        let Some(body) = self.body(from) else { return (Answer::status(404), false) };
        if !overwrites && self.body(to).is_some() {
            return (Answer::status(412), false);
        }
        let (answer, is_applied) = self.apply("PUT", to, &body);
        if method == "MOVE" {
            self.apply("DELETE", from, b"");
        }
        (answer, is_applied)
    }

    /// The answer to a read, as things are now.
    pub(super) fn read(&self, target: &str) -> Answer {
        if let Some(kept) = &self.kept {
            return kept.read(target);
        }
        let Some(Representation { body, write }) = self.representations.get(target) else {
            return Answer::status(404).header("Content-Type", "text/plain").body("there is nothing here\n");
        };
        let mut answer = Answer::status(200).header("Content-Type", "text/plain").body(body);
        if matches!(self.validators, Validators::Tags | Validators::TagsAndDates) {
            answer = answer.header("ETag", &format!("\"write-{write}\""));
        }
        if matches!(self.validators, Validators::Dates | Validators::TagsAndDates) {
            let modified = SystemTime::now() - Duration::from_secs(3600) + Duration::from_secs(*write);
            answer = answer.header("Last-Modified", &httpdate::fmt_http_date(modified));
        }
        answer
    }
}

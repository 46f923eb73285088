//! One guarded request deals with one server: what it was judged by, where it is written and what is read back after it
//! are the same data, even where the servers of an upstream are not quite the same at each moment.

use std::sync::atomic::{AtomicUsize, Ordering};

use crate::upstream::Choice;

/// No server yet.
const NONE: usize = usize::MAX;

/// The server that a request has dealt with.
#[derive(Debug)]
pub(crate) struct Affinity {
    judged: AtomicUsize,
    written: AtomicUsize,
}

impl Default for Affinity {
    fn default() -> Self {
        Self { judged: AtomicUsize::new(NONE), written: AtomicUsize::new(NONE) }
    }
}

impl Affinity {
    /// Where to ask about the resource of this key: where the request was written, if it was. Before that any
    /// server will do, since the answer is what it is judged by.
    pub(crate) fn to_ask<'a>(&self, key: &'a str) -> Choice<'a> {
        match self.written.load(Ordering::Relaxed) {
            NONE => Choice::Hash(key.as_bytes()),
            server => Choice::Only(server),
        }
    }

    /// Where to send the request: to the server by whose answer it was judged, if it was judged by one.
    pub(crate) fn to_send<'a>(&self, key: &'a str) -> Choice<'a> {
        match self.judged.load(Ordering::Relaxed) {
            NONE => self.to_ask(key),
            server => Choice::Only(server),
        }
    }

    /// Begins a new verdict, which what was asked before has no part in.
    pub(crate) fn judge_anew(&self) {
        self.judged.store(NONE, Ordering::Relaxed);
    }

    /// Notes which server has answered a question.
    pub(crate) fn asked(&self, server: usize) {
        self.judged.store(server, Ordering::Relaxed);
    }

    /// Notes which server the request is sent to.
    pub(crate) fn sent(&self, server: usize) {
        self.written.store(server, Ordering::Relaxed);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_write_goes_where_it_was_judged_and_is_read_back_where_it_went() {
        let affinity = Affinity::default();
        assert!(matches!(affinity.to_send("docs:/a"), Choice::Hash(b"docs:/a")));
        affinity.asked(2);
        assert!(matches!(affinity.to_ask("docs:/a"), Choice::Hash(_)), "a verdict may come from any server");
        assert!(matches!(affinity.to_send("docs:/a"), Choice::Only(2)));
        affinity.sent(2);
        assert!(matches!(affinity.to_ask("docs:/a"), Choice::Only(2)));
    }

    #[test]
    fn an_early_verdict_does_not_bind_a_write_to_its_server() {
        let affinity = Affinity::default();
        affinity.asked(1);
        affinity.judge_anew();
        assert!(matches!(affinity.to_send("docs:/a"), Choice::Hash(_)));
    }
}

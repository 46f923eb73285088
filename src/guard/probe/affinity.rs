//! The affinity of a guarded request to one server. The request is judged, written and read back on the same data,
//! even if the servers of an upstream briefly differ.

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
    /// The server to ask about the resource of this key: the one that the request was written to, if any. Before that
    /// any server will do, because the request is judged by the answer.
    pub(crate) fn to_ask<'a>(&self, key: &'a str) -> Choice<'a> {
        match self.written.load(Ordering::Relaxed) {
            NONE => Choice::Hash(key.as_bytes()),
            server => Choice::Only(server),
        }
    }

    /// The server to send the request to: the one whose answer the request was judged by, if any.
    pub(crate) fn to_send<'a>(&self, key: &'a str) -> Choice<'a> {
        match self.judged.load(Ordering::Relaxed) {
            NONE => self.to_ask(key),
            server => Choice::Only(server),
        }
    }

    /// Begins a new verdict, in which earlier answers have no part.
    pub(crate) fn judge_anew(&self) {
        self.judged.store(NONE, Ordering::Relaxed);
    }

    /// Notes the server that has answered.
    pub(crate) fn asked(&self, server: usize) {
        self.judged.store(server, Ordering::Relaxed);
    }

    /// Notes the server that the request is sent to.
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

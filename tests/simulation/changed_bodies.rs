//! Backends that keep most bodies as they get them, and change some: the tags that ifmatch makes of the content that
//! was sent are wrong then (`verbatim_after`).

use fastrand::Rng;
use http::Method;

use crate::{
    backend::Style,
    generate::{prologue, setting_of},
    judge::Entry,
    operation::Operation,
    options::{Options, Source},
    process::Keeping,
    run::{Setting, Step},
};

/// Builds a setting from a seed: clients replace one document by the tags that they were told last, and read now and then.
pub fn setting(random: &mut Rng) -> Setting {
    use Operation::{Delete, Patch, Put, Read};
    let adapt = |options: Options| Options {
        source: Source::Content,
        exclusive: false,
        verbatim_after: 1,
        leased: (false, false),
        omits: false,
        ..options.without_touches()
    };
    let keeping = if random.bool() { Keeping::Memory } else { Keeping::Shared };
    let (options, setting) = setting_of(random, keeping, adapt);
    let step = Step::of_document;
    let operations = [Put, Put, Put, Put, Read, Patch, Delete];
    let mut steps = vec![Vec::new(); random.usize(2..4)];
    for number in 0..random.usize(6..14) {
        let client = if number < steps.len() { number } else { random.usize(..steps.len()) };
        steps[client].push(step(operations[random.usize(..operations.len())]));
    }
    let mut first: Vec<_> = steps.iter().enumerate().map(|(client, steps)| prologue(random, client, steps)).collect();
    // Each process has seen one body that was kept.
    for steps in &mut first {
        steps.extend([Read, Put, Read].map(step));
    }
    let style = Style { changes_each: Some(random.u64(2..6)), ..options.style() };
    Setting { style, other: None, reload_changes_tags: false, prologue: first, steps, ..setting }
}

impl Style {
    /// Returns the content that the backend keeps of what was sent.
    pub fn kept(&self, method: &Method, sent: u32, serial: u64) -> u32 {
        let changes = self.changes_each.is_some_and(|each| *method == Method::PUT && (serial + 1).is_multiple_of(each));
        if changes { (sent + 1) % self.contents } else { sent }
    }

    /// Returns the content that a client takes for the new one, because the answer to its PUT has a tag.
    pub fn believed(&self, entry: &Entry) -> Option<u32> {
        let is_put = self.changes_each.is_some() && entry.request.method == Method::PUT;
        let sent = entry.request.body.as_ref().filter(|_| is_put)?;
        sent.parse::<u32>().ok().map(|value| value % self.contents)
    }
}

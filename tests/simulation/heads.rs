//! Backends whose answer to HEAD is not that to GET (DESIGN, rule 19), and the writes that such an answer lets through.

use fastrand::Rng;
use http::Method;
use ifmatch::core::policy::Require;

use crate::{
    backend::Resource,
    generate,
    judge::{Entry, Ledger, field},
    run::Setting,
    world::Response,
};

/// How a backend answers HEAD where GET shows the resource.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Heads {
    /// As GET.
    AsGet,
    /// With this status, and without fields.
    Status(u16),
    /// With the status of GET, and without a tag.
    WithoutTag,
    /// With a tag of its own, which never changes.
    OtherTag,
    /// As if there were a resource at each target.
    AlwaysThere,
}

const ALL: [Heads; 15] = [
    Heads::AsGet,
    Heads::Status(204),
    Heads::Status(302),
    Heads::Status(400),
    Heads::Status(401),
    Heads::Status(403),
    Heads::Status(404),
    Heads::Status(405),
    Heads::Status(410),
    Heads::Status(429),
    Heads::Status(500),
    Heads::Status(504),
    Heads::WithoutTag,
    Heads::OtherTag,
    Heads::AlwaysThere,
];

impl Heads {
    /// Returns the answer to a HEAD whose GET has this one.
    pub fn answer(self, get: Response) -> Response {
        let other = || vec![("etag", "\"h\"".to_owned()), ("x-rev", "h".to_owned())];
        let answer = |status, fields| Response { status, fields, body: String::new() };
        match self {
            Self::AlwaysThere => answer(200, other()),
            Self::Status(status) if get.status == 200 => answer(status, Vec::new()),
            Self::WithoutTag => answer(get.status, Vec::new()),
            Self::OtherTag if get.status == 200 => answer(200, other()),
            Self::AsGet | Self::Status(_) | Self::OtherTag => get,
        }
    }
}

/// Builds a setting from a seed, with a backend whose HEAD matters.
pub fn setting(random: &mut Rng) -> Setting {
    let heads = ALL[random.usize(..ALL.len())];
    loop {
        let mut setting = generate::setting(random);
        if setting.config.routes.iter().filter_map(|route| route.guard.as_ref()).all(|guard| !guard.etag.needs_body()) {
            setting.style.heads = heads;
            return setting;
        }
    }
}

/// True if each write that replaces what exists must name a version.
pub fn demands_versions(setting: &Setting) -> bool {
    let mut guards = setting.config.routes.iter().filter_map(|route| route.guard.as_ref());
    guards.all(|guard| guard.require != Require::Never)
        && setting.other.as_ref().is_none_or(|other| !other.contains("require = \"never\""))
}

impl Ledger {
    /// Returns what is wrong with the application of a write that names no version.
    pub fn unnamed(&self, number: usize, entry: &Entry, before: &Resource) -> Option<String> {
        let is_unnamed = ["if-match", "if-none-match", "if-unmodified-since"]
            .iter()
            .all(|name| field(&entry.request, name).is_none());
        let is_judged = is_unnamed && !entry.request.is_named_by_body && entry.request.method != Method::POST;
        if !(self.demands_versions && is_judged) || before.content().is_none() {
            return None;
        }
        let was_absent = |serial: u64| before.content_at(serial).is_none() && self.is_beside(number, before, serial);
        let is_lost = !(0..=before.serial()).any(was_absent);
        is_lost.then(|| format!("request {number} names no version, and replaces what is there"))
    }
}

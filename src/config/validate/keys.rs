//! The keys of one route, and what could be read of them.

use std::ops::Range;

use toml::Spanned;

use super::{
    super::{
        Route,
        raw::{self, Text},
    },
    check::Check,
};
use crate::core::route::{HostPattern, PathPattern, PatternProblem, TouchTemplate};

/// A route whose patterns could be read, and the place of its path.
pub(super) struct Placed {
    pub(super) name: String,
    pub(super) host: HostPattern,
    pub(super) path: PathPattern,
    pub(super) span: Range<usize>,
    /// Its `touches` and where they stand.
    pub(super) touches: Vec<Spanned<TouchTemplate>>,
    /// Where it says what the store must promise.
    pub(super) guarantee: Option<Range<usize>>,
    /// The whole of it; `None` if a problem with it was reported.
    pub(super) route: Option<Route>,
}

/// What is written for one route: its own keys go before those of `[defaults]`.
#[derive(Clone, Copy)]
pub(super) struct RouteKeys<'a> {
    pub(super) own: &'a raw::Route,
    pub(super) defaults: &'a raw::Route,
}

impl<'a> RouteKeys<'a> {
    pub(super) fn get<T>(self, key: fn(&'a raw::Route) -> Option<&'a T>) -> Option<&'a T> {
        key(self.own).or_else(|| key(self.defaults))
    }
}

/// What a pattern was read as; its problem is reported.
pub(super) fn pattern<T>(check: &mut Check<'_>, text: &Text, parsed: Result<T, PatternProblem>) -> Option<T> {
    parsed
        .map_err(|problem| {
            let reported = check.source.problem(text.span(), problem.message);
            check.problems.push(match problem.hint {
                Some(hint) => reported.hint(hint),
                None => reported,
            });
        })
        .ok()
}

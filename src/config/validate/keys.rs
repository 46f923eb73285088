//! The keys of one route, and the parts of it that could be read.

use std::ops::Range;

use toml::Spanned;

use super::{
    super::{Route, raw::Text, route::RouteKeys, section::Layers},
    check::Check,
};
use crate::core::route::{HostPattern, MembersTemplate, PathPattern, PatternProblem, TouchTemplate, WritesTo};

/// A route whose patterns could be read, with the position of its path.
pub(super) struct Placed {
    pub(super) name: String,
    pub(super) host: HostPattern,
    pub(super) path: PathPattern,
    pub(super) span: Range<usize>,
    /// The `also_changes` templates and their positions.
    pub(super) touches: Vec<Spanned<TouchTemplate>>,
    /// The `writes_to` template and its position.
    pub(super) writes_to: Option<Spanned<WritesTo>>,
    /// The `members` template and its position.
    pub(super) members: Option<Spanned<MembersTemplate>>,
    /// The position of its `guarantee`.
    pub(super) guarantee: Option<Range<usize>>,
    /// The position of its own `collections`.
    pub(super) collections: Option<Range<usize>>,
    /// The complete route; `None` if a problem with it was reported.
    pub(super) route: Option<Route>,
}

/// The keys of one route: its own take precedence over those of `[defaults]`.
pub(super) type RouteLayers<'a> = Layers<'a, RouteKeys>;

/// Returns a parsed pattern, or reports its problem.
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

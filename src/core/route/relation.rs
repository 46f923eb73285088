//! The relation between the match sets of two patterns.

use super::{host::HostPattern, path::PathPattern, segment::Segment};

/// The relation between the targets that one route matches and those of another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Relation {
    /// No target matches both.
    Disjoint,
    /// Both match the same targets.
    Same,
    /// The routes share targets, and the first route wins them.
    Narrower,
    /// The routes share targets, and the second route wins them.
    Wider,
    /// The routes share targets, and neither path contains the other: no rule decides which of the two wins.
    Crossing,
}

/// The relation of two routes. If they share targets, the narrower host wins for any paths. With equal hosts, the path
/// wins whose matches the other one contains.
pub fn relation(a: (&HostPattern, &PathPattern), b: (&HostPattern, &PathPattern)) -> Relation {
    let (a_segments, b_segments) = (a.1.segments(), b.1.segments());
    if !overlap(a_segments, b_segments) {
        return Relation::Disjoint;
    }
    let within = match (host_within(a.0, b.0), host_within(b.0, a.0)) {
        (false, false) => return Relation::Disjoint,
        (true, true) => (contains(b_segments, a_segments), contains(a_segments, b_segments)),
        narrower => narrower,
    };
    match within {
        (true, true) => Relation::Same,
        (true, false) => Relation::Narrower,
        (false, true) => Relation::Wider,
        (false, false) => Relation::Crossing,
    }
}

/// True if some target of the inner route lies below one of the outer route, and not at the same depth, as
/// `/documents/1/raw` below `/documents/{id}`.
pub fn is_below(inner: (&HostPattern, &PathPattern), outer: (&HostPattern, &PathPattern)) -> bool {
    let shares_hosts = host_within(inner.0, outer.0) || host_within(outer.0, inner.0);
    shares_hosts && goes_on(inner.1.segments(), outer.1.segments())
}

fn goes_on(inner: &[Segment], outer: &[Segment]) -> bool {
    match (inner.split_first(), outer.split_first()) {
        (None, _) | (Some((Segment::Rest(_), _)), Some(_)) => false,
        (Some(_), Some((Segment::Rest(_), _)) | None) => true,
        (Some((one, inner_following)), Some((other, outer_following))) => {
            one.overlaps(other) && goes_on(inner_following, outer_following)
        }
    }
}

/// True if every host of the inner pattern is one of the outer. Two host patterns never cross, because names form a
/// tree.
fn host_within(inner: &HostPattern, outer: &HostPattern) -> bool {
    match (inner, outer) {
        (_, HostPattern::Any) => true,
        (HostPattern::Any, _) | (HostPattern::Suffix(_), HostPattern::Exact(_)) => false,
        (HostPattern::Exact(name), outer) => outer.matches_name(name),
        (HostPattern::Suffix(inner), HostPattern::Suffix(domain)) => inner == domain || outer.matches_name(inner),
    }
}

/// True if some path matches both.
fn overlap(a: &[Segment], b: &[Segment]) -> bool {
    match (a.split_first(), b.split_first()) {
        (None, None) | (Some((Segment::Rest(_), _)), _) | (_, Some((Segment::Rest(_), _))) => true,
        (None, Some(_)) | (Some(_), None) => false,
        (Some((one, a_following)), Some((other, b_following))) => {
            one.overlaps(other) && overlap(a_following, b_following)
        }
    }
}

/// True if every path that matches the inner pattern matches the outer.
fn contains(outer: &[Segment], inner: &[Segment]) -> bool {
    match (outer.split_first(), inner.split_first()) {
        (Some((Segment::Rest(_), _)), _) | (None, None) => true,
        (None, Some(_)) | (Some(_), None) => false,
        (Some((segment, outer_following)), Some((inner_segment, inner_following))) => {
            segment.contains(inner_segment) && contains(outer_following, inner_following)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_route_is_below_another_that_takes_the_beginning_of_its_paths() {
        for (inner, outer, expected) in [
            ("/documents/{id}/raw", "/documents/{id}", true),
            ("/documents/{id}/{*part}", "/documents/{id}", true),
            ("/documents/new/raw", "/documents/{id}", true),
            ("/documents/{id}", "/documents", true),
            ("/static/{*file}", "/{*rest}", true),
            ("/documents", "/documents", false),
            ("/documents/{name}", "/documents/{id}", false),
            ("/documents", "/documents/{id}", false),
            ("/{*rest}", "/documents/{id}", false),
            ("/documents/{*rest}", "/documents/{*part}", false),
            ("/drawings/{id}/raw", "/documents/{id}", false),
        ] {
            let path = |spelled| PathPattern::parse(spelled).unwrap();
            let below = |host: &HostPattern| is_below((host, &path(inner)), (&HostPattern::Any, &path(outer)));
            assert_eq!(below(&HostPattern::Any), expected, "{inner} and {outer}");
            let one_host = HostPattern::Exact("a".to_owned());
            assert_eq!(below(&one_host), expected, "{inner} and {outer}");
            let other = HostPattern::Exact("b".to_owned());
            assert!(!is_below((&one_host, &path(inner)), (&other, &path(outer))), "{inner} and {outer}");
        }
    }
}

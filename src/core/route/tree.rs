//! A tree of path patterns by segment: which pattern a path takes, and which patterns share paths with another.

use std::collections::BTreeMap;

use super::path::{PathPattern, Segment};

/// The patterns that begin with the same segments, each by its index.
#[derive(Clone, Debug, Default)]
pub(super) struct PathTree {
    literals: BTreeMap<Box<[u8]>, Self>,
    capture: Option<Box<Self>>,
    /// The patterns that end here, in the order in which they were added.
    ends: Vec<usize>,
    /// The patterns with an open end here, in the same order.
    rests: Vec<usize>,
}

impl PathTree {
    /// Adds a pattern under this index.
    pub(super) fn add(&mut self, pattern: &PathPattern, index: usize) {
        let mut node = self;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Literal(text) => node.literals.entry(text.as_bytes().into()).or_default(),
                Segment::Capture(_) => node.capture.get_or_insert_default(),
                Segment::Rest(_) => return node.rests.push(index),
            };
        }
        node.ends.push(index);
    }

    /// The most specific pattern that matches a path, which is given without its leading slash. `may_capture` tells
    /// which texts a capture takes.
    ///
    /// At the first difference of two patterns, the contained one has a literal for a capture, or a literal, a capture
    /// or its end for a rest. So the tree tries them in this order, and its first match is the most specific.
    pub(super) fn find(&self, relative: &[u8], may_capture: &dyn Fn(&[u8]) -> bool) -> Option<usize> {
        // An empty relative path is the root, which has no segment, not one empty segment.
        self.find_rest(Some(relative).filter(|relative| !relative.is_empty()), may_capture)
    }

    fn find_rest(&self, rest: Option<&[u8]>, may_capture: &dyn Fn(&[u8]) -> bool) -> Option<usize> {
        let Some(rest) = rest else { return self.ends.iter().chain(&self.rests).next().copied() };
        let mut parts = rest.splitn(2, |&octet| octet == b'/');
        let (text, following) = (parts.next().unwrap_or_default(), parts.next());
        let literal = self.literals.get(text).and_then(|node| node.find_rest(following, may_capture));
        let capture = || {
            let node = self.capture.as_ref().filter(|_| may_capture(text))?;
            node.find_rest(following, may_capture)
        };
        literal.or_else(capture).or_else(|| self.rests.first().copied())
    }

    /// Adds to `found` each pattern that has a path in common with this one.
    pub(super) fn overlapping(&self, pattern: &PathPattern, found: &mut Vec<usize>) {
        self.overlapping_rest(pattern.segments(), found);
    }

    fn overlapping_rest(&self, segments: &[Segment], found: &mut Vec<usize>) {
        found.extend(&self.rests);
        let children = || self.literals.values().chain(self.capture.as_deref());
        match segments.split_first() {
            None => found.extend(&self.ends),
            Some((Segment::Rest(_), _)) => {
                found.extend(&self.ends);
                children().for_each(|child| child.overlapping_rest(segments, found));
            }
            Some((Segment::Capture(_), following)) => {
                children().for_each(|child| child.overlapping_rest(following, found));
            }
            Some((Segment::Literal(text), following)) => {
                let same = self.literals.get(text.as_bytes()).into_iter();
                same.chain(self.capture.as_deref()).for_each(|child| child.overlapping_rest(following, found));
            }
        }
    }
}

//! A tree of path patterns by segment: which pattern a path takes, and which patterns share paths with another.

use std::{cmp::Reverse, collections::BTreeMap};

use super::{
    path::PathPattern,
    segment::{LiteralText, Segment},
};

/// The patterns that begin with the same segments, each by its index.
#[derive(Clone, Debug, Default)]
pub(super) struct PathTree {
    /// By literals that have one letter case.
    literals: BTreeMap<Box<[u8]>, Self>,
    /// The keys of `literals` by their form without letter case.
    spellings: BTreeMap<Box<[u8]>, Vec<Box<[u8]>>>,
    /// By folded literals that match in any letter case.
    in_any_case: BTreeMap<Box<[u8]>, Self>,
    /// By the ends of segments that capture, the most specific first.
    captures: BTreeMap<Breadth, (LiteralText, Self)>,
    /// The patterns that end here, in the order in which they were added.
    ends: Vec<usize>,
    /// The patterns with an open end here, in the same order.
    rests: Vec<usize>,
}

/// The order of captures by their ends: the longer first, and one letter case before all of them. No capture contains a
/// later one.
type Breadth = Reverse<(usize, bool, Box<[u8]>)>;

/// A path without its leading slash.
#[derive(Clone, Copy)]
pub(super) struct Relative<'p> {
    /// As it is.
    pub(super) spelled: &'p [u8],
    /// In the form of all its letter cases, with as many segments.
    pub(super) folded: &'p [u8],
}

impl PathTree {
    /// Adds a pattern under this index.
    pub(super) fn add(&mut self, pattern: &PathPattern, index: usize) {
        let mut node = self;
        for segment in pattern.segments() {
            node = match segment {
                Segment::Literal(text) if text.ignores_case() => {
                    node.in_any_case.entry(text.as_str().as_bytes().into()).or_default()
                }
                Segment::Literal(text) => node.literal(text),
                Segment::Capture { suffix, .. } => node.capture(suffix),
                Segment::Rest(_) => return node.rests.push(index),
            };
        }
        node.ends.push(index);
    }

    fn literal(&mut self, text: &LiteralText) -> &mut Self {
        let key: Box<[u8]> = text.as_str().as_bytes().into();
        if !self.literals.contains_key(&key) {
            self.spellings.entry(text.folded().as_bytes().into()).or_default().push(key.clone());
        }
        self.literals.entry(key).or_default()
    }

    fn capture(&mut self, suffix: &LiteralText) -> &mut Self {
        let breadth = Reverse((suffix.folded().len(), !suffix.ignores_case(), suffix.as_str().as_bytes().into()));
        &mut self.captures.entry(breadth).or_insert_with(|| (suffix.clone(), Self::default())).1
    }

    /// The most specific pattern that matches a path. `may_capture` tells which texts a capture takes.
    ///
    /// At the first difference of two patterns, the contained one has the narrower segment. From narrow to wide these
    /// are: a literal, a literal in any letter case, a capture with a longer end before one with a shorter end, and a
    /// rest. So the tree tries them in this order, and its first match is the most specific.
    pub(super) fn find(&self, relative: Relative<'_>, may_capture: &dyn Fn(&[u8]) -> bool) -> Option<usize> {
        // An empty relative path is the root, which has no segment, not one empty segment.
        self.find_rest(Some(relative).filter(|relative| !relative.spelled.is_empty()), may_capture)
    }

    fn find_rest(&self, rest: Option<Relative<'_>>, may_capture: &dyn Fn(&[u8]) -> bool) -> Option<usize> {
        let Some(rest) = rest else { return self.ends.iter().chain(&self.rests).next().copied() };
        let (Relative { spelled: text, folded }, following) = rest.split_first();
        let literal = self.literals.get(text).and_then(|node| node.find_rest(following, may_capture));
        let in_any_case = || self.in_any_case.get(folded).and_then(|node| node.find_rest(following, may_capture));
        let capture = |(suffix, node): &(LiteralText, Self)| {
            let takes = may_capture(text) && suffix.is_end_of(text, folded);
            if takes { node.find_rest(following, may_capture) } else { None }
        };
        literal
            .or_else(in_any_case)
            .or_else(|| self.captures.values().find_map(capture))
            .or_else(|| self.rests.first().copied())
    }

    /// Adds to `found` each pattern that has a path in common with this one.
    pub(super) fn overlapping(&self, pattern: &PathPattern, found: &mut Vec<usize>) {
        self.overlapping_rest(pattern.segments(), found);
    }

    fn overlapping_rest(&self, segments: &[Segment], found: &mut Vec<usize>) {
        found.extend(&self.rests);
        let Some((segment, following)) = segments.split_first() else { return found.extend(&self.ends) };
        match segment {
            Segment::Rest(_) => {
                found.extend(&self.ends);
                let captures = self.captures.values().map(|(_, child)| child);
                let children = self.literals.values().chain(self.in_any_case.values()).chain(captures);
                children.for_each(|child| child.overlapping_rest(segments, found));
            }
            Segment::Capture { suffix, .. } => {
                let spelled = self.literals.iter().map(|(text, child)| (literal_of(text), child));
                let folded = self.in_any_case.iter().map(|(text, child)| (literal_of(text).ignoring_case(), child));
                let literals = spelled.chain(folded).filter(|(text, _)| suffix.may_end(text)).map(|(_, child)| child);
                let captures = self.captures.values().filter(|(other, _)| suffix.meets(other)).map(|(_, child)| child);
                literals.chain(captures).for_each(|child| child.overlapping_rest(following, found));
            }
            Segment::Literal(text) => {
                let folded = text.folded();
                let spellings = self.spellings.get(folded.as_bytes()).filter(|_| text.ignores_case());
                let spelled = self.literals.get(text.as_str().as_bytes()).filter(|_| !text.ignores_case()).into_iter();
                let spelled = spelled.chain(spellings.into_iter().flatten().filter_map(|text| self.literals.get(text)));
                let literals = spelled.chain(self.in_any_case.get(folded.as_bytes()));
                let captures = self.captures.values().filter(|(other, _)| other.may_end(text)).map(|(_, child)| child);
                literals.chain(captures).for_each(|child| child.overlapping_rest(following, found));
            }
        }
    }
}

/// A literal of the tree, which is ASCII.
fn literal_of(text: &[u8]) -> LiteralText {
    LiteralText::exact(str::from_utf8(text).unwrap_or_default())
}

impl Relative<'_> {
    /// The first segment, and the rest if there is one.
    fn split_first(self) -> (Self, Option<Self>) {
        let [spelled, folded] = [self.spelled, self.folded].map(cut);
        let rest = spelled.1.zip(folded.1).map(|(spelled, folded)| Relative { spelled, folded });
        (Relative { spelled: spelled.0, folded: folded.0 }, rest)
    }
}

fn cut(path: &[u8]) -> (&[u8], Option<&[u8]>) {
    let mut parts = path.splitn(2, |&octet| octet == b'/');
    (parts.next().unwrap_or_default(), parts.next())
}

//! The marks that a write holds while it is in flight: that in the record of its own resource, and those in the records
//! of all other resources that it changes (DESIGN, section 3, rule 1). A COPY or MOVE claims its destination too.
//!
//! # Design
//!
//! *Why does no write wait while it holds a mark?* Two writes that change each other's targets would wait for each
//! other. So a write marks all its resources in sequence, in one order. If one of them has been taken meanwhile, it
//! gives all others back at once, unchanged. It then waits for that one and holds none.
//!
//! *Why are the marks on touched resources no claims?* The state of a resource does not judge a touch of it, so two
//! touches lose nothing of each other. A claimed write does: it replaces the state that it was judged by. So a touch
//! and a claim exclude each other, in both orders, and touches run beside each other.
//!
//! *Why does a COPY claim its source?* A write of the source meanwhile would be copied in part. The COPY leaves it as it
//! is, so its mark there ends as that of a write that was not applied.

use std::time::Duration;

use tokio::time::Instant;

use super::{
    Claim, Claims, MarkKind, Marked, Settled,
    places::{Places, Role, TouchedPlace},
};
use crate::{
    core::{
        lease::Standing,
        records::{
            record::{Availability, Known, Mark, Snapshot},
            steps::Outcome,
            trees::TreeRoot,
        },
        resource::ResourceKey,
        tags::{bare_tags::Shown, told_dates::WriteEnd},
    },
    guard::request::Request,
    store::{Sighting, StoreError},
};

/// The marks of one write, which end together. Dropping them unsettled makes the write a doubt on each resource.
pub(crate) struct Held {
    /// The mark on the write's own resource.
    own: Claim,
    /// Its other marks, if it makes any.
    others: Option<Box<OtherMarks>>,
}

/// The marks of a write beside that on its own resource.
struct OtherMarks {
    /// True if the write only reads its own resource.
    only_reads_own: bool,
    /// The mark on its destination, if it is a COPY or MOVE.
    destination: Option<Claim>,
    /// The marks on the resources that the write touches.
    touched: Vec<Claim>,
    /// The mark in the record of trees, if the write changes any.
    trees: Option<Claim>,
}

/// The right of a write to its own resource, and to its destination.
pub(crate) type Standings = (Standing, Option<Standing>);

/// The marks of a write that have been made so far.
#[derive(Default)]
struct Marks {
    own: Option<Claim>,
    destination: Option<Claim>,
    touched: Vec<Claim>,
    trees: Option<Claim>,
}

/// The result of an attempt to mark all resources of a write. Except for the first, nothing is marked.
pub(crate) enum Holding {
    /// All marks are in their records.
    Done(Held),
    /// The record of the own resource has changed: the caller must judge the write again, by this record.
    Conflict(Box<Snapshot>),
    /// A record has no room for another mark beside others.
    Full,
    /// A touched resource is busy again: the caller must wait for it.
    Taken,
}

/// The result of an attempt to mark touched resources.
enum Touching {
    Done,
    Full,
    Taken,
}

impl Held {
    /// True if at least `needed` is left before others may take the owner of any of these marks for dead
    /// ([`Claim::has_left`]).
    pub(crate) async fn has_left(&self, needed: Duration) -> bool {
        self.own.has_left(needed).await
    }

    /// Returns the mark on the write's own resource.
    pub(crate) const fn mark(&self) -> Mark {
        self.own.mark()
    }

    /// Notes that the upstream shows something else than what the write should have left.
    pub(crate) const fn leaves_unknown(&mut self) {
        self.own.leaves_unknown();
    }

    /// Gives the write no more time than this other mark of the same write has.
    pub(crate) fn bounded_by(&mut self, other: &Claim) {
        self.own.bounded_by(other);
    }

    /// Returns the claims of a write that claims several resources itself; `None` if there are none.
    fn of_each(claims: Vec<Claim>) -> Option<Self> {
        let mut claims = claims.into_iter();
        let mut own = claims.next()?;
        let touched: Vec<Claim> = claims.collect();
        for other in &touched {
            own.bounded_by(other);
        }
        let others = Some(Box::new(OtherMarks { only_reads_own: false, destination: None, touched, trees: None }));
        Some(Self { own, others })
    }

    /// The same claims in their order, each to be settled on its own.
    pub(crate) fn apart(self) -> impl Iterator<Item = Self> {
        let others = self.others.map(|others| others.touched).unwrap_or_default();
        [self.own].into_iter().chain(others).map(|own| Self { own, others: None })
    }

    /// True if one of the marks is on this resource.
    pub(crate) fn is_on(&self, key: &ResourceKey) -> bool {
        self.marks().any(|mark| mark.key() == key)
    }

    /// The trees that the write changes, or copies.
    pub(crate) fn tree_roots(&self) -> &[TreeRoot] {
        let trees = self.trees().and_then(|mark| mark.marked().record.trees.as_deref());
        trees.map_or(&[], |trees| &trees.roots)
    }

    /// The marks on resources.
    pub(super) fn marks(&self) -> impl Iterator<Item = &Claim> {
        let others = self.others.iter().flat_map(|others| others.destination.iter().chain(&others.touched));
        [&self.own].into_iter().chain(others)
    }

    /// The mark in the record of trees, if the write changes any.
    pub(super) fn trees(&self) -> Option<&Claim> {
        self.others.as_ref()?.trees.as_ref()
    }

    /// Takes the mark on the destination out, to be settled on its own.
    pub(crate) fn take_destination(&mut self) -> Option<Self> {
        let own = self.others.as_mut()?.destination.take()?;
        Some(Self { own, others: None })
    }

    /// Records what became of the write, on all its resources. Returns `None` if the outcome was not recorded on its
    /// own: the store is not available, or another process has already made the write a doubt.
    pub(crate) async fn settle(self, outcome: Outcome, learned: Option<Known>) -> Option<Settled> {
        self.settle_shown(outcome, learned, None, None).await
    }

    /// Like [`settle`](Self::settle), but for a write that has shown tags of its target, and its end.
    pub(crate) async fn settle_shown(
        self,
        outcome: Outcome,
        learned: Option<Known>,
        shown: Option<Shown>,
        end: Option<WriteEnd>,
    ) -> Option<Settled> {
        let Self { own, others } = self;
        let outcome = match others {
            Some(others) => {
                let OtherMarks { only_reads_own, destination, touched, trees } = *others;
                // Boxed, so that the futures of other writes stay small.
                Box::pin(settle_all(destination.into_iter().chain(touched).chain(trees), outcome, end)).await;
                if only_reads_own { outcome.of_what_is_read() } else { outcome }
            }
            None => outcome,
        };
        own.settle_shown(outcome, learned, shown, end).await
    }
}

impl Claims {
    /// Marks all resources of a write from its places in front of their lines: its own by this record, and the others
    /// as they were found free.
    pub(crate) async fn hold(
        &self,
        request: &Request,
        places: &mut Places,
        seen: &Sighting,
        kind: MarkKind<'_>,
        standings: Standings,
    ) -> Result<Holding, StoreError> {
        let holding = if places.is_single() {
            match self.mark(request, seen, kind, standings.0).await? {
                Marked::Done(own) => Holding::Done(Held { own, others: None }),
                Marked::Conflict(current) => Holding::Conflict(current),
                Marked::Full => Holding::Full,
            }
        } else {
            Box::pin(self.hold_all(request, places, seen, kind, standings)).await?
        };
        match holding {
            // Boxed, so that the futures of writes without trees around them stay small.
            Holding::Done(held) if held.marks().any(|mark| self.records.trees_around(mark.key()).is_some()) => {
                Box::pin(self.give_way_to_trees(held)).await
            }
            holding => Ok(holding),
        }
    }

    /// Claims the resource of each of these writes, which are one: by its record, and in this order. Returns `None`, with
    /// nothing claimed, if a record has changed.
    pub(crate) async fn hold_each(
        &self,
        writes: &[(&Request, &Sighting, Standing)],
    ) -> Result<Option<Held>, StoreError> {
        let mut claims = Vec::new();
        for (request, seen, standing) in writes {
            match self.mark(request, seen, MarkKind::Claim, *standing).await {
                Ok(Marked::Done(claim)) => claims.push(claim),
                refused => {
                    settle_all(claims, Outcome::NotApplied, None).await;
                    return refused.map(|_changed| None);
                }
            }
        }
        let Some(held) = Held::of_each(claims) else { return Ok(None) };
        Ok(match self.give_way_to_trees(held).await? {
            Holding::Done(held) => Some(held),
            Holding::Conflict(_) | Holding::Full | Holding::Taken => None,
        })
    }

    async fn hold_all(
        &self,
        request: &Request,
        places: &mut Places,
        seen: &Sighting,
        kind: MarkKind<'_>,
        standings: Standings,
    ) -> Result<Holding, StoreError> {
        let mut marks = Marks::default();
        let held = self.mark_in_order(request, places, (seen, kind, standings), &mut marks).await;
        let Marks { own, destination, touched, trees } = marks;
        match (held, own) {
            (Ok(None), Some(mut own)) => {
                for mark in touched.iter().chain(&destination).chain(&trees) {
                    own.bounded_by(mark);
                }
                let only_reads_own = request.only_reads_target();
                let others = Some(Box::new(OtherMarks { only_reads_own, destination, touched, trees }));
                Ok(Holding::Done(Held { own, others }))
            }
            (held, own) => {
                let own = own.into_iter().chain(destination).chain(trees);
                settle_all(touched.into_iter().chain(own), Outcome::NotApplied, None).await;
                held.map(|why| why.unwrap_or(Holding::Taken))
            }
        }
    }

    /// Makes the marks one after the other. Returns why it has stopped, unless all are made.
    async fn mark_in_order(
        &self,
        request: &Request,
        places: &mut Places,
        (seen, kind, (standing, at_destination)): (&Sighting, MarkKind<'_>, Standings),
        marks: &mut Marks,
    ) -> Result<Option<Holding>, StoreError> {
        let why_not = |touching| match touching {
            Touching::Done => None,
            Touching::Full => Some(Holding::Full),
            Touching::Taken => Some(Holding::Taken),
        };
        let Places { before, after, trees, .. } = places;
        let before = self.touch_all((request, at_destination, trees), before, marks).await?;
        if let Some(why) = why_not(before) {
            return Ok(Some(why));
        }
        match self.mark(request, seen, kind, standing).await? {
            Marked::Done(mark) => marks.own = Some(mark),
            Marked::Conflict(current) => return Ok(Some(Holding::Conflict(current))),
            Marked::Full => return Ok(Some(Holding::Full)),
        }
        self.touch_all((request, at_destination, trees), after, marks).await.map(why_not)
    }

    async fn touch_all(
        &self,
        (request, at_destination, trees): (&Request, Option<Standing>, &[TreeRoot]),
        places: &mut [TouchedPlace],
        marks: &mut Marks,
    ) -> Result<Touching, StoreError> {
        for touched in places {
            let Some(mut seen) = touched.seen.take() else { return Ok(Touching::Taken) };
            if touched.role == Role::Destination {
                // It was judged by this very record.
                match self.mark_destination(request, &seen, at_destination).await? {
                    Some(mark) => marks.destination = Some(mark),
                    None => return Ok(Touching::Taken),
                }
                continue;
            }
            loop {
                let marking = Instant::now();
                let kind = if touched.role == Role::Trees { MarkKind::Trees(trees) } else { MarkKind::Touch };
                match self.mark_other(request, touched.place.key(), &seen, kind).await? {
                    Marked::Done(mark) if touched.role == Role::Trees => {
                        marks.trees = Some(mark);
                        break;
                    }
                    Marked::Done(mark) => {
                        marks.touched.push(mark);
                        break;
                    }
                    Marked::Full => return Ok(Touching::Full),
                    Marked::Conflict(current) => seen = Sighting { snapshot: *current, since: marking },
                }
                let snapshot = &seen.snapshot;
                if touched.place.is_behind(snapshot) || touched.availability(snapshot) != Availability::Free {
                    return Ok(Touching::Taken);
                }
            }
        }
        Ok(Touching::Done)
    }
}

/// Records the same outcome and end for all these marks.
async fn settle_all(marks: impl IntoIterator<Item = Claim, IntoIter: Send>, outcome: Outcome, end: Option<WriteEnd>) {
    for mark in marks {
        mark.settle_shown(outcome, None, None, end).await;
    }
}

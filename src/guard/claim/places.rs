//! The places of a write in front of the lines of all resources that it changes (DESIGN, section 3, rules 1 and 16).
//!
//! # Design
//!
//! *Why does a write that changes several resources stand in all their lines at once?* It goes in order of arrival in
//! each of them, so a stream of writes to one of its resources does not starve it. A place in a line holds nothing in
//! the store.
//!
//! *Why can writes not wait for each other without end?* All stand in line in one order, that of the keys. A write that
//! waits in one line has places only in lines that come before it in this order. The same holds for the signs by which
//! processes line up at a record: before a write waits for one resource, it takes down its signs at all later ones.
//!
//! *Why does the greatest key come first?* Mostly a part changes its whole: an item its project, whose key is the
//! beginning of its own. Writers of one busy item then wait in the line of the item, and not in that of the project.
//!
//! *What is different at the destination of a COPY or MOVE?* It is claimed, and judged by its own record. So it has a place
//! among the others, in the same order, but waits until it is free for a claim.

use tokio::time::Instant;

use super::{
    Claims,
    queue::{Member, NoTurn},
    turn::PlaceInFront,
};
use crate::{
    core::{
        cause::Reason,
        records::{
            record::{Availability, Snapshot},
            steps::UNCLAIMED_MARKS_MAX,
            trees::TreeRoot,
        },
        refusal::Refusal,
        resource::ResourceKey,
        shares::line_share::LineClient,
    },
    guard::{refusals, request::Request},
    store::{Sighting, StoreError},
};

/// The places of one write, in the order of their keys: `before`, `own`, `after`.
pub(crate) struct Places {
    pub(super) before: Vec<TouchedPlace>,
    /// The place in the line of the write's own resource.
    pub(crate) own: PlaceInFront,
    pub(super) after: Vec<TouchedPlace>,
    /// The trees that the write changes.
    pub(crate) trees: Vec<TreeRoot>,
    /// The place in the line of the writes of trees, if the write has waited for one of these.
    pub(super) beside_trees: Option<PlaceInFront>,
}

/// A place in front of the line of a resource that the write touches, or of its destination.
pub(super) struct TouchedPlace {
    pub(super) place: PlaceInFront,
    /// The record as it was found free.
    pub(super) seen: Option<Sighting>,
    pub(super) role: Role,
}

/// The role of a resource in a write whose own resource is another one.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Role {
    /// The write touches it.
    Touched,
    /// The write claims it, because it is its destination.
    Destination,
    /// The write claims it, because it is the record of the trees that the write changes.
    Trees,
}

/// The result of a look at the other resources of a write.
pub(crate) enum Others {
    /// All resources can be marked.
    Free,
    /// One resource could not be marked. The caller begins anew.
    Changed,
    /// The destination cannot be claimed, by this record. The caller waits for it, and begins anew.
    DestinationBusy(Box<Snapshot>),
}

impl TouchedPlace {
    /// Returns the availability of the resource to the write, by this record.
    pub(super) fn availability(&self, snapshot: &Snapshot) -> Availability {
        match self.role {
            Role::Touched => snapshot.availability_to_touch(),
            Role::Destination | Role::Trees => snapshot.availability(),
        }
    }
}

/// A part of the touched resources, by their place in the order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum TouchedPart {
    /// The resources before the write's own.
    Before,
    /// The resources after it.
    After,
}

impl Places {
    /// True if the write changes its own resource alone.
    pub(crate) const fn is_single(&self) -> bool {
        self.before.is_empty() && self.after.is_empty()
    }

    /// True if others had their turn at the own resource during the wait for this one.
    pub(crate) const fn came_after_others(&self) -> bool {
        self.own.came_after_others()
    }

    /// Lets the next members come to the front: the marks are in the records.
    pub(crate) fn step_aside(&mut self) {
        // No mark has taken its sign along, so that goes with the place.
        self.beside_trees = None;
        self.own.step_aside();
        for mut touched in self.before.drain(..).chain(self.after.drain(..)) {
            touched.place.step_aside();
        }
    }

    /// The record of the destination as it was found free.
    pub(crate) fn destination(&self) -> Option<&Sighting> {
        self.before.iter().chain(&self.after).find(|other| other.role == Role::Destination)?.seen.as_ref()
    }

    const fn part(&mut self, part: TouchedPart) -> &mut Vec<TouchedPlace> {
        match part {
            TouchedPart::Before => &mut self.before,
            TouchedPart::After => &mut self.after,
        }
    }

    /// Takes down the signs that come after a touched resource in the order.
    async fn take_down_after(&mut self, part: TouchedPart, index: usize) -> Result<(), StoreError> {
        let rest = self.part(part).iter_mut().skip(index + 1);
        take_down(rest.map(|touched| &mut touched.place)).await?;
        if part == TouchedPart::Before {
            self.own.take_down_sign().await?;
            self.take_down_after_own().await?;
        }
        Ok(())
    }

    async fn take_down_after_own(&mut self) -> Result<(), StoreError> {
        take_down(self.after.iter_mut().map(|touched| &mut touched.place).chain(&mut self.beside_trees)).await
    }
}

async fn take_down(places: impl Iterator<Item = &mut PlaceInFront> + Send) -> Result<(), StoreError> {
    for place in places {
        place.take_down_sign().await?;
    }
    Ok(())
}

impl Claims {
    /// Waits until a claim stands in front of the lines of its resource and of those that it touches. The keys of these
    /// are in order.
    pub(crate) async fn stand_to_claim(
        &self,
        request: &Request,
        (touched, trees): (&[ResourceKey], Vec<TreeRoot>),
        end: Instant,
    ) -> Result<Places, Refusal> {
        let line_max = request.rules().claim.max_waiters;
        let places = self.stand_at_all(request, (touched, trees), (Member::Claim, line_max), end);
        places.await.map_err(refusals::of_turn)
    }

    /// Like [`stand_to_claim`](Self::stand_to_claim), but for an unclaimed write.
    pub(crate) async fn stand_to_append(
        &self,
        request: &Request,
        touched: &[ResourceKey],
        end: Instant,
    ) -> Result<Places, Refusal> {
        let places = self.stand_at_all(request, (touched, Vec::new()), (Member::Passing, UNCLAIMED_MARKS_MAX), end);
        places.await.map_err(refusals::of_turn)
    }

    async fn stand_at_all(
        &self,
        request: &Request,
        (touched, trees): (&[ResourceKey], Vec<TreeRoot>),
        (member, line_max): (Member, usize),
        end: Instant,
    ) -> Result<Places, NoTurn> {
        let (own, client) = (&request.key, request.line_client());
        let mut others: Vec<_> = touched.iter().cloned().map(|key| (key, Role::Touched, UNCLAIMED_MARKS_MAX)).collect();
        let destination = request.destination();
        others.extend(destination.map(|other| (other.key.clone(), Role::Destination, other.place.line_max())));
        let around = self.records.trees_around(own).filter(|_| !trees.is_empty());
        others.extend(around.map(|key| (key, Role::Trees, line_max)));
        others.sort_unstable_by(|(one, ..), (other, ..)| other.cmp(one));
        let (before, after) = others.split_at(others.partition_point(|(key, ..)| key > own));
        let before = self.stand_at_others(before, client, end).await?;
        let own = self.stand(own, (member, client), line_max, end).await?;
        let after = self.stand_at_others(after, client, end).await?;
        Ok(Places { before, own, after, trees, beside_trees: None })
    }

    async fn stand_at_others(
        &self,
        others: &[(ResourceKey, Role, usize)],
        client: LineClient,
        end: Instant,
    ) -> Result<Vec<TouchedPlace>, NoTurn> {
        let mut places = Vec::new();
        for (key, role, line_max) in others {
            let member = if *role == Role::Touched { Member::Touch } else { Member::Claim };
            let place = Box::pin(self.stand(key, (member, client), *line_max, end)).await?;
            places.push(TouchedPlace { place, seen: None, role: *role });
        }
        Ok(places)
    }

    /// Looks whether all other resources of this part can be marked. If not, waits for a change of the first that
    /// cannot, unless that is the destination.
    pub(crate) async fn touched_are_free(
        &self,
        request: &Request,
        places: &mut Places,
        part: TouchedPart,
        end: Instant,
    ) -> Result<Others, Refusal> {
        if places.part(part).is_empty() {
            return Ok(Others::Free);
        }
        Box::pin(self.look_at_touched(request, places, part, end)).await
    }

    async fn look_at_touched(
        &self,
        request: &Request,
        places: &mut Places,
        part: TouchedPart,
        end: Instant,
    ) -> Result<Others, Refusal> {
        let mut index = 0;
        while let Some(touched) = places.part(part).get_mut(index) {
            let since = Instant::now();
            let snapshot = self.take_over_dead(touched.place.key(), None).await;
            let snapshot = snapshot.map_err(|error| refusals::of_store(&error))?;
            let availability = touched.availability(&snapshot);
            if touched.role == Role::Destination
                && (touched.place.is_behind(&snapshot) || availability != Availability::Free)
            {
                return Ok(Others::DestinationBusy(Box::new(snapshot)));
            }
            if let Availability::InDoubt { until } = availability {
                return Err(refusals::write_in_flight(snapshot.now.until(until), Reason::WriteInDoubt));
            }
            if touched.place.is_behind(&snapshot) || availability != Availability::Free {
                let taken_down = places.take_down_after(part, index).await;
                taken_down.map_err(|error| refusals::of_store(&error))?;
                self.wait_at(request, &snapshot, (places, part, index), end).await?;
                return Ok(Others::Changed);
            }
            let kept = touched.place.keep_sign(&snapshot, request.rules()).await;
            touched.seen = Some(Sighting { snapshot, since });
            // A record with a renewed sign is read again.
            index += usize::from(kept.map_err(|error| refusals::of_store(&error))?);
        }
        Ok(Others::Free)
    }

    /// Waits in front of the line of the destination until its record, read as `snapshot`, has changed.
    pub(crate) async fn wait_for_destination(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        places: &mut Places,
        end: Instant,
    ) -> Result<(), Refusal> {
        self.may_write(snapshot)?;
        for part in [TouchedPart::Before, TouchedPart::After] {
            let Some(index) = places.part(part).iter().position(|other| other.role == Role::Destination) else {
                continue;
            };
            let taken_down = places.take_down_after(part, index).await;
            taken_down.map_err(|error| refusals::of_store(&error))?;
            self.wait_at(request, snapshot, (places, part, index), end).await?;
        }
        Ok(())
    }

    /// Waits in front of the line of one of the other resources until its record, read as `snapshot`, has changed.
    async fn wait_at(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        (places, part, index): (&mut Places, TouchedPart, usize),
        end: Instant,
    ) -> Result<(), Refusal> {
        let Some(other) = places.part(part).get_mut(index) else { return Ok(()) };
        if snapshot.is_below_busy_tree() {
            let key = other.place.key().clone();
            return Box::pin(self.wait_for_tree(request, &key, places, end)).await;
        }
        self.wait_in_front(snapshot, request.rules(), &mut other.place, end).await
    }

    /// Waits in front of the write's own line until its record has changed ([`wait_until_free`](Self::wait_until_free)).
    pub(crate) async fn wait_for_own(
        &self,
        request: &Request,
        snapshot: &Snapshot,
        places: &mut Places,
        end: Instant,
    ) -> Result<(), Refusal> {
        if snapshot.is_below_busy_tree() {
            // Boxed, so that the futures of writes without trees around them stay small.
            return Box::pin(self.wait_for_tree(request, &request.key, places, end)).await;
        }
        if !places.after.is_empty() || places.beside_trees.is_some() {
            let taken_down = Box::pin(places.take_down_after_own()).await;
            taken_down.map_err(|error| refusals::of_store(&error))?;
        }
        self.wait_until_free(request, snapshot, &mut places.own, end).await
    }
}

//! The line of clients that want the next member of one collection, and what each of them looks at. Pure.
//!
//! The index of a collection is read in passes, each page by page. A member of a page goes to the client that has waited
//! longest, and to no other one. Only its lease decides whether that client gets it.
//!
//! # Design
//!
//! *When is there no member?* A pass that began after the client came has ended, and nothing of it is left. What an
//! earlier pass has not shown proves nothing: a member may have been created meanwhile.
//!
//! *Why are some members set aside?* The record of a member may show a write since the page was read. Mostly it is the
//! DELETE of a worker that has finished, and a look at it would be in vain. It is tried as soon as a pass has nothing
//! else.

use std::collections::{BTreeMap, BTreeSet};

use super::index_page::{IndexPage, PAGE_NAMES_MAX, PageStart};

/// The place of a client in the line. Lower numbers came earlier.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Ticket {
    number: u64,
    /// The number of passes that had begun when the client came.
    passes: u64,
}

/// A member for a client to look at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Dealt {
    /// The file of the member.
    pub file: String,
    /// True if the member was set aside before. The client then tries it, no matter what its record shows.
    pub is_last_resort: bool,
}

/// The next step that the line needs from a client whose turn it is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Need {
    /// To look at this member.
    Look(Dealt),
    /// The next page of the pass.
    Page,
    /// A new pass.
    Pass,
    /// Nothing: no member is free.
    Nothing,
}

/// The part of a pass that is still to be read.
#[derive(Debug, Default, PartialEq, Eq)]
enum RestOfPass {
    #[default]
    All,
    From(PageStart),
    Nothing,
}

/// The line of one collection.
#[derive(Debug, Default)]
pub struct Line {
    tickets: u64,
    /// The clients, each with the member that it looks at.
    clients: BTreeMap<Ticket, Option<Dealt>>,
    candidates: BTreeSet<String>,
    set_aside: BTreeSet<String>,
    passes: u64,
    rest: RestOfPass,
    /// True if a member of this pass was taken.
    has_served: bool,
}

impl Line {
    /// Puts a client at the end of the line.
    pub fn enter(&mut self) -> Ticket {
        self.tickets += 1;
        let ticket = Ticket { number: self.tickets, passes: self.passes };
        self.clients.insert(ticket, None);
        self.deal();
        ticket
    }

    /// Takes a client out of the line, together with the member that it looks at. Another client may look at that
    /// member.
    pub fn leave(&mut self, ticket: Ticket) {
        if let Some(Some(dealt)) = self.clients.remove(&ticket) {
            self.candidates.insert(dealt.file);
            self.deal();
        }
    }

    /// Takes a client out of the line that has got the member which it looks at.
    pub fn serve(&mut self, ticket: Ticket) {
        self.clients.remove(&ticket);
        self.has_served = true;
    }

    /// Notes that a client could not get the member that it looks at.
    pub fn skip(&mut self, ticket: Ticket) {
        if let Some(dealt) = self.clients.get_mut(&ticket) {
            *dealt = None;
            self.deal();
        }
    }

    /// Sets the member aside that a client looks at. `false` if there is no room, and the client has to try it.
    pub fn set_aside(&mut self, ticket: Ticket) -> bool {
        let has_room = self.set_aside.len() < PAGE_NAMES_MAX;
        if has_room && let Some(dealt) = self.clients.get_mut(&ticket).and_then(Option::take) {
            self.set_aside.insert(dealt.file);
            self.deal();
        }
        has_room
    }

    /// Begins a new pass. What the last one has shown is forgotten.
    pub fn begin_pass(&mut self) {
        self.passes += 1;
        (self.candidates, self.set_aside) = (BTreeSet::new(), BTreeSet::new());
        (self.rest, self.has_served) = (RestOfPass::All, false);
    }

    /// The place where the page begins that the pass needs next.
    pub fn page_start(&self) -> Option<&PageStart> {
        match &self.rest {
            RestOfPass::From(start) => Some(start),
            RestOfPass::All | RestOfPass::Nothing => None,
        }
    }

    /// True if the line may give up a pass for a new one, which shows the members that have come meanwhile. A pass that
    /// has served no client goes on to its end, so a long index cannot keep its last members from all clients.
    pub const fn may_begin_anew(&self) -> bool {
        self.has_served
    }

    /// Adds a page of the pass.
    pub fn add_page(&mut self, page: IndexPage) {
        let mut names = page.names;
        for dealt in self.clients.values().flatten() {
            names.remove(&dealt.file);
        }
        names.retain(|file| !self.set_aside.contains(file));
        self.candidates.append(&mut names);
        self.rest = page.next.map_or(RestOfPass::Nothing, RestOfPass::From);
        self.deal();
    }

    /// Returns the next step that the line needs from a client.
    pub fn need(&self, ticket: Ticket) -> Need {
        let Some(dealt) = self.clients.get(&ticket) else { return Need::Nothing };
        if let Some(dealt) = dealt {
            return Need::Look(dealt.clone());
        }
        match &self.rest {
            RestOfPass::All if self.passes == 0 => Need::Pass,
            RestOfPass::All | RestOfPass::From(_) => Need::Page,
            RestOfPass::Nothing if self.passes > ticket.passes && self.set_aside.is_empty() => Need::Nothing,
            RestOfPass::Nothing => Need::Pass,
        }
    }

    /// The number of clients in the line.
    pub fn len(&self) -> usize {
        self.clients.len()
    }

    /// True if no client is in the line.
    pub fn is_empty(&self) -> bool {
        self.clients.is_empty()
    }

    /// Gives each client a member to look at, in the order of arrival.
    fn deal(&mut self) {
        // A pass that has served a client makes room for a new one, whose index does not show the deleted members.
        let is_left = self.rest == RestOfPass::Nothing && !self.has_served;
        for dealt in self.clients.values_mut().filter(|dealt| dealt.is_none()) {
            let candidate = self.candidates.pop_first().map(|file| Dealt { file, is_last_resort: false });
            let next = match candidate {
                None if is_left => self.set_aside.pop_first().map(|file| Dealt { file, is_last_resort: true }),
                candidate => candidate,
            };
            let Some(next) = next else { return };
            *dealt = Some(next);
        }
    }
}

#[cfg(test)]
#[path = "line_tests.rs"]
mod tests;

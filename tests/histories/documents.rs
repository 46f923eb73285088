//! The operations of clients on documents: two routes lead to each document, one of them leases it, and it has an item.

use super::{
    history::{Base, Kind, named},
    workload::{Client, Held, Sent, Told},
};

/// The longest duration of a lease, in seconds. Some leases outlast the restart of a proxy.
const LEASE_SECONDS_MAX: usize = 5;

impl Client {
    /// Does one thing with a document or its item.
    pub async fn work_on_document(&mut self, document: &str) {
        if self.held.is_some() && self.random.is_one_of(50) {
            return self.use_document_lease().await;
        }
        let target = self.spell(document);
        if self.board.manner.only_dates {
            return self.work_by_date(&target).await;
        }
        match self.random.below(100) {
            0..10 => self.read(&target).await,
            10..20 if self.board.manner.has_dates => self.write_on_date(&target).await,
            10..54 => drop(self.write(&target).await),
            54..59 => self.remove(&target).await,
            59..69 => self.append(&target).await,
            69..85 => drop(self.write(&item_of(document)).await),
            85..90 => self.read(&item_of(document)).await,
            _ if self.held.is_none() && is_leased(document) => {
                let seconds = 1 + self.random.below(LEASE_SECONDS_MAX);
                self.acquire_for(alias_of(document), seconds).await;
            }
            _ => self.read(&target).await,
        }
    }

    /// Reads, creates, or writes on the date that was told last, which others may have outdated since.
    async fn work_by_date(&mut self, target: &str) {
        match self.known.get(target) {
            Some((None, _)) => drop(self.write(target).await),
            _ if self.dated.contains_key(target) && self.random.is_one_of(70) => self.write_on_date(target).await,
            _ => self.read(target).await,
        }
    }

    /// Returns one of the two targets of a document.
    fn spell(&mut self, document: &str) -> String {
        let needs_lease = self.board.manner.needs_lease;
        if !needs_lease && self.random.is_one_of(50) { alias_of(document) } else { document.to_owned() }
    }

    /// Removes the state that was read last.
    async fn remove(&mut self, target: &str) {
        let Some((Some(tag), base)) = self.known.get(target).cloned() else { return self.read(target).await };
        let base = Base::Is(base);
        let Some(sent) = self.send("DELETE", target, &[("If-Match", &tag)], base).await else { return };
        self.conclude(target, base, Kind::Removes, sent);
    }

    /// Writes on the state whose date the client got last, no matter how long ago. A date is no content: two states may
    /// share it, so a refusal says nothing about the state.
    async fn write_on_date(&mut self, target: &str) {
        let Some((date, state)) = self.dated.get(target).cloned() else { return self.read(target).await };
        let (base, fields) = (Base::Is(state), [("If-Unmodified-Since", date.as_str())]);
        let Some(mut sent) = self.send("PUT", target, &fields, base).await else { return };
        self.tally.dated += 1;
        if matches!(sent.told, Told::Differs) {
            sent.told = Told::Refused("date-differs".to_owned());
        }
        self.conclude(target, base, Kind::Replaces, sent);
    }

    /// Appends to any state; in half of all cases with a key, and then once more.
    async fn append(&mut self, target: &str) {
        if self.board.manner.retries && self.random.is_one_of(50) {
            return self.append_twice(target).await;
        }
        let Some(sent) = self.send("POST", target, &[], Base::Any).await else { return };
        self.conclude(target, Base::Any, Kind::Appends, sent);
    }

    /// Appends with a key, and sends the same again, perhaps through another proxy. Both are one operation: if the first
    /// has no answer, the second may bring it, or says that the outcome is unknown. A failure of the backend comes again.
    async fn append_twice(&mut self, target: &str) {
        let key = format!("\"append {}\"", self.board.next_value());
        let fields = [("Idempotency-Key", key.as_str())];
        let Some(mut sent) = self.send("POST", target, &fields, Base::Any).await else { return };
        if matches!(sent.told, Told::Done | Told::Nothing) {
            let again = self.send_value(sent.value, "POST", target, &fields, Base::Any).await;
            self.tally.repeated += usize::from(again.is_some());
            if again.is_some_and(|again| matches!(again.told, Told::Done)) {
                sent.told = Told::Done;
            }
        }
        self.conclude(target, Base::Any, Kind::Appends, sent);
    }

    /// Uses the lease that is held, by either route, or gives it back.
    async fn use_document_lease(&mut self) {
        let Some(held) = self.held.take() else { return };
        match self.random.below(20) {
            0..6 => self.write_leased("PUT", &held.target, &held).await,
            6..10 => self.write_on_base_leased(&named(&held.target).own, &held).await,
            10..12 => self.write_leased("POST", &held.target, &held).await,
            12 => return self.remove_leased(&held).await,
            13..15 => {
                self.held = Some(held);
                let target = self.held.as_ref().map(|held| held.target.clone()).unwrap_or_default();
                return self.read(&target).await;
            }
            15..19 => {
                self.release(&held).await;
                if self.random.is_one_of(40) {
                    self.write_leased("PUT", &held.target, &held).await;
                }
                return;
            }
            // The lease is forgotten, and runs out.
            _ => return,
        }
        self.held = Some(held).filter(|_| !self.random.is_one_of(5));
    }

    async fn write_leased(&mut self, method: &str, target: &str, held: &Held) {
        let Some(sent) = self.send(method, target, &[("Lease-Id", &held.id)], Base::Any).await else { return };
        let kind = if method == "POST" { Kind::Appends } else { Kind::Replaces };
        self.conclude_leased(target, Base::Any, kind, sent, held);
    }

    /// Writes by the route that offers no leases, and needs a precondition.
    async fn write_on_base_leased(&mut self, target: &str, held: &Held) {
        let Some((tag, base)) = self.known.get(target).cloned() else { return self.read(target).await };
        let condition = tag.as_ref().map_or(("If-None-Match", "*"), |tag| ("If-Match", tag.as_str()));
        let fields = [condition, ("Lease-Id", &held.id)];
        let Some(sent) = self.send("PUT", target, &fields, Base::Is(base)).await else { return };
        self.conclude_leased(target, Base::Is(base), Kind::Replaces, sent, held);
    }

    /// Removes a document, which ends the lease. Without an answer it is unknown whether the lease has ended.
    async fn remove_leased(&mut self, held: &Held) {
        let fields = [("Lease-Id", held.id.as_str())];
        let Some(sent) = self.send("DELETE", &held.target, &fields, Base::Any).await else { return };
        let is_refused = matches!(sent.told, Told::Refused(_) | Told::Differs);
        let ended = (sent.invoked, matches!(sent.told, Told::Done).then(std::time::Instant::now));
        self.conclude_leased(&held.target, Base::Any, Kind::Removes, sent, held);
        let grant = &mut self.history(&held.target).grants[held.index];
        if !is_refused && grant.released.is_none() {
            grant.released = Some(ended);
        }
    }

    fn conclude_leased(&mut self, target: &str, base: Base, kind: Kind, sent: Sent, held: &Held) {
        self.note_leased(held, sent.value, sent.invoked);
        if let Told::Refused(code) = &sent.told
            && code.starts_with("lease-")
        {
            self.note_disowned(target, Some(held.fence), sent.invoked);
        }
        self.conclude(target, base, kind, sent);
    }
}

/// True if clients take leases of a document. They take none of every other one, where no write is refused for a lease.
fn is_leased(document: &str) -> bool {
    let place = document.trim_start_matches("/docs/").split('-').next().unwrap_or_default();
    place.parse::<usize>().is_ok_and(|place| place.is_multiple_of(2))
}

fn alias_of(document: &str) -> String {
    document.replacen("/docs/", "/alias/", 1)
}

fn item_of(document: &str) -> String {
    document.replacen("/docs/", "/items/", 1)
}

#[test]
fn two_targets_are_one_document_and_its_item_is_a_part_of_it() {
    assert_eq!(named(&alias_of("/docs/1")), named("/docs/1"));
    let item = named(&item_of("/docs/1"));
    assert_eq!((item.own.as_str(), item.whole.as_deref()), ("/items/1", Some("/docs/1")));
}

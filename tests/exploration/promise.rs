//! The promise that must hold in every world.

use ifmatch::core::records::record::Snapshot;

use super::{
    client::{Role, Step},
    route::{Given, known},
    rules::{Mode, Rules},
    world::{Who, World},
};

impl World {
    /// Records how the promise is broken.
    pub fn breaks(&mut self, how: String) {
        self.broken.get_or_insert(how);
    }

    /// Lets the upstream apply a write. Checks that the write was based on the state that it replaces. Checks also that
    /// no other client holds the lease or was granted it since the write began.
    pub fn apply(&mut self, index: usize) {
        let (client, who) = (&self.clients[index], Who::Client(index));
        let (role, given) = (client.role, client.given);
        let write = client.write.clone().expect("what is applied was marked");
        let is_based = match (role, given) {
            // A write of the whole overwrites what is appended beside it: that is what unclaimed means.
            _ if write.is_beside => true,
            // The same bytes have the same tag.
            (Role::Writer, Some(given)) if self.mode != Mode::Version => given.content == self.content,
            (Role::Writer | Role::Holder, given) => given.is_some_and(|given| given.is_latest),
            (Role::Poster | Role::Plain, _) => true,
        };
        if !is_based {
            self.breaks(format!("an update is lost: {who} replaces a state that it has not seen"));
        }
        if write.is_overtaken {
            self.breaks(format!(
                "a lease is violated: {who} writes, and another one was granted the lease since that write began"
            ));
        }
        if self.grantee != Some(index) && self.store.read().lease_state().is_held() {
            self.breaks(format!("a lease is violated: {who} writes, and another one holds the lease"));
        }
        self.replace(index);
    }

    fn replace(&mut self, index: usize) {
        self.outdated = self.newest;
        self.is_intruded |= self.grantee != Some(index);
        let is_appended = self.clients[index].role == Role::Poster;
        if is_appended {
            self.appended += 1;
        }
        self.content = if is_appended { 10 + self.appended } else { self.clients[index].content };
        for client in &mut self.clients {
            client.given = client.given.map(|given| Given { is_latest: false, ..given });
            client.write.as_mut().into_iter().for_each(|write| write.is_beside |= is_appended);
        }
    }

    /// Records that a lease was granted, or that its holder still has it.
    pub fn note_grant(&mut self, index: usize, is_new: bool) {
        let who = Who::Client(index);
        let fence = self.store.read().fence();
        if is_new {
            if fence <= self.fence {
                self.breaks(format!(
                    "a lease is violated: {who} is granted it with a fence that is not greater than the last one"
                ));
            }
            (self.grantee, self.fence, self.is_intruded) = (Some(index), fence, false);
            for (other, client) in self.clients.iter_mut().enumerate() {
                client.write.as_mut().into_iter().for_each(|write| write.is_overtaken |= other != index);
            }
        } else if self.grantee != Some(index) || self.is_intruded {
            self.breaks(format!(
                "a lease is violated: {who} still has it, and another one has written since it was granted"
            ));
        }
    }

    /// Checks what must hold in every world.
    pub fn check(&mut self) {
        let snapshot = self.store.read();
        let version = snapshot.version();
        self.newest = self.newest.max(version);
        if snapshot.has_no_pending_writes()
            && let Some(how) = self.misunderstanding(&snapshot)
        {
            self.breaks(how);
        }
    }

    /// Finds a tag, given out or remembered, that names the current state but belongs to another one.
    fn misunderstanding(&self, snapshot: &Snapshot) -> Option<String> {
        let (version, content) = (snapshot.version(), self.content);
        if version <= self.outdated {
            return Some("a version names two states".to_owned());
        }
        let is_wrong = |given: &Given| given.version == version && given.content != content;
        if let Some(index) = self.clients.iter().position(|client| client.given.as_ref().is_some_and(is_wrong)) {
            return Some(format!("what {} was given has the version of another content", Who::Client(index)));
        }
        if snapshot.known().is_some_and(|what| *what != known(content)) {
            return Some("the record knows a tag that is not that of the content".to_owned());
        }
        let recalls = |proxy: &usize| self.recalled(*proxy, snapshot, &Rules::KEPT);
        let mut proxies = (0..self.remembered.len()).filter(|_| self.mode != Mode::ContentShared);
        let proxy = proxies.find(|proxy| recalls(proxy).is_some_and(|recalled| recalled != content))?;
        Some(format!("{} remembers as current what is not there any more", Who::Proxy(proxy)))
    }

    /// Checks what must hold when nothing can happen any more.
    pub fn check_end(&self) -> Option<String> {
        let waiting = self.clients.iter().position(|client| !client.is_over())?;
        Some(format!("{} never gets an answer: {}", Who::Client(waiting), stage(&self.clients[waiting].step)))
    }
}

fn stage(step: &Step) -> String {
    let text = format!("{step:?}");
    text.split(['(', ' ']).next().unwrap_or_default().to_owned()
}

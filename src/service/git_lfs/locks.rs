//! The operations on locks.

use std::time::SystemTime;

use futures_util::future::try_join_all;
use http::{Method, StatusCode};

use super::{owner::owner_of, repository::Repository, told};
use crate::{
    core::{
        lease::{Acquire, Action, HolderLabel, Lease, LeaseDuration, LeaseMode},
        records::record::Snapshot,
        refusal::{Code, Refusal},
        resource::ResourceKey,
    },
    dialect::git_lfs::{
        LOCK_BYTES_MAX, Lock, LockFilter, LockName, LockPage, LockPath, PageWanted, PathToLock, UnlockRequest,
        VerifyRequest, lock_answer, lock_not_found, locks_answer, no_force, not_owner, too_long_lock, verify_answer,
    },
    entropy::random_bytes,
    guard::{Answer, Halt, fresh_id, refusals, rules_of},
    service::Service,
    telemetry::stream_info,
};

/// A lock, and the lease behind it.
struct HeldLock {
    lock: Lock,
    lease: Lease,
}

impl Repository<'_> {
    /// Locks a path.
    pub(super) async fn lock(&mut self) -> Result<Answer, Halt> {
        let PathToLock { path } = PathToLock::parse(&self.document(LOCK_BYTES_MAX).await?)?;
        let owner = owner_of(&self.client.head().headers, rules_of(self.guarded)?);
        let (service, (_, listed), target) = (self.service, self.locks()?, path.target_in(&self.path));
        let (mut client, request) = self.request(&Method::GET, &target)?;
        stream_info::acts_on(&request.key);
        let fresh = fresh_id()?;
        let name = LockName::new(request.key.digest(), random_bytes().map_err(|_error| refusals::unknown_state())?);
        let lock = Lock::new(name, &path, &owner, humantime::format_rfc3339_seconds(SystemTime::now()).to_string());
        let wanted = Acquire {
            proposed: None,
            fresh,
            mode: LeaseMode::Exclusive,
            duration: LeaseDuration::Infinite,
            holder: HolderLabel::parse(owner.as_bytes()).ok(),
            note: Some(lock.to_note().map_err(|_too_long| too_long_lock())?),
            keeper: None,
            takes_over: false,
        };
        match Box::pin(service.guard.leases().acquire_listed(&mut client, &request, (wanted, &listed))).await {
            Ok(locked) => {
                let mut answer = told(StatusCode::CREATED, lock_answer(&lock));
                if let (Answer::Local(head, _), Some(untold)) = (&mut answer, locked.untold) {
                    untold.travel_with(head);
                }
                Ok(answer)
            }
            Err(Halt::Refused(refusal)) if refusal.code == Code::LeaseHeld => {
                service.held_lock(&request.key, Some(&listed)).await?;
                Err(refusal.into())
            }
            Err(halt) => Err(halt),
        }
    }

    /// Shows locks.
    pub(super) async fn list_locks(&mut self, filter: &LockFilter, page: PageWanted) -> Result<Answer, Halt> {
        let (request, listed) = self.locks()?;
        let service = self.service;
        service.guard.let_in(&request).await?;
        let (locks, next_cursor) = match filter {
            LockFilter::All => service.page_of_locks(&listed, page).await?,
            LockFilter::OfPath(path) => {
                let key = self.key_of(path)?;
                (service.held_lock(&key, Some(&listed)).await?.into_iter().collect(), None)
            }
            LockFilter::Named(name) => (service.lock_named(&listed, name).await?.into_iter().collect(), None),
            LockFilter::Nothing => (Vec::new(), None),
        };
        let locks: Vec<Lock> = locks.into_iter().map(|held| held.lock).collect();
        Ok(told(StatusCode::OK, locks_answer(&locks, next_cursor.as_deref())))
    }

    /// Shows the locks of the client apart from those of others.
    pub(super) async fn verify_locks(&mut self) -> Result<Answer, Halt> {
        let VerifyRequest { page } = VerifyRequest::parse(&self.document(LOCK_BYTES_MAX).await?)?;
        let (request, listed) = self.locks()?;
        let service = self.service;
        service.guard.let_in(&request).await?;
        let (locks, next_cursor) = service.page_of_locks(&listed, page).await?;
        let own = request.sender.principal.holder();
        let (ours, theirs): (Vec<_>, Vec<_>) = locks.into_iter().partition(|held| held.lease.principal == Some(own));
        let [ours, theirs] = [ours, theirs].map(|held| held.into_iter().map(|held| held.lock).collect::<Vec<_>>());
        Ok(told(StatusCode::OK, verify_answer(&ours, &theirs, next_cursor.as_deref())))
    }

    /// Unlocks a path.
    pub(super) async fn unlock(&mut self, name: &LockName) -> Result<Answer, Halt> {
        let UnlockRequest { is_forced } = UnlockRequest::parse(&self.document(LOCK_BYTES_MAX).await?)?;
        let (request, listed) = self.locks()?;
        let service = self.service;
        service.guard.let_in(&request).await?;
        let HeldLock { lock, lease } = service.lock_named(&listed, name).await?.ok_or_else(lock_not_found)?;
        let is_own = lease.principal == Some(request.sender.principal.holder());
        let may_force = request.rules().lease.as_ref().is_some_and(|rules| rules.client_break);
        let owner = lease.holder.as_ref().map(HolderLabel::as_str);
        let action = match (is_own, may_force) {
            (true, _) => Action::Release { id: lease.id },
            (false, false) => return Err(no_force().into()),
            (false, true) if is_forced => Action::BreakNamed { id: lease.id },
            (false, true) => return Err(not_owner(owner).into()),
        };
        let path = lock.path().ok_or_else(lock_not_found)?.target_in(&self.path);
        let (mut client, request) = self.request(&Method::GET, &path)?;
        stream_info::acts_on(&request.key);
        Box::pin(service.guard.leases().end_listed(&mut client, &request, (action, &listed))).await?;
        if !is_own {
            tracing::warn!(key = %request.key, owner, "a client has ended the lock of another (lease.client_break)");
        }
        Ok(told(StatusCode::OK, lock_answer(&lock)))
    }

    /// The key of the resource that stands for a path.
    fn key_of(&mut self, path: &LockPath) -> Result<ResourceKey, Halt> {
        let target = path.target_in(&self.path);
        Ok(self.request(&Method::GET, &target)?.1.key)
    }
}

impl Service<'_> {
    /// The locks on a page of a list, and where the next page begins.
    async fn page_of_locks(
        &self,
        listed: &ResourceKey,
        wanted: PageWanted,
    ) -> Result<(Vec<HeldLock>, Option<String>), Halt> {
        let LockPage { keys, next_cursor } = LockPage::of(self.listed_keys(listed).await?.into_iter(), wanted);
        let locks = try_join_all(keys.iter().map(|key| self.held_lock(key, None))).await?;
        Ok((locks.into_iter().flatten().collect(), next_cursor))
    }

    /// The lock on a list that has this name, if it is held.
    async fn lock_named(&self, listed: &ResourceKey, name: &LockName) -> Result<Option<HeldLock>, Halt> {
        for key in self.listed_keys(listed).await?.iter().filter(|key| name.may_be_of(key)) {
            if let Some(held) = self.held_lock(key, None).await?.filter(|held| held.lock.is_named(name)) {
                return Ok(Some(held));
            }
        }
        Ok(None)
    }

    async fn listed_keys(&self, listed: &ResourceKey) -> Result<Vec<ResourceKey>, Halt> {
        let list = self.lock_record(listed).await?;
        Ok(list.listed_leases().map(|lease| ResourceKey::from_text(&lease.root)).collect())
    }

    /// The lock of a resource, if it is held. One that a client may learn of outside of a list is put on `listed` first: the
    /// process that granted it may have died before it did so.
    async fn held_lock(&self, key: &ResourceKey, listed: Option<&ResourceKey>) -> Result<Option<HeldLock>, Halt> {
        let found = self.lock_record(key).await?;
        let held = found.held_leases().find_map(|lease| {
            let lock = lease.note.as_ref().and_then(Lock::of_note)?;
            Some(HeldLock { lock, lease: lease.clone() })
        });
        if let (Some(_), Some(listed)) = (&held, listed) {
            self.guard.leases().put_on_list(key, &found, listed).await?;
        }
        Ok(held)
    }

    async fn lock_record(&self, key: &ResourceKey) -> Result<Snapshot, Refusal> {
        self.guard.records().read(key).await.map_err(|error| refusals::of_store(&error))
    }
}

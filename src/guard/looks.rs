//! The looks at resources that others write too, for all clients that watch them.
//!
//! # Design
//!
//! *Why one probe for all?* A thousand clients may watch one resource. The probe of one of them finds each change, and
//! only its tag depends on the client. Clients that select another variant get a notice without a tag.
//!
//! *What if the backend does not answer?* Then no client asks it again before the next look is due. All others would wait
//! for it one after the other.

use std::{
    collections::HashMap,
    sync::{
        Arc, Weak,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use parking_lot::Mutex;
use tokio::time::Instant;

use super::{Request, probe::Probes};
use crate::{
    change_count::ChangeCount,
    core::{
        records::record::{Revision, Snapshot, VariantName},
        resource::ResourceKey,
        tags::head_answer::Aim,
        watch::{SeenContent, Sight},
    },
};

/// The looks at all resources that are watched now.
#[derive(Default)]
pub(super) struct SharedLooks {
    by_key: Mutex<HashMap<ResourceKey, Weak<SharedLook>>>,
    /// The number that the changes of the next resource are counted from. No name of a state then comes back.
    next: AtomicU64,
}

/// The looks at one resource.
pub(super) struct SharedLook {
    looks: tokio::sync::Mutex<Looks>,
    /// The number of changes that were found.
    pub(super) changes: ChangeCount,
}

#[derive(Default)]
struct Looks {
    /// The time of the last question to the backend, and the last write of this store then. The backend may have given no
    /// answer.
    asked: Option<(Instant, Revision)>,
    seen: Option<Seen>,
}

/// The results of the looks since the last write of this store.
struct Seen {
    touched: Revision,
    by_variant: HashMap<VariantName, SeenContent>,
    /// Lives as long as the client that has looked last.
    looker: Weak<()>,
}

impl SharedLooks {
    /// Returns the looks at a resource.
    pub(super) fn of(&self, key: &ResourceKey) -> Arc<SharedLook> {
        let mut by_key = self.by_key.lock();
        if let Some(look) = by_key.get(key).and_then(Weak::upgrade) {
            return look;
        }
        if by_key.len() == by_key.capacity() {
            by_key.retain(|_, look| look.strong_count() > 0);
        }
        let first = self.next.fetch_add(1 << 32, Ordering::Relaxed);
        let look = Arc::new(SharedLook { looks: tokio::sync::Mutex::default(), changes: ChangeCount::from(first) });
        by_key.insert(key.clone(), Arc::downgrade(&look));
        look
    }
}

impl SharedLook {
    /// Notes what a probe for this request has shown, while the record was this one.
    pub(super) async fn note(self: &Arc<Self>, asked: (&Request, &Arc<()>), snapshot: &Snapshot, content: SeenContent) {
        let mut looks = self.looks.lock().await;
        looks.asked = Some((Instant::now(), snapshot.touched()));
        self.update(&mut looks.seen, asked, snapshot, content);
    }

    /// Looks at the resource, unless that was done recently. The record was read as `snapshot`.
    pub(super) async fn look(
        self: &Arc<Self>,
        probes: &Probes,
        asked: (&Request, &Arc<()>),
        snapshot: &Snapshot,
        max_age: Duration,
    ) -> Sight {
        let (mut looks, touched) = (self.looks.lock().await, snapshot.touched());
        let is_fresh = looks.asked.is_some_and(|(at, then)| then == touched && at.elapsed() < max_age);
        if !is_fresh {
            let content = probes.seen(asked.0, snapshot, Aim::Tag).await;
            looks.asked = Some((Instant::now(), touched));
            if let Some(content) = content {
                self.update(&mut looks.seen, asked, snapshot, content);
            }
        }
        let current = looks.seen.as_ref().filter(|seen| seen.touched == touched);
        let content = current.and_then(|seen| seen.by_variant.get(&asked.0.variant()).cloned());
        Sight { changes: self.changes.number(), ..content.unwrap_or(SeenContent::Unknown).into() }
    }

    fn update(
        self: &Arc<Self>,
        seen: &mut Option<Seen>,
        (request, looker): (&Request, &Arc<()>),
        snapshot: &Snapshot,
        content: SeenContent,
    ) {
        let (touched, variant) = (snapshot.touched(), request.variant());
        let before = seen.take().filter(|seen| seen.touched == touched);
        let mut by_variant = HashMap::new();
        if let Some(before) = before {
            let is_changed = match before.by_variant.get(&variant) {
                Some(SeenContent::Unknown) => false,
                Some(known) => *known != content,
                // A change since the last look of a client that has gone would be lost.
                None => before.looker.strong_count() == 0,
            };
            if is_changed {
                self.changes.grow();
            } else if before.by_variant.len() < 2 * Arc::strong_count(self) + 1 {
                by_variant = before.by_variant;
            }
        }
        by_variant.insert(variant, content);
        *seen = Some(Seen { touched, by_variant, looker: Arc::downgrade(looker) });
    }
}

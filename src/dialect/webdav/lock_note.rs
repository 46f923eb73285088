//! The note of a lease that is a lock, and the form in which a lock is shown.

use super::documents::{ShownLock, token_uri};
use crate::core::lease::{Lease, LeaseNote, PrincipalName, TooLongNote};
use crate::core::records::record::Snapshot;

/// The facts about a lock that its lease does not have.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LockNote {
    /// The principal that made the lock. Only it sees the token again.
    pub maker: PrincipalName,
    /// True if the client asked for a lock of all below the resource.
    pub is_deep: bool,
    /// True if the resource is a collection.
    pub is_of_collection: bool,
    /// The element of the owner.
    pub owner: Option<Box<str>>,
}

impl LockNote {
    /// Returns the note for the lease.
    ///
    /// # Errors
    ///
    /// The owner is too long.
    pub fn to_note(&self) -> Result<LeaseNote, TooLongNote> {
        let maker = u128::from_be_bytes(self.maker);
        let depth = if self.is_deep { "infinity" } else { "0" };
        let slash = if self.is_of_collection { "/" } else { "" };
        LeaseNote::new(&format!("{maker:032x} {depth}{slash} {}", self.owner.as_deref().unwrap_or_default()))
    }

    /// Reads the note of a lease; `None` if it is that of another service.
    pub fn of(note: &LeaseNote) -> Option<Self> {
        let mut parts = note.as_str().splitn(3, ' ');
        let maker = u128::from_str_radix(parts.next()?, 16).ok()?.to_be_bytes();
        let depth = parts.next()?;
        let is_of_collection = depth.ends_with('/');
        let is_deep = depth.trim_end_matches('/') == "infinity";
        let owner = parts.next().filter(|owner| !owner.is_empty()).map(Into::into);
        Some(Self { maker, is_deep, is_of_collection, owner })
    }
}

impl ShownLock {
    /// A lease of a record as a lock on the resource with this reference. Only the principal that made the lock sees its
    /// token. Others see a name that proves nothing.
    pub fn of(lease: &Lease, snapshot: &Snapshot, reader: PrincipalName, root: &str) -> Self {
        let note = lease.note.as_ref().and_then(LockNote::of);
        let is_maker = note.as_ref().is_some_and(|note| note.maker == reader);
        let token = if is_maker {
            token_uri(lease.id)
        } else {
            format!("urn:x-ifmatch:lock:{}", lease.fence.resolve(snapshot.revision).0)
        };
        Self {
            mode: lease.mode,
            is_deep: note.as_ref().is_some_and(|note| note.is_deep),
            owner: note.and_then(|note| note.owner),
            remaining: lease.remaining(snapshot.now),
            token,
            root: root.to_owned(),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;
    use crate::{
        core::lease::{
            Action, LeaseDuration, LeaseMode,
            testing::{Resource, acquire, fixed, id},
        },
        dialect::webdav::StateToken,
    };

    #[test]
    fn a_note_is_read_as_it_was_written() {
        for note in [
            LockNote { maker: [0; 16], is_deep: false, is_of_collection: true, owner: None },
            LockNote {
                maker: [0xab; 16],
                is_deep: true,
                is_of_collection: false,
                owner: Some("<D0:owner> a b</D0:owner>".into()),
            },
        ] {
            let written = note.to_note().expect("short");
            assert_eq!(LockNote::of(&written), Some(note));
        }
        for other in ["", "x", "0123", "xyz 0 "] {
            assert_eq!(LockNote::of(&LeaseNote::new(other).expect("short")), None, "{other}");
        }
    }

    /// Rule 11: only the client that made a lease gets its id.
    #[test]
    fn only_the_maker_of_a_lock_sees_its_token() {
        let (maker, other) = ([1; 16], [2; 16]);
        let note = LockNote { maker, is_deep: true, is_of_collection: false, owner: Some("<o/>".into()) };
        let mut resource = Resource::new();
        let Action::Acquire(mut wanted) = acquire(Some(id(7)), fixed(60)) else { unreachable!() };
        wanted.note = note.to_note().ok();
        resource.must(Action::Acquire(wanted));
        resource.pass_seconds(20);
        let lease = resource.snapshot.lease().expect("it is held");
        let seen = |reader| ShownLock::of(lease, &resource.snapshot, reader, "/a");
        let own = seen(maker);
        assert_eq!(StateToken::of_uri(&own.token), StateToken::Lock(id(7)));
        assert_eq!((own.mode, own.is_deep, own.owner.as_deref()), (LeaseMode::Exclusive, true, Some("<o/>")));
        assert_eq!((own.remaining, own.root.as_str()), (Some(Duration::from_secs(40)), "/a"));
        let hidden = seen(other);
        assert_eq!(StateToken::of_uri(&hidden.token), StateToken::Unknown);
        assert!(!hidden.token.contains(&id(7).reveal()), "{}", hidden.token);
        assert_eq!(ShownLock { token: String::new(), ..hidden }, ShownLock { token: String::new(), ..own });
        let mut endless = Resource::new();
        endless.must(acquire(Some(id(7)), LeaseDuration::Infinite));
        let lease = endless.snapshot.lease().expect("it is held");
        let shown = ShownLock::of(lease, &endless.snapshot, [0; 16], "/a");
        assert_eq!((StateToken::of_uri(&shown.token), shown.remaining), (StateToken::Unknown, None), "a native lease");
    }
}

//! The first attempt at a write that came with an idempotency key, as its record keeps it.
//!
//! Its steps are in [`attempt_steps`](super::attempt_steps).

use bytes::Bytes;

use crate::core::{lease::PrincipalName, time::StoreTime};

/// A hash of what a write sends: two writes with one key and one fingerprint are one write that was sent twice.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// The answer that a replay carries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct KeptAnswer {
    /// The status of the first answer.
    pub status: u16,
    /// The names and values of the fields of the first answer that a replay carries.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The body of the first answer; `None` if it was not kept, and then no field describes one.
    pub body: Option<Bytes>,
}

impl KeptAnswer {
    /// The same answer without what takes room.
    #[must_use]
    pub fn status_alone(&self) -> Self {
        Self { status: self.status, fields: Vec::new(), body: None }
    }

    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.len() + value.len() + 64);
        fields.sum::<usize>() + self.body.as_ref().map_or(0, Bytes::len)
    }
}

/// The sender of an attempt, as well as a proxy can tell.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct AttemptSender {
    /// The declared identity, to which the key belongs.
    pub owner: PrincipalName,
    /// All credentials, also those that are no part of the identity.
    pub credentials: PrincipalName,
}

/// The fingerprint of an attempt, and its sender.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct SentWrite {
    /// The hash of the parts of a request that tell one write from another.
    pub fingerprint: Fingerprint,
    /// The sender.
    pub sender: AttemptSender,
}

/// The first attempt at a write. The claim of its record shows that it is in flight, and the doubt that it is in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FirstAttempt {
    /// The fingerprint of the attempt, and its sender.
    pub sent: SentWrite,
    /// The time until which no other write with this key is carried out.
    pub until: StoreTime,
    /// Its answer, if it may have changed the resource and has one.
    pub answer: Option<KeptAnswer>,
}

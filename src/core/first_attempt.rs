//! The first attempt at a write that came with an idempotency key, as its record keeps it.
//!
//! Its steps are in [`attempt_steps`](super::attempt_steps).

use bytes::Bytes;

use super::time::StoreTime;

/// A hash of what a write sends: two writes with one key and one fingerprint are one write that was sent twice.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub struct Fingerprint(pub [u8; 32]);

/// The answer that a replay carries.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct Success {
    /// The status of the first answer.
    pub status: u16,
    /// The names and values of the fields of the first answer that a replay carries.
    pub fields: Vec<(String, Vec<u8>)>,
    /// The body of the first answer; `None` if it was not kept, and then no field describes one.
    pub body: Option<Bytes>,
}

impl Success {
    /// The approximate size in memory, in bytes.
    pub fn bytes(&self) -> usize {
        let fields = self.fields.iter().map(|(name, value)| name.len() + value.len() + 64);
        fields.sum::<usize>() + self.body.as_ref().map_or(0, Bytes::len)
    }
}

/// The first attempt at a write. The claim of its record shows that it is in flight, and the doubt that it is in doubt.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct FirstAttempt {
    /// The hash of the attempt's request.
    pub fingerprint: Fingerprint,
    /// Its answer, if the attempt succeeded.
    pub success: Option<RememberedSuccess>,
}

/// The answer of a write that succeeded, and its term.
#[derive(Clone, Debug, PartialEq, Eq, Hash)]
pub struct RememberedSuccess {
    /// The answer.
    pub answer: Success,
    /// The time until which a retry gets the answer.
    pub until: StoreTime,
}

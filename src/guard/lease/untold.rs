//! A lease whose client has not got its id yet (DESIGN, section 3, rule 15).
//!
//! # Design
//!
//! *Why does it travel with the head of the answer?* The head shows the client its id. An end of the request before the
//! head is written drops the head: then the lease is taken back, and locks no client out.
//!
//! *What if the client had chosen the id?* It knows the id, and can repeat or release the lease. So that lease stands.

use std::sync::Arc;

use parking_lot::Mutex;
use pingora::http::ResponseHeader;

use crate::{body::Client, core::lease::LeaseDuration, guard::claim::pending_mark::PendingMark};

/// A new lease whose id its client has not received yet. It is taken back when the last copy is dropped, unless the
/// client was told.
#[derive(Clone)]
pub struct UntoldGrant(Arc<Mutex<Option<PendingMark>>>);

impl UntoldGrant {
    /// The grant that this attempt has made.
    pub(crate) fn new(made: PendingMark) -> Self {
        Self(Arc::new(Mutex::new(Some(made))))
    }

    /// Puts the grant into the head that shows its id.
    pub(crate) fn travel_with(self, head: &mut ResponseHeader) {
        head.extensions_mut().insert(self);
    }

    /// Takes the grant out of the head that shows its id, if there is one. The caller writes the head.
    pub fn of(head: &mut ResponseHeader) -> Option<Self> {
        head.extensions_mut().remove()
    }

    /// Lets the lease stand: the head was written.
    pub fn told(self) {
        if let Some(mut made) = self.0.lock().take() {
            made.confirm();
        }
    }
}

/// True if a client has gone before it could learn of a lease that never ends. The answer would seem to be sent: a
/// connection that its client has closed takes bytes until the client's system objects.
pub(crate) fn has_nobody_to_tell(client: &mut dyn Client, duration: LeaseDuration) -> bool {
    duration == LeaseDuration::Infinite && client.has_gone()
}
